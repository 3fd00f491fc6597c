"""A FileIO for one table: nothing outside of the table's location and its data path is ever written or deleted.

Metadata names files, and metadata may be wrong or malicious. So each location is checked before storage is used, by its
parsed parts and not by a text prefix. Reading outside of the table is allowed, since ``add_files`` references files
elsewhere; it can be restricted to the table and some roots, and then a symbolic link must not lead out of them. Writes
follow links, as a folder of a table may be on another disk; maintenance deletes nothing behind a link.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyarrow import fs

from icefloe.errors import FormatError, InputError
from icefloe.io.file_io import FileInfo, FileIO, properties_of
from icefloe.io.local import local_path
from icefloe.io.storage_locations import plain_location
from icefloe.model.locations import FILE, S3, contains, parse_location, same_location

ALLOWED_ROOTS = "allowed-roots"


class Contained:
    """Allows changes inside the table, and reads anywhere or, with ``read_roots``, only under those.

    ``data_path`` is the property ``write.data.path``, if the table has it: files may be written there too, unless
    ``read_roots`` exclude it. Text that is not a valid location is refused.

    >>> from icefloe.io.memory import MemoryFileIO
    >>> io = Contained(MemoryFileIO(), "memory://wh/db/t")
    >>> io.delete(["memory://wh/db/t2/data/a.parquet"])
    Traceback (most recent call last):
    icefloe.errors.InputError: refused to delete memory://wh/db/t2/data/a.parquet: it is outside of memory://wh/db/t
    """

    def __init__(
        self,
        inner: FileIO,
        table_location: str,
        read_roots: Sequence[str] | None = None,
        data_path: str | None = None,
    ) -> None:
        self.inner = inner
        self._table = table_location
        self._roots = None if read_roots is None else tuple(dict.fromkeys((table_location, *read_roots)))
        self._data_path = data_path

    @property
    def properties(self) -> Mapping[str, str]:
        """What the storage was opened with."""
        return properties_of(self.inner)

    def moved(self, table_location: str, data_path: str | None) -> Contained:
        """The same storage for a table whose location or data path has changed."""
        return Contained(self.inner, table_location, self._roots, data_path)

    def read(self, location: str, limit: int | None = None) -> bytes:
        """The whole file."""
        self._check_read(location)
        return self.inner.read(location, limit)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """A part of the file."""
        self._check_read(location)
        return self.inner.read_range(location, offset, length)

    def size(self, location: str) -> int:
        """The file's length."""
        self._check_read(location)
        return self.inner.size(location)

    def exists(self, location: str) -> bool:
        """Whether there is a file."""
        self._check_read(location)
        return self.inner.exists(location)

    def write_new(self, location: str, data: bytes) -> None:
        """Write a new file of the table."""
        self._check_change("write", [location])
        self.inner.write_new(location, data)

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write new files of the table."""
        self._check_change("write", [location for location, _ in files])
        self.inner.write_many(files)

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Write a file of the table unless the name is taken."""
        self._check_change("write", [location])
        return self.inner.put_if_absent(location, data)

    def link_if_absent(self, source: str, location: str) -> bool:
        """Give a file of the table one more name inside the table, unless that is taken."""
        self._check_change("write", [source, location])
        return self.inner.link_if_absent(source, location)

    def sync(self, locations: Sequence[str]) -> None:
        """Make files durable, also added files outside of the table."""
        for location in locations:
            self._check_read(location)
        self.inner.sync(locations)

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files of the table; none is deleted if one is outside."""
        self._check_change("delete", locations)
        self.inner.delete(locations)

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """The files under a folder."""
        self._check_read(prefix, is_folder=True)
        return self.inner.list(prefix)

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """Arrow's way to the file, which can only read what is not the table's."""
        self._check_read(location)
        files, path = self.inner.arrow_path(location)
        if self._is_changeable(location):
            return files, path
        return fs.PyFileSystem(_ReadOnly(files, self._table)), path

    def _check_read(self, location: str, *, is_folder: bool = False) -> None:
        if self._is_read(location, is_folder=is_folder):
            return
        roots = ", ".join(self._roots or ())
        raise InputError(
            f"refused to read {location}: it is outside of {roots}; name its folder as an allowed root if you trust it",
            location=location,
        )

    def _is_read(self, location: str, *, is_folder: bool = False) -> bool:
        if self._roots is None:
            return True
        inside = any(self._is_inside(root, location, or_same=is_folder) for root in self._roots)
        return inside and not _leads_out(location, self._roots)

    def _check_change(self, verb: str, locations: Sequence[str]) -> None:
        for location in locations:
            if not self._is_changeable(location):
                raise InputError(
                    f"refused to {verb} {location}: it is outside of {self._table}",
                    location=location,
                    table_location=self._table,
                )

    def _is_changeable(self, location: str) -> bool:
        if self._is_inside(self._table, location):
            return True
        return self._data_path is not None and self._is_inside(self._data_path, location) and self._is_read(location)

    @staticmethod
    def _is_inside(root: str, location: str, *, or_same: bool = False) -> bool:
        try:
            return contains(root, location, same_schemes=S3) or (
                or_same and same_location(root.rstrip("/"), location.rstrip("/"), same_schemes=S3)
            )
        except FormatError:
            return False


def _leads_out(location: str, roots: Sequence[str]) -> bool:
    """Whether links lead from a location on a local disk out of all roots."""
    if parse_location(location).scheme != FILE:
        return False
    path = os.path.realpath(local_path(location))
    real = (os.path.realpath(local_path(root)) for root in roots if parse_location(root).scheme == FILE)
    return not any(f"{path}/".startswith(f"{root.rstrip('/')}/") for root in real)


def contain(
    io: FileIO, table_location: str, properties: Mapping[str, str], *, data_path: str | None = None
) -> Contained:
    """The FileIO of one table; the property ``allowed-roots`` confines reading to it and to a comma-separated list.

    ``properties`` are those of the catalog; ``data_path`` is the table's property ``write.data.path``, if it has it.

    >>> from icefloe.io.memory import MemoryFileIO
    >>> io = contain(MemoryFileIO(), "memory://wh/t", {"allowed-roots": "memory://old/t, memory://more"})
    >>> io.read("memory://other/a")
    Traceback (most recent call last):
    icefloe.errors.InputError: refused to read memory://other/a: it is outside of memory://wh/t, memory://old/t, ...
    """
    listed = properties.get(ALLOWED_ROOTS)
    if listed is None:
        return Contained(io, table_location, data_path=data_path)
    roots = tuple(root.strip() for root in listed.split(",") if root.strip() != "")
    for root in roots:
        plain_location(root)
    return Contained(io, table_location, roots, data_path)


class _ReadOnly(fs.FileSystemHandler):  # type: ignore[misc]
    """An Arrow file system that reads as another one does, at the same speed, and changes nothing."""

    def __init__(self, files: Any, table: str) -> None:
        self._files = files
        self._table = table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ReadOnly) and other._files == self._files and other._table == self._table

    def __hash__(self) -> int:
        return hash(self._table)

    def get_type_name(self) -> str:
        return f"read-only {self._files.type_name}"

    def normalize_path(self, path: str) -> str:
        return str(self._files.normalize_path(path))

    def get_file_info(self, paths: Sequence[str]) -> Any:
        return self._files.get_file_info(list(paths))

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._files.get_file_info(selector)

    def open_input_file(self, path: str) -> Any:
        return self._files.open_input_file(path)

    def open_input_stream(self, path: str) -> Any:
        return self._files.open_input_stream(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        raise self._refused("write", path)

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise self._refused("write", path)

    def create_dir(self, path: str, recursive: bool) -> None:
        raise self._refused("create", path)

    def copy_file(self, src: str, dest: str) -> None:
        raise self._refused("write", dest)

    def move(self, src: str, dest: str) -> None:
        raise self._refused("move", src)

    def delete_file(self, path: str) -> None:
        raise self._refused("delete", path)

    def delete_dir(self, path: str) -> None:
        raise self._refused("delete", path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise self._refused("delete", path)

    def delete_root_dir_contents(self) -> None:
        raise self._refused("delete", "everything")

    def _refused(self, verb: str, path: str) -> InputError:
        return InputError(f"refused to {verb} {path}: it is outside of {self._table}", path=path)
