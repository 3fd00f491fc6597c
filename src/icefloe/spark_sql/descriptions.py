"""Tables described to Spark: columns, metadata columns, partitioning and properties."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from icefloe.engines.spark.read.scan import UNKNOWN_SIZE, size_of_files
from icefloe.model.arrow.schema_from_arrow import schema_from_arrow
from icefloe.model.metadata.properties import ACCEPT_ANY_SCHEMA, AUTO_SCHEMA_EVOLUTION, FILE_FORMAT
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey, summary_number
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import LATEST_FORMAT_VERSION
from icefloe.model.partition.sort_order import SortField
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.transform_names import IDENTITY, TRANSFORM_NAMES
from icefloe.model.schema.metadata_columns import FILE, LINEAGE, POS, SPEC_ID, partition_column
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Struct
from icefloe.model.text.spark_schema_json import spark_schema_json, without_field_ids
from icefloe.scan.partition_values import partition_struct
from icefloe.spark_sql.messages import PartitionTransform, TableDescription
from icefloe.spark_sql.options.changelog import change_schema
from icefloe.spark_sql.options.known_options import CHANGES
from icefloe.spark_sql.table_loads import LoadedTable
from icefloe.table.table_at import TableAt

PROVIDER = "icefloe"
# Shown as properties, and not stored as such.
SHOWN = frozenset({"provider", "location", "format", "current-snapshot-id", "sort-order", "identifier-fields"})

_READ, _STREAM = "BATCH_READ", "MICRO_BATCH_READ"
_WRITES = ("BATCH_WRITE", "V1_BATCH_WRITE", "STREAMING_WRITE", "TRUNCATE", "OVERWRITE_BY_FILTER", "OVERWRITE_DYNAMIC")
_SIZED = re.compile(r"(\w+)\[(\d+)\]")
_FUNCTIONS = {transform.name: transform.function for transform in TRANSFORM_NAMES}
_PARTITION = partition_column(Struct(())).name


def describe(loaded: LoadedTable, catalog_name: str) -> TableDescription:
    """A table, or a metadata table, as Spark asks for it."""
    if loaded.handle.metadata_table is not None:
        return _describe_metadata_table(loaded, loaded.handle.metadata_table, catalog_name)
    at, metadata, is_past = loaded.at, loaded.at.metadata, loaded.handle.branch is None
    return TableDescription(
        handle=loaded.key,
        id=loaded.at.metadata.table_uuid,
        name=".".join((catalog_name, *loaded.handle.identifier)),
        schema=schema_json(at.schema),
        metadata_columns=schema_json(at.scan(columns=_metadata_columns(at)).schema),
        partitioning=tuple(_transform(field, at.schema) for field in metadata.spec.fields if _is_shown(field, at)),
        properties=_properties(metadata),
        size_bytes=size_of_files(at.snapshot),
        rows=_rows(at.snapshot),
        capabilities=(_READ,) if is_past else (_STREAM, *capabilities(metadata.properties)),
    )


def _rows(snapshot: Snapshot | None) -> int | None:
    """The number of rows as the summary states it; rows deleted by keys are counted."""
    if snapshot is None:
        return 0
    total = summary_number(snapshot, SummaryKey.TOTAL_RECORDS)
    deleted = summary_number(snapshot, SummaryKey.TOTAL_POSITION_DELETES)
    return None if total is None else max(total - (deleted or 0), 0)


def capabilities(properties: Mapping[str, str]) -> tuple[str, ...]:
    """What Spark may do with a table that can be written, by the names of its TableCapability."""
    accepts_any = ("ACCEPT_ANY_SCHEMA",) if ACCEPT_ANY_SCHEMA.of(properties) else ()
    evolves = ("AUTOMATIC_SCHEMA_EVOLUTION",) if AUTO_SCHEMA_EVOLUTION.of(properties) else ()
    return (_READ, *_WRITES, *accepts_any, *evolves)


def _properties(metadata: TableMetadata) -> dict[str, str]:
    """The properties of a table, and what Apache Iceberg shows as properties besides."""
    current, schema = metadata.current_snapshot_id, metadata.schema
    properties = {
        **metadata.properties,
        "provider": PROVIDER,
        "location": metadata.location,
        "format": f"iceberg/{FILE_FORMAT.of(metadata.properties).lower()}",
        "format-version": str(metadata.format_version),
        "current-snapshot-id": "none" if current is None else str(current),
    }
    if metadata.sort_order.is_sorted:
        properties["sort-order"] = ", ".join(_sort_key(field, schema) for field in metadata.sort_order.fields)
    if len(schema.identifier_field_ids) > 0:
        names = (schema.names[field_id] for field_id in sorted(schema.identifier_field_ids))
        properties["identifier-fields"] = f"[{','.join(names)}]"
    return properties


def _sort_key(field: SortField, schema: Schema) -> str:
    """A key of a sort order in SQL."""
    columns = ", ".join(schema.names[source_id] for source_id in field.source_ids)
    name, number = _function(field.transform)
    key = columns if name == IDENTITY else f"{name}({columns if number is None else f'{number}, {columns}'})"
    return f"{key} {field.direction.upper()} {field.null_order.replace('-', ' ').upper()}"


def _describe_metadata_table(loaded: LoadedTable, kind: str, catalog_name: str) -> TableDescription:
    if kind == CHANGES:
        columns, metadata_columns = change_schema(loaded.at.schema), _metadata_columns(loaded.at)
        is_streamed = loaded.handle.branch is not None
    else:
        columns = schema_from_arrow(loaded.at.inspect.schema(kind), format_version=LATEST_FORMAT_VERSION)
        metadata_columns, is_streamed = [], False
    return TableDescription(
        handle=loaded.key,
        id=loaded.at.metadata.table_uuid,
        name=".".join((catalog_name, *loaded.handle.identifier, kind)),
        schema=schema_json(columns),
        metadata_columns=schema_json(loaded.at.scan(columns=metadata_columns).schema),
        partitioning=(),
        properties={},
        size_bytes=UNKNOWN_SIZE,
        rows=None,
        capabilities=(_READ, _STREAM) if is_streamed else (_READ,),
    )


def schema_json(schema: Schema) -> str:
    """The JSON of the Spark schema of some columns, with comments and defaults, without field ids."""
    return json.dumps(without_field_ids(spark_schema_json(schema)))


def _metadata_columns(at: TableAt) -> list[str]:
    """The names of the metadata columns that Spark can select: not those that a column of the table hides."""
    has_values = len(partition_struct(at._base.store.context).fields) > 0  # those of unknown transforms are not read
    names = [SPEC_ID.name, *((_PARTITION,) if has_values else ()), FILE.name, POS.name]
    if at.metadata.rules.row_lineage:
        names += [field.name for field in LINEAGE]
    own = {field.name.lower() for field in at.schema.fields}
    return [name for name in names if name not in own]


def _is_shown(field: PartitionField, at: TableAt) -> bool:
    """Whether Spark gets to know a partition field: those of one column that the schema has."""
    return not field.is_void and len(field.source_ids) == 1 and len(_path(at.schema.fields, field.source_id)) > 0


def _path(fields: tuple[Field, ...], field_id: int) -> tuple[str, ...]:
    """The names down to a field inside structs; empty if it is not there."""
    for field in fields:
        inside = _path(field.type.fields, field_id) if isinstance(field.type, Struct) else ()
        if field.id == field_id or len(inside) > 0:
            return (field.name, *inside)
    return ()


def _transform(field: PartitionField, schema: Schema) -> PartitionTransform:
    name, number = _function(field.transform)
    return PartitionTransform(
        transform=name, columns=(_path(schema.fields, field.source_id),), numbers=() if number is None else (number,)
    )


def _function(transform: str) -> tuple[str, str | None]:
    """The name of a transform in SQL, and its number if it has one.

    >>> _function("bucket[4]"), _function("day"), _function("identity")
    (('bucket', '4'), ('days', None), ('identity', None))
    """
    sized = _SIZED.fullmatch(transform)
    name = transform if sized is None else sized[1]
    return IDENTITY if name == IDENTITY else str(_FUNCTIONS.get(name, name)), None if sized is None else sized[2]
