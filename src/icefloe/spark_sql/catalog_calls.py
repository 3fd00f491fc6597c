"""Answers calls about names: namespaces, and tables that are created, altered, renamed and dropped."""

from __future__ import annotations

from icefloe.catalogs.names import parse_identifier
from icefloe.errors import InputError, NoSuchNamespace, NoSuchTable
from icefloe.spark_sql.descriptions import describe
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
    RenameTable,
    TableDescription,
)
from icefloe.spark_sql.staged_tables import create
from icefloe.spark_sql.table_changes import alter_table
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.table.catalog import Catalog

NAMESPACE_NOT_EMPTY = "NamespaceNotEmpty"  # the kind of failure


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
        create(self._catalog, call)
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
