"""A catalog in memory, for tests and examples; it behaves like the SQL catalog and ends with the process."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any

from icefloe.catalogs.catalog import CatalogBase, Stale, Swap, Swapped, check_properties
from icefloe.catalogs.names import (
    Identifier,
    NameLike,
    dotted,
    folder_of,
    fresh_identifier,
    parse_identifier,
    parse_namespace,
    similar,
    some_namespace,
    table_location,
)
from icefloe.errors import AlreadyExists, InputError, NoSuchNamespace, NoSuchTable, UnsupportedError
from icefloe.io.local import file_location


class MemoryCatalog(CatalogBase):
    """Tables and namespaces in dictionaries; a lock makes each method atomic.

    >>> catalog = MemoryCatalog("demo")
    >>> catalog.create_namespace("db")
    >>> catalog.create("db.orders", "memory://wh/db/orders/metadata/1.json")
    >>> catalog.swap("db.orders", expected="something else", new="memory://wh/db/orders/metadata/2.json")
    Stale()
    """

    _warehouse: str

    def __init__(self, name: str, *, warehouse: str = "memory://warehouse") -> None:
        self._name = name
        self._warehouse = file_location(warehouse)
        self._lock = threading.RLock()
        self._tables: dict[Identifier, str] = {}
        self._created: dict[Identifier, dict[str, str]] = {}  # namespaces, with their properties

    def __reduce__(self) -> tuple[Any, ...]:
        raise UnsupportedError(
            f"catalog {self._name!r} is in memory: it belongs to one process and cannot be opened by another. Use a"
            " catalog in sqlite:///path/to/catalog.db, or pass rows instead of the table",
            catalog=self._name,
        )

    def __repr__(self) -> str:
        return f"MemoryCatalog({self._name!r}, warehouse={self._warehouse!r})"

    def load(self, identifier: NameLike) -> str:
        """The table's metadata location."""
        table = parse_identifier(identifier)
        with self._lock:
            return self._find(table)

    def create(self, identifier: NameLike, metadata_location: str) -> None:
        """Enter a new table into a namespace that exists."""
        table = fresh_identifier(identifier)
        with self._lock:
            self._require_namespace(table[:-1])
            self._require_free(table)
            self._tables[table] = metadata_location

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Move the pointer to ``new`` if it is at ``expected``."""
        table = parse_identifier(identifier)
        if expected == new:
            raise InputError(f"the new metadata of {dotted(table)} has the location of the old: {new}", location=new)
        with self._lock:
            if self._find(table) != expected:
                return Stale()
            self._tables[table] = new
            return Swapped()

    def register(self, identifier: NameLike, metadata_location: str) -> None:
        """Enter a table that was written before."""
        self.create(identifier, metadata_location)

    def drop(self, identifier: NameLike) -> str:
        """Remove the table; returns the location of its last metadata."""
        table = parse_identifier(identifier)
        with self._lock:
            self._find(table)
            return self._tables.pop(table)

    def rename(self, identifier: NameLike, new_identifier: NameLike) -> None:
        """Give the table another name; its files stay where they are."""
        table, target = parse_identifier(identifier), fresh_identifier(new_identifier)
        with self._lock:
            self._require_namespace(target[:-1])
            location = self._find(table)
            self._require_free(target)
            del self._tables[table]
            self._tables[target] = location

    def list_tables(self, namespace: NameLike) -> tuple[Identifier, ...]:
        """The tables directly in a namespace, in order of name."""
        parts = parse_namespace(namespace)
        with self._lock:
            self._require_namespace(parts)
            return tuple(sorted(table for table in self._tables if table[:-1] == parts))

    def others(self, identifier: NameLike) -> Mapping[str, str]:
        """Where the metadata of all other tables is."""
        table = parse_identifier(identifier)
        with self._lock:
            return {dotted(name): location for name, location in self._tables.items() if name != table}

    def create_namespace(self, namespace: NameLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace."""
        parts = some_namespace(namespace)
        new_properties = {} if properties is None else dict(properties)
        check_properties(new_properties, ())
        with self._lock:
            if self.namespace_exists(parts):
                raise AlreadyExists(
                    f"catalog {self._name} has a namespace {dotted(parts)} already", namespace=dotted(parts)
                )
            self._created[parts] = new_properties

    def drop_namespace(self, namespace: NameLike) -> None:
        """Remove a namespace that holds no table or namespace."""
        parts = some_namespace(namespace)
        with self._lock:
            self._require_namespace(parts)
            if any(_is_under(name, parts) for name in self._all_namespaces(without=parts)):
                raise InputError(
                    f"namespace {dotted(parts)} is not empty; drop what it holds first", namespace=dotted(parts)
                )
            self._created.pop(parts, None)

    def namespace_exists(self, namespace: NameLike) -> bool:
        """Whether the namespace was created, or holds a table or a namespace that was."""
        parts = parse_namespace(namespace)
        with self._lock:
            return len(parts) == 0 or any(_is_under(name, parts) for name in self._all_namespaces())

    def list_namespaces(self, parent: NameLike = ()) -> tuple[Identifier, ...]:
        """The namespaces one level below ``parent``, or the top ones, in order of name."""
        above = parse_namespace(parent)
        depth = len(above) + 1
        with self._lock:
            self._require_namespace(above)
            below = (name for name in self._all_namespaces() if len(name) >= depth and _is_under(name, above))
            return tuple(sorted({name[:depth] for name in below}))

    def namespace_properties(self, namespace: NameLike) -> Mapping[str, str]:
        """The properties of a namespace."""
        parts = some_namespace(namespace)
        with self._lock:
            self._require_namespace(parts)
            return dict(self._created.get(parts, {}))

    def set_namespace_properties(
        self, namespace: NameLike, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        """Set some properties of a namespace and remove others."""
        parts = some_namespace(namespace)
        check_properties(updates, removals)
        with self._lock:
            self._require_namespace(parts)
            kept = {key: value for key, value in self._created.get(parts, {}).items() if key not in removals}
            self._created[parts] = {**kept, **updates}

    def default_location(self, identifier: NameLike) -> str:
        """A folder under the namespace's ``location`` property if it has one, else under the warehouse."""
        table = parse_identifier(identifier)
        with self._lock:
            place = self._created.get(table[:-1], {}).get("location")
        return table_location(self._warehouse, table) if place is None else folder_of(place, table)

    def _find(self, table: Identifier) -> str:
        location = self._tables.get(table)
        if location is None:
            hint = similar(dotted(table), map(dotted, self._tables))
            raise NoSuchTable(f"catalog {self._name} has no table {dotted(table)}{hint}", table=dotted(table))
        return location

    def _all_namespaces(self, *, without: Identifier = ()) -> set[Identifier]:
        """The namespaces that were created, save one, and those that hold tables."""
        return (self._created.keys() - {without}) | {table[:-1] for table in self._tables}

    def _require_namespace(self, parts: Identifier) -> None:
        if not self.namespace_exists(parts):
            hint = similar(dotted(parts), map(dotted, self._all_namespaces()))
            raise NoSuchNamespace(
                f"catalog {self._name} has no namespace {dotted(parts)}{hint}", namespace=dotted(parts)
            )

    def _require_free(self, table: Identifier) -> None:
        if table in self._tables:
            raise AlreadyExists(f"catalog {self._name} has a table {dotted(table)} already", table=dotted(table))


def _is_under(name: Identifier, above: Identifier) -> bool:
    return name[: len(above)] == above
