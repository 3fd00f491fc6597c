"""Files on a local disk, written in steps that survive a power cut.

A file is durable when its bytes and its name are: write, fsync the file, fsync the folder, and the same for each folder
that had to be made. ``put_if_absent`` builds the file under a temporary name and links it to the real one: ``link`` has
one winner and shows readers only complete files, where ``exists`` then ``rename`` loses commits between processes and
an exclusive create shows readers half a file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from pyarrow import fs

from icefloe.errors import (
    CommitStateUnknown,
    CorruptFile,
    IcefloeError,
    InputError,
    NoSuchFile,
    UnsupportedError,
)
from icefloe.io.file_io import FileInfo, check_size, delete_each, storage_error, translated
from icefloe.io.folders import DurableFolders, sync_folder
from icefloe.io.storage_locations import plain_location
from icefloe.model.locations import FILE

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
# The kernel returns these before it changes the folder, so the link certainly does not exist.
_NOT_LINKED = frozenset({errno.EACCES, errno.EROFS, errno.EMLINK, errno.ENAMETOOLONG, errno.ENOSPC, errno.EDQUOT})

_Paths = list[str]


class LocalFileIO:
    """The FileIO of ``file:///x``, ``file:/x`` and ``/x``, all of which name the path ``/x``."""

    def __init__(self) -> None:
        self._folders = DurableFolders()
        self._arrow = fs.LocalFileSystem()

    def read(self, location: str, limit: int | None = None) -> bytes:
        """The whole file."""
        with _opened(location) as (descriptor, size):
            check_size(location, size, limit)
            return _read_at(descriptor, 0, size)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``."""
        check_range(location, offset, length)
        with _opened(location) as (descriptor, size):
            # Asking for no more than the file holds keeps a wrong length from allocating memory.
            data = _read_at(descriptor, offset, min(length, max(0, size - offset)))
        if len(data) < length:
            raise short_file(location, offset, length, got=len(data))
        return data

    def size(self, location: str) -> int:
        """The file's length in bytes."""
        path = local_path(location)
        with translated("look at", location):
            if os.path.isdir(path):
                raise NoSuchFile(f"{location} is a folder, not a file", location=location)
            return _checked(os.stat(path)).st_size

    def exists(self, location: str) -> bool:
        """Whether there is a file (not a folder) at the location."""
        return os.path.isfile(local_path(location))

    def write_new(self, location: str, data: bytes) -> None:
        """Write a file that must not exist yet; durable on return, gone again if it raises."""
        self.write_many(((location, data),))

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write several new files, all or none, with one fsync per file and one per folder."""
        made: _Paths = []
        try:
            for location, data in files:
                with translated("write", location):
                    self._write(local_path(location), data, made)
            for folder in dict.fromkeys(map(os.path.dirname, made)):
                with translated("sync", folder):
                    sync_folder(folder)
        except BaseException:
            _discard(made)
            raise

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Make the file appear, complete and durable, unless the name is taken: True for the one winner."""
        path = local_path(location)
        folder, name = os.path.split(path)
        temporary = os.path.join(folder, f".{name[:100]}.{uuid.uuid4().hex}.tmp")
        made: _Paths = []
        try:
            with translated("write", location):
                self._write(temporary, data, made)
        except BaseException:
            _discard(made)
            raise
        try:
            won = self._publish(temporary, path, location)
        except CommitStateUnknown:
            raise  # the file stays: it shows what was to be written
        except IcefloeError:
            _discard(made)
            raise
        _discard(made)
        return won

    def link_if_absent(self, source: str, location: str) -> bool:
        """Give a durable file one more name, unless that is taken: True for the one winner."""
        staged, path = local_path(source), local_path(location)
        with translated("read", source):
            os.stat(staged)
        return self._publish(staged, path, location)

    def sync(self, locations: Sequence[str]) -> None:
        """Make files that another program wrote durable, with the folders that lead to them."""
        paths = [local_path(location) for location in locations]
        for location, path in zip(locations, paths, strict=True):
            with translated("sync", location):
                _sync_file(path)
        for folder in dict.fromkeys(map(os.path.dirname, paths)):
            with translated("sync", folder):
                self._folders.ensure(folder)
                sync_folder(folder)

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files; one that is already gone is fine, and the others are deleted if one fails."""
        delete_each(locations, lambda location: os.unlink(local_path(location)))

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file under the folder ``prefix``, spelled like ``prefix``; links to folders are not followed."""
        base = prefix.rstrip("/")
        folders = [(base, local_path(prefix))]
        while len(folders) > 0:
            location, path = folders.pop()
            for entry in _entries(path, location):
                child = f"{location}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    folders.append((child, entry.path))
                    continue
                # A file may be deleted between being listed and being looked at.
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file():
                        status = entry.stat()
                        modified = status.st_mtime_ns // 1_000_000
                        yield FileInfo(location=child, size=status.st_size, modified_ms=modified)

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """Arrow's local file system and the path, which must not be that of a pipe or a device."""
        path = local_path(location)
        if os.path.lexists(path) and not os.path.isdir(path):
            with translated("open", location):
                _checked(os.stat(path))
        return self._arrow, path

    def _publish(self, source: str, path: str, location: str) -> bool:
        """Link a durable file to its final name and make that durable."""
        if not _link(source, path, location):
            return False
        try:
            sync_folder(os.path.dirname(path))
        except BaseException as error:
            raise _unknown(location, "its folder could not be synced") from error
        return True

    def _write(self, path: str, data: bytes, made: _Paths) -> None:
        """Create the file and fsync it; its folder exists and is durable, its name is not yet."""
        self._folders.ensure(os.path.dirname(path))
        descriptor = os.open(path, _CREATE, 0o666)
        made.append(path)
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def local_path(location: str) -> str:
    """The path that a location names; nothing in it is decoded or normalised.

    >>> local_path("file:///wh/a b%20c"), local_path("file:/wh/t"), local_path("/wh/t")
    ('/wh/a b%20c', '/wh/t', '/wh/t')
    """
    parsed = plain_location(location)
    if parsed.scheme != FILE:
        raise InputError(f"{location!r} is not a file location; write file:///path", location=location)
    if parsed.authority != "":
        raise InputError(f"{location!r} names the host {parsed.authority!r}; write file:///path", location=location)
    return parsed.path


