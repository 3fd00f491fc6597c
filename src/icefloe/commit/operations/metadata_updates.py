"""Updates of metadata alone, as frozen values (spec: Table Metadata; Commit Conflict Resolution and Retry).

Most are valid on any base. Changes of schema and partitioning were thought up for the schema or spec that their author
saw; when another commit has changed that, they are refused rather than guessed anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icefloe.codecs.json.name_mapping import decode_mapping, encode_mapping
from icefloe.commit.draft import Draft, Work
from icefloe.commit.stage import now
from icefloe.errors import ConflictError, InputError
from icefloe.model.evolution.apply import evolve
from icefloe.model.evolution.protected_columns import protected_of
from icefloe.model.evolution.schema_history import add_schema
from icefloe.model.evolution.steps import SchemaChange
from icefloe.model.locations import parse_location
from icefloe.model.metadata.properties import FORMAT_VERSION, check_settable, version_asked
from icefloe.model.metadata.snapshots import MAIN, Ref
from icefloe.model.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors
from icefloe.model.metadata.upgrade import upgraded
from icefloe.model.metadata.version_rules import check_writable
from icefloe.model.partition.history import add_order, add_spec
from icefloe.model.partition.sort_order import SortOrder
from icefloe.model.partition.update import PartitionUpdate
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, updated_mapping
from icefloe.model.schema.schema import Schema
from icefloe.transforms.compatibility import check_order, check_spec


class MetadataUpdate(ABC):
    """A change of table metadata that writes no files of its own."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What it does."""

    @property
    def files(self) -> tuple[str, ...]:
        """It wrote none."""
        return ()

    @abstractmethod
    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The metadata after the change, which happens at ``moment``."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with the change."""
        return draft.with_metadata(self.change(draft.metadata, now(draft, work), work))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSchema(MetadataUpdate):
    """Steps of schema evolution, thought up for the schema of id ``read``.

    With ``last_column_id``, files have been written with the ids that new columns get after it, so that no other will
    do: a column that came and went meanwhile leaves the schema as it was, but takes an id.
    """

    steps: tuple[SchemaChange, ...]
    read: int
    last_column_id: int | None = None
    name: str = "change schema"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with the evolved schema, and with its name mapping brought along."""
        if metadata.current_schema_id != self.read or self.last_column_id not in (None, metadata.last_column_id):
            raise ConflictError(
                f"table {metadata.location}: another commit changed the schema from {self.read} to"
                f" {metadata.current_schema_id}; look at it and repeat the change"
            )
        before = metadata.schema
        evolved = evolve(
            before,
            self.steps,
            last_column_id=metadata.last_column_id,
            protected=protected_of(metadata),
            format_version=metadata.format_version,
        )
        after = add_schema(metadata, evolved.schema)
        mapped = _with_mapping(after.properties, before, after.schema)
        return replace(after, last_column_id=evolved.last_column_id, properties=mapped)


def _with_mapping(properties: Mapping[str, str], before: Schema, after: Schema) -> Mapping[str, str]:
    text = properties.get(NAME_MAPPING_PROPERTY)
    if text is None:
        return properties
    mapping = updated_mapping(decode_mapping(text), before, after)
    return {**properties, NAME_MAPPING_PROPERTY: encode_mapping(mapping)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePartitioning(MetadataUpdate):
    """An update of the partitioning, thought up for the table that its author read.

    Files may have been written for the spec that it gave there, so that no other will do: a field that came and went
    meanwhile takes an id, and a column may have lost its name to another one.
    """

    update: PartitionUpdate
    name: str = "change partitioning"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with the evolved spec as its default."""
        read = self.update.metadata.default_spec_id
        if metadata.default_spec_id != read:
            raise ConflictError(
                f"table {metadata.location}: another commit changed the partition spec from {read} to"
                f" {metadata.default_spec_id}; look at it and repeat the change"
            )
        evolved = replace(self.update, metadata=metadata).evolved()
        check_spec(evolved.spec, metadata.schema, metadata.format_version, former=metadata.spec)
        after = add_spec(metadata, evolved.spec)
        if metadata is not self.update.metadata and after.spec != self.update.apply().spec:
            raise ConflictError(
                f"table {metadata.location}: another commit changed partition specs or columns, so that the new"
                " partition spec would not be the one that was asked for; look at them and repeat the change"
            )
        return after


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSortOrder(MetadataUpdate):
    """Another sort order for new files."""

    order: SortOrder
    name: str = "set sort order"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with the order as its default."""
        check_order(self.order, metadata.schema, metadata.format_version)
        return add_order(metadata, self.order)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperties(MetadataUpdate):
    """Set and remove table properties; to set the format version is to upgrade the table."""

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[str, ...] = ()
    name: str = "set properties"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with other properties."""
        check_settable(self.updates)
        after, version = metadata.with_properties(self.updates, self.removals), version_asked(self.updates)
        if version is None:
            return after
        return Upgrade(version=version).change(after.with_properties({}, (FORMAT_VERSION.name,)), moment, work)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLocation(MetadataUpdate):
    """Put new files elsewhere; those that are there stay where they are.

    Where manifests name files relative to the table, they would look for them in the new place; such a table can only
    be moved before it has any.
    """

    location: str
    name: str = "set location"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with another location."""
        location = self.location.rstrip("/")
        parse_location(location)
        if metadata.rules.relative_locations and len(metadata.snapshots) > 0 and location != metadata.location:
            raise InputError(
                f"table {metadata.location}: its manifests name files relative to it, so its location cannot change"
                " without its files; copy them, and register the copy",
                location=location,
            )
        return replace(metadata, location=location)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRef(MetadataUpdate):
    """Make or change a branch or tag; one that names no snapshot (id -1) is put on the current one.

    ``fresh`` asks that there is none of this name yet.
    """

    ref_name: str
    ref: Ref
    fresh: bool = False
    name: str = "set ref"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with the ref."""
        if self.fresh and self.ref_name in metadata.refs:
            kind = metadata.refs[self.ref_name].type
            raise InputError(f"there is a {kind} {self.ref_name!r} already; pick another name", ref=self.ref_name)
        ref = self.ref
        if ref.snapshot_id == CURRENT:
            if metadata.current_snapshot_id is None:
                raise InputError(f"{self.ref_name!r} has nothing to name: the table has no snapshot", ref=self.ref_name)
            ref = replace(ref, snapshot_id=metadata.current_snapshot_id)
        return metadata.with_ref(self.ref_name, ref)


