"""The catalog that users hold: making and opening tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icefloe.catalogs import catalog as protocol
from icefloe.catalogs.config import open_catalog
from icefloe.catalogs.names import NameLike, dotted, parse_identifier, parse_namespace
from icefloe.commit.base import TablePointer
from icefloe.commit.create import create_table, new_metadata
from icefloe.env import SYSTEM, Env
from icefloe.errors import AlreadyExists
from icefloe.io.select import file_io
from icefloe.model.ddl import as_schema, partition_spec
from icefloe.model.properties import FORMAT_VERSION
from icefloe.table.table import Table


class Catalog:
    """Names of tables, and where each one's metadata is.

    >>> import icefloe, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint, note string")
    >>> cat.list_tables("db")
    ['db.orders']
    """

    def __init__(self, pointers: protocol.Catalog, env: Env = SYSTEM) -> None:
        self._pointers = pointers
        self._env = env

    @property
    def name(self) -> str:
        """The name under which tables are kept in the database; other programs must use the same."""
        return self._pointers.name

    def create_table(
        self,
        name: NameLike,
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        format_version: int | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Make a table, and its namespace; the schema is DDL text, an Arrow schema, a Spark StructType or ours."""
        identifier = parse_identifier(name)
        given = dict(properties or {})
        version = FORMAT_VERSION.of(given) if format_version is None else format_version
        given.pop(FORMAT_VERSION.name, None)
        columns = as_schema(schema, format_version=version)
        place = self._free_location(identifier) if location is None else location.rstrip("/")
        metadata = new_metadata(
            location=place,
            schema=columns,
            spec=partition_spec(partition_by, columns),
            properties=given,
            format_version=version,
            env=self._env,
        )
        self._ensure_namespace(identifier[:-1])
        create_table(self._pointers, identifier, file_io(place), metadata, self._env)
        return self.load_table(identifier)

    def load_table(self, name: NameLike) -> Table:
        """Open a table; NoSuchTable if there is none."""
        identifier = parse_identifier(name)
        pointer = self._pointers.load(identifier)
        table = Table(TablePointer(self._pointers, identifier, file_io(pointer)), self._env)
        table.metadata  # noqa: B018  # a broken table is told now, not at its first use
        return table

    def drop_table(self, name: NameLike) -> None:
        """Forget a table; its files stay."""
        self._pointers.drop(name)

    def list_tables(self, namespace: NameLike) -> list[str]:
        """The names of the tables in a namespace."""
        return [dotted(identifier) for identifier in self._pointers.list_tables(namespace)]

    def list_namespaces(self, parent: NameLike = ()) -> list[str]:
        """The namespaces below another, or the top ones."""
        return [dotted(namespace) for namespace in self._pointers.list_namespaces(parent)]

    def create_namespace(self, namespace: NameLike) -> None:
        """Make a namespace; AlreadyExists if there is one."""
        self._pointers.create_namespace(parse_namespace(namespace))

    def _free_location(self, identifier: tuple[str, ...]) -> str:
        """The default place, or one beside it: a renamed or dropped table may still have its files there."""
        place = self._pointers.default_location(identifier)
        taken = next(iter(file_io(place).list(place)), None) is not None
        return f"{place}-{self._env.new_uuid()}" if taken else place

    def _ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        if not self._pointers.namespace_exists(namespace):
            try:
                self._pointers.create_namespace(namespace)
            except AlreadyExists:
                return  # another process was faster


def catalog(name: str = "default", *, uri: str | None = None, warehouse: str | None = None) -> Catalog:
    """Open a catalog by name, from arguments, environment or config file; without any, SQLite in the home folder.

    >>> cat = catalog("demo", uri="sqlite:///cat.db", warehouse="file:///wh")  # doctest: +SKIP
    """
    return Catalog(open_catalog(name, uri=uri, warehouse=warehouse))
