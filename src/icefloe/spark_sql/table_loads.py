"""Tables as Spark holds them: pinned to one state, found again by a handle, and kept in a bounded number.

Spark may use a table long after it was loaded, in cached plans and views. A handle names the metadata file and the
snapshot, so a table that is no longer kept here is loaded again in the same state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from icefloe.catalogs.names import Identifier, dotted
from icefloe.errors import ConflictError, InputError, NoSuchTable, NotFound
from icefloe.inspect.metadata_tables.tables import METADATA_TABLES
from icefloe.model.metadata.properties import WAP_ENABLED
from icefloe.spark_sql.kept import Kept
from icefloe.spark_sql.messages import LoadTable, Message
from icefloe.spark_sql.options.known_options import CHANGES, selecting_options
from icefloe.spark_sql.versions import (
    CURRENT,
    AppendRange,
    Version,
    appends_in_options,
    version_in_name,
    version_in_options,
    version_in_sql,
)
from icefloe.table.catalog import Catalog
from icefloe.table.open import open_table
from icefloe.table.table import Table
from icefloe.table.table_at import TableAt

_KEPT = 64


class Handle(Message, frozen=True, kw_only=True):
    """What identifies a state of a table; Java keeps it as text."""

    identifier: tuple[str, ...]
    table_uuid: str
    metadata_location: str
    snapshot_id: int | None
    schema_id: int
    branch: str | None  # writes go to it; none for a state of the past, which cannot be written
    metadata_table: str | None = None
    is_selected: bool = False  # whether the statement names a branch, a tag, a snapshot or a time


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTable:
    """A table in one state, ``at``. Writes go to ``table``, and start from its newest state."""

    handle: Handle
    table: Table
    at: TableAt
    appends: AppendRange | None = None  # those whose rows are read, instead of all rows

    @property
    def key(self) -> str:
        """The handle as text."""
        return msgspec.json.encode(self.handle).decode()

    def selected_by(self, options: Mapping[str, str]) -> LoadedTable:
        """What reader options select, a snapshot or appended rows, with the columns of this state; else this state."""
        kind = self.handle.metadata_table
        given = selecting_options(options, kind)
        if self.handle.is_selected and len(given) > 0:
            raise InputError(
                f"option {next(iter(given))}: the name of the table, VERSION AS OF or TIMESTAMP AS OF selects a state"
                " already; give one of them"
            )
        appends = None if kind is not None else appends_in_options(given)
        if appends is not None:
            return replace(self, appends=appends)
        version = version_in_options(given)
        if version is None:
            return self
        if kind is not None:
            _check_selects(kind, version)
        return replace(self, at=version.of(self.at).with_schema(self.at.schema))


def _check_selects(kind: str, version: Version) -> None:
    """InputError if a version is given for a metadata table of all snapshots."""
    if kind != CHANGES and METADATA_TABLES[kind].of_all and version != CURRENT:
        one = kind.removeprefix("all_")
        raise InputError(f"metadata table {kind} is that of all snapshots; leave out the version, or read {one}")


class TableLoads:
    """Loads the tables of a catalog for Spark."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables: Kept[Identifier, Table] = Kept(_KEPT)  # with the manifests that they have decoded
        self._loaded: Kept[str, LoadedTable] = Kept(_KEPT)

    def load(self, call: LoadTable) -> LoadedTable:
        """The state that a call asks for.

        ``db.orders.snapshots`` is a metadata table of ``db.orders``; ``db.orders.branch_audit`` is a branch of it, and
        likewise ``tag_``, ``snapshot_id_`` and ``at_timestamp_`` (in milliseconds), as in Apache Iceberg. Both together
        are ``db.orders.files.branch_audit``. A name with a slash and without a namespace is the location of a table:
        its folder, or one of its metadata files.
        """
        version = version_in_sql(call.version, call.timestamp_us)
        if len(call.namespace) == 0 and "/" in call.name:
            return self._load(call.identifier, version)
        try:
            return self._load(call.identifier, version, wap_branch=call.wap_branch)
        except (NoSuchTable, InputError):
            if len(call.namespace) < 2:
                raise
        selected, parents = version_in_name(call.name), call.namespace
        if selected is not None and version == CURRENT:
            kind = parents[-1].lower()
            if len(parents) > 2 and kind in (*METADATA_TABLES, CHANGES):
                return self._load_metadata_table(parents[:-1], selected, kind)
            return self._load(parents, selected)
        if call.name.lower() in (*METADATA_TABLES, CHANGES):
            return self._load_metadata_table(parents, version, call.name.lower())
        raise NoSuchTable(f"there is no table {dotted(call.identifier)}", table=dotted(call.identifier))

    def _load_metadata_table(self, identifier: Identifier, version: Version, kind: str) -> LoadedTable:
        _check_selects(kind, version)
        return self._load(identifier, version, metadata_table=kind)

    def newest(self, identifier: Identifier) -> LoadedTable:
        """The current state of a table."""
        return self._load(identifier, CURRENT)

    def find(self, key: str) -> LoadedTable:
        """The state that a handle names, as text; it is loaded again if it is not kept."""
        loaded = self._loaded.get(key)
        if loaded is None:
            loaded = self._reload(msgspec.json.decode(key, type=Handle))
            self._loaded.put(key, loaded)
        return loaded

    def newest_of(self, key: str) -> LoadedTable:
        """The current state of the table that a handle names, for streams, which outlive the state of the handle."""
        handle = msgspec.json.decode(key, type=Handle)
        table = self._open(handle.identifier)
        self._check_same(table, handle)
        return LoadedTable(handle=handle, table=table, at=table.at())

    def forget(self, identifier: Identifier) -> None:
        """Drop a table that is kept, because its name is not its own any more."""
        self._tables.pop(identifier)

    def _load(
        self,
        identifier: Identifier,
        version: Version,
        *,
        metadata_table: str | None = None,
        wap_branch: str | None = None,
    ) -> LoadedTable:
        """A state. If the table allows it, the current state is that of ``wap_branch``, once that branch exists."""
        table = self._open(identifier)
        at = version.of(table.at())
        branch = version.branch_of(at)
        if wap_branch is not None and version == CURRENT and WAP_ENABLED.of(at.metadata.properties):
            branch = wap_branch
            at = at.at(branch=wap_branch) if wap_branch in at.metadata.refs else at
        handle = Handle(
            identifier=identifier,
            table_uuid=at.metadata.table_uuid,
            metadata_location=at.metadata_location,
            snapshot_id=None if at.snapshot is None else at.snapshot.snapshot_id,
            schema_id=at.schema.schema_id,
            branch=branch,
            metadata_table=metadata_table,
            is_selected=version != CURRENT,
        )
        loaded = LoadedTable(handle=handle, table=table, at=at)
        self._loaded.put(loaded.key, loaded)
        return loaded

    def _open(self, identifier: Identifier) -> Table:
        """A table in its newest state."""
        table = self._tables.get(identifier)
        if table is not None:
            try:
                return table.refresh()
            except (ConflictError, NotFound):  # dropped, and perhaps created again
                self._tables.pop(identifier)
        is_location = len(identifier) == 1
        settings = self._catalog.properties
        table = open_table(identifier[0], properties=settings) if is_location else self._catalog.load_table(identifier)
        self._tables.put(identifier, table)
        return table

    def _reload(self, handle: Handle) -> LoadedTable:
        table = self._open(handle.identifier)
        self._check_same(table, handle)
        at = table.at()
        if at.metadata_location != handle.metadata_location:
            settings = self._catalog.properties
            at = open_table(handle.metadata_location, table_location=table.location, properties=settings).at()
        schema = next(schema for schema in at.metadata.schemas if schema.schema_id == handle.schema_id)
        state = at if handle.snapshot_id is None else at.at(snapshot=handle.snapshot_id)
        return LoadedTable(handle=handle, table=table, at=state.with_schema(schema))

    @staticmethod
    def _check_same(table: Table, handle: Handle) -> None:
        if table.metadata.table_uuid != handle.table_uuid:
            raise ConflictError(
                f"table {dotted(handle.identifier)} was dropped, and another table has its name now",
                retryable=False,
                next_step="Run the query again: it loads the new table.",
            )
