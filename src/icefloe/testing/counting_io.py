"""A FileIO that records its calls, for tests of what a commit or a scan reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from icefloe.io.file_io import FileInfo, FileIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One file of one call: the method, the location, and the bytes requested, read or written."""

    verb: str
    location: str
    size: int = 0


Calls = list[Call]


class CountingFileIO:
    """Forwards and records every call; ``calls`` has them in order, with one entry for each file.

    A call is recorded when it returns, so one that raised is not in the record. What Arrow reads and writes by itself
    through ``arrow_path`` is recorded as that verb only.

    >>> from icefloe.io.memory import MemoryFileIO
    >>> io = CountingFileIO(MemoryFileIO())
    >>> io.write_new("memory://t/a", b"12345")
    >>> io.calls
    [Call(verb='write_new', location='memory://t/a', size=5)]
    """

    def __init__(self, inner: FileIO) -> None:
        self.inner = inner
        self.calls: Calls = []

    def reset(self) -> None:
        """Forget the record."""
        self.calls.clear()

    def count(self, *verbs: str) -> int:
        """How many files these methods were called for."""
        return sum(call.verb in verbs for call in self.calls)

    def volume(self, *verbs: str) -> int:
        """How many bytes these methods read or wrote."""
        return sum(call.size for call in self.calls if call.verb in verbs)

    def read(self, location: str, limit: int | None = None) -> bytes:
        """The whole file."""
        data = self.inner.read(location, limit)
        self._record("read", location, len(data))
        return data

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """A part of the file."""
        data = self.inner.read_range(location, offset, length)
        self._record("read_range", location, len(data))
        return data

    def size(self, location: str) -> int:
        """The file's length."""
        size = self.inner.size(location)
        self._record("size", location)
        return size

    def exists(self, location: str) -> bool:
        """Whether there is a file."""
        exists = self.inner.exists(location)
        self._record("exists", location)
        return exists

    def write_new(self, location: str, data: bytes) -> None:
        """Write a new file."""
        self.inner.write_new(location, data)
        self._record("write_new", location, len(data))

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write new files; recorded as ``write_new`` of each."""
        self.inner.write_many(files)
        for location, data in files:
            self._record("write_new", location, len(data))

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Write a file unless the name is taken."""
        won = self.inner.put_if_absent(location, data)
        self._record("put_if_absent", location, len(data))
        return won

    def link_if_absent(self, source: str, location: str) -> bool:
        """Give a file one more name unless that is taken."""
        won = self.inner.link_if_absent(source, location)
        self._record("link_if_absent", location)
        return won

    def sync(self, locations: Sequence[str]) -> None:
        """Make files durable."""
        self.inner.sync(locations)
        for location in locations:
            self._record("sync", location)

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files."""
        self.inner.delete(locations)
        for location in locations:
            self._record("delete", location)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """The files under a folder; recorded at the call."""
        self._record("list", prefix)
        return self.inner.list(prefix)

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """The Arrow file system and path of the file."""
        files_and_path = self.inner.arrow_path(location)
        self._record("arrow_path", location)
        return files_and_path

    def _record(self, verb: str, location: str, size: int = 0) -> None:
        self.calls.append(Call(verb=verb, location=location, size=size))
