"""Table metadata: one class for every format version (spec: Table Metadata).

Metadata is a value: every change gives a new one. Changes of schemas are in ``evolution/schema_history.py``, of
partition specs and sort orders in ``partition/spec_history.py``, of the version in ``upgrade.py``. All locations are
absolute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import Struct

from icefloe.errors import FormatError, InputError, NoSuchSnapshot
from icefloe.model.metadata.properties import DATA_PATH, PREVIOUS_VERSIONS_MAX
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot, SnapshotLog, Snapshots, ref_problem
from icefloe.model.metadata.statistics_files import EncryptionKey, PartitionStatisticsFile, StatisticsFile
from icefloe.model.metadata.version_rules import VersionRules, rules
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import FIRST_PARTITION_FIELD_ID, UNPARTITIONED, Expression, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Type
from icefloe.model.text.text_checks import check_property_texts


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
    """The metadata of a table; ``extra`` are the keys that this library does not know."""

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
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    encryption_keys: tuple[EncryptionKey, ...] = ()  # v3+
    next_row_id: int = 0  # v3+
    expressions: tuple[Expression, ...] = ()  # V4
    states_location: bool = True  # V4 may leave it out: then the table is where its metadata is
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rules(self) -> VersionRules:
        """What this table's format version may do."""
        return rules(self.format_version)

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    @property
    def data_location(self) -> str:
        """The folder of new data and delete files: the property ``write.data.path``, or ``data`` in the location."""
        path = DATA_PATH.of(self.properties)
        return f"{self.location.rstrip('/')}/data" if path == "" else path.rstrip("/")

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
    def sort_order(self) -> SortOrder:
        """The sort order that new files should have; a table may leave "unsorted" out of its list."""
        known = {UNSORTED.order_id: UNSORTED, **{order.order_id: order for order in self.sort_orders}}
        if self.default_sort_order_id not in known:
            raise FormatError(f"table {self.location}: no sort order {self.default_sort_order_id}")
        return known[self.default_sort_order_id]

    @property
    def types(self) -> Mapping[int, Type]:
        """The type of every column id; where schemas differ, the current one decides."""
        ordered = (*(s for s in self.schemas if s.schema_id != self.current_schema_id), self.schema)
        return {i: f.type for schema in ordered for i, f in schema.by_id.items()}

    @property
    def statistics_files(self) -> tuple[StatisticsFile | PartitionStatisticsFile, ...]:
        """The statistics files of all snapshots, those of partitions too."""
        return (*self.statistics, *self.partition_statistics)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of main; none for a table that was never written."""
        return None if self.current_snapshot_id is None else self.snapshot(self.current_snapshot_id)

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """The snapshot of this id."""
        snapshot = self.snapshots.find(snapshot_id)
        if snapshot is None:
            raise NoSuchSnapshot(f"table {self.location} has no snapshot {snapshot_id}", snapshot_id=snapshot_id)
        return snapshot

    def schema_of(self, snapshot: Snapshot) -> Schema:
        """The schema to read a snapshot with."""
        return self.schema if snapshot.schema_id is None else self.schema_by_id(snapshot.schema_id)

    def ref(self, name: str) -> Ref:
        """The branch or tag of this name."""
        ref = self.refs.get(name)
        if ref is None:
            known = ", ".join(self.refs) if len(self.refs) > 0 else "none"
            raise NoSuchSnapshot(f"table {self.location} has no branch or tag {name!r}; it has: {known}", ref=name)
        return ref

    def with_snapshot(self, snapshot: Snapshot, *, branch: str | None = MAIN) -> TableMetadata:
        """This table after ``snapshot`` became the head of a branch, a new one if there is none of this name.

        Without a branch it is staged: part of the table, but of no history. Only commits to main change the current
        snapshot and the snapshot log; row ids and sequence numbers are used up by every snapshot.
        """
        after = replace(
            self,
            last_sequence_number=max(self.last_sequence_number, snapshot.sequence_number),
            snapshots=self.snapshots.add(snapshot),
            next_row_id=self.next_row_id + (0 if snapshot.added_rows is None else snapshot.added_rows),
        )
        return after if branch is None else after._moved(branch, snapshot)

    def _moved(self, branch: str, snapshot: Snapshot) -> TableMetadata:
        head = replace(self.refs.get(branch, Ref(snapshot_id=snapshot.snapshot_id)), snapshot_id=snapshot.snapshot_id)
        problem = ref_problem(branch, head) if branch not in self.refs else None
        if problem is not None:
            raise InputError(f"ref {branch!r}: {problem}", ref=branch)
        if head.type != "branch":
            raise InputError(f"{branch!r} is a tag, which never moves; commit to a branch", ref=branch)
        after = replace(self, refs={**self.refs, branch: head})
        return after._entered(snapshot.snapshot_id, snapshot.timestamp_ms) if branch == MAIN else after

    def _entered(self, snapshot_id: int, timestamp_ms: int) -> TableMetadata:
        entry = SnapshotLogEntry(timestamp_ms=timestamp_ms, snapshot_id=snapshot_id)
        return replace(self, current_snapshot_id=snapshot_id, snapshot_log=(*self.snapshot_log, entry))

    def committed(self, *, timestamp_ms: int, former_location: str) -> TableMetadata:
        """This table as a new metadata file: its time, and an entry for the former file in the metadata log."""
        kept = max(1, PREVIOUS_VERSIONS_MAX.of(self.properties))
        left = MetadataLogEntry(timestamp_ms=self.last_updated_ms, metadata_file=former_location)
        return replace(self, last_updated_ms=timestamp_ms, metadata_log=(*self.metadata_log, left)[-kept:])

    def set_current_snapshot(self, snapshot_id: int, *, timestamp_ms: int) -> TableMetadata:
        """This table after main was set to one of its snapshots; the time is recorded in the snapshot log."""
        snapshot_id = self.snapshot(snapshot_id).snapshot_id  # an int, also if the caller passed an equal value
        if snapshot_id == self.current_snapshot_id:
            return self
        main = replace(self.refs.get(MAIN, Ref(snapshot_id=snapshot_id)), snapshot_id=snapshot_id)
        return replace(self, refs={**self.refs, MAIN: main})._entered(snapshot_id, timestamp_ms)

    def with_ref(self, name: str, ref: Ref) -> TableMetadata:
        """This table with a branch or tag, new or changed; it must name a snapshot that the table has.

        Main takes new retention settings here, and another snapshot only from ``set_current_snapshot``.
        """
        problem = ref_problem(name, ref)
        if problem is not None:
            raise InputError(f"ref {name!r}: {problem}", ref=name)
        former = self.refs.get(name)
        if former is not None and former.type != ref.type:
            raise InputError(f"{name!r} is a {former.type} already; pick another name, or remove it first", ref=name)
        if name == MAIN and ref.snapshot_id != self.current_snapshot_id:
            raise InputError("main moves with its commits; use set_current_snapshot to put it elsewhere", ref=name)
        head = self.snapshot(ref.snapshot_id).snapshot_id  # an int, as above
        return replace(self, refs={**self.refs, name: replace(ref, snapshot_id=head)})

    def without_ref(self, name: str) -> TableMetadata:
        """This table without a branch or tag; its snapshots stay until they expire."""
        self.ref(name)
        if name == MAIN:
            raise InputError("main cannot be removed: it is what readers see", ref=name)
        return replace(self, refs={key: ref for key, ref in self.refs.items() if key != name})

    def without_snapshots(self, snapshot_ids: Collection[int]) -> TableMetadata:
        """This table after snapshots expired; ids that it does not have are ignored.

        No branch or tag may name one of them. Their statistics go with them, and so do all entries of the snapshot log
        up to the last one of an expired snapshot, so that the log has no holes.
        """
        expired = frozenset(snapshot_ids)
        heads = {**{name: ref.snapshot_id for name, ref in self.refs.items()}, MAIN: self.current_snapshot_id}
        for name, head in heads.items():
            if head in expired:
                raise InputError(
                    f"snapshot {head} cannot expire: {name!r} names it; move or remove that first", ref=name
                )
        gone = [index for index, entry in enumerate(self.snapshot_log) if entry.snapshot_id in expired]
        return replace(
            self,
            snapshots=self.snapshots.without(expired),
            snapshot_log=self.snapshot_log[gone[-1] + 1 if len(gone) > 0 else 0 :],
            statistics=tuple(s for s in self.statistics if s.snapshot_id not in expired),
            partition_statistics=tuple(s for s in self.partition_statistics if s.snapshot_id not in expired),
        )

    def with_properties(self, updates: Mapping[str, str], removals: Collection[str] = ()) -> TableMetadata:
        """This table with some properties set and some removed; removing what is not there changes nothing."""
        both = next((key for key in removals if key in updates), None)
        if both is not None:
            raise InputError(f"property {both!r} is both set and removed", property=both)
        check_property_texts(updates)
        kept = {key: value for key, value in self.properties.items() if key not in removals}
        return replace(self, properties={**kept, **updates})

    def with_statistics(self, file: StatisticsFile) -> TableMetadata:
        """This table with the statistics file of a snapshot replaced."""
        self.snapshot(file.snapshot_id)
        before = self.without_statistics(file.snapshot_id)
        return replace(before, statistics=(*before.statistics, file))

    def without_statistics(self, snapshot_id: int) -> TableMetadata:
        """This table without the statistics file of a snapshot."""
        return replace(self, statistics=tuple(s for s in self.statistics if s.snapshot_id != snapshot_id))

    def with_partition_statistics(self, file: PartitionStatisticsFile) -> TableMetadata:
        """This table with the partition statistics file of a snapshot replaced."""
        self.snapshot(file.snapshot_id)
        before = self.without_partition_statistics(file.snapshot_id)
        return replace(before, partition_statistics=(*before.partition_statistics, file))

    def without_partition_statistics(self, snapshot_id: int) -> TableMetadata:
        """This table without the partition statistics file of a snapshot."""
        kept = tuple(s for s in self.partition_statistics if s.snapshot_id != snapshot_id)
        return replace(self, partition_statistics=kept)


def ancestors(metadata: TableMetadata, snapshot_id: int) -> Iterator[Snapshot]:
    """A snapshot and its ancestors, newest first, as far as the table still has them; looked up lazily."""
    following: Snapshot | None = metadata.snapshot(snapshot_id)
    seen: set[int] = set()
    while following is not None:
        if following.snapshot_id in seen:
            where = f"table {metadata.location}: snapshot {following.snapshot_id}"
            raise FormatError(f"{where} is its own ancestor", snapshot_id=following.snapshot_id)
        seen.add(following.snapshot_id)
        yield following
        parent = following.parent_id
        following = None if parent is None else metadata.snapshots.find(parent)
