"""Making a new table: its first metadata file, and its name in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.names import Identifier
from icefloe.codecs.json.table_metadata import encode_metadata
from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.base import Base
from icefloe.commit.draft import Draft, Update, Work, draft_of
from icefloe.commit.loop import applied, begin, discard, remember, unmoved
from icefloe.commit.stage import METADATA_FOLDER, latest_timestamp, metadata_name
from icefloe.env import SYSTEM, Env
from icefloe.errors import CommitStateUnknown, IcefloeError
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.properties import METADATA_COMPRESSION
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import check_writable, rules
from icefloe.model.partition.history import with_expressions
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionSpec
from icefloe.model.schema.schema import Schema, as_first
from icefloe.model.text.text_checks import check_property_texts
from icefloe.transforms.compatibility import check_order, check_spec
from icefloe.tree.store import ManifestCache, ManifestStore


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
    check_property_texts(properties)
    schema = as_first(schema)
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
        states_location=not rules(format_version).relative_locations,
    )
    return with_expressions(metadata) if metadata.rules.expressions else metadata


def create_table(
    catalog: Catalog,
    identifier: Identifier,
    io: FileIO,
    metadata: TableMetadata,
    env: Env = SYSTEM,
    steps: tuple[Update, ...] = (),
) -> str:
    """Write the first metadata file and enter the table; its location.

    With ``steps`` the table is born with what they do, such as its first rows; nobody sees it without them.
    """
    store = ManifestStore(io, manifest_context(metadata), ManifestCache())
    base = Base(pointer="", metadata=metadata, store=store)
    work = begin(base, env)
    with unmoved(io, steps, work):
        draft = applied(draft_of(base), steps, work)
        pointer = _write(draft, work, env)
    try:
        catalog.create(identifier, pointer)
    except CommitStateUnknown:
        remember(steps, work)
        raise
    except IcefloeError:  # definite answers: nobody refers to the files
        discard(io, [*work.staging.written, *(file for step in steps for file in step.files)])
        raise
    return pointer


def _write(draft: Draft, work: Work, env: Env) -> str:
    """Write the first metadata file, with the roots that wait; where it is."""
    metadata = replace(draft.metadata, last_updated_ms=latest_timestamp(draft))
    compression = METADATA_COMPRESSION.of(metadata.properties)
    name = metadata_name(None, str(env.new_uuid()), compressed=compression != "none")
    pointer = f"{metadata.location}/{METADATA_FOLDER}/{name}"
    work.staging.write(draft.store, {**work.roots, pointer: encode_metadata(metadata, compression=compression)})
    return pointer