CURRENT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRef(MetadataUpdate):
    """Remove a branch or tag; its snapshots stay until they expire."""

    ref_name: str
    name: str = "remove ref"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table without the ref."""
        return metadata.without_ref(self.ref_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCurrentSnapshot(MetadataUpdate):
    """Put main on a snapshot; a ``rollback`` must be to one of its ancestors."""

    snapshot_id: int
    rollback: bool = False
    name: str = "set current snapshot"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with main elsewhere."""
        head = metadata.current_snapshot_id
        if self.rollback and (head is None or not _is_ancestor(metadata, self.snapshot_id, head)):
            raise InputError(
                f"snapshot {self.snapshot_id} is not in the history of main, so main cannot roll back to it",
                snapshot_id=self.snapshot_id,
            )
        return metadata.set_current_snapshot(self.snapshot_id, timestamp_ms=moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForward(MetadataUpdate):
    """Move a branch to the head of another ref, of which it must be an ancestor."""

    branch: str
    to: str
    name: str = "fast-forward"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with the branch moved on."""
        target = metadata.ref(self.to).snapshot_id
        head = metadata.refs.get(self.branch)
        if head is not None and not _is_ancestor(metadata, head.snapshot_id, target):
            raise InputError(
                f"{self.branch!r} has snapshots that {self.to!r} does not have, so it cannot be moved forward to it",
                ref=self.branch,
            )
        if self.branch == MAIN:
            return metadata.set_current_snapshot(target, timestamp_ms=moment)
        return metadata.with_ref(self.branch, replace(head or Ref(snapshot_id=target), snapshot_id=target))


def _is_ancestor(metadata: TableMetadata, older: int, newer: int) -> bool:
    return any(snapshot.snapshot_id == older for snapshot in ancestors(metadata, newer))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSnapshots(MetadataUpdate):
    """Forget snapshots that no branch or tag names; their files are not touched."""

    snapshot_ids: frozenset[int]
    name: str = "remove snapshots"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table without the snapshots."""
        return metadata.without_snapshots(self.snapshot_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatistics(MetadataUpdate):
    """Enter statistics files, each in place of the one its snapshot had."""

    files_of_snapshots: tuple[StatisticsFile | PartitionStatisticsFile, ...]
    name: str = "set statistics"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table with the statistics files."""
        for file in self.files_of_snapshots:
            if isinstance(file, StatisticsFile):
                metadata = metadata.with_statistics(file)
            else:
                metadata = metadata.with_partition_statistics(file)
        return metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveStatistics(MetadataUpdate):
    """Forget the statistics files of a snapshot."""

    snapshot_id: int
    name: str = "remove statistics"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table without the statistics files."""
        return metadata.without_statistics(self.snapshot_id).without_partition_statistics(self.snapshot_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade(MetadataUpdate):
    """A later format version."""

    version: int
    name: str = "upgrade"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The table in the version."""
        check_writable(self.version)
        return upgraded(metadata, self.version, table_uuid=str(work.env.new_uuid()))
