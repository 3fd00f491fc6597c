"""The two tables of the JDBC catalog and the statements on them, compiled once for a database's dialect.

The layout is the one that Java's JdbcCatalog, pyiceberg and iceberg-rust share. Its version 1 adds ``iceberg_type`` to
tell tables from views; databases of version 0 lack the column, so each statement has a form for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Dialect, MetaData, String, Table, text

from icefloe.catalogs.catalog import EXISTS

TABLES = "iceberg_tables"
NAMESPACES = "iceberg_namespace_properties"
TYPE_COLUMN = "iceberg_type"

SCHEMA = MetaData()
Table(
    TABLES,
    SCHEMA,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_namespace", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column(TYPE_COLUMN, String(5)),
)
Table(
    NAMESPACES,
    SCHEMA,
    Column("catalog_name", String(255), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000)),
)

_KEY = "catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
_UNDER = "substr({column}, 1, :length) = :prefix"  # not LIKE: SQLite's takes "a" for "A"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """SQL in the driver's own parameter style, ready for ``exec_driver_sql``."""

    sql: str
    order: tuple[str, ...] | None  # the names of positional parameters; None: the driver takes names

    def parameters(self, values: Mapping[str, object]) -> Any:
        """The values in the shape that the driver takes."""
        return dict(values) if self.order is None else tuple([values[name] for name in self.order])


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Everything that a catalog says to its database; parameters are named in the SQL below."""

    catalogs: Statement
    load: Statement
    insert: Statement
    swap: Statement
    drop: Statement
    rename: Statement
    list_tables: Statement
    all_tables: Statement
    others: Statement
    namespaces: Statement
    tables_below: Statement
    namespace_rows: Statement
    insert_namespace: Statement
    drop_namespace: Statement
    namespace_properties: Statement
    put_property: Statement
    drop_property: Statement


def statements(dialect: Dialect, *, typed: bool) -> Statements:
    """Compile the statements; ``typed`` says whether the database has the column ``iceberg_type``."""
    is_table = f" AND ({TYPE_COLUMN} = 'TABLE' OR {TYPE_COLUMN} IS NULL)" if typed else ""
    columns, values = (f", {TYPE_COLUMN}", ", 'TABLE'") if typed else ("", "")
    sources = {
        "catalogs": f"SELECT catalog_name FROM {TABLES} UNION SELECT catalog_name FROM {NAMESPACES}",
        "load": f"SELECT metadata_location FROM {TABLES} WHERE {_KEY}{is_table}",
        "insert": f"INSERT INTO {TABLES} (catalog_name, table_namespace, table_name, metadata_location{columns}) "
        f"VALUES (:catalog, :namespace, :table, :new{values})",
        "swap": f"UPDATE {TABLES} SET metadata_location = :new, previous_metadata_location = :expected "
        f"WHERE {_KEY} AND metadata_location = :expected{is_table}",
        "drop": f"DELETE FROM {TABLES} WHERE {_KEY} AND COALESCE(metadata_location, '') = :expected{is_table}",
        "rename": f"UPDATE {TABLES} SET table_namespace = :new_namespace, table_name = :new_table "
        f"WHERE {_KEY}{is_table}",
        "list_tables": f"SELECT table_name FROM {TABLES} WHERE catalog_name = :catalog "
        f"AND table_namespace = :namespace{is_table} ORDER BY table_name",
        "all_tables": f"SELECT table_namespace, table_name FROM {TABLES} WHERE catalog_name = :catalog{is_table}",
        "others": f"SELECT catalog_name, table_namespace, table_name, metadata_location FROM {TABLES} "
        f"WHERE NOT ({_KEY}) AND metadata_location IS NOT NULL{is_table}",
        "namespaces": f"SELECT table_namespace FROM {TABLES} WHERE catalog_name = :catalog "
        f"UNION SELECT namespace FROM {NAMESPACES} WHERE catalog_name = :catalog",
        "tables_below": f"SELECT 1 FROM {TABLES} WHERE catalog_name = :catalog "
        f"AND (table_namespace = :namespace OR {_UNDER.format(column='table_namespace')}) LIMIT 1",
        "namespace_rows": f"SELECT namespace FROM {NAMESPACES} WHERE catalog_name = :catalog "
        f"AND (namespace = :namespace OR {_UNDER.format(column='namespace')})",
        "insert_namespace": f"INSERT INTO {NAMESPACES} (catalog_name, namespace, property_key, property_value) "
        f"VALUES (:catalog, :namespace, '{EXISTS}', 'true')",
        "drop_namespace": f"DELETE FROM {NAMESPACES} WHERE catalog_name = :catalog AND namespace = :namespace",
        "namespace_properties": f"SELECT property_key, property_value FROM {NAMESPACES} "
        "WHERE catalog_name = :catalog AND namespace = :namespace",
        "put_property": f"INSERT INTO {NAMESPACES} (catalog_name, namespace, property_key, property_value) "
        "VALUES (:catalog, :namespace, :key, :value) "
        "ON CONFLICT (catalog_name, namespace, property_key) DO UPDATE SET property_value = excluded.property_value",
        "drop_property": f"DELETE FROM {NAMESPACES} WHERE catalog_name = :catalog AND namespace = :namespace "
        "AND property_key = :key",
    }
    return Statements(**{name: _compiled(source, dialect) for name, source in sources.items()})


def _compiled(source: str, dialect: Dialect) -> Statement:
    compiled: Any = text(source).compile(dialect=dialect)
    order = compiled.positiontup
    return Statement(sql=str(compiled), order=None if order is None else tuple(order))
