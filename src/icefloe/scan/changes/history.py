"""Chooses the snapshots whose changes are read (spec: Snapshots, Snapshot Reference)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.errors import NoSuchSnapshot
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors
from icefloe.model.schema.schema import Schema
from icefloe.scan.plan import read_schema
from icefloe.scan.select import Point, snapshot_at
from icefloe.tree.diff import snapshots_between


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRange:
    """The snapshots after ``since`` up to ``until``, oldest first.

    Without ``since`` the range starts with the first snapshot of the table. ``schema`` is that of ``until``.
    ``first_ordinal`` is the ordinal of the first snapshot that may change rows, if the range continues another one.
    """

    since: Snapshot | None
    until: Snapshot | None  # none for a table without snapshots
    snapshots: tuple[Snapshot, ...]
    schema: Schema
    first_ordinal: int = 0

    @property
    def changing(self) -> tuple[Snapshot, ...]:
        """The snapshots that may change rows: those with the operation ``replace`` do not."""
        return tuple(snapshot for snapshot in self.snapshots if snapshot.operation != Operation.REPLACE)


def snapshot_range(metadata: TableMetadata, since: Point | None, until: Point | None) -> SnapshotRange:
    """The range between two points of the history.

    NoSuchSnapshot if a point does not exist, if ``since`` is not an ancestor of ``until``, or if a snapshot in between
    has expired.
    """
    last = metadata.current_snapshot if until is None else snapshot_at(metadata, until, "until")
    first = None if since is None else _start(metadata, since)
    if last is None:
        return SnapshotRange(since=None, until=None, snapshots=(), schema=metadata.schema)
    if first is not None and first.snapshot_id not in (
        each.snapshot_id for each in ancestors(metadata, last.snapshot_id)
    ):
        raise _not_an_ancestor(metadata, first, last)
    is_branch = isinstance(until, str) and until in metadata.refs and metadata.refs[until].type == "branch"
    return SnapshotRange(
        since=first,
        until=last,
        snapshots=snapshots_between(metadata, after=first, until=last),
        schema=metadata.schema if until is None or is_branch else read_schema(metadata, last),
    )


def _start(metadata: TableMetadata, since: Point) -> Snapshot | None:
    """The snapshot of ``since``; none for a time before the first snapshot, where the table had no rows."""
    try:
        return snapshot_at(metadata, since, "since")
    except NoSuchSnapshot as error:
        if "timestamp_ms" in error.context:
            return None
        raise


def _not_an_ancestor(metadata: TableMetadata, since: Snapshot, until: Snapshot) -> NoSuchSnapshot:
    """The error for two snapshots that are not on one line of history."""
    names = [name for name, ref in metadata.refs.items() if ref.snapshot_id == since.snapshot_id]
    named = "" if len(names) == 0 else f" ({', '.join(names)})"
    return NoSuchSnapshot(
        f"table {metadata.location}: snapshot {since.snapshot_id}{named} is not an ancestor of snapshot"
        f" {until.snapshot_id}: it is newer, on another branch, or was rolled back; choose as since= a snapshot from"
        " which until= was made",
        snapshot_id=since.snapshot_id,
    )
