"""The table's storage, for code that runs in Spark's tasks.

A FileIO states by its own pickling how another process opens the same storage: an object store takes its properties
along, such as ``s3.endpoint`` and the keys. They travel with the task's function, which plans and logs do not show.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import cast

from icefloe.errors import IcefloeError, UnsupportedError
from icefloe.io.file_io import FileIO


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStorage:
    """A FileIO on its way to a task; the text of it shows no settings."""

    pickled: bytes = field(repr=False)

    def open(self) -> FileIO:
        """The FileIO, in the process that calls this."""
        return cast(FileIO, pickle.loads(self.pickled))


def task_storage(io: FileIO) -> TaskStorage:
    """What a task needs to open the storage of ``io``; ``UnsupportedError`` if no other process can.

    >>> from icefloe.io.local import LocalFileIO
    >>> type(task_storage(LocalFileIO()).open()).__name__
    'LocalFileIO'
    """
    try:
        return TaskStorage(pickled=pickle.dumps(io))
    except IcefloeError:
        raise
    except Exception as error:  # pickling has no error of its own for what it cannot take
        raise UnsupportedError(
            f"Spark's tasks cannot open this storage, because its {type(io).__name__} cannot be pickled: {error}",
            feature="storage in tasks",
        ) from error
