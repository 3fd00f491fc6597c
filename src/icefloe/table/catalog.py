"""The catalog that users hold: creates, opens, renames and drops tables, and manages namespaces."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self

from icefloe.catalogs import catalog as protocol
from icefloe.catalogs.config import catalog_settings, open_settings
from icefloe.catalogs.names import Identifier, NameLike, dotted, fresh_identifier, parse_identifier, spelled
from icefloe.codecs.json.relative_locations import folder_around
from icefloe.commit.base import TablePointer
from icefloe.commit.draft import Update
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.table_location import location_in
from icefloe.env import SYSTEM, Env
from icefloe.errors import AlreadyExists, InputError, NoSuchTable
from icefloe.formats.importing.delta import DELTA, look_into_delta
from icefloe.formats.importing.folder import look_into
from icefloe.io.file_io import FileIO
from icefloe.io.local import file_location
from icefloe.io.select import file_io
from icefloe.maintenance.moved_tables import load_at_location, registrable
from icefloe.maintenance.purge import DropResult, drop_and_purge
from icefloe.model.locations import same_location
from icefloe.model.metadata.properties import storable, version_asked
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION, check_writable
from icefloe.model.text.ddl import as_schema
from icefloe.model.text.partition_text import partition_spec, sort_order
from icefloe.rows.target import AS_TABLE, WriteSettings
from icefloe.table.new_rows import ImportMode, first_rows, import_steps, replace_all
from icefloe.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewTable:
    """A table that does not exist yet."""

    identifier: Identifier
    metadata: TableMetadata
    io: FileIO


class Catalog:
    """Tables by name, with the location of their metadata.

    >>> import icefloe, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint, note string")
    >>> cat.rename_table("db.orders", "db.sales").name
    'db.sales'
    >>> cat.list_tables("db"), cat.table_exists("db.orders")
    (['db.sales'], False)
    >>> cat.drop_table("db.sales", purge=True).metadata_files
    1
    """

    def __init__(
        self, pointers: protocol.Catalog, env: Env = SYSTEM, properties: Mapping[str, str] | None = None
    ) -> None:
        self._pointers = pointers
        self._env = env
        self._properties = {} if properties is None else dict(properties)
        self._settings = AS_TABLE

    def _writing(self, settings: WriteSettings) -> Self:
        """The same catalog, for first rows of tables with settings of their own."""
        other = copy(self)
        other._settings = settings
        return other

    @property
    def name(self) -> str:
        """The name of the catalog in its database; other programs must use the same."""
        return self._pointers.name

    @property
    def properties(self) -> Mapping[str, str]:
        """The settings of the catalog for the storage of its tables."""
        return self._properties

    def create_table(
        self,
        name: NameLike,
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        format_version: int | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        data: Any = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create a table and its namespace; the schema is DDL text, a Schema, an Arrow schema or a Spark StructType.

        With ``data``, these are the first rows of the table: others see the table only with them. With
        ``if_not_exists``, a table that has the name already is returned as it is, and ``data`` is not added to it.

        >>> import icefloe
        >>> cat = icefloe.catalog("docs", uri="memory://")
        >>> made = cat.create_table("docs.once", schema="id bigint", if_not_exists=True)
        >>> cat.create_table("docs.once", schema="id bigint, n int", if_not_exists=True).schema.names
        {1: 'id'}
        """
        if if_not_exists and self.table_exists(name):
            return self.load_table(name)
        definition = self._defined(
            name,
            schema,
            partition_by=partition_by,
            sort_by=sort_by,
            format_version=format_version,
            location=location,
            properties=properties,
        )
        steps = () if data is None else first_rows(definition.metadata, definition.io, data, self._env, self._settings)
        try:
            return self._create(definition, steps)
        except AlreadyExists:
            if if_not_exists and self.table_exists(name):  # another process was first
                return self.load_table(name)
            raise

    def import_table(
        self,
        name: NameLike,
        folder: str,
        *,
        mode: ImportMode = "reference",
        format: Literal["delta"] | None = None,
        version: int | None = None,
        schema: Any = None,
        partition_by: Sequence[str] | None = None,
        sort_by: Sequence[str] = (),
        format_version: int | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        spark: Any = None,
    ) -> Table:
        """Create a table from a folder of Parquet, ORC or Avro files, as one commit.

        With ``mode="reference"`` the table uses the files where they are, after the checks of ``add_files``. With
        ``mode="rewrite"`` their rows are written to new files; with a Spark session, by Spark. Columns are those of
        the files together and of paths such as ``region=eu/part-0.parquet``. The table is partitioned by the columns
        of the paths, unless ``partition_by`` says otherwise.

        With ``format="delta"`` the folder is a Delta table, and the new table has its rows at ``version``, by default
        the newest; the table property ``icefloe.import.delta.version`` records which.

        >>> import icefloe, os, tempfile, pyarrow as pa, pyarrow.parquet as pq
        >>> folder = tempfile.mkdtemp()
        >>> for year in (2025, 2026):
        ...     os.makedirs(f"{folder}/visits/year={year}")
        ...     pq.write_table(pa.table({"id": [year, year + 1]}), f"{folder}/visits/year={year}/a.parquet")
        >>> cat = icefloe.catalog("demo", uri=f"file://{folder}/wh")
        >>> t = cat.import_table("db.visits", f"{folder}/visits")
        >>> t.scan("year = 2026").to_arrow().to_pylist()
        [{'id': 2026, 'year': 2026}, {'id': 2027, 'year': 2026}]
        """
        source = file_location(folder)
        if format not in (None, DELTA) or (format is None and version is not None):
            raise InputError(f"import_table: format={format!r}, version={version!r}: a version needs format='delta'")
        io = self._io(source)
        is_delta = format == DELTA
        found = look_into_delta(io, source, self._properties, version) if is_delta else look_into(io, source)
        definition = self._defined(
            name,
            found.schema if schema is None else schema,
            partition_by=found.partition_columns if partition_by is None else partition_by,
            sort_by=sort_by,
            format_version=format_version,
            location=location,
            properties={**found.properties, **(properties or {})},
        )
        steps = import_steps(definition.metadata, definition.io, found, mode=mode, spark=spark, env=self._env)
        return self._create(definition, steps)

    def _defined(
        self,
        name: NameLike,
        schema: Any,
        *,
        partition_by: Sequence[str],
        sort_by: Sequence[str],
        format_version: int | None,
        location: str | None,
        properties: Mapping[str, str] | None,
    ) -> _NewTable:
        """The definition of a table that does not exist yet."""
        identifier = fresh_identifier(name)
        stated = dict(properties or {})
        asked = version_asked(stated, format_version, table=dotted(identifier))
        version = DEFAULT_FORMAT_VERSION if asked is None else asked
        check_writable(version)
        columns = as_schema(schema, format_version=version)
        place = self._place(identifier, location)
        metadata = new_metadata(
            location=place,
            schema=columns,
            spec=partition_spec(partition_by, columns),
            sort_order=sort_order(sort_by, columns),
            properties=storable(stated),
            format_version=version,
            env=self._env,
        )
        return _NewTable(identifier=identifier, metadata=metadata, io=self._io(place))

    def _create(self, new: _NewTable, steps: tuple[Update, ...]) -> Table:
        self._ensure_namespace(new.identifier[:-1])
        create_table(self._pointers, new.identifier, new.io, new.metadata, self._env, steps)
        return self.load_table(new.identifier)

    def replace_table(
        self,
        name: NameLike,
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        format_version: int | None = None,
        properties: Mapping[str, str] | None = None,
        data: Any = None,
    ) -> Table:
        """Replace the columns, the partitioning, the sort order and all rows of a table, as one commit.

        The table keeps its snapshots, for time travel, and its properties, of which some can be set. Without ``data``
        it has no rows then.

        >>> import icefloe, pyarrow as pa
        >>> cat = icefloe.catalog("docs", uri="memory://")
        >>> t = cat.create_table("docs.replaced", schema="id bigint", data=pa.table({"id": [1, 2]}))
        >>> t = cat.replace_table("docs.replaced", schema="id bigint, note string",
        ...                       data=pa.table({"id": [3], "note": ["new"]}))
        >>> t.scan().to_arrow().to_pylist(), t.at(snapshot=t.snapshots[0].snapshot_id).scan().count()
        ([{'id': 3, 'note': 'new'}], 2)
        """
        identifier = parse_identifier(name)
        pointer, stated = self._table(identifier), dict(properties or {})
        asked = version_asked(stated, format_version, table=dotted(identifier))
        replace_all(
            pointer,
            self._env,
            as_schema(schema, format_version=pointer.load().metadata.format_version if asked is None else asked),
            partition_by=partition_by,
            sort_by=sort_by,
            properties=storable(stated),
            format_version=asked,
            data=data,
            settings=self._settings,
        )
        return Table(pointer, self._env)

    def load_table(self, name: NameLike) -> Table:
        """Open a table; NoSuchTable if there is none."""
        return Table(self._table(parse_identifier(name)), self._env)

    def _table(self, identifier: Identifier) -> TablePointer:
        pointer = self._pointers.load(identifier)
        location = location_in(self._pointers, identifier)
        io = self._io(pointer)
        table = TablePointer(self._pointers, identifier, io, settings=self._properties, location=location)
        load_at_location(table)  # reports a broken table now, not at its first use
        return table

    def table_exists(self, name: NameLike) -> bool:
        """Whether there is a table of this name."""
        try:
            self._pointers.load(name)
        except NoSuchTable:
            return False
        return True

    def register_table(self, name: NameLike, metadata_location: str, *, table_location: str | None = None) -> Table:
        """Register an existing table by the location of its metadata file, which must be readable.

        The table is the one at that location, as for ``open_table``. If a V4 table was moved or copied and its metadata
        states the former location, a new metadata file is written, which states none.
        """
        identifier = fresh_identifier(name)
        place = folder_around(metadata_location) if table_location is None else table_location
        location = registrable(self._io(metadata_location), metadata_location, place, self._env)
        self._ensure_namespace(identifier[:-1])
        self._pointers.register(identifier, location)
        return self.load_table(identifier)

    def rename_table(self, name: NameLike, new_name: NameLike) -> Table:
        """Rename a table; the new namespace must exist. The files are not moved."""
        self._pointers.rename(name, new_name)
        return self.load_table(new_name)

    def drop_table(self, name: NameLike, *, purge: bool = False) -> DropResult:
        """Remove a table from the catalog. With ``purge``, also delete its files below its location.

        Purging deletes the files of all snapshots after the table is removed from the catalog. The result lists the
        files outside the location of the table, which are not deleted. A table with ``gc.enabled=false``, or with
        another name in the same database, is not purged.
        """
        identifier = parse_identifier(name)
        if purge:
            io = self._io(self._pointers.load(identifier))
            return drop_and_purge(self._pointers, identifier, io, self._properties)
        return DropResult(table=dotted(identifier), metadata_location=self._pointers.drop(identifier))

    def list_tables(self, namespace: NameLike) -> list[str]:
        """The names of the tables in a namespace, as ``load_table`` takes them."""
        return [spelled(identifier) for identifier in self._pointers.list_tables(namespace)]

    def list_namespaces(self, parent: NameLike = ()) -> list[str]:
        """The namespaces in another namespace, or those at the top level."""
        return [dotted(namespace) for namespace in self._pointers.list_namespaces(parent)]

    def create_namespace(self, namespace: NameLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace; AlreadyExists if there is one."""
        self._pointers.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: NameLike) -> None:
        """Remove an empty namespace."""
        self._pointers.drop_namespace(namespace)

    def namespace_exists(self, namespace: NameLike) -> bool:
        """Whether there is a namespace of this name."""
        return self._pointers.namespace_exists(namespace)

    def namespace_properties(self, namespace: NameLike) -> dict[str, str]:
        """The properties of a namespace."""
        return dict(self._pointers.namespace_properties(namespace))

    def set_namespace_properties(
        self, namespace: NameLike, updates: Mapping[str, str], remove: Collection[str] = ()
    ) -> None:
        """Set some properties of a namespace and remove others, in one step."""
        self._pointers.set_namespace_properties(namespace, updates, remove)

    def _io(self, location: str) -> FileIO:
        return file_io(location, self._properties)

    def _place(self, identifier: Identifier, location: str | None) -> str:
        """The location of a new table: as requested, or the default one, with a suffix if that has files already.

        A renamed or dropped table may still have its files at the default location.
        """
        if not self._pointers.names_locations and location is not None:
            return location.rstrip("/")
        place = self._pointers.default_location(identifier)
        if self._pointers.names_locations:
            if location is not None and not same_location(location.rstrip("/"), place):
                raise InputError(
                    f"in catalog {self.name} table {dotted(identifier)} can only be at {place}", location=location
                )
            if "." not in identifier[-1] and self._pointers.namespace_exists(identifier):  # its first file hides it
                raise AlreadyExists(
                    f"catalog {self.name} has a namespace {dotted(identifier)}, and a folder is one or the other",
                    table=dotted(identifier),
                )
            return place
        taken = next(iter(self._io(place).list(place)), None) is not None
        return f"{place}-{self._env.new_uuid()}" if taken else place

    def _ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        if not self._pointers.namespace_exists(namespace):
            try:
                self._pointers.create_namespace(namespace)
            except AlreadyExists:
                return  # another process was faster


def catalog(
    name: str | None = None,
    *,
    uri: str | None = None,
    warehouse: str | None = None,
    type: str | None = None,
    properties: Mapping[str, str] | None = None,
    create: bool | None = None,
) -> Catalog:
    """Open a catalog by name, from arguments, environment or config file; ``default`` is SQLite in ``~/.icefloe``.

    ``uri`` is a database (``sqlite:///cat.db``, ``postgresql://host/db``), ``memory://``, or a folder (``file:///wh``);
    ``properties`` such as ``s3.endpoint`` go to the storage of its tables.

    A name that is not configured, and is not in ``~/.icefloe``, is an error that lists the others. ``create=True``
    makes such a catalog, and the folders of a SQLite file or of a folder of tables. Without it, the file or folder of a
    ``uri`` is made only in a folder that exists; with ``create=False``, not at all.

    >>> catalog("doctest", uri="memory://").list_namespaces()
    []
    """
    settings = catalog_settings(name, uri=uri, warehouse=warehouse, type=type, properties=properties, create=create)
    return Catalog(open_settings(settings), properties=settings.properties)
