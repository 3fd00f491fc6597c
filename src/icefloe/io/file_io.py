"""The protocol ``FileIO``: what the library needs from storage (spec: File System Operations).

Files are written once, never changed, read whole or by range, and deleted. Commits rely on two guarantees: files
survive a power cut once ``write_new`` or ``sync`` has returned, and ``put_if_absent`` has exactly one winner. Errors
are ``NoSuchFile``, ``AlreadyExists``, and ``StorageError`` for failures of the storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from icefloe.errors import AlreadyExists, LimitError, NoSuchFile, StorageError, is_permanent


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """One file of a listing."""

    location: str
    size: int
    modified_ms: int


def raise_not_deleted(failures: Mapping[str, Exception], attempted: int) -> None:
    """``StorageError`` that names the first file that could not be deleted and lists all of them; none if all were."""
    for location, failure in failures.items():
        reason = getattr(failure, "strerror", None) or failure
        raise StorageError(
            f"could not delete {len(failures)} of {attempted} files, first {location}: {reason}",
            location=location,
            locations=tuple(failures),
        ) from failure


def delete_each(locations: Sequence[str], delete: Callable[[str], None]) -> None:
    """Delete files one by one; one that is already gone is fine, and the others are deleted if one fails."""
    failures: dict[str, Exception] = {}
    for location in locations:
        try:
            delete(location)
        except (FileNotFoundError, NoSuchFile):
            continue
        except OSError as error:  # a StorageError is one
            failures[location] = error
    raise_not_deleted(failures, len(locations))


@contextmanager
def translated(verb: str, location: str, errors: type[Exception] = OSError) -> Iterator[None]:
    """Errors of a file system as errors of this library; a file system in Python may raise any ``Exception``."""
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExists(f"there is a file at {location} already", location=location) from error
    except errors as error:
        if verb != "write" and isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise NoSuchFile(f"no file at {location}", location=location) from error
        reason = getattr(error, "strerror", None) or error
        raise storage_error(f"could not {verb} {location}: {reason}", location, error) from error


def check_size(location: str, size: int, limit: int | None) -> None:
    """``LimitError`` if a file has more than ``limit`` bytes."""
    if limit is not None and size > limit:
        raise LimitError(f"{location} has {size} bytes, more than the limit of {limit}", location=location, limit=limit)


def storage_error(message: str, location: str, cause: BaseException) -> StorageError:
    """A ``StorageError`` with the error number of its cause, which decides whether a retry may succeed."""
    code = cause.errno if isinstance(cause, OSError) else None
    failure = StorageError(message, location=location, retryable=not is_permanent(code))
    failure.errno = code
    return failure


class FileIO(Protocol):
    """Storage, as the rest of the library sees it; implementations are safe to share between threads.

    A pickled FileIO opens the same storage in another process, with the same settings and keys; the tasks of an engine
    rely on it. Storage that belongs to one process raises ``UnsupportedError``. The ``repr`` shows no keys.

    A location is the text that Iceberg metadata holds. It is never percent-decoded: ``file:///a%20b c`` names the
    file ``/a%20b c``, as other Iceberg libraries write and read it.
    """

    def read(self, location: str, limit: int | None = None) -> bytes:
        """The whole file; ``LimitError`` before it is read if it has more than ``limit`` bytes."""
        ...

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``; a file that ends earlier is a ``CorruptFile``."""
        ...

    def size(self, location: str) -> int:
        """The file's length in bytes."""
        ...

    def exists(self, location: str) -> bool:
        """Whether there is a file (not a folder) at the location."""
        ...

    def write_new(self, location: str, data: bytes) -> None:
        """Write a file that must not exist yet; durable on return, gone again if it raises.

        Readers may see a part of the file while it is being written, so the name must be one that no reader looks for
        before this returns: put a UUID in it. For names that others do look for there is ``put_if_absent``.
        """
        ...

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """``write_new`` for several files at once: all are durable on return, all are gone again if it raises."""
        ...

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Make the file appear, complete and durable, unless the name is taken: True for the one winner.

        False and ``StorageError`` prove that nothing of this call is visible. ``CommitStateUnknown`` means that the
        file may or may not have appeared.
        """
        ...

    def link_if_absent(self, source: str, location: str) -> bool:
        """``put_if_absent`` of a file that ``write_new`` wrote, next to it; the source stays.

        A disk gives the file a second name and writes no byte. Other storage reads it and puts it.
        """
        ...

    def sync(self, locations: Sequence[str]) -> None:
        """Make files that another program wrote durable, with the folders that lead to them."""
        ...

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files; one that is already gone is fine, and the others are deleted if one fails."""
        ...

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file under the folder ``prefix``, at any depth, spelled like ``prefix``; none if it is missing."""
        ...

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """A ``pyarrow.fs.FileSystem`` and the path in it, for data files that Arrow reads and writes itself."""
        ...


@runtime_checkable
class OpenedWithProperties(Protocol):
    """Storage that properties such as ``s3.endpoint`` open."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties, keys included."""
        ...


def properties_of(io: FileIO) -> Mapping[str, str]:
    """The properties that a FileIO was opened with; none if it needs none."""
    return io.properties if isinstance(io, OpenedWithProperties) else {}
