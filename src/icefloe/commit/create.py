"""Making a new table: its first metadata file, and its name in the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.names import Identifier
from icefloe.codecs.metadata_json import encode_metadata
from icefloe.commit.stage import METADATA_FOLDER, metadata_name
from icefloe.env import SYSTEM, Env
from icefloe.errors import AlreadyExists, NotFound
from icefloe.io.file_io import FileIO
from icefloe.model.layout_history import with_expressions
from icefloe.model.metadata import TableMetadata
from icefloe.model.partitioning import FIRST_PARTITION_FIELD_ID, PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.sorting import UNSORTED, SortOrder
from icefloe.model.version_rules import check_writable
from icefloe.transforms.fitting import check_order, check_spec


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
    check_spec(spec, schema, format_version)
    check_order(sort_order, schema, format_version)
    metadata = TableMetadata(
        format_version=format_version,
        table_uuid=str(env.new_uuid()),
        location=location,
        last_updated_ms=env.now_ms(),
        last_column_id=schema.highest_id,
        schemas=(schema,),
        current_schema_id=schema.schema_id,
        specs=(spec,),
        default_spec_id=spec.spec_id,
        last_partition_id=max((FIRST_PARTITION_FIELD_ID - 1, *(field.field_id for field in spec.fields))),
        sort_orders=(UNSORTED, sort_order) if sort_order.order_id != UNSORTED.order_id else (UNSORTED,),
        default_sort_order_id=sort_order.order_id,
        properties=dict(properties),
    )
    return with_expressions(metadata) if metadata.rules.expressions else metadata


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
