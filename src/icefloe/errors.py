"""Every error this package raises, grouped by what the caller should do about it.

IcefloeError
├── InputError            fix the call: an argument is wrong (also a ValueError)
├── NotFound              it is not there: check the name
│   ├── NoSuchTable
│   ├── NoSuchNamespace
│   ├── NoSuchSnapshot
│   └── NoSuchFile
├── AlreadyExists         pick another name
├── StorageError          repair the storage: disk, permissions or network, not the table (also an OSError)
├── ConflictError         re-read, decide, redo: another commit changed what this one relied on
├── CommitFailed          safe to try again: nothing was committed
├── CommitStateUnknown    check before you act: the commit may have landed, and nothing was deleted
├── FormatError           the table or file breaks the format: names the location and the field
│   ├── CorruptFile
│   └── LimitError
│       └── OutOfMemory   give the process more memory, or read less; the file may be sound (also a MemoryError)
└── UnsupportedError      newer or wider than this library: names the feature

``retryable`` and ``next_step`` are set for each class; the place that raises an error may set them for that error.
"""

from __future__ import annotations

import errno
import re
from typing import Any

# Messages of Arrow, zlib, zstd, C++ and Python if no memory, or no thread, is available.
_NO_MEMORY = re.compile(
    r"alloc of size|bad_alloc|out of memory|not enough memory|cannot allocate memory|insufficient memory|Error -4 |"
    r"Allocation error|can't start new thread",
    re.IGNORECASE,
)
_ALLOCATION = re.compile(r"(?:alloc of size|Unable to allocate) ([0-9.]+)(?: ([KMGTPEZ])iB)?")
_IMPLAUSIBLE = 2.0**40
_PERMANENT = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.ENXIO}
)


class IcefloeError(Exception):
    """The root of the tree; ``context`` holds the facts of the message for programs to read.

    ``retryable`` is true if the same call, made again without a change, may succeed and can do no harm. ``next_step``
    says what to do.

    >>> try:
    ...     raise NoSuchTable("no table db.x", table="db.x")
    ... except IcefloeError as error:
    ...     error.context["table"], error.retryable, error.next_step
    ('db.x', False, 'Check the name; list_tables() lists the tables of a namespace.')
    """

    retryable: bool = False
    next_step: str = "Read the message; it names the cause."

    def __init__(
        self, message: str, *, retryable: bool | None = None, next_step: str | None = None, **context: object
    ) -> None:
        super().__init__(message)
        self.context: dict[str, Any] = context
        if retryable is not None:
            self.retryable = retryable
        if next_step is not None:
            self.next_step = next_step


class InputError(IcefloeError, ValueError):
    """An argument of the call is wrong."""

    next_step = "Correct the argument that the message names."


class NotFound(IcefloeError):
    """What was asked for does not exist."""

    next_step = "Check the name."


class NoSuchTable(NotFound):
    """The catalog has no table of this name."""

    next_step = "Check the name; list_tables() lists the tables of a namespace."


class NoSuchNamespace(NotFound):
    """The catalog has no namespace of this name."""

    next_step = "Check the name, or create it with create_namespace(); list_namespaces() lists them."


class NoSuchSnapshot(NotFound):
    """The table has no such snapshot, branch or tag, or had no snapshot at that time."""

    next_step = "Look at refs, snapshots and history of the table; the snapshot may have expired."


class NoSuchFile(NotFound):
    """A file that metadata names is missing."""

    next_step = "Call refresh() and read again: the snapshot may have expired. If it is current, restore the file."


class AlreadyExists(IcefloeError):
    """The name is taken."""

    next_step = "Choose another name, or open what has this one."


class StorageError(IcefloeError, OSError):
    """The disk, the network or the database failed; ``errno`` is the operating system's number, if it gave one."""

    retryable = True
    next_step = "Check the storage: space, permissions, network. Then run the same call again."


class ConflictError(IcefloeError):
    """Another commit changed what this one relied on. Nothing was changed."""

    retryable = True
    next_step = "Run the operation again, or let it run again by itself with retries=."


class CommitFailed(IcefloeError):
    """Every attempt lost to another commit. Nothing was changed."""

    retryable = True
    next_step = "Run the operation again, or raise the table property commit.retry.num-retries."


class CommitStateUnknown(IcefloeError):
    """The commit may or may not have landed. Nothing was deleted."""

    next_step = "Call refresh() and look for the snapshot ids of the context before you run the operation again."


class FormatError(IcefloeError):
    """The table or file breaks the format."""

    next_step = "Repair or restore the file that the message names; its writer broke the format."


class CorruptFile(FormatError):
    """The bytes of a file are damaged."""

    next_step = "Restore the file that the message names from a copy, or roll back to a snapshot without it."


class LimitError(FormatError):
    """Untrusted input asked for more than ``icefloe.limits`` allows."""

    next_step = "Check where the file comes from: the limits guard against damaged and hostile input."


class OutOfMemory(LimitError, MemoryError):
    """The process could not allocate memory to read a file, which may be sound."""

    next_step = "Give the process more memory, or read fewer rows, columns or files at a time. The file may be sound."


class UnsupportedError(IcefloeError):
    """A feature that this library does not handle, named in the message."""

    next_step = "Do without the feature that the message names, or use a program that has it."


def is_out_of_space(error: BaseException) -> bool:
    """Whether a disk or a quota is full.

    >>> is_out_of_space(OSError(errno.ENOSPC, "no space left on device")), is_out_of_space(OSError("broken"))
    (True, False)
    """
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def damaged(error: BaseException, message: str, **context: Any) -> CorruptFile | OutOfMemory:
    """The error to raise if a file cannot be read: CorruptFile, or OutOfMemory if an allocation failed.

    Decoders report failed allocations in different ways. An implausibly large size comes from damaged bytes.

    >>> type(damaged(MemoryError(), "cannot read x")), type(damaged(ValueError("bad page"), "cannot read x"))
    (<class 'icefloe.errors.OutOfMemory'>, <class 'icefloe.errors.CorruptFile'>)
    """
    if is_out_of_memory(error):
        return OutOfMemory(f"too little memory: {message}", **context)
    return CorruptFile(message, **context)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory could not be allocated."""
    text = str(error)
    if not isinstance(error, MemoryError) and _NO_MEMORY.search(text) is None:
        return getattr(error, "errno", None) == errno.ENOMEM
    size = _ALLOCATION.search(text)
    return isinstance(error, OutOfMemory) or size is None or _bytes_of(size) < _IMPLAUSIBLE


def _bytes_of(size: re.Match[str]) -> float:
    number, unit = float(size[1]), size[2]
    return number * 1024 ** " KMGTPEZ".index(unit[0]) if unit else number


def is_permanent(code: int | None) -> bool:
    """Whether an error of the operating system persists until a user changes something.

    >>> is_permanent(errno.EACCES), is_permanent(errno.EIO), is_permanent(None)
    (True, False, False)
    """
    return code in _PERMANENT
