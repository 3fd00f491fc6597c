"""Files in any file system that Arrow knows, and in those of fsspec through Arrow's wrapper.

These interfaces have no conditional put. A check followed by a write would lose commits, so ``put_if_absent`` is
refused, except for Arrow's local disk, where ``io.local`` is used. Files are as durable as the file system makes them
when they are closed.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pyarrow import fs

from icefloe.env import SYSTEM, Env
from icefloe.errors import AlreadyExists, InputError, NoSuchFile, StorageError, UnsupportedError
from icefloe.io.file_io import FileInfo, check_size, delete_each, translated
from icefloe.io.local import LocalFileIO, check_range, short_file
from icefloe.io.retries import retried
from icefloe.io.storage_locations import plain_location

_T = TypeVar("_T")

_PASSING = frozenset({errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT, errno.ECONNRESET, errno.EHOSTUNREACH})


class ArrowFileIO:
    """A FileIO over a ``pyarrow.fs.FileSystem``: ``root`` is a location of it, and ``base`` the path of its top folder.

    >>> from pyarrow import fs
    >>> io = ArrowFileIO(fs.LocalFileSystem(), root="file:///")
    >>> io.arrow_path("file:///wh/t/a.parquet")[1]
    '/wh/t/a.parquet'
    """

    def __init__(self, file_system: Any, *, root: str, base: str = "", env: Env = SYSTEM) -> None:
        top = plain_location(root)
        self._root = (top.scheme, top.authority)
        self._files = file_system
        self._base = base.rstrip("/")
        self._env = env
        self._disk = LocalFileIO() if isinstance(file_system, fs.LocalFileSystem) and self._base == "" else None

    def read(self, location: str, limit: int | None = None) -> bytes:
        """The whole file."""
        path = self._path(location)

        def read() -> bytes:
            with self._files.open_input_file(path) as file:
                check_size(location, file.size(), limit)
                return bytes(file.read())

        return self._reading(location, read)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``."""
        check_range(location, offset, length)
        path = self._path(location)

        def read() -> bytes:
            with self._files.open_input_file(path) as file:
                # Asking for no more than the file holds keeps a wrong length from allocating memory.
                available = max(0, file.size() - offset)
                return bytes(file.read_at(min(length, available), offset)) if min(length, available) > 0 else b""

        data = self._reading(location, read)
        if len(data) < length:
            raise short_file(location, offset, length, got=len(data))
        return data

    def size(self, location: str) -> int:
        """The file's length in bytes."""
        info = self._info(location)
        if info.type == fs.FileType.NotFound:
            raise NoSuchFile(f"no file at {location}", location=location)
        if info.type == fs.FileType.Directory:
            raise NoSuchFile(f"{location} is a folder, not a file", location=location)
        return int(info.size)

    def exists(self, location: str) -> bool:
        """Whether there is a file (not a folder) at the location."""
        return bool(self._info(location).type not in (fs.FileType.NotFound, fs.FileType.Directory))

    def write_new(self, location: str, data: bytes) -> None:
        """Write a file that must not exist yet; gone again if it raises."""
        path = self._path(location)
        if self._info(location).type != fs.FileType.NotFound:
            raise AlreadyExists(f"there is a file at {location} already", location=location)
        try:
            with translated("write", location, Exception):
                self._files.create_dir(path.rpartition("/")[0], recursive=True)
                with self._files.open_output_stream(path) as file:
                    file.write(data)
            if self._disk is not None:
                self._disk.sync([location])
        except BaseException:
            self._discard([location])
            raise

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write several new files; all or none."""
        made: list[str] = []
        try:
            for location, data in files:
                self.write_new(location, data)
                made.append(location)
        except BaseException:
            self._discard(made)
            raise

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Refused, except on the local disk."""
        return self._exclusive(location).put_if_absent(location, data)

    def link_if_absent(self, source: str, location: str) -> bool:
        """Refused, except on the local disk."""
        return self._exclusive(location).link_if_absent(source, location)

    def sync(self, locations: Sequence[str]) -> None:
        """Make files durable on the local disk; elsewhere check that they are there."""
        if self._disk is not None:
            self._disk.sync(locations)
            return
        for location in locations:
            self.size(location)

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files; one that is already gone is fine, and one that fails does not spare the rest."""
        paths = {location: self._path(location) for location in locations}

        def delete(location: str) -> None:
            with translated("delete", location, Exception):
                self._files.delete_file(paths[location])

        delete_each(locations, delete)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file under the folder ``prefix``, spelled like ``prefix``; one of unknown age counts as new."""
        base = prefix.rstrip("/")
        path = self._path(base).rstrip("/")
        selector = fs.FileSelector(path, allow_not_found=True, recursive=True)
        now_ms = time.time_ns() // 1_000_000

        def look() -> Any:
            try:
                return self._files.get_file_info(selector)
            except NotADirectoryError:
                return ()

        for info in self._reading(prefix, look):
            if info.type not in (fs.FileType.NotFound, fs.FileType.Directory):
                inner = info.path[len(path) :].lstrip("/")
                modified = now_ms if info.mtime_ns is None else info.mtime_ns // 1_000_000
                yield FileInfo(location=f"{base}/{inner}", size=int(info.size), modified_ms=modified)

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """The file system and the path."""
        return self._files, self._path(location)

    def _exclusive(self, location: str) -> LocalFileIO:
        self._path(location)
        if self._disk is None:
            raise UnsupportedError(
                f"the storage of {location} cannot put a file only if it is absent, which a safe commit by file name"
                " needs; use a catalog with a database",
                location=location,
            )
        return self._disk

    def _info(self, location: str) -> Any:
        path = self._path(location)
        return self._reading(location, lambda: self._files.get_file_info(path))

    def _reading(self, location: str, read: Callable[[], _T]) -> _T:
        """Read, and read again after a fault that passes."""

        def attempt(_: int) -> _T:
            with translated("read", location, Exception):
                return read()

        return retried(attempt, passes=_passes, env=self._env)

    def _path(self, location: str) -> str:
        parsed = plain_location(location)
        if (parsed.scheme, parsed.authority) != self._root:
            scheme, authority = self._root
            raise InputError(f"{location!r} is not in the storage {scheme}://{authority}", location=location)
        return f"{self._base}{parsed.path}"

    def _discard(self, locations: Sequence[str]) -> None:
        """Delete the files of this call, which no metadata references. A failure leaves an orphan and is ignored."""
        with contextlib.suppress(StorageError):
            self.delete(locations)


def fsspec_file_io(file_system: Any, *, root: str, base: str = "", env: Env = SYSTEM) -> ArrowFileIO:
    """A FileIO over an ``fsspec`` file system."""
    return ArrowFileIO(fs.PyFileSystem(_Literal(file_system)), root=root, base=base, env=env)


class _Literal(fs.FSSpecHandler):  # type: ignore[misc]
    """Arrow's wrapper, but for deleting: it would take ``*`` and ``?`` in a name for any other letters."""

    def delete_file(self, path: str) -> None:
        self.fs.rm_file(path)


def _passes(error: Exception) -> bool:
    cause = error.__cause__
    if isinstance(cause, (TimeoutError, ConnectionError)):
        return True
    return isinstance(cause, OSError) and cause.errno in _PASSING
