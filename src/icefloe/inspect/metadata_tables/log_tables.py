"""The tables ``history``, ``snapshots``, ``refs`` and ``metadata_log_entries``, from the metadata file alone.

They have one row for each entry of a list in that file (spec: Table Metadata Fields, Snapshots).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from icefloe.commit.base import Base
from icefloe.inspect.metadata_tables.table_shape import MetadataTable, fixed, optional, required
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors

TIME = pa.timestamp("us", "UTC")
MICROSECONDS = 1000  # in a millisecond
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_HISTORY = fixed(
    required("made_current_at", TIME),
    required("snapshot_id", pa.int64()),
    optional("parent_id", pa.int64()),
    required("is_current_ancestor", pa.bool_()),
)
_SNAPSHOTS = fixed(
    required("committed_at", TIME),
    required("snapshot_id", pa.int64()),
    optional("parent_id", pa.int64()),
    optional("operation", pa.string()),
    optional("manifest_list", pa.string()),
    optional("summary", pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))),
)
_REFS = fixed(
    required("name", pa.string()),
    required("type", pa.string()),
    required("snapshot_id", pa.int64()),
    optional("max_reference_age_in_ms", pa.int64()),
    optional("min_snapshots_to_keep", pa.int32()),
    optional("max_snapshot_age_in_ms", pa.int64()),
)
_METADATA_LOG = fixed(
    required("timestamp", TIME),
    required("file", pa.string()),
    optional("latest_snapshot_id", pa.int64()),
    optional("latest_schema_id", pa.int32()),
    optional("latest_sequence_number", pa.int64()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One change of the current snapshot; the fields are those of Iceberg's metadata table ``history``."""

    made_current_at: datetime  # in UTC
    snapshot_id: int
    parent_id: int | None  # none for a first snapshot, and for one that the table no longer has
    is_current_ancestor: bool  # false for a snapshot that was rolled back


def history_of(metadata: TableMetadata) -> tuple[HistoryEntry, ...]:
    """The entries of the snapshot log, oldest first."""
    current = metadata.current_snapshot_id
    current_line = set() if current is None else {snapshot.snapshot_id for snapshot in ancestors(metadata, current)}
    entries = ((entry, metadata.snapshots.find(entry.snapshot_id)) for entry in metadata.snapshot_log)
    return tuple(
        HistoryEntry(
            made_current_at=_EPOCH + timedelta(milliseconds=entry.timestamp_ms),
            snapshot_id=entry.snapshot_id,
            parent_id=None if snapshot is None else snapshot.parent_id,
            is_current_ancestor=entry.snapshot_id in current_line,
        )
        for entry, snapshot in entries
    )


def _history(base: Base, snapshot: Snapshot | None) -> pa.Table:
    entries = history_of(base.metadata)
    return _table(
        _HISTORY(base),
        (entry.made_current_at for entry in entries),
        (entry.snapshot_id for entry in entries),
        (entry.parent_id for entry in entries),
        (entry.is_current_ancestor for entry in entries),
    )


def _snapshots(base: Base, snapshot: Snapshot | None) -> pa.Table:
    snapshots = tuple(base.metadata.snapshots)
    return _table(
        _SNAPSHOTS(base),
        (snapshot.timestamp_ms * MICROSECONDS for snapshot in snapshots),
        (snapshot.snapshot_id for snapshot in snapshots),
        (snapshot.parent_id for snapshot in snapshots),
        (snapshot.operation.value for snapshot in snapshots),
        (snapshot.root for snapshot in snapshots),
        map(_summary, snapshots),
    )


def _summary(snapshot: Snapshot) -> list[tuple[str, str]]:
    """The summary without the operation, which is a column of its own."""
    return [(key, value) for key, value in snapshot.summary.items() if key != SummaryKey.OPERATION]


def _refs(base: Base, snapshot: Snapshot | None) -> pa.Table:
    refs = base.metadata.refs.values()
    return _table(
        _REFS(base),
        base.metadata.refs,
        (ref.type.upper() for ref in refs),
        (ref.snapshot_id for ref in refs),
        (ref.max_ref_age_ms for ref in refs),
        (ref.min_snapshots_to_keep for ref in refs),
        (ref.max_snapshot_age_ms for ref in refs),
    )


def _metadata_log(base: Base, snapshot: Snapshot | None) -> pa.Table:
    """The metadata files, oldest first, with the snapshot that was current on main when each was written."""
    metadata = base.metadata
    log = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    files = [*log, (metadata.last_updated_ms, base.pointer)]
    times = [entry.timestamp_ms for entry in metadata.snapshot_log]
    places = [bisect_right(times, time) for time, _ in files]
    ids = [None if place == 0 else metadata.snapshot_log[place - 1].snapshot_id for place in places]
    found = [None if id_ is None else metadata.snapshots.find(id_) for id_ in ids]
    return _table(
        _METADATA_LOG(base),
        (time * MICROSECONDS for time, _ in files),
        (file for _, file in files),
        ids,
        (None if latest is None else latest.schema_id for latest in found),
        (None if latest is None else latest.sequence_number for latest in found),
    )


def _table(schema: pa.Schema, *columns: Iterable[object]) -> pa.Table:
    arrays = [pa.array(list(values), field.type) for field, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


LOG_TABLES = {
    "history": MetadataTable(schema=_HISTORY, rows=_history),
    "snapshots": MetadataTable(schema=_SNAPSHOTS, rows=_snapshots),
    "refs": MetadataTable(schema=_REFS, rows=_refs),
    "metadata_log_entries": MetadataTable(schema=_METADATA_LOG, rows=_metadata_log),
}
