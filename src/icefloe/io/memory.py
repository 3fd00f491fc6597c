"""Files in memory, for tests, examples and doctests: ``memory://bucket/path``.

Behaves like the local disk, except that files end with the process. Each instance is its own store; ``io.select`` has
the one that ``memory://`` locations share.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe.errors import AlreadyExists, InputError, NoSuchFile, UnsupportedError
from icefloe.io.arrow_view import arrow_view
from icefloe.io.file_io import FileInfo, check_size
from icefloe.io.local import check_range, short_file
from icefloe.io.storage_locations import plain_location

SCHEME = "memory://"


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    data: bytes
    modified_ms: int


class MemoryFileIO:
    """A FileIO over a dictionary; a lock makes each method atomic."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        raise UnsupportedError(
            "files in memory belong to one process and cannot be opened by another, such as a task of Spark; use"
            " file:// locations"
        )

    def read(self, location: str, limit: int | None = None) -> bytes:
        """The whole file."""
        data = self._find(location).data
        check_size(location, len(data), limit)
        return data

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``."""
        check_range(location, offset, length)
        data = self._find(location).data[offset : offset + length]
        if len(data) < length:
            raise short_file(location, offset, length, got=len(data))
        return data

    def size(self, location: str) -> int:
        """The file's length in bytes."""
        return len(self._find(location).data)

    def exists(self, location: str) -> bool:
        """Whether there is a file at the location."""
        return _key(location) in self._files

    def write_new(self, location: str, data: bytes) -> None:
        """Write a file that must not exist yet."""
        self.write_many(((location, data),))

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write several new files; all or none."""
        new = [(_key(location), _file(data)) for location, data in files]
        with self._lock:
            names: set[str] = set()
            for key, _ in new:
                if key in self._files or key in names:
                    raise AlreadyExists(f"there is a file at {key} already", location=key)
                names.add(key)
            self._files.update(new)

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Make the file appear unless the name is taken: True for the one winner."""
        key, file = _key(location), _file(data)
        return self._files.setdefault(key, file) is file

    def link_if_absent(self, source: str, location: str) -> bool:
        """Give a file one more name, unless that is taken."""
        return self.put_if_absent(location, self.read(source))

    def replace(self, location: str, data: bytes) -> None:
        """Write a file whether or not there is one; for Arrow, whose writers overwrite."""
        self._files[_key(location)] = _file(data)

    def sync(self, locations: Sequence[str]) -> None:
        """Check that the files are there."""
        for location in locations:
            self._find(location)

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files; one that is already gone is fine."""
        for location in locations:
            self._files.pop(_key(location), None)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file under the folder ``prefix``, spelled like ``prefix``."""
        folder = _key(prefix).rstrip("/") + "/"
        with self._lock:
            matching = sorted(item for item in self._files.items() if item[0].startswith(folder))
        for key, file in matching:
            yield FileInfo(location=key, size=len(file.data), modified_ms=file.modified_ms)

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """An Arrow file system over this store, and the path in it."""
        view = arrow_view(self, SCHEME, open_input=self._open_input, open_output=self._open_output)
        return view, _key(location)[len(SCHEME) :]

    def _open_input(self, location: str) -> Any:
        return pa.BufferReader(self.read(location))

    def _open_output(self, location: str) -> Any:
        return pa.PythonFile(_Output(lambda data: self.replace(location, data)), mode="w")

    def _find(self, location: str) -> _File:
        file = self._files.get(_key(location))
        if file is None:
            raise NoSuchFile(f"no file at {location}", location=location)
        return file


class _Output(io.BytesIO):
    """A stream that stores its bytes when it is closed."""

    def __init__(self, done: Callable[[bytes], None]) -> None:
        super().__init__()
        self._done = done

    def close(self) -> None:
        if not self.closed:
            self._done(self.getvalue())
        super().close()


def _file(data: bytes) -> _File:
    return _File(data=bytes(data), modified_ms=time.time_ns() // 1_000_000)


def _key(location: str) -> str:
    if not location.startswith(SCHEME):
        raise InputError(f"{location!r} is not a memory location; write memory://name/path", location=location)
    plain_location(location)
    return location
