"""Replaces the columns, the partitioning and the sort order of a table (spec: Table Metadata)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefloe.commit.draft import Work
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.errors import ConflictError, UnsupportedError
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.partition.spec_history import add_order, add_spec
from icefloe.model.schema.schema import Schema, as_first, assign_ids
from icefloe.model.schema.schema_rules import check_schema
from icefloe.model.schema.types import Field, Type, is_primitive
from icefloe.model.text.partition_text import partition_spec, sort_order
from icefloe.transforms.compatibility import check_order, check_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceDefinition(MetadataUpdate):
    """Replaces the columns, partitioning and sort order of the table that its author read.

    The rows of the table do not have the new columns, so the same commit must replace them all. Former snapshots keep
    their schemas. Columns with a former name and type keep their id.
    """

    schema: Schema  # its ids are ignored
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    read: TableMetadata
    name: str = "replace definition"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the new definition. Files are written with its ids, so they must be those that were read."""
        if _ids(metadata) != _ids(self.read):
            raise ConflictError(
                f"table {metadata.location}: another commit changed columns or partitioning; check them and repeat"
            )
        if not metadata.rules.partition_ids and metadata.spec.is_partitioned:
            raise UnsupportedError(
                f"table {metadata.location}: a partitioned table of version 1 cannot be replaced; upgrade it first",
                feature="replace",
            )
        check_schema(assign_ids(self.schema), metadata.format_version)
        fields = _with_former_ids(self.schema, metadata)
        schema_id = max(known.schema_id for known in metadata.schemas) + 1
        schema = as_first(replace(self.schema, fields=fields, schema_id=schema_id, identifier_field_ids=()))
        last_column_id = max(metadata.last_column_id, schema.highest_id)
        after = replace(
            metadata,
            schemas=(*metadata.schemas, schema),
            current_schema_id=schema_id,
            last_column_id=last_column_id,
        )
        spec = _spec(self.partition_by, after)
        check_spec(spec, schema, metadata.format_version)
        order = sort_order(self.sort_by, schema)
        check_order(order, schema, metadata.format_version)
        return add_order(add_spec(after, spec), order)


def _ids(metadata: TableMetadata) -> tuple[int, ...]:
    return (
        metadata.current_schema_id,
        metadata.last_column_id,
        metadata.default_spec_id,
        metadata.last_partition_id,
    )


def _with_former_ids(schema: Schema, metadata: TableMetadata) -> tuple[Field, ...]:
    """The columns with the ids of former columns of the same name, type and nullability; others get the next ids."""
    former: dict[tuple[str, Type, bool], int] = {
        (field.name, field.type, field.required): field.id
        for field in metadata.schema.fields
        if is_primitive(field.type)
    }
    kept = {field.name: former.get((field.name, field.type, field.required)) for field in schema.fields}
    new = Schema(fields=tuple(field for field in schema.fields if kept[field.name] is None))
    fresh = {field.name: field for field in assign_ids(new, metadata.last_column_id + 1).fields}
    return tuple(
        fresh[field.name] if (id_ := kept[field.name]) is None else replace(field, id=id_) for field in schema.fields
    )


def _spec(texts: Sequence[str], metadata: TableMetadata) -> PartitionSpec:
    """The new partition spec; fields that the table had before keep their ids, unless two had the same one."""
    known = {(field.derivation, field.name): field for spec in metadata.specs for field in spec.fields}
    fields: dict[int, PartitionField] = {}  # by the id in metadata and manifests
    last = metadata.last_partition_id
    for field in partition_spec(texts, metadata.schema).fields:
        former = known.get((field.derivation, field.name))
        if former is None or former.stored_id in fields:
            last += 1
            former = replace(field, field_id=last)
        fields[former.stored_id] = former
    return PartitionSpec(fields=tuple(fields.values()))
