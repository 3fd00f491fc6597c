"""Every error this package raises, grouped by what the caller should do about it.

IcefloeError
├── InputError            fix the call: an argument is wrong (also a ValueError)
├── NotFound              it is not there: check the name
│   ├── NoSuchTable
│   ├── NoSuchNamespace
│   ├── NoSuchSnapshot
│   └── NoSuchFile
├── AlreadyExists         pick another name
├── StorageError          mend the storage: disk, permissions or network, not the table (also an OSError)
├── ConflictError         re-read, decide, redo: another commit changed what this one relied on
├── CommitFailed          safe to try again: proved not landed, nothing of it is referenced
├── CommitStateUnknown    look before you act: it may have landed, and nothing was deleted
├── FormatError           the table or file breaks the format: names the location and the field
│   ├── CorruptFile
│   └── LimitError
└── UnsupportedError      newer or wider than this library: names the feature
"""

from __future__ import annotations


class IcefloeError(Exception):
    """The root of the tree; ``context`` holds the facts of the message for programs to read.

    >>> try:
    ...     raise NoSuchTable("no table db.x", table="db.x")
    ... except IcefloeError as error:
    ...     error.context["table"]
    'db.x'
    """

    def __init__(self, message: str, **context: object) -> None:
        super().__init__(message)
        self.context = context


class InputError(IcefloeError, ValueError):
    """An argument of the call is wrong."""


class NotFound(IcefloeError):
    """What was asked for does not exist."""


class NoSuchTable(NotFound):
    """The catalog has no table of this name."""


class NoSuchNamespace(NotFound):
    """The catalog has no namespace of this name."""


class NoSuchSnapshot(NotFound):
    """The table has no snapshot, branch, tag or point in time as asked."""


class NoSuchFile(NotFound):
    """A file that metadata names is missing."""


class AlreadyExists(IcefloeError):
    """The name is taken."""


class StorageError(IcefloeError, OSError):
    """The disk, the network or the database failed; ``errno`` is the operating system's number, if it gave one."""


class ConflictError(IcefloeError):
    """Another commit changed what this one relied on; read again and decide."""


class CommitFailed(IcefloeError):
    """The commit did not land and may be tried again."""


class CommitStateUnknown(IcefloeError):
    """The commit may or may not have landed; nothing was deleted."""


class FormatError(IcefloeError):
    """The table or file breaks the format."""


class CorruptFile(FormatError):
    """The bytes of a file are damaged."""


class LimitError(FormatError):
    """Untrusted input asked for more than ``icefloe.limits`` allows."""


class UnsupportedError(IcefloeError):
    """A feature that this library does not handle, named in the message."""
