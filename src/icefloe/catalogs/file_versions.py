"""A table whose pointer is a file's name: the highest ``metadata/v<N>.metadata.json`` (spec: File System Tables).

This is the layout of Apache Iceberg's Hadoop tables, committed more safely: the staged file becomes the next version
with ``link_if_absent``, which has one winner and shows readers only whole files, where a check and a rename lose
commits. It holds for every format version, 4 included, on storage with an exclusive put; elsewhere commits are refused.
``version-hint.text`` saves readers from listing the folder; it may be wrong or missing, and nothing relies on it.

A compressed version has the name ``v<N>.gz.metadata.json``. Two writers that build on the same version must use the
same name, or both would win. So the properties of the old version decide whether the next one is compressed
(``commit/stage.py``), and version 1 is never compressed.

A table that is dropped and recreated has versions of the same names. So a pointer contains the beginning of its file,
which is compared before the put and, because another table may be created in between, after it. A version that was
written to another table is withdrawn. Until then readers may see it; it stays if the process stops before the
withdrawal or if another commit has built on it; and a put of unknown outcome is not withdrawn.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from icefloe.catalogs.catalog import Pointer, Stale, Swap, Swapped, Unknown
from icefloe.codecs.json.gzip_members import GZIP
from icefloe.codecs.json.table_metadata import inflated_metadata
from icefloe.errors import (
    AlreadyExists,
    CommitStateUnknown,
    CorruptFile,
    FormatError,
    IcefloeError,
    LimitError,
    NotFound,
    StorageError,
)
from icefloe.io.exclusive import ExclusivePut
from icefloe.io.file_io import FileIO
from icefloe.io.local import local_path
from icefloe.limits import DEFAULT
from icefloe.model.locations import FILE, parse_location, same_location

METADATA = "metadata"
HINT = "version-hint.text"
_HINT_BYTES = 64
# The plain name, the one for gzip, and the one that releases before 0.9 gave to gzip.
_NAME = re.compile(r"v([1-9]\d{0,17})(?:\.metadata\.json|\.gz\.metadata\.json|\.metadata\.json\.gz)")
_PLAIN, _COMPRESSED = ".metadata.json", ".gz.metadata.json"
_SUFFIXES = (_PLAIN, _COMPRESSED, ".metadata.json.gz")
_MARK = 512  # bytes: all writers begin with the table's uuid, then its last sequence number and the time of the commit
_GONE = b""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a table's metadata."""

    number: int
    location: str


