"""A FileIO that fails at the Nth call: with an error or by ending the process, before, after or halfway through.

Tests run an operation with N = 1, 2, 3 ... until a run completes without meeting the fault (``hit`` stays False), so
every point where storage can fail is tried. Only calls that change storage or that other writers can observe are
counted by default; reads can be counted too.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from icefloe.errors import CommitStateUnknown, IcefloeError, StorageError
from icefloe.io.file_io import FileInfo, FileIO

_T = TypeVar("_T")

CHANGES = frozenset({"write_new", "put_if_absent", "sync", "delete"})
READS = frozenset({"read", "read_range", "size", "exists", "list", "arrow_path"})
Locations = list[str]
EXIT_CODE = 86  # of a process that died of its fault, so that a parent can tell


class Moment(Enum):
    """When the fault strikes: before the call has any effect, after all of it, or when half the bytes are written."""

    BEFORE = "before"
    AFTER = "after"
    HALFWAY = "halfway"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong: at the ``at``-th counted call (from 1) of the given verbs."""

    at: int
    moment: Moment = Moment.BEFORE
    die: bool = False  # end the process at once, as a kill would, instead of raising
    verbs: frozenset[str] = CHANGES
    code: int = errno.EIO


class FaultyFileIO:
    """Passes calls on until the fault's turn comes; afterwards it passes them on again.

    >>> from icefloe.io.memory import MemoryFileIO
    >>> io = FaultyFileIO(MemoryFileIO(), Fault(at=2))
    >>> io.write_new("memory://t/a", b"1")
    >>> io.write_new("memory://t/b", b"2")
    Traceback (most recent call last):
    icefloe.errors.StorageError: fault at call 2, before write_new of memory://t/b
    """

    def __init__(self, inner: FileIO, fault: Fault | None = None) -> None:
        self.inner = inner
        self.fault = fault
        self.calls = 0
        self.hit = False

    def read(self, location: str) -> bytes:
        """The whole file."""
        return self._call("read", location, lambda: self.inner.read(location))

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """A part of the file."""
        return self._call("read_range", location, lambda: self.inner.read_range(location, offset, length))

    def size(self, location: str) -> int:
        """The file's length."""
        return self._call("size", location, lambda: self.inner.size(location))

    def exists(self, location: str) -> bool:
        """Whether there is a file."""
        return self._call("exists", location, lambda: self.inner.exists(location))

    def write_new(self, location: str, data: bytes) -> None:
        """Write a new file; halfway leaves a file with half of the bytes."""
        half = data[: len(data) // 2]
        self._call(
            "write_new",
            location,
            lambda: self.inner.write_new(location, data),
            half=lambda: self.inner.write_new(location, half),
        )

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write new files one by one, so that a fault can strike between any two; like the real one, all or none."""
        written: Locations = []
        try:
            for location, data in files:
                self.write_new(location, data)
                written.append(location)
        except BaseException:
            self.inner.delete(written)
            raise

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Write a file unless the name is taken; an error after the effect is an unknown outcome."""
        return self._call("put_if_absent", location, lambda: self.inner.put_if_absent(location, data))

    def sync(self, locations: Sequence[str]) -> None:
        """Make files durable; halfway syncs the first half of them."""
        half = locations[: len(locations) // 2]
        self._call("sync", _few(locations), lambda: self.inner.sync(locations), half=lambda: self.inner.sync(half))

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files; halfway deletes the first half of them."""
        half = locations[: len(locations) // 2]
        self._call(
            "delete", _few(locations), lambda: self.inner.delete(locations), half=lambda: self.inner.delete(half)
        )

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """The files under a folder."""
        return self._call("list", prefix, lambda: self.inner.list(prefix))

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """Arrow's way to the file."""
        return self._call("arrow_path", location, lambda: self.inner.arrow_path(location))

    def _call(
        self, verb: str, location: str, effect: Callable[[], _T], *, half: Callable[[], object] | None = None
    ) -> _T:
        fault = self._turn(verb)
        if fault is None:
            return effect()
        if fault.moment is Moment.AFTER:
            effect()
        if fault.moment is Moment.HALFWAY and half is not None:
            half()
        raise self._failure(fault, verb, location)

    def _turn(self, verb: str) -> Fault | None:
        """Count the call: the fault, if this is its turn."""
        fault = self.fault
        if fault is None or verb not in fault.verbs:
            return None
        self.calls += 1
        if self.calls != fault.at:
            return None
        self.hit = True
        return fault

    def _failure(self, fault: Fault, verb: str, location: str) -> IcefloeError:
        if fault.die:
            os._exit(EXIT_CODE)
        message = f"fault at call {fault.at}, {fault.moment.value} {verb} of {location}"
        if verb == "put_if_absent" and fault.moment is Moment.AFTER:
            return CommitStateUnknown(message, location=location)
        error = StorageError(message, location=location)
        error.errno = fault.code
        return error


def _few(locations: Sequence[str]) -> str:
    return f"{len(locations)} files" if len(locations) != 1 else locations[0]
