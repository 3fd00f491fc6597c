"""Incremental scans: plans the files that appends added between two snapshots (spec: Snapshots).

Only files of append snapshots are known to contain new rows only. Another snapshot in between is an error, unless the
caller asks to skip such snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_index import attach_deletes
from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.prune.residual import residuals
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.model.entries import ContentType, Status, choose, concat, empty, of_status, of_type
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.plan import known_fields, partition_fields, read_schema, to_tasks
from icefloe.scan.prune import statistics_keys
from icefloe.scan.tasks import Plan
from icefloe.tree.diff import snapshot_changes, snapshots_between, with_manifest
from icefloe.tree.store import ManifestStore


def plan_appends(
    store: ManifestStore,
    metadata: TableMetadata,
    *,
    after: Snapshot | None,
    until: Snapshot,
    filter: Expr = ALWAYS_TRUE,
    columns: Sequence[str] | None = None,
    skip_others: bool = False,
) -> Plan:
    """The files that were appended after ``after`` up to ``until``; without ``after``, since the first snapshot.

    Any other kind of snapshot in between is an error, or is skipped with ``skip_others``. Expired history is always an
    error: NoSuchSnapshot names the missing snapshot.
    """
    schema = read_schema(metadata, until)
    bound = bind(filter, schema)
    fields = partition_fields(metadata)
    appends = _appends(snapshots_between(metadata, after=after, until=until), metadata, skip_others=skip_others)
    wanted = statistics_keys(bound, fields)
    added = [_added(snapshot_changes(store, metadata, snapshot, wanted)) for snapshot in appends]
    rows = concat([with_manifest(empty(), None), *added]).combine_chunks()
    match = evaluate(bound, rows, fields)
    kept = rows.append_column("match", match).filter(pc.not_equal(match, int(Match.NONE)))
    data = attach_deletes(kept, kept.slice(0, 0), store.context).data
    remaining, index = residuals(bound, fields, schema, data)
    return Plan(
        tasks=to_tasks(data, index, statistics=False),
        schema=schema if columns is None else schema.project(tuple(columns), table=metadata.location),
        table_schema=schema,
        filter=bound,
        residuals=tuple(remaining),
        specs=metadata.specs,
        fields=known_fields(metadata),
        properties=metadata.properties,
        files_skipped=rows.num_rows - kept.num_rows,
    )


def _appends(between: tuple[Snapshot, ...], metadata: TableMetadata, *, skip_others: bool) -> tuple[Snapshot, ...]:
    other = next((snapshot for snapshot in between if snapshot.operation != Operation.APPEND), None)
    if other is not None and not skip_others:
        raise InputError(
            f"table {metadata.location}: snapshot {other.snapshot_id} has operation {other.operation.value!r}, so the"
            " changes cannot be read as appends alone; skip such snapshots, or read the whole table",
            snapshot_id=other.snapshot_id,
        )
    return tuple(snapshot for snapshot in between if snapshot.operation == Operation.APPEND)


def _added(changes: pa.Table) -> pa.Table:
    return choose(changes, pc.and_(of_type(changes, ContentType.DATA), of_status(changes, Status.ADDED)))
