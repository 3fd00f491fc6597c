"""Creates a table: writes its first metadata file and adds its name to the catalog (spec: Table Metadata)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.names import Identifier
from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.base import Base
from icefloe.commit.draft import Draft, Update, Work, draft_of
from icefloe.commit.loop import apply_updates, before_swap, begin, discard, remember
from icefloe.commit.stage import encode_metadata_file, latest_timestamp
from icefloe.env import SYSTEM, Env
from icefloe.errors import CommitStateUnknown, IcefloeError
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import check_writable, rules
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionSpec
from icefloe.model.partition.spec_history import with_expressions
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
    """Write the first metadata file and create the table in the catalog; the location of the file.

    ``steps`` are applied to the new table before others can see it, such as an append of its first rows.
    """
    store = ManifestStore(io, manifest_context(metadata), ManifestCache())
    base = Base(pointer="", metadata=metadata, store=store)
    work = begin(base, env)
    with before_swap(io, steps, work):
        draft = apply_updates(draft_of(base), steps, work)
        pointer = _write(draft, work, env)
    try:
        catalog.create(identifier, pointer)
    except CommitStateUnknown:
        remember(steps, work)
        raise
    except IcefloeError:  # the table was not created, so its files are unreferenced
        discard(io, [*work.staging.written, *(file for step in steps for file in step.files)])
        raise
    return pointer


def _write(draft: Draft, work: Work, env: Env) -> str:
    """Write the first metadata file and the pending roots; the location of the metadata file."""
    metadata = replace(draft.metadata, last_updated_ms=latest_timestamp(draft))
    pointer, data = encode_metadata_file(metadata, None, env)
    work.staging.write(draft.store, {**work.roots, pointer: data})
    return pointer