def file_location(path: str) -> str:
    """The location of a path, relative ones taken from the current folder; text with a scheme stays as it is.

    >>> file_location("/wh/a b/"), file_location("memory://wh")
    ('file:///wh/a b', 'memory://wh')
    """
    if "://" in path or path[:5].lower() == "file:":
        return path.rstrip("/")
    return "file://" + os.path.abspath(os.path.expanduser(path))


def check_range(location: str, offset: int, length: int) -> None:
    """Refuse a range that no file can have."""
    if offset < 0 or length < 0:
        raise InputError(f"range of {length} bytes at {offset} of {location} is negative", location=location)


def short_file(location: str, offset: int, length: int, *, got: int) -> CorruptFile:
    """The error for a file that ends before a range that metadata promises."""
    return CorruptFile(
        f"{location} ends early: wanted {length} bytes at offset {offset}, got {got}; "
        "the file was cut short, or the metadata that names the range is wrong",
        location=location,
        offset=offset,
        length=length,
    )


def _link(temporary: str, path: str, location: str) -> bool:
    """Give the finished file its real name: whether this call did it."""
    try:
        os.link(temporary, path)
    except BaseException as error:
        return _settle_link(temporary, path, location, error)
    return True


def _settle_link(temporary: str, path: str, location: str, error: BaseException) -> bool:
    # Network file systems can answer "exists" to a repeated request that was theirs: ask which file the name holds.
    if _same_file(temporary, path):
        return True
    if isinstance(error, FileExistsError):
        return False
    code = error.errno if isinstance(error, OSError) else None
    if code in _NO_LINKS:
        raise UnsupportedError(
            f"the file system of {location} has no hard links, which a safe commit needs; use another catalog",
            location=location,
        ) from error
    if code in _NOT_LINKED:
        raise storage_error(f"could not write {location}: {os.strerror(code or 0)}", location, error) from error
    raise _unknown(location, "linking it failed") from error


def _same_file(one: str, other: str) -> bool:
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except OSError:
        return False


def _unknown(location: str, reason: str) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"{location} may or may not have been written: {reason}; nothing was deleted, read it before you retry",
        location=location,
    )


@contextlib.contextmanager
def _opened(location: str) -> Iterator[tuple[int, int]]:
    """The descriptor and the length of a file that is open to be read. A pipe or a device might never end."""
    path = local_path(location)
    with translated("read", location):
        _checked(os.stat(path))  # opening a device may have effects
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            yield descriptor, _checked(os.fstat(descriptor)).st_size
        finally:
            os.close(descriptor)


def _checked(status: os.stat_result) -> os.stat_result:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, "it is not a regular file, but a pipe, a socket or a device")
    return status


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data).cast("B")
    while len(rest) > 0:
        rest = rest[os.write(descriptor, rest) :]


def _read_at(descriptor: int, offset: int, length: int) -> bytes:
    chunks: list[bytes] = []
    while length > 0:
        chunk = os.pread(descriptor, length, offset)
        if len(chunk) == 0:
            break
        chunks.append(chunk)
        offset, length = offset + len(chunk), length - len(chunk)
    return b"".join(chunks)


def _sync_file(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(paths: Sequence[str]) -> None:
    """Delete the files of this call, which no metadata references. A failure leaves an orphan and is ignored."""
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _entries(path: str, location: str) -> Sequence[os.DirEntry[str]]:
    with translated("list", location):
        try:
            with os.scandir(path) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return ()
