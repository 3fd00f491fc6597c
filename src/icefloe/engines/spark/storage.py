"""The storage of a table for Spark's tasks, and its locations for Hadoop.

A FileIO is pickled with what another process needs to open the same storage, for an object store with properties such
as ``s3.endpoint`` and the keys. They are part of the function of the task, which plans and logs do not show.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import IcefloeError, UnsupportedError
from icefloe.io.file_io import FileIO


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStorage:
    """A pickled FileIO; its ``repr`` shows no settings."""

    pickled: bytes = field(repr=False)

    def open(self) -> FileIO:
        """The FileIO, in the process that calls this."""
        return cast(FileIO, pickle.loads(self.pickled))


def task_storage(io: FileIO) -> TaskStorage:
    """The storage of ``io`` for a task; UnsupportedError if no other process can open it.

    >>> from icefloe.io.local import LocalFileIO
    >>> type(task_storage(LocalFileIO()).open()).__name__
    'LocalFileIO'
    """
    try:
        return TaskStorage(pickled=pickle.dumps(io))
    except IcefloeError:
        raise
    except Exception as error:  # pickling raises errors of many types
        raise UnsupportedError(
            f"Spark's tasks cannot open this storage, because its {type(io).__name__} cannot be pickled: {error}",
            feature="storage in tasks",
        ) from error


def hadoop_path(location: str) -> str:
    """The location for Hadoop's ``Path``, which resolves a path without a scheme on the cluster's default storage.

    >>> hadoop_path("/wh/t")
    'file:///wh/t'
    """
    return f"file://{location}" if location.startswith("/") else location


def hadoop_paths(locations: pa.ChunkedArray) -> pa.ChunkedArray:
    """The locations for Hadoop's ``Path``, which resolves a path without a scheme on the cluster's default storage."""
    return pc.replace_substring_regex(locations, "^/", "file:///")
