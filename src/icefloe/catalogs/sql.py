"""The catalog in a SQL database: SQLite by default, laid out like the JDBC catalog (spec: Metastore Tables).

Java's JdbcCatalog, pyiceberg's SqlCatalog and iceberg-rust open the same database, and this one opens theirs. The
catalog's name is part of every key, so it must be equal on all sides. The swap is one UPDATE whose WHERE holds the
expected location: the database runs it for one writer at a time, and exactly one of those who expect the same wins.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from icefloe.catalogs.catalog import EXISTS, CatalogBase, Stale, Swap, Swapped, Unknown, check_properties
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
from icefloe.catalogs.sql_changes import Done, Effect, Failed, Step, is_busy, is_lost, run_change
from icefloe.catalogs.sql_connections import Connections, catalog_url
from icefloe.catalogs.sql_statements import SCHEMA, TABLES, TYPE_COLUMN, Statement, statements
from icefloe.errors import (
    AlreadyExists,
    CommitStateUnknown,
    FormatError,
    InputError,
    NoSuchNamespace,
    NoSuchTable,
    StorageError,
)
from icefloe.io.folders import sync_folder
from icefloe.io.local import file_location
from icefloe.io.secrets import without_secrets

_T = TypeVar("_T")


class SqlCatalog(CatalogBase):
    """Tables and namespaces in the two tables ``iceberg_tables`` and ``iceberg_namespace_properties``.

    Opening a database without them makes them, in version 1 of the layout. A SQLite file that is new gets a
    write-ahead log; one that another program made keeps its journal mode.
    """

    def __init__(self, name: str, uri: str, *, warehouse: str | None = None, busy_seconds: float = 30.0) -> None:
        self._name = name
        self._warehouse = None if warehouse is None else file_location(warehouse)
        self._url = catalog_url(uri)
        self._busy_seconds = busy_seconds
        self._connections = Connections(self._url, busy_seconds=busy_seconds)
        typed = self._ask(lambda: _prepare(self._connections))
        self._say = statements(self._connections.dialect, typed=typed)

    def __reduce__(self) -> tuple[Callable[..., SqlCatalog], tuple[object, ...]]:
        uri = self._url.render_as_string(hide_password=False)
        return _reopen, (self._name, uri, self._warehouse, self._busy_seconds)

    def __repr__(self) -> str:
        return f"SqlCatalog({self._name!r}, {self._where!r}, warehouse={self._warehouse!r})"

    @property
    def connections(self) -> Connections:
        """The connections to the database, for programs that add their own queries or listeners."""
        return self._connections

    def close(self) -> None:
        """Close this thread's connection; the next call opens a new one."""
        self._connections.discard()

    def catalog_names(self) -> list[str]:
        """The names of all catalogs in the database that have a namespace or a table."""
        return sorted(str(row[0]) for row in self._rows(self._say.catalogs, {}))

    def load(self, identifier: NameLike) -> str:
        """The table's metadata location."""
        table = parse_identifier(identifier)
        rows = self._rows(self._say.load, self._key(table))
        if len(rows) == 0:
            raise self._no_such_table(table)
        location = rows[0][0]
        if location is None:
            raise FormatError(
                f"catalog {self._name} holds no metadata location for table {dotted(table)} in {self._where}",
                table=dotted(table),
            )
        return str(location)

    def create(self, identifier: NameLike, metadata_location: str) -> None:
        """Enter a new table into a namespace that exists."""
        table = fresh_identifier(identifier)
        self._require_namespace(table[:-1])
        values = {**self._key(table), "new": metadata_location}
        self._change([(self._say.insert, values)], f"create {dotted(table)}")

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Move the pointer to ``new`` if it is at ``expected``: one UPDATE, one transaction."""
        table = parse_identifier(identifier)
        if expected == new:
            raise InputError(f"the new metadata of {dotted(table)} has the location of the old: {new}", location=new)
        values = {**self._key(table), "expected": expected, "new": new}
        outcome = run_change(self._connections, [(self._say.swap, values)])
        if isinstance(outcome, Failed):
            return self._failed_swap(outcome)
        if outcome.rows == (1,):
            return Swapped()
        if len(self._rows(self._say.load, self._key(table))) == 0:
            raise self._no_such_table(table)
        return Stale()

    def register(self, identifier: NameLike, metadata_location: str) -> None:
        """Enter a table that was written before."""
        self.create(identifier, metadata_location)

    def drop(self, identifier: NameLike) -> str | None:
        """Remove the table; returns the location of its last metadata, which may be of a concurrent commit."""
        table = parse_identifier(identifier)
        while True:
            rows = self._rows(self._say.load, self._key(table))
            if len(rows) == 0:
                raise self._no_such_table(table)
            last = rows[0][0]
            values = {**self._key(table), "expected": "" if last is None else last}
            if self._change([(self._say.drop, values)], f"drop {dotted(table)}") == 1:
                return None if last is None else str(last)

    def rename(self, identifier: NameLike, new_identifier: NameLike) -> None:
        """Give the table another name; its files stay where they are."""
        table, target = parse_identifier(identifier), fresh_identifier(new_identifier)
        self._require_namespace(target[:-1])
        values = {**self._key(table), "new_namespace": dotted(target[:-1]), "new_table": target[-1]}
        if self._change([(self._say.rename, values)], f"rename {dotted(table)} to {dotted(target)}") == 0:
            raise self._no_such_table(table)

    def list_tables(self, namespace: NameLike) -> tuple[Identifier, ...]:
        """The tables directly in a namespace, in order of name."""
        parts = parse_namespace(namespace)
        self._require_namespace(parts)
        rows = self._rows(self._say.list_tables, self._namespace_key(parts))
        return tuple(sorted((*parts, str(row[0])) for row in rows))

    def others(self, identifier: NameLike) -> Mapping[str, str]:
        """The metadata locations of all other tables of the database, in all catalogs."""
        rows = self._rows(self._say.others, self._key(parse_identifier(identifier)))
        names = (f"{row[1]}.{row[2]}" + ("" if row[0] == self._name else f" of catalog {row[0]}") for row in rows)
        return {name: str(row[3]) for name, row in zip(names, rows, strict=True)}

    def create_namespace(self, namespace: NameLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace."""
        parts = some_namespace(namespace)
        new_properties = {} if properties is None else dict(properties)
        check_properties(new_properties, ())
        if self.namespace_exists(parts):
            raise AlreadyExists(
                f"catalog {self._name} has a namespace {dotted(parts)} already", namespace=dotted(parts)
            )
        key = self._namespace_key(parts)
        mark: Step = (self._say.insert_namespace, key)  # the key of the mark has one winner
        self._change([mark, *self._puts(key, new_properties)], f"create namespace {dotted(parts)}")

    def drop_namespace(self, namespace: NameLike) -> None:
        """Remove a namespace that holds no table, view or namespace."""
        parts = some_namespace(namespace)
        self._require_namespace(parts)
        key = self._namespace_key(parts)
        below = [row[0] for row in self._rows(self._say.namespace_rows, key) if row[0] != dotted(parts)]
        if len(below) > 0 or len(self._rows(self._say.tables_below, key)) > 0:
            raise InputError(
                f"namespace {dotted(parts)} is not empty; drop what it holds first", namespace=dotted(parts)
            )
        self._change([(self._say.drop_namespace, key)], f"drop namespace {dotted(parts)}")

    def namespace_exists(self, namespace: NameLike) -> bool:
        """Whether the namespace was created, or holds a table or a namespace that was."""
        parts = parse_namespace(namespace)
        key = self._namespace_key(parts)
        return (
            len(parts) == 0
            or len(self._rows(self._say.namespace_rows, key)) > 0
            or len(self._rows(self._say.tables_below, key)) > 0
        )

    def list_namespaces(self, parent: NameLike = ()) -> tuple[Identifier, ...]:
        """The namespaces one level below ``parent``, or the top ones, in order of name."""
        above = parse_namespace(parent)
        self._require_namespace(above)
        depth = len(above) + 1
        names = self._namespaces()
        return tuple(sorted({name[:depth] for name in names if len(name) >= depth and name[: depth - 1] == above}))

    def namespace_properties(self, namespace: NameLike) -> Mapping[str, str]:
        """What was said about a namespace."""
        parts = some_namespace(namespace)
        self._require_namespace(parts)
        return self._properties(parts)

    def set_namespace_properties(
        self, namespace: NameLike, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        """Set some properties of a namespace and remove others, in one transaction."""
        parts = some_namespace(namespace)
        check_properties(updates, removals)
        self._require_namespace(parts)
        key = self._namespace_key(parts)
        gone: list[Step] = [(self._say.drop_property, {**key, "key": name}) for name in sorted(removals)]
        # A namespace that consists only of its properties would vanish with the last of them, so EXISTS is set too.
        # Steps are in order of keys, so that two writers of the same properties wait for each other without a deadlock.
        self._change([*gone, *self._puts(key, {**updates, EXISTS: "true"})], f"set properties of {dotted(parts)}")

    def default_location(self, identifier: NameLike) -> str:
        """A folder under the namespace's ``location`` property if it has one, else under the warehouse."""
        table = parse_identifier(identifier)
        place = self._properties(table[:-1]).get("location")
        if place is not None:
            return folder_of(place, table)
        if self._warehouse is None:
            raise InputError(
                f"catalog {self._name} has no warehouse, so table {dotted(table)} needs a location; "
                "open the catalog with warehouse=... or create the table with location=..."
            )
        return table_location(self._warehouse, table)

    @property
    def _where(self) -> str:
        return without_secrets(self._url.render_as_string(hide_password=True))

    def _key(self, table: Identifier) -> dict[str, object]:
        return {"catalog": self._name, "namespace": dotted(table[:-1]), "table": table[-1]}

    def _namespace_key(self, parts: Identifier) -> dict[str, object]:
        name = dotted(parts)
        return {"catalog": self._name, "namespace": name, "prefix": name + ".", "length": len(name) + 1}

    def _puts(self, key: dict[str, object], properties: Mapping[str, str]) -> list[Step]:
        items = sorted(properties.items())
        return [(self._say.put_property, {**key, "key": name, "value": value}) for name, value in items]

    def _properties(self, parts: Identifier) -> dict[str, str]:
        rows = self._rows(self._say.namespace_properties, self._namespace_key(parts))
        return {str(key): str(value) for key, value in rows if key != EXISTS and value is not None}

    def _namespaces(self) -> list[Identifier]:
        rows = self._rows(self._say.namespaces, {"catalog": self._name})
        return [tuple(str(row[0]).split(".")) for row in rows if row[0] not in (None, "")]

    def _require_namespace(self, parts: Identifier) -> None:
        if not self.namespace_exists(parts):
            hint = similar(dotted(parts), {dotted(name) for name in self._namespaces()})
            raise NoSuchNamespace(
                f"catalog {self._name} has no namespace {dotted(parts)}{hint}", namespace=dotted(parts)
            )

    def _no_such_table(self, table: Identifier) -> NoSuchTable:
        rows = self._rows(self._say.all_tables, {"catalog": self._name})
        hint = similar(dotted(table), (f"{row[0]}.{row[1]}" for row in rows))
        return NoSuchTable(f"catalog {self._name} has no table {dotted(table)}{hint}", table=dotted(table))

    def _rows(self, statement: Statement, values: dict[str, object]) -> list[Any]:
        def run() -> list[Any]:
            parameters = statement.parameters(values)
            return list(self._connections.get().exec_driver_sql(statement.sql, parameters).fetchall())

        return self._ask(run)

    def _change(self, steps: list[Step], what: str) -> int:
        """Run a change: how many rows its first statement touched."""
        outcome = run_change(self._connections, steps)
        if isinstance(outcome, Done):
            return outcome.rows[0]
        effect, cause = outcome.effect, outcome.cause
        if effect is Effect.TAKEN:
            raise AlreadyExists(f"cannot {what} in catalog {self._name}: the name is taken") from cause
        if not isinstance(cause, Exception):
            raise cause
        if effect is not Effect.UNKNOWN:
            raise self._storage_error(cause) from cause
        raise CommitStateUnknown(
            f"catalog {self._name} failed while asked to {what}; it may or may not have happened: {cause}"
        ) from cause

    def _failed_swap(self, failed: Failed) -> Swap:
        if failed.effect is Effect.BUSY:
            return Stale()
        if failed.effect is Effect.UNKNOWN:
            return Unknown(cause=failed.cause)
        raise self._storage_error(failed.cause) from failed.cause

    def _ask(self, question: Callable[[], _T]) -> _T:
        """Run a step that changes nothing; a connection that failed is not used again, one that is gone is replaced."""
        try:
            try:
                return question()
            except SQLAlchemyError as error:
                self._connections.discard()
                if not is_lost(error):
                    raise
                return question()
        except SQLAlchemyError as error:
            self._connections.discard()
            raise self._storage_error(error) from error
        except BaseException:
            self._connections.discard()
            raise

    def _storage_error(self, error: BaseException) -> StorageError:
        cause = without_secrets(" ".join(str(getattr(error, "orig", None) or error).split()))
        advice = "another program holds it; try again" if is_busy(error) else "check the file or the server"
        return StorageError(f"catalog database {self._where} failed: {cause}; {advice}", uri=self._where)


def _reopen(name: str, uri: str, warehouse: str | None, busy_seconds: float) -> SqlCatalog:
    return SqlCatalog(name, uri, warehouse=warehouse, busy_seconds=busy_seconds)


def _prepare(connections: Connections) -> bool:
    """Make the tables if they are missing: whether ``iceberg_tables`` has the column of layout version 1."""
    connection = connections.get()
    present = set(inspect(connection).get_table_names())
    if not present.issuperset(SCHEMA.tables):
        _make_tables(connection, empty=len(present) == 0)
    return any(column["name"] == TYPE_COLUMN for column in inspect(connection).get_columns(TABLES))


def _make_tables(connection: Connection, *, empty: bool) -> None:
    path = connection.engine.url.database
    sqlite = connection.dialect.name == "sqlite"
    if sqlite and empty:
        # Readers and the writer do not block each other, and a commit is one fsync. If another process that creates
        # the same file has locked it, that process sets the mode.
        with contextlib.suppress(OperationalError):
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
    for table in SCHEMA.sorted_tables:
        try:
            connection.execute(CreateTable(table, if_not_exists=True))
        except (IntegrityError, ProgrammingError):
            # PostgreSQL checks before it locks: the second session may get an error that the name is taken.
            if not inspect(connection).has_table(table.name):
                raise
    if sqlite and path is not None and os.path.isabs(path):
        sync_folder(os.path.dirname(path))
