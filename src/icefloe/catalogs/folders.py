"""Tables without a catalog: a folder with versioned metadata, or one metadata file (spec: File System Tables)."""

from __future__ import annotations

from icefloe.catalogs.catalog import Swap
from icefloe.catalogs.file_versions import FileVersions
from icefloe.catalogs.names import NameLike
from icefloe.errors import NoSuchTable, UnsupportedError
from icefloe.io.exclusive import ExclusivePut
from icefloe.io.file_io import FileIO


class FolderPointer:
    """The pointer of the one table in a folder; names are ignored."""

    def __init__(self, io: FileIO, folder: str) -> None:
        self._folder = folder
        self._versions = FileVersions(io, folder, ExclusivePut(io))

    def load(self, identifier: NameLike) -> str:
        """The location of the current version."""
        current = self._versions.current()
        if current is None:
            raise NoSuchTable(
                f"there is no table with versioned metadata at {self._folder}; give its catalog, or the location of "
                "one of its metadata files",
                location=self._folder,
            )
        return current

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Make the file ``new`` the version after ``expected``, if that is current."""
        return self._versions.advance(expected, new)


class MetadataFile:
    """A metadata file as a table that never changes."""

    def __init__(self, location: str) -> None:
        self._location = location

    def load(self, identifier: NameLike) -> str:
        """The file."""
        return self._location

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Refused: no pointer would reference the new metadata."""
        raise UnsupportedError(
            f"the table was opened by its metadata file {self._location}, so it can only be read; open it by its "
            "catalog, or register it in one, to change it",
            location=self._location,
        )