class FileVersions:
    """The metadata versions of the table in one folder."""

    def __init__(self, io: FileIO, folder: str, exclusive: ExclusivePut) -> None:
        self._io = io
        self._metadata = f"{folder}/{METADATA}"
        self._exclusive = exclusive

    def head(self) -> Version | None:
        """The current version: starts from the hint, or else from a listing, and moves forward while files exist."""
        hinted = self._hint()
        version = None if hinted is None else self._find(hinted)
        version = max(self._listed(), key=lambda version: version.number, default=None) if version is None else version
        if version is None:
            return None
        while (following := self._find(version.number + 1)) is not None:
            version = following
        return version

    def current(self) -> Pointer | None:
        """Where the current version is, and which file that is."""
        head = self.head()
        return None if head is None else Pointer(head.location, mark=self._mark(head.location))

    def create(self, staged: str, *, keep: bool) -> None:
        """Make the file ``staged`` version 1, and delete it unless ``keep``; ``AlreadyExists`` if one is."""
        data = inflated_metadata(self._io.read(staged, DEFAULT.metadata_bytes), DEFAULT)
        self._exclusive.require(self._metadata)
        if self.head() is not None or not self._io.put_if_absent(self._name(1, _PLAIN), data):
            raise AlreadyExists(f"there is a table at {self._metadata} already", location=self._metadata)
        self._write_hint(1)
        _discard(self._io, [] if keep else [staged])

    def advance(self, expected: str, staged: str) -> Swap:
        """Make the file ``staged`` the version after ``expected``, if that is current and still the same file."""
        current = self._number(expected)
        if current is None:
            return Stale()
        staged_mark = self._beginning(staged)
        self._exclusive.require(self._metadata)
        current_mark = self._mark(expected)
        mark = expected.mark if isinstance(expected, Pointer) else current_mark
        if current_mark == _GONE or current_mark != mark or self._find(current + 1) is not None:
            return Stale()
        target = self._name(current + 1, _COMPRESSED if staged_mark.startswith(GZIP) else _PLAIN)
        try:
            won = self._publish(staged, target)
        except BaseException as error:
            if isinstance(error, IcefloeError) and not isinstance(error, CommitStateUnknown):
                raise  # proves that nothing was committed
            return Unknown(cause=error)
        if not won:
            return Stale()
        try:
            # Old versions are deleted oldest first. While the previous version exists, the new name was never used
            # before. If it is gone, others may have used the name, committed further versions, and deleted it.
            if self._mark(expected) != mark:
                return self._withdraw(current + 1, target, staged_mark, expected)
            self._write_hint(current + 1)
            _discard(self._io, [staged])
        except BaseException as error:
            return Unknown(cause=error)
        return Swapped(pointer=Pointer(target, mark=staged_mark))

    def forget(self) -> str | None:
        """Delete the versions of the table; returns the location of a copy of the last one, or None if there is none.

        The oldest are deleted first, so a table that is only partly deleted still opens. A commit that lands after this
        restores the table with its own version.
        """
        kept: str | None = None
        while (last := self.head()) is not None:
            copy = f"{self._metadata}/dropped-{uuid.uuid4()}.json"
            self._io.write_new(copy, self._io.read(last.location, DEFAULT.metadata_bytes))
            self._io.delete([f"{self._metadata}/{HINT}"])
            older = sorted((version.number, version.location) for version in self._listed())
            self._io.delete([location for number, location in older if number <= last.number])
            _discard(self._io, [] if kept is None else [kept])
            kept = copy
        return kept

    def is_inside(self, location: str) -> bool:
        """Whether a file is directly in the table's metadata folder."""
        folder, _, name = location.rpartition("/")
        return name != "" and same_location(folder, self._metadata)

    def _publish(self, staged: str, target: str) -> bool:
        if self.is_inside(staged):
            return self._io.link_if_absent(staged, target)
        return self._io.put_if_absent(target, self._io.read(staged))

    def _withdraw(self, number: int, target: str, mark: bytes, expected: str) -> Stale:
        """Delete a version that was written after its table was dropped, perhaps into a new table of the same name.

        ``CommitStateUnknown`` if other commits built on it, or may have.
        """
        if self._mark(target) == mark and not self._is_followed(number):
            self._io.delete([target])
            if not self._is_followed(number):
                return Stale()
        raise CommitStateUnknown(
            f"{target} was written, but {expected} before it was deleted meanwhile; look whether the table has it",
            location=target,
        )

    def _is_followed(self, number: int) -> bool:
        return any(other > number for other in self._files())

    def _mark(self, location: str) -> bytes:
        """The first bytes of a version's file, which distinguish it from others of its name; empty if there is none."""
        try:
            return self._beginning(location)
        except NotFound:
            return _GONE

    def _beginning(self, location: str) -> bytes:
        try:
            return self._io.read_range(location, 0, _MARK)
        except CorruptFile:  # it is shorter
            return self._io.read(location)[:_MARK]

    def _name(self, number: int, suffix: str) -> str:
        return f"{self._metadata}/v{number}{suffix}"

    def _number(self, location: str) -> int | None:
        match = _NAME.fullmatch(location.rsplit("/", 1)[-1])
        return int(match[1]) if match is not None and self.is_inside(location) else None

    def _find(self, number: int) -> Version | None:
        names = (f"{self._metadata}/v{number}{suffix}" for suffix in _SUFFIXES)
        return _only(number, [name for name in names if self._io.exists(name)])

    def _listed(self) -> list[Version]:
        versions = (_only(number, locations) for number, locations in self._files().items())
        return [version for version in versions if version is not None]

    def _files(self) -> dict[int, list[str]]:
        """The files of each version; more than one is an error, unless one of them is about to be withdrawn."""
        by_number: dict[int, list[str]] = {}
        for file in self._io.list(self._metadata):
            number = self._number(file.location)
            if number is not None:
                by_number.setdefault(number, []).append(file.location)
        return by_number

    def _hint(self) -> int | None:
        try:
            text = self._io.read(f"{self._metadata}/{HINT}", _HINT_BYTES).strip()
        except (NotFound, StorageError, LimitError):
            return None
        return int(text) if re.fullmatch(rb"[1-9]\d{0,17}", text) is not None else None

    def _write_hint(self, number: int) -> None:
        """Write the hint; a reader that misses it lists the folder."""
        hint = f"{self._metadata}/{HINT}"
        with contextlib.suppress(IcefloeError, OSError):
            if parse_location(hint).scheme == FILE:
                _replace(local_path(hint), str(number))
            else:
                self._io.delete([hint])
                self._io.put_if_absent(hint, str(number).encode())


def _only(number: int, locations: list[str]) -> Version | None:
    if len(locations) > 1:
        raise FormatError(
            f"version {number} of the table is in two files, {' and '.join(sorted(locations))}: writers with different "
            "settings for compressed metadata did not see each other; remove the one that is wrong",
            location=locations[0],
        )
    return None if len(locations) == 0 else Version(number=number, location=locations[0])


def _replace(path: str, text: str) -> None:
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _discard(io: FileIO, locations: Iterable[str]) -> None:
    """Delete unreferenced files. Failures are logged and ignored."""
    try:
        io.delete(list(locations))
    except IcefloeError as error:
        logger.warning("could not delete unreferenced files: %s", error)
