"""Chooses the snapshots whose changes are read (spec: Snapshots, Snapshot Reference)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from icefloe.errors import NoSuchSnapshot
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors
from icefloe.model.metadata.transactions import by_commit, is_intermediate, transaction_of
from icefloe.model.schema.schema import Schema
from icefloe.scan.plan import read_schema
from icefloe.scan.select import Point, snapshot_at
from icefloe.tree.snapshot_changes import snapshots_between


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRange:
    """The snapshots after ``since`` up to ``until``, oldest first.

    Without ``since`` the range starts with the first snapshot of the table. ``schema`` is that of ``until``.
    ``first_ordinal`` is the ordinal of the first commit that may change rows, if the range continues another one.
    """

    since: Snapshot | None
    until: Snapshot | None  # none for a table without snapshots
    snapshots: tuple[Snapshot, ...]
    schema: Schema
    first_ordinal: int = 0

    @property
    def changing(self) -> tuple[tuple[Snapshot, ...], ...]:
        """The commits that may change rows, each with its snapshots: one, or those of a transaction."""
        return changing(self.snapshots)


def changing(snapshots: Iterable[Snapshot]) -> tuple[tuple[Snapshot, ...], ...]:
    """The commits of these snapshots that may change rows: those with the operation ``replace`` do not."""
    return tuple(
        step for step in by_commit(snapshots) if any(snapshot.operation != Operation.REPLACE for snapshot in step)
    )


def snapshot_range(metadata: TableMetadata, since: Point | None, until: Point | None) -> SnapshotRange:
    """The range between two points of the history. A snapshot inside a transaction is the state before it.

    NoSuchSnapshot if a point does not exist, if ``since`` is not an ancestor of ``until``, or if a snapshot in between
    has expired.
    """
    last = metadata.current_snapshot if until is None else snapshot_at(metadata, until, "until")
    first = None if since is None else _start(metadata, since)
    if until is not None and last is not None and last.snapshot_id not in _heads(metadata) and is_intermediate(last):
        is_same = first is not None and transaction_of(first) == transaction_of(last)
        last = before_transaction(metadata, last)
        first = last if is_same else first
    if last is None:
        return SnapshotRange(since=None, until=None, snapshots=(), schema=metadata.schema)
    if first is not None and first.snapshot_id not in (
        each.snapshot_id for each in ancestors(metadata, last.snapshot_id)
    ):
        raise _not_an_ancestor(metadata, first, last)
    snapshots = snapshots_between(metadata, after=first, until=last)
    if first is not None and len(snapshots) > 0 and len(by_commit([first, snapshots[0]])) == 1:
        first = before_transaction(metadata, first)
        snapshots = snapshots_between(metadata, after=first, until=last)
    is_branch = isinstance(until, str) and until in metadata.refs and metadata.refs[until].type == "branch"
    return SnapshotRange(
        since=first,
        until=last,
        snapshots=snapshots,
        schema=metadata.schema if until is None or is_branch else read_schema(metadata, last),
    )


def _heads(metadata: TableMetadata) -> set[int | None]:
    return {metadata.current_snapshot_id, *(ref.snapshot_id for ref in metadata.refs.values())}


def before_transaction(metadata: TableMetadata, snapshot: Snapshot) -> Snapshot | None:
    """The state before the transaction of a snapshot after which others of it follow; other snapshots as they are."""
    transaction = transaction_of(snapshot)
    if not is_intermediate(snapshot):
        return snapshot
    earlier: Snapshot | None = snapshot
    while earlier is not None and transaction_of(earlier) == transaction:
        earlier = None if earlier.parent_id is None else metadata.snapshot(earlier.parent_id)
    return earlier


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
