"""Replaces a table: sets a new schema, layout and properties, and keeps its uuid and history (spec: Table Metadata).

Existing snapshots can still be read by id, tag or branch. The main branch is empty afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icefloe.commit.base import TablePointer
from icefloe.commit.draft import Update, Work
from icefloe.commit.loop import commit
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.commit.result import CommitResult
from icefloe.env import SYSTEM, Env
from icefloe.errors import ConflictError
from icefloe.model.evolution.schema_history import add_schema
from icefloe.model.metadata.properties import storable, version_asked
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.upgrade import upgraded
from icefloe.model.partition.history import add_order, add_spec
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema, fresh_ids
from icefloe.model.schema.types import Field
from icefloe.transforms.compatibility import check_order, check_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceTable(MetadataUpdate):
    """Sets a new schema, layout and properties of a table.

    ``read`` is the current snapshot that its author saw. Later snapshots are a conflict, as they would no longer be
    visible. Columns with the same name and type keep their ids, others get new ids.
    """

    schema: Schema  # with ids of its own, which the spec and the sort order use
    spec: PartitionSpec
    sort_order: SortOrder = UNSORTED
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int
    read: int | None
    name: str = "replace table"

    @property
    def upgrades_to(self) -> int:
        """The later one of its version and that of its properties."""
        asked = version_asked(self.properties)
        return self.format_version if asked is None else max(self.format_version, asked)

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The replaced table."""
        if metadata.current_snapshot_id != self.read:
            raise ConflictError(
                f"table {metadata.location}: another commit made snapshot {metadata.current_snapshot_id} after"
                f" {self.read}; check it before you replace the table",
                snapshot_ids=[metadata.current_snapshot_id],
            )
        metadata = upgraded(metadata, self.upgrades_to, table_uuid=str(work.env.new_uuid()))
        refs = {name: ref for name, ref in metadata.refs.items() if name != MAIN}
        emptied = replace(metadata, current_snapshot_id=None, refs=refs, snapshot_log=())
        schema = _with_table_ids(self.schema, emptied)
        ids = {id_: schema.by_name[name].id for id_, name in self.schema.names.items()}
        after = add_schema(emptied, schema)
        spec, order = _spec(self.spec, ids, after), _order(self.sort_order, ids)
        check_spec(spec, after.schema, after.format_version)
        check_order(order, after.schema, after.format_version)
        after = add_order(add_spec(after, spec), order)
        return after.with_properties(storable(self.properties))


def _with_table_ids(schema: Schema, metadata: TableMetadata) -> Schema:
    """The schema with the ids of equal columns of the table, and with new ids for all other columns."""
    former = {column.name: column for column in metadata.schema.fields}
    last, fields = metadata.last_column_id, []
    for column in schema.fields:
        known = former.get(column.name)
        if known is not None and _equal_columns(known, column):
            fields.append(replace(known, doc=column.doc))
            continue
        (new,) = fresh_ids((column,), last + 1)
        last = max(Schema(fields=(new,)).by_id)
        fields.append(new)
    numbered = Schema(fields=tuple(fields))
    identifiers = (numbered.by_name[schema.names[id_]].id for id_ in schema.identifier_field_ids)
    return replace(numbered, identifier_field_ids=tuple(identifiers))


def _equal_columns(one: Field, other: Field) -> bool:
    return fresh_ids((replace(one, doc=None),)) == fresh_ids((replace(other, doc=None),))


def _spec(spec: PartitionSpec, ids: Mapping[int, int], metadata: TableMetadata) -> PartitionSpec:
    """The spec with the column ids of the table; partition fields that the table had before keep their ids."""
    known = {former.derivation: former for old in metadata.specs for former in old.fields}
    last, fields = metadata.last_partition_id, dict[int, PartitionField]()  # by the id in manifests
    for part in spec.fields:
        part = _with_source_ids(part, ids)
        former = known.get(part.derivation)
        if former is None or former.stored_id in fields:
            last += 1
            fields[last] = replace(part, field_id=last, shared_id=None)
        else:
            fields[former.stored_id] = replace(part, field_id=former.field_id, shared_id=former.shared_id)
    return replace(spec, fields=tuple(fields.values()))


def _with_source_ids(part: PartitionField, ids: Mapping[int, int]) -> PartitionField:
    return replace(
        part, source_id=ids[part.source_id], other_source_ids=tuple(ids[other] for other in part.other_source_ids)
    )


def _order(order: SortOrder, ids: Mapping[int, int]) -> SortOrder:
    fields = tuple(
        replace(key, source_id=ids[key.source_id], other_source_ids=tuple(ids[other] for other in key.other_source_ids))
        for key in order.fields
    )
    return replace(order, fields=fields)


def replace_table(
    table: TablePointer,
    *,
    schema: Schema,
    spec: PartitionSpec,
    sort_order: SortOrder = UNSORTED,
    properties: Mapping[str, str] | None = None,
    format_version: int | None = None,
    steps: tuple[Update, ...] = (),
    env: Env = SYSTEM,
) -> CommitResult:
    """Replace a table and apply updates to it, in one commit; its uuid, properties and snapshots are kept."""
    before = table.load().metadata
    version = before.format_version if format_version is None else max(before.format_version, format_version)
    update = ReplaceTable(
        schema=schema,
        spec=spec,
        sort_order=sort_order,
        properties=dict(properties or {}),
        format_version=version,
        read=before.current_snapshot_id,
    )
    return commit(table, (update, *steps), env)
