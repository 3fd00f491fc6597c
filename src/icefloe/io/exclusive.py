"""The self-test of ``put_if_absent``: storage whose conditional put is not exclusive loses commits, so it is refused.

Stores and mounts exist that ignore the condition, or check it and write in two steps. A catalog that commits with
``put_if_absent`` asks once before it trusts a folder.
"""

from __future__ import annotations

import contextlib
import uuid
from concurrent.futures import ThreadPoolExecutor

from icefloe.errors import CommitStateUnknown, IcefloeError, StorageError, UnsupportedError
from icefloe.io.file_io import FileIO

_WRITERS = 4
_ROUNDS = 3


class ExclusivePut:
    """Checks once, before the first commit, that a put into a folder has one winner."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._proved = False

    def require(self, folder: str) -> None:
        """``UnsupportedError`` if two writers can create the same file; checked once per instance."""
        if not self._proved:
            check_exclusive(self._io, folder)
            self._proved = True


def check_exclusive(io: FileIO, folder: str) -> None:
    """Let a few writers race for names in ``folder``; UnsupportedError unless each has one winner, whose bytes stay.

    >>> from icefloe.io.memory import MemoryFileIO
    >>> check_exclusive(MemoryFileIO(), "memory://wh/db/t/metadata")
    """
    for _ in range(_ROUNDS):
        _race(io, f"{folder.rstrip('/')}/.exclusive-{uuid.uuid4()}.tmp")


def _race(io: FileIO, location: str) -> None:
    texts = [b"%d" % writer for writer in range(_WRITERS)]
    try:
        with ThreadPoolExecutor(_WRITERS, thread_name_prefix="icefloe-race") as pool:
            answers = list(pool.map(lambda text: io.put_if_absent(location, text), texts))
        late = io.put_if_absent(location, b"late")
        winners = [text for text, won in zip(texts, answers, strict=True) if won]
        if late or len(winners) != 1 or io.read(location) != winners[0]:
            raise UnsupportedError(
                f"the storage of {location} let {len(winners) + late} of {_WRITERS + 1} writers create one file,"
                " so commits by file name would be lost there; use a SQL catalog",
                location=location,
            )
    except CommitStateUnknown as error:
        raise StorageError(
            f"could not check that only one writer can create {location}: {error.__cause__ or error}; nothing was"
            " committed",
            location=location,
        ) from error
    finally:
        with contextlib.suppress(IcefloeError):
            io.delete([location])
