"""The history of a table: which snapshots were current, and when (spec: Table Metadata Fields)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from icefloe.model.metadata.table_metadata import TableMetadata, ancestors

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
