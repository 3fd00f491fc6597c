"""Answers calls about names: namespaces, and tables that are created, altered, renamed and dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping

from icefloe.catalogs.names import parse_identifier
from icefloe.errors import InputError, NoSuchNamespace, NoSuchTable, UnsupportedError
from icefloe.model.metadata.properties import FORMAT_VERSION
from icefloe.spark_sql.descriptions import PROVIDER, describe
from icefloe.spark_sql.messages import (
    AlterNamespace,
    AlterTable,
    CreateNamespace,
    CreateTable,
    DropNamespace,
    DropTable,
    ListNamespaces,
    ListTables,
    LoadNamespace,
    LoadTable,
    NamespaceCall,
    PartitionTransform,
    RenameTable,
    TableDescription,
)
from icefloe.spark_sql.table_changes import alter_table
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.table.catalog import Catalog

NAMESPACE_NOT_EMPTY = "NamespaceNotEmpty"  # the kind of failure

_PROVIDERS = (PROVIDER, "iceberg", "parquet")  # saveAsTable without a format says parquet
# Properties by which Spark states something else than a property of the table.
_OF_SPARK = frozenset({"provider", "location", "external", "is_managed_location", "table_type", "current-snapshot-id"})
_OPTION_PREFIX = "option."


class CatalogCalls:
    """The calls of a catalog; ``name`` is the name under which Spark knows it."""

    def __init__(self, name: str, catalog: Catalog, loads: TableLoads) -> None:
        self._name = name
        self._catalog = catalog
        self._loads = loads

    def list_namespaces(self, call: ListNamespaces) -> list[list[str]]:
        """The namespaces in a namespace, each with all parts of its name."""
        return [name.split(".") for name in self._catalog.list_namespaces(call.namespace)]

    def load_namespace(self, call: LoadNamespace) -> dict[str, str]:
        """The properties of a namespace."""
        self._require(call)
        return self._catalog.namespace_properties(call.namespace)

    def create_namespace(self, call: CreateNamespace) -> None:
        """Create a namespace."""
        self._catalog.create_namespace(call.namespace, call.properties)

    def alter_namespace(self, call: AlterNamespace) -> None:
        """Set and remove properties of a namespace."""
        self._catalog.set_namespace_properties(call.namespace, call.updates, call.removals)

    def drop_namespace(self, call: DropNamespace) -> bool:
        """Drop a namespace, with its tables and namespaces if the statement says CASCADE; files are not deleted."""
        self._require(call)
        tables = [parse_identifier(name) for name in self._catalog.list_tables(call.namespace)]
        inner = [tuple(name.split(".")) for name in self._catalog.list_namespaces(call.namespace)]
        if not call.cascade and len(tables) + len(inner) > 0:
            raise InputError(f"namespace {'.'.join(call.namespace)} is not empty", kind=NAMESPACE_NOT_EMPTY)
        for table in tables:
            self._catalog.drop_table(table)
            self._loads.forget(table)
        for namespace in inner:
            self.drop_namespace(DropNamespace(namespace=namespace, cascade=True))
        self._catalog.drop_namespace(call.namespace)
        return True

    def list_tables(self, call: ListTables) -> list[str]:
        """The names of the tables in a namespace."""
        self._require(call)
        return [parse_identifier(name)[-1] for name in self._catalog.list_tables(call.namespace)]

    def load_table(self, call: LoadTable) -> TableDescription:
        """A table, a metadata table, or a table in a state of its past."""
        return describe(self._loads.load(call), self._name)

    def create_table(self, call: CreateTable) -> TableDescription:
        """Create a table."""
        properties = call.properties
        provider = properties.get("provider", PROVIDER)
        if provider.lower() not in _PROVIDERS:
            raise UnsupportedError(
                f"USING {provider} is not supported: tables of catalog {self._name} are Iceberg tables;"
                f" write USING {PROVIDER}, or leave it out",
                feature=f"USING {provider}",
            )
        version = properties.get(FORMAT_VERSION.name)
        self._catalog.create_table(
            call.identifier,
            json.loads(call.schema),
            partition_by=[partition_text(transform) for transform in call.partitioning],
            location=properties.get("location"),
            properties=stored_properties(properties),
            format_version=None if version is None else FORMAT_VERSION.of(properties),
        )
        self._loads.forget(call.identifier)
        return describe(self._loads.newest(call.identifier), self._name)

    def alter_table(self, call: AlterTable) -> TableDescription:
        """Change columns and properties of a table, as one commit."""
        alter_table(self._loads.newest(call.identifier).table, call.changes)
        return describe(self._loads.newest(call.identifier), self._name)

    def drop_table(self, call: DropTable) -> bool:
        """Drop a table; false if there is none."""
        self._loads.forget(call.identifier)
        try:
            self._catalog.drop_table(call.identifier, purge=call.purge)
        except NoSuchTable:
            return False
        return True

    def rename_table(self, call: RenameTable) -> None:
        """Rename a table. Spark leaves the name of the catalog in front of the new name, if the statement says it."""
        self._loads.forget(call.identifier)
        namespace = call.new_namespace
        if namespace[:1] == (self._name,) and not self._catalog.namespace_exists(namespace):
            namespace = namespace[1:]
        self._catalog.rename_table(call.identifier, (*namespace, call.new_name))

    def _require(self, call: NamespaceCall) -> None:
        if not self._catalog.namespace_exists(call.namespace):
            raise NoSuchNamespace(f"there is no namespace {'.'.join(call.namespace)}")


def stored_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of CREATE TABLE that the table stores; Spark repeats options with a prefix.

    >>> stored_properties({"provider": "icefloe", "owner": "me", "option.a": "1"})
    {'owner': 'me'}
    """
    return {
        name: value
        for name, value in properties.items()
        if name not in _OF_SPARK and name != FORMAT_VERSION.name and not name.startswith(_OPTION_PREFIX)
    }


def partition_text(transform: PartitionTransform) -> str:
    """A transform as the text of a partition.

    >>> partition_text(PartitionTransform(transform="bucket", columns=(("a b",),), numbers=("4",)))
    'bucket(4, `a b`)'
    """
    if len(transform.columns) != 1:
        raise UnsupportedError(f"PARTITIONED BY {transform.text}: a transform takes one column", feature="transforms")
    column = ".".join(f"`{part}`" for part in transform.columns[0])
    if transform.transform == "identity":
        return column
    return f"{transform.transform}({', '.join((*transform.numbers, column))})"
