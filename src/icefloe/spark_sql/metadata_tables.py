"""Metadata tables: ``demo.db.orders.snapshots`` and others, with the columns that Apache Iceberg gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.table.history import history_of

_TIME = pa.timestamp("us", "UTC")
_MICROSECONDS = 1000  # in a millisecond


def _history(metadata: TableMetadata) -> pa.Table:
    entries = history_of(metadata)
    return _table(
        ("made_current_at", _TIME, (entry.made_current_at for entry in entries)),
        ("snapshot_id", pa.int64(), (entry.snapshot_id for entry in entries)),
        ("parent_id", pa.int64(), (entry.parent_id for entry in entries)),
        ("is_current_ancestor", pa.bool_(), (entry.is_current_ancestor for entry in entries)),
    )


def _snapshots(metadata: TableMetadata) -> pa.Table:
    snapshots = tuple(metadata.snapshots)
    return _table(
        ("committed_at", _TIME, (snapshot.timestamp_ms * _MICROSECONDS for snapshot in snapshots)),
        ("snapshot_id", pa.int64(), (snapshot.snapshot_id for snapshot in snapshots)),
        ("parent_id", pa.int64(), (snapshot.parent_id for snapshot in snapshots)),
        ("operation", pa.string(), (snapshot.operation.value for snapshot in snapshots)),
        ("manifest_list", pa.string(), (snapshot.root for snapshot in snapshots)),
        ("summary", pa.map_(pa.string(), pa.string()), map(_summary, snapshots)),
    )


def _summary(snapshot: Snapshot) -> list[tuple[str, str]]:
    """The summary without the operation, which is a column of its own."""
    return [(key, value) for key, value in snapshot.summary.items() if key != SummaryKey.OPERATION]


def _refs(metadata: TableMetadata) -> pa.Table:
    refs = metadata.refs.values()
    return _table(
        ("name", pa.string(), metadata.refs),
        ("type", pa.string(), (ref.type.upper() for ref in refs)),
        ("snapshot_id", pa.int64(), (ref.snapshot_id for ref in refs)),
        ("max_reference_age_in_ms", pa.int64(), (ref.max_ref_age_ms for ref in refs)),
        ("min_snapshots_to_keep", pa.int32(), (ref.min_snapshots_to_keep for ref in refs)),
        ("max_snapshot_age_in_ms", pa.int64(), (ref.max_snapshot_age_ms for ref in refs)),
    )


def _table(*columns: tuple[str, pa.DataType, Iterable[object]]) -> pa.Table:
    arrays = {name: pa.array(list(values), type_) for name, type_, values in columns}
    return pa.table(arrays)


METADATA_TABLES: Mapping[str, Callable[[TableMetadata], pa.Table]] = {
    "history": _history,
    "refs": _refs,
    "snapshots": _snapshots,
}
