"""Incremental scans: plans the files that appends added between two snapshots (spec: Snapshots).

Only files of append snapshots are known to contain new rows only. Another snapshot in between is an error, unless the
caller asks to skip such snapshots.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.model.entries import ContentType, Status, choose, concat, empty, of_status, of_type
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.plan import partition_fields, plan_files, read_schema
from icefloe.scan.prune import statistics_keys
from icefloe.scan.tasks import Plan
from icefloe.tree.root import with_manifest
from icefloe.tree.snapshot_changes import snapshot_changes, snapshots_between
from icefloe.tree.store import ManifestStore


def plan_appends(
    store: ManifestStore,
    metadata: TableMetadata,
    *,
    after: Snapshot | None,
    until: Snapshot,
    skip_others: bool = False,
) -> Plan:
    """The files that were appended after ``after`` up to ``until``; without ``after``, since the first snapshot.

    Any other kind of snapshot in between is an error, or is skipped with ``skip_others``. Expired history is always an
    error: NoSuchSnapshot names the missing snapshot.
    """
    schema = read_schema(metadata, until)
    appends = _appends(snapshots_between(metadata, after=after, until=until), metadata, skip_others=skip_others)
    wanted = statistics_keys(ALWAYS_TRUE, partition_fields(metadata))
    added = [_added(snapshot_changes(store, metadata, snapshot, wanted)) for snapshot in appends]
    rows = concat([with_manifest(empty(), None), *added]).combine_chunks()
    return plan_files(store, metadata, ALWAYS_TRUE, schema, rows, rows.slice(0, 0))


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
