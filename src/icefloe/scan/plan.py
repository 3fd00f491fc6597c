"""Plans a scan: from a snapshot and a filter to the files to read (spec: Scan Planning; V4 proposal).

All rows of the root are pruned by statistics at once. The remaining leaves are read and pruned in the same way. Deletes
are assigned by lookups and joins. A plan may have any kind of delete; readers refuse those that they do not support.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_index import Attached, attach_deletes
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound, Expr
from icefloe.expr.prune.boxes import Box, bind_box
from icefloe.expr.prune.residual import residuals
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.model.entries import ContentType, Measure, StatColumn, column_key, stat_columns
from icefloe.model.metadata.error_context import NOWHERE, Origin
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.metadata_columns import scan_schema
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.partition_values import partition_struct
from icefloe.scan.prune import DataRows, Pruner, delete_rows, statistics_keys
from icefloe.scan.tasks import TASK, Plan
from icefloe.scan.trace import Tracer
from icefloe.tree.root import Root, read_root
from icefloe.tree.store import ManifestStore


def plan_scan(
    store: ManifestStore,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    *,
    filter: Expr = ALWAYS_TRUE,
    columns: Sequence[str] | None = None,
    schema: Schema | None = None,
    table: str | None = None,
    boxes: tuple[Box, ...] = (),
    bounded: tuple[int, ...] = (),
    trace: bool = False,
    data_rows: DataRows = Pruner.data_rows,
) -> Plan:
    """The files of a snapshot that may contain rows matching ``filter``, with the deletes that apply to them.

    ``schema`` is by default the one for reading the snapshot. ``table`` is the name of the table, for errors. Files
    whose shapes are all outside one of the ``boxes`` are skipped; rows of other files are not tested for that. The
    tasks have the statistics of the columns ``bounded``. With ``trace`` the plan has the reason of each decision.
    ``data_rows`` reads and prunes the data manifests.
    """
    table_schema = schema
    if table_schema is None:
        table_schema = metadata.schema if snapshot is None else read_schema(metadata, snapshot)
    bound = bind(filter, table_schema)
    fields = partition_fields(metadata)
    tracer = Tracer(bound, fields) if trace else None
    column_boxes = tuple(bind_box(box, table_schema) for box in boxes)
    pruner = Pruner(bound, fields, tracer, column_boxes)
    origin = Origin(table=metadata.location, snapshot_id=None if snapshot is None else snapshot.snapshot_id)
    with origin.named():
        root = read_root(store, snapshot)
        candidates = pruner.candidates(root)
        deletes = pruner.delete_rows(store, root, candidates)
        compared = pc.unique(pc.list_flatten(deletes["equality_ids"])).to_pylist()
        compared += [box.field_id for box in column_boxes]
        compared += bounded
        wanted = statistics_keys(bound, fields, compared)
        attached = attach_deletes(data_rows(pruner, store, root, candidates, wanted), deletes, store.context)
    if tracer is not None:
        tracer.record_deletes(deletes, attached.outcomes)
    return replace(
        _plan(metadata, bound, table_schema, attached, origin, bounded),
        schema=selected(store, metadata, table_schema, columns, table),
        files_skipped=pruner.files_skipped,
        manifests_read=pruner.manifests_read,
        manifests_skipped=pruner.manifests_skipped,
        trace=None if tracer is None else tracer.table(),
    )


def plan_files(
    store: ManifestStore,
    metadata: TableMetadata,
    bound: Bound,
    schema: Schema,
    rows: pa.Table,
    deletes: pa.Table,
    origin: Origin = NOWHERE,
) -> Plan:
    """Those of the data files that may contain matching rows, with the deletes that apply to them."""
    match = evaluate(bound, rows, partition_fields(metadata))
    kept = rows.append_column("match", match).filter(pc.not_equal(match, int(Match.NONE)))
    attached = attach_deletes(kept.combine_chunks(), deletes, store.context)
    plan = _plan(metadata, bound, schema, attached, origin)
    return replace(plan, files_skipped=rows.num_rows - kept.num_rows)


def _plan(
    metadata: TableMetadata,
    bound: Bound,
    schema: Schema,
    attached: Attached,
    origin: Origin,
    bounded: tuple[int, ...] = (),
) -> Plan:
    """The plan of data files with their deletes, which returns all columns of the schema."""
    remaining, index = residuals(bound, partition_fields(metadata), schema, attached.data)
    return Plan(
        tasks=to_tasks(attached.data, index, bounded),
        schema=schema,
        table_schema=schema,
        filter=bound,
        residuals=tuple(remaining),
        deletes=attached.files,
        specs=metadata.specs,
        properties=metadata.properties,
        fields=known_fields(metadata),
        origin=origin,
    )


def selected(
    store: ManifestStore,
    metadata: TableMetadata,
    schema: Schema,
    columns: Sequence[str] | None,
    table: str | None = None,
) -> Schema:
    """The columns that a scan returns: all columns of the table, or the named ones, which may be metadata columns.

    Of a struct that is not named itself, only the named fields. ``table`` is for errors, by default the location.
    """
    if columns is None:
        return schema
    return scan_schema(
        schema,
        columns,
        row_lineage=metadata.rules.row_lineage,
        partition=partition_struct(store.context),
        table=metadata.location if table is None else table,
    )


def read_schema(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """The schema for reading a snapshot: the current schema for the current snapshot, else the snapshot's own."""
    at_head = snapshot.snapshot_id == metadata.current_snapshot_id
    return metadata.schema if at_head else metadata.schema_of(snapshot)


def known_fields(metadata: TableMetadata) -> Mapping[int, Field]:
    """Every field that the table has or had, by id, in its newest definition."""
    if len(metadata.schemas) == 1:
        return metadata.schema.by_id
    older = (schema for schema in metadata.schemas if schema.schema_id != metadata.current_schema_id)
    ordered = (*sorted(older, key=attrgetter("schema_id")), metadata.schema)
    return {id_: field for schema in ordered for id_, field in schema.by_id.items()}


def partition_fields(metadata: TableMetadata) -> tuple[PartitionField, ...]:
    """The partition fields of all specs, without void ones."""
    not_void = (field for spec in metadata.specs for field in spec.fields if not field.is_void)
    return tuple({field.field_id: field for field in not_void}.values())


def all_deletes(store: ManifestStore, root: Root) -> pa.Table:
    """All live delete entries of a snapshot, with column ``manifest``."""
    return delete_rows(store, root, root.leaves(ContentType.DELETE_MANIFEST))


def to_tasks(rows: pa.Table, residual: pa.Array, bounded: tuple[int, ...] = ()) -> pa.Table:
    """Scan tasks: the columns of ``TASK``, followed by the partition values and the statistics of some columns."""
    columns, keys = stat_columns(rows).items(), frozenset(map(column_key, bounded))
    names = [name for name, column in columns if column.key in keys or _is_partition_value(column)]
    rows = rows.append_column(TASK.field("residual"), residual.cast(pa.int32()))
    return rows.select([*TASK.names, *names])


def _is_partition_value(column: StatColumn) -> bool:
    """Whether a column describes the partition of a file; some columns are for manifests only."""
    return column.key.is_partition and column.measure not in (Measure.HAS_NULL, Measure.HAS_NAN)
