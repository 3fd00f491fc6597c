"""Changes the schema, the partitioning and the sort order of a table (spec: Schema Evolution; Partition Evolution)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from icefloe.codecs.json.name_mapping import decode_mapping, encode_mapping
from icefloe.commit.draft import Work
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.errors import ConflictError
from icefloe.model.evolution.evolve import evolve
from icefloe.model.evolution.protected_columns import protected_of
from icefloe.model.evolution.schema_history import add_schema
from icefloe.model.evolution.steps import SchemaChange
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortOrder
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.model.partition.spec_history import add_order, add_spec
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, updated_mapping
from icefloe.model.schema.schema import Schema
from icefloe.transforms.compatibility import check_order, check_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSchema(MetadataUpdate):
    """Changes the schema by evolution steps, which were made for the schema with id ``read``.

    With ``last_column_id``, files have already been written with the column ids that follow it. Another commit may have
    added and dropped a column: the schema is the same, but the next column id is not. That is a conflict too.
    """

    steps: tuple[SchemaChange, ...]
    read: int
    last_column_id: int | None = None
    name: str = "change schema"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the new schema, and with its name mapping updated."""
        if metadata.current_schema_id != self.read or self.last_column_id not in (None, metadata.last_column_id):
            raise ConflictError(
                f"table {metadata.location}: another commit changed the schema from {self.read} to"
                f" {metadata.current_schema_id}; check it and repeat the change"
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
    """Changes the partitioning of the table that its author read (spec: Commit Conflict Resolution and Retry).

    A change of the schema since then is a conflict: a source column may have been dropped, renamed or promoted. Files
    may already have been written with the new spec, so applying the update must also result in the same spec. It may
    not if another commit added and removed a partition field, which takes an id.
    """

    update: PartitionUpdate
    name: str = "change partitioning"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the new spec as its default."""
        read = self.update.metadata
        if metadata.default_spec_id != read.default_spec_id:
            raise ConflictError(
                f"table {metadata.location}: another commit changed the partition spec from {read.default_spec_id} to"
                f" {metadata.default_spec_id}; check it and repeat the change"
            )
        if metadata.schema != read.schema:
            raise ConflictError(
                f"table {metadata.location}: another commit changed the schema from {read.current_schema_id} to"
                f" {metadata.current_schema_id}, so the partition spec was not changed; check it and repeat the change"
            )
        evolved = replace(self.update, metadata=metadata).evolved()
        check_spec(evolved.spec, metadata.schema, metadata.format_version, former=metadata.spec)
        after = add_spec(metadata, evolved.spec)
        if metadata is not self.update.metadata and after.spec != self.update.apply().spec:
            raise ConflictError(
                f"table {metadata.location}: another commit changed partition specs or columns, so the new"
                " partition spec would not be the requested one; check them and repeat the change"
            )
        return after


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSortOrder(MetadataUpdate):
    """Sets the sort order of new files."""

    order: SortOrder
    name: str = "set sort order"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the sort order as its default."""
        check_order(self.order, metadata.schema, metadata.format_version)
        return add_order(metadata, self.order)
