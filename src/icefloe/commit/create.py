"""Making a new table: its first metadata file, and its name in the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.names import Identifier
from icefloe.codecs.metadata_json import encode_metadata
from icefloe.commit.stage import METADATA_FOLDER, metadata_name
from icefloe.env import SYSTEM, Env
from icefloe.errors import AlreadyExists, InputError, NotFound
from icefloe.io.file_io import FileIO
from icefloe.model.metadata import TableMetadata
from icefloe.model.partitioning import Expression, PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.sorting import UNSORTED, SortOrder
from icefloe.model.version_rules import check_writable, rules
from icefloe.transforms import parse_transform

# Linked to a column or to nothing, these need no id of their own (V4 proposal).
WITHOUT_EXPRESSION = frozenset({"identity", "void"})


def new_metadata(
    *,
    location: str,
    schema: Schema,
    spec: PartitionSpec,
    sort_order: SortOrder = UNSORTED,
    properties: Mapping[str, str],
    format_version: int,
    env: Env = SYSTEM,
) -> TableMetadata:
    """The metadata of a table without snapshots."""
    check_writable(format_version)
    check_spec(spec, schema)
    expressions: tuple[Expression, ...] = ()
    if rules(format_version).expressions:
        expressions = derive_expressions(spec, schema.highest_id + 1)
    return TableMetadata(
        format_version=format_version,
        table_uuid=str(env.new_uuid()),
        location=location,
        last_updated_ms=env.now_ms(),
        last_column_id=max((schema.highest_id, *(e.expr_id for e in expressions))),
        schemas=(schema,),
        current_schema_id=schema.schema_id,
        specs=(spec,),
        default_spec_id=spec.spec_id,
        last_partition_id=max((999, *(field.field_id for field in spec.fields))),
        sort_orders=(UNSORTED, sort_order) if sort_order.order_id != UNSORTED.order_id else (UNSORTED,),
        default_sort_order_id=sort_order.order_id,
        properties=dict(properties),
        expressions=expressions,
    )


def check_spec(spec: PartitionSpec, schema: Schema) -> None:
    """Refuse a spec whose transforms do not fit their columns."""
    names: set[str] = set()
    for part in spec.fields:
        source = schema.by_id[part.source_id]
        if part.name in names or (part.name in schema.by_name and part.transform != "identity"):
            raise InputError(f"partition field {part.name!r}: the name is taken", field=part.name)
        names.add(part.name)
        if not parse_transform(part.transform).accepts(source.type):
            raise InputError(
                f"partition field {part.name!r}: {part.transform} does not take column {source.name!r} of type"
                f" {source.type}",
                field=part.name,
            )


def derive_expressions(spec: PartitionSpec, first_id: int) -> tuple[Expression, ...]:
    """An expression for each partition field that is neither a column nor void, with ids after the columns'."""
    derived = [field for field in spec.fields if field.transform not in WITHOUT_EXPRESSION]
    return tuple(
        Expression(
            expr_id=first_id + offset,
            source_ids=(field.source_id,),
            transform=field.transform,
            name=field.name,
            partition_field_id=field.field_id,
        )
        for offset, field in enumerate(derived)
    )


def create_table(
    catalog: Catalog, identifier: Identifier, io: FileIO, metadata: TableMetadata, env: Env = SYSTEM
) -> str:
    """Write the first metadata file and enter the table; its location."""
    pointer = f"{metadata.location}/{METADATA_FOLDER}/{metadata_name(None, str(env.new_uuid()))}"
    io.write_new(pointer, encode_metadata(metadata))
    try:
        catalog.create(identifier, pointer)
    except (AlreadyExists, NotFound):  # definite answers: nobody refers to the file
        io.delete([pointer])
        raise
    return pointer
