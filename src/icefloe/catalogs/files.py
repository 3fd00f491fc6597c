"""A catalog of folders: namespaces are folders of a warehouse, tables are folders with versioned metadata in them.

The layout is that of Apache Iceberg's Hadoop catalog, so both open each other's tables (spec: File System Tables). The
folder is the name: tables cannot be renamed, as their metadata holds absolute locations, nor placed elsewhere. The
warehouse is a folder of a local disk; ``file_versions`` says how commits are made safe there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import unquote

from icefloe.catalogs.catalog import CatalogBase, Stale, Swap, check_properties
from icefloe.catalogs.file_versions import METADATA, FileVersions
from icefloe.catalogs.names import (
    Identifier,
    NameLike,
    dotted,
    fresh_identifier,
    parse_identifier,
    parse_namespace,
    path_part,
    similar,
    some_namespace,
    table_location,
)
from icefloe.errors import AlreadyExists, InputError, NoSuchNamespace, NoSuchTable, StorageError, UnsupportedError
from icefloe.io.exclusive import ExclusivePut
from icefloe.io.file_io import FileIO
from icefloe.io.folders import DurableFolders, sync_folder
from icefloe.io.local import file_location, local_path
from icefloe.io.select import file_io
from icefloe.model.locations import FILE, parse_location


class FilesCatalog(CatalogBase):
    """Tables and namespaces as folders under a warehouse on a local disk."""

    _warehouse: str
    names_locations = True  # the folder of a table is its name

    def __init__(self, name: str, *, warehouse: str, io: FileIO | None = None) -> None:
        self._name = name
        self._warehouse = file_location(warehouse)
        if parse_location(self._warehouse).scheme != FILE:
            raise UnsupportedError(
                f"a catalog of folders needs a warehouse on a local disk, not {self._warehouse}; use a SQL catalog",
                location=self._warehouse,
            )
        self._io = file_io(self._warehouse) if io is None else io
        self._exclusive = ExclusivePut(self._io)

    def __repr__(self) -> str:
        return f"FilesCatalog({self._name!r}, warehouse={self._warehouse!r})"

    def load(self, identifier: NameLike) -> str:
        """The location of the table's current version."""
        table = parse_identifier(identifier)
        current = self._versions(table).current()
        if current is None:
            raise self._no_such_table(table)
        return current

    def create(self, identifier: NameLike, metadata_location: str) -> None:
        """Make the metadata file version 1 of the table in the folder of this name; the file itself is deleted."""
        self._enter(identifier, metadata_location, keep=False)

    def register(self, identifier: NameLike, metadata_location: str) -> None:
        """Make a copy of the metadata file version 1 of the table in the folder of this name."""
        self._enter(identifier, metadata_location, keep=True)

    def _enter(self, identifier: NameLike, metadata_location: str, *, keep: bool) -> None:
        table = _checked(fresh_identifier(identifier))
        self._require_namespace(table[:-1])
        if self._is_namespace(table):
            raise AlreadyExists(f"catalog {self._name} has a namespace {dotted(table)}", table=dotted(table))
        versions = self._versions(table)
        if not versions.is_inside(metadata_location):
            raise InputError(
                f"{metadata_location} is not in {self.default_location(table)}/{METADATA}: a table of a catalog of "
                "folders lives in the folder of its name",
                location=metadata_location,
            )
        try:
            versions.create(metadata_location, keep=keep)
        except AlreadyExists as error:
            raise AlreadyExists(
                f"catalog {self._name} has a table {dotted(table)} already", table=dotted(table)
            ) from error

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Make the file ``new`` the version after ``expected``, if that is current; ``new`` itself is deleted."""
        table = parse_identifier(identifier)
        if expected == new:
            raise InputError(f"the new metadata of {dotted(table)} has the location of the old: {new}", location=new)
        versions = self._versions(table)
        outcome = versions.advance(expected, new)
        if isinstance(outcome, Stale) and versions.head() is None:
            raise self._no_such_table(table)
        return outcome

    def drop(self, identifier: NameLike) -> str:
        """Remove the table; returns the location of a copy of its last metadata."""
        table = parse_identifier(identifier)
        kept = self._versions(table).forget()
        if kept is None:
            raise self._no_such_table(table)
        return kept

    def rename(self, identifier: NameLike, new_identifier: NameLike) -> None:
        """Refused: the metadata of a table holds the locations of its files."""
        table, target = parse_identifier(identifier), parse_identifier(new_identifier)
        self.load(table)
        raise UnsupportedError(
            f"catalog {self._name} cannot rename {dotted(table)} to {dotted(target)}: the folder of a table is its "
            "name, and its metadata holds absolute locations; use a SQL catalog",
            table=dotted(table),
        )

    def list_tables(self, namespace: NameLike) -> tuple[Identifier, ...]:
        """The tables directly in a namespace, in order of name."""
        parts = parse_namespace(namespace)
        self._require_namespace(parts)
        children = ((*parts, name) for name in self._children(parts)) if len(parts) > 0 else ()
        return tuple(sorted(table for table in children if self._is_table(table)))

    def others(self, identifier: NameLike) -> Mapping[str, str]:
        """None: the folder of a table is its own."""
        return {}

    def create_namespace(self, namespace: NameLike, properties: Mapping[str, str] | None = None) -> None:
        """Create the folder of a namespace and its parents."""
        parts = _checked(some_namespace(namespace))
        new_properties = {} if properties is None else properties
        check_properties(new_properties, ())
        if len(new_properties) > 0:
            raise self._no_properties(parts)
        for depth in range(1, len(parts)):
            if self._has_metadata(parts[:depth]):
                raise InputError(f"{dotted(parts[:depth])} is a table, which holds no namespaces")
        path = self._path(parts)
        try:
            DurableFolders().ensure(os.path.dirname(path))
            os.mkdir(path)
            sync_folder(os.path.dirname(path))
        except FileExistsError as error:
            kind = "table" if self._has_metadata(parts) else "namespace"
            raise AlreadyExists(
                f"catalog {self._name} has a {kind} {dotted(parts)} already", namespace=dotted(parts)
            ) from error
        except OSError as error:
            raise StorageError(f"could not make the folder {path}: {error.strerror}", location=path) from error

    def drop_namespace(self, namespace: NameLike) -> None:
        """Remove the folder of a namespace that holds no namespace, no table and no file."""
        parts = some_namespace(namespace)
        self._require_namespace(parts)
        path = self._path(parts)
        inner = [(*parts, name) for name in self._children(parts)]
        if any(self._is_namespace(child) or self._is_table(child) for child in inner):
            raise InputError(
                f"namespace {dotted(parts)} is not empty; drop what it holds first", namespace=dotted(parts)
            )
        left = next(iter(self._io.list(self._location(parts))), None)
        if left is not None:
            raise InputError(
                f"namespace {dotted(parts)} is not empty: it has files that no table owns, such as {left.location}",
                namespace=dotted(parts),
            )
        try:
            for folder, _, _ in os.walk(path, topdown=False):
                os.rmdir(folder)
        except OSError as error:
            raise StorageError(f"could not remove the folder {path}: {error.strerror}", location=path) from error

    def namespace_exists(self, namespace: NameLike) -> bool:
        """Whether there is a folder of this name that is not a table's."""
        parts = parse_namespace(namespace)
        return len(parts) == 0 or self._is_namespace(parts)

    def list_namespaces(self, parent: NameLike = ()) -> tuple[Identifier, ...]:
        """The namespaces one level below ``parent``, or the top ones, in order of name."""
        above = parse_namespace(parent)
        self._require_namespace(above)
        children = ((*above, name) for name in self._children(above) if "." not in name)
        return tuple(sorted(child for child in children if self._is_namespace(child)))

    def namespace_properties(self, namespace: NameLike) -> Mapping[str, str]:
        """Where the namespace is; a folder has no other properties."""
        parts = some_namespace(namespace)
        self._require_namespace(parts)
        return {"location": self._location(parts)}

    def set_namespace_properties(
        self, namespace: NameLike, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        """Refused: a folder has no place for properties."""
        parts = some_namespace(namespace)
        self._require_namespace(parts)
        raise self._no_properties(parts)

    def default_location(self, identifier: NameLike) -> str:
        """The folder of the name, the only location that a table may have."""
        return table_location(self._warehouse, parse_identifier(identifier))

    def _versions(self, table: Identifier) -> FileVersions:
        return FileVersions(self._io, self.default_location(table), self._exclusive)

    def _location(self, parts: Identifier) -> str:
        return "/".join((self._warehouse, *map(path_part, parts)))

    def _path(self, parts: Identifier) -> str:
        return local_path(self._location(parts))

    def _children(self, parts: Identifier) -> Iterator[str]:
        """Names of the folders in a namespace; folders that this catalog would name differently are ignored."""
        try:
            with os.scandir(self._path(parts)) as entries:
                folders = [entry.name for entry in entries if entry.is_dir()]
        except FileNotFoundError:
            return
        for folder in folders:
            name = unquote(folder)
            if path_part(name) == folder:
                yield name

    def _has_metadata(self, parts: Identifier) -> bool:
        return os.path.isdir(os.path.join(self._path(parts), METADATA))

    def _is_namespace(self, parts: Identifier) -> bool:
        return os.path.isdir(self._path(parts)) and not self._has_metadata(parts)

    def _is_table(self, parts: Identifier) -> bool:
        return self._has_metadata(parts) and self._versions(parts).head() is not None

    def _require_namespace(self, parts: Identifier) -> None:
        if not self.namespace_exists(parts):
            known = (dotted((*parts[:-1], name)) for name in self._children(parts[:-1]))
            hint = similar(dotted(parts), known)
            raise NoSuchNamespace(
                f"catalog {self._name} has no namespace {dotted(parts)}{hint}", namespace=dotted(parts)
            )

    def _no_such_table(self, table: Identifier) -> NoSuchTable:
        tables = ((*table[:-1], name) for name in self._children(table[:-1]))
        hint = similar(dotted(table), (dotted(name) for name in tables if self._is_table(name)))
        return NoSuchTable(f"catalog {self._name} has no table {dotted(table)}{hint}", table=dotted(table))

    def _no_properties(self, parts: Identifier) -> UnsupportedError:
        return UnsupportedError(
            f"catalog {self._name} keeps no properties of {dotted(parts)}: a folder has no place for them; use a SQL "
            "catalog",
            namespace=dotted(parts),
        )


def _checked(parts: Identifier) -> Identifier:
    if METADATA in parts[1:]:
        raise InputError(f"{dotted(parts)}: a folder {METADATA!r} makes the one around it a table; pick another name")
    return parts
