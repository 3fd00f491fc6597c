"""Table metadata: one class for every format version (spec: Table Metadata).

Metadata is a value; a commit makes a new one with ``with_snapshot`` and the codec writes it. All locations in memory
are absolute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import Struct

from icefloe.errors import FormatError, NoSuchSnapshot
from icefloe.model.partitioning import FIRST_PARTITION_FIELD_ID, UNPARTITIONED, Expression, PartitionSpec
from icefloe.model.properties import PREVIOUS_VERSIONS_MAX
from icefloe.model.schema import Schema
from icefloe.model.snapshots import MAIN, Ref, Snapshot, SnapshotLog, Snapshots
from icefloe.model.sorting import UNSORTED, SortOrder
from icefloe.model.types import Type
from icefloe.model.version_rules import VersionRules, rules


# Log entries are msgspec structs because a table has as many as commits, and every commit decodes and encodes them all.
class SnapshotLogEntry(Struct, frozen=True, kw_only=True, rename="kebab"):
    """When a snapshot became current."""

    timestamp_ms: int
    snapshot_id: int


class MetadataLogEntry(Struct, frozen=True, kw_only=True, rename="kebab"):
    """A former metadata file."""

    timestamp_ms: int
    metadata_file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """Everything about a table but its files; ``extra`` keeps the keys this library does not know."""

    format_version: int
    table_uuid: str
    location: str
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int = 0
    last_sequence_number: int = 0
    specs: tuple[PartitionSpec, ...] = (UNPARTITIONED,)
    default_spec_id: int = 0
    last_partition_id: int = FIRST_PARTITION_FIELD_ID - 1
    sort_orders: tuple[SortOrder, ...] = (UNSORTED,)
    default_sort_order_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: SnapshotLog = field(default_factory=Snapshots)
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    refs: Mapping[str, Ref] = field(default_factory=dict)
    next_row_id: int = 0  # v3+
    expressions: tuple[Expression, ...] = ()  # V4
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rules(self) -> VersionRules:
        """What this table's format version may do."""
        return rules(self.format_version)

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """A schema the table has or had."""
        for schema in self.schemas:
            if schema.schema_id == schema_id:
                return schema
        raise FormatError(f"table {self.location}: no schema {schema_id}", location=self.location)

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec that new files use."""
        return self.spec_by_id(self.default_spec_id)

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """A partition spec the table has or had."""
        for spec in self.specs:
            if spec.spec_id == spec_id:
                return spec
        raise FormatError(f"table {self.location}: no partition spec {spec_id}", location=self.location)

    @property
    def types(self) -> Mapping[int, Type]:
        """The type of every column id; where schemas differ, the current one decides."""
        ordered = (*(s for s in self.schemas if s.schema_id != self.current_schema_id), self.schema)
        return {i: f.type for schema in ordered for i, f in schema.by_id.items()}

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of main; none for a table that was never written."""
        return None if self.current_snapshot_id is None else self.snapshot(self.current_snapshot_id)

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """The snapshot of this id."""
        found = self.snapshots.find(snapshot_id)
        if found is None:
            raise NoSuchSnapshot(f"table {self.location} has no snapshot {snapshot_id}", snapshot_id=snapshot_id)
        return found

    def schema_of(self, snapshot: Snapshot) -> Schema:
        """The schema to read a snapshot with."""
        return self.schema if snapshot.schema_id is None else self.schema_by_id(snapshot.schema_id)

    def with_snapshot(self, snapshot: Snapshot, *, former_location: str) -> TableMetadata:
        """This table after ``snapshot`` became the head of main; ``former_location`` is the metadata file it leaves."""
        kept = max(1, PREVIOUS_VERSIONS_MAX.of(self.properties))
        left = MetadataLogEntry(timestamp_ms=self.last_updated_ms, metadata_file=former_location)
        main = replace(self.refs.get(MAIN, Ref(snapshot_id=0)), snapshot_id=snapshot.snapshot_id)
        entered = SnapshotLogEntry(timestamp_ms=snapshot.timestamp_ms, snapshot_id=snapshot.snapshot_id)
        return replace(
            self,
            last_updated_ms=snapshot.timestamp_ms,
            last_sequence_number=max(self.last_sequence_number, snapshot.sequence_number),
            current_snapshot_id=snapshot.snapshot_id,
            snapshots=self.snapshots.add(snapshot),
            snapshot_log=(*self.snapshot_log, entered),
            metadata_log=(*self.metadata_log, left)[-kept:],
            refs={**self.refs, MAIN: main},
            next_row_id=self.next_row_id + (snapshot.added_rows or 0),
        )
