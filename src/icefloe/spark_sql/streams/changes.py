"""The changes that a stream reads of a table: those of whole snapshots, oldest first.

An offset is a snapshot. It also records where the stream began, because Spark asks again for the rows of the first
batch after a restart, and how many snapshots that may change rows were read, which ``_change_ordinal`` counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from icefloe.engines.work import ChangeRequest
from icefloe.errors import NoSuchSnapshot
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.transactions import by_commit
from icefloe.scan.changes.pairing import update_pairs
from icefloe.scan.changes.snapshot_range import SnapshotRange, before_transaction, changing
from icefloe.spark_sql.streams.history import StreamHistory
from icefloe.spark_sql.streams.options import NO_LIMIT, StreamOptions


class ChangePosition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the changes of a table are read: all of them up to a snapshot; without one, none.

    ``ordinal`` is that of the next snapshot that may change rows.
    """

    version: int = 1
    snapshot_id: int | None = None
    ordinal: int = 0


class ChangeOffset(ChangePosition, frozen=True, kw_only=True):
    """An offset of a stream of changes; before its first batch it has no ``began_at``."""

    began_at: ChangePosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamChanges:
    """The changes of a table in one state."""

    history: StreamHistory
    options: StreamOptions

    def up_to(self, snapshot_id: int) -> StreamChanges:
        """The changes up to a snapshot."""
        return replace(self, history=self.history.up_to(snapshot_id))

    def latest(self, start: ChangeOffset, *, is_unlimited: bool) -> ChangeOffset | None:
        """The end of the next batch; none while the table is empty."""
        began_at = self._beginning() if start.began_at is None else start.began_at
        if began_at is None or self.history.head is None:
            return None
        read: ChangePosition = began_at if start.began_at is None else start
        snapshots = self._after(read, self.history.head)
        has_limit = min(self.options.max_snapshots, self.options.max_files, self.options.max_rows) < NO_LIMIT
        if has_limit and not is_unlimited:
            snapshots = self._fitting(snapshots)
        return ChangeOffset(
            snapshot_id=snapshots[-1].snapshot_id if len(snapshots) > 0 else read.snapshot_id,
            ordinal=read.ordinal + len(changing(snapshots)),
            began_at=began_at,
        )

    def request(self, start: ChangeOffset, end: ChangeOffset) -> ChangeRequest:
        """What an engine reads for the batch between two offsets."""
        self.history.check_types()
        base, schema = self.history.base, self.history.schema
        read = end.began_at if start.began_at is None else start
        keys = self.options.keys
        pairs = update_pairs(base.metadata, schema, keys) if self.options.images else None
        if read is None or end.snapshot_id is None:
            between = SnapshotRange(since=None, until=None, snapshots=(), schema=schema)
        else:
            until = self.history.snapshot(end.snapshot_id)
            between = SnapshotRange(
                since=None if read.snapshot_id is None else self.history.snapshot(read.snapshot_id),
                until=until,
                snapshots=self._after(read, until),
                schema=schema,
                first_ordinal=read.ordinal,
            )
        return ChangeRequest(base=base, between=between, pairs=pairs)

    def _beginning(self) -> ChangePosition | None:
        """Where a new stream begins; none while the table is empty, or before the time of the beginning."""
        head = self.history.head
        if head is None:
            return None
        if self.options.after_snapshot is not None:
            after = self.history.snapshot(self.options.after_snapshot)
            start = before_transaction(self.history.base.metadata, after)
        elif self.options.from_timestamp_ms is not None:
            if not self.history.begins_before(self.options.from_timestamp_ms):
                return None
            start = self._before(self.options.from_timestamp_ms, head)
        else:
            start = head if self.options.from_latest else None
        return ChangePosition(snapshot_id=None if start is None else start.snapshot_id)

    def _before(self, timestamp_ms: int, head: Snapshot) -> Snapshot | None:
        """The last snapshot before a time; NoSuchSnapshot if it has expired, so that not all changes are known."""
        before, oldest = self.history.before(timestamp_ms), self.history.oldest_with_unknown_parent
        if before is None and oldest is not None:
            raise NoSuchSnapshot(
                f"table {self.history.base.metadata.location}: the snapshot before {oldest.snapshot_id} has expired, so"
                f" it is not known what changed since the time of stream-from-timestamp; give a later time, or"
                f" {_from_head(head)}",
                snapshot_id=oldest.parent_id,
            )
        return before

    def _after(self, read: ChangePosition, until: Snapshot) -> tuple[Snapshot, ...]:
        """The snapshots whose changes are not read yet, up to another one."""
        if read.snapshot_id is not None:
            return self.history.between(self.history.snapshot(read.snapshot_id), until)
        try:
            return self.history.between(None, until)
        except NoSuchSnapshot as error:
            raise NoSuchSnapshot(
                f"{error}, so not all changes are known; {_from_head(until)}", **error.context
            ) from error

    def _fitting(self, snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
        """Those of the snapshots that a batch reads: within the limits, at least one commit that changes rows."""
        options, read, files, rows = self.options, 0, 0, 0
        fitting: list[Snapshot] = []
        for commit in by_commit(snapshots):
            if len(changing(commit)) > 0:
                plan = self._request_of(commit).plan()
                read, files, rows = read + 1, files + plan.files, rows + plan.rows
                is_over = read > options.max_snapshots or files > options.max_files or rows > options.max_rows
                if is_over and read > 1:
                    break
            fitting.extend(commit)
        return tuple(fitting)

    def _request_of(self, commit: tuple[Snapshot, ...]) -> ChangeRequest:
        between = SnapshotRange(since=None, until=commit[-1], snapshots=commit, schema=self.history.schema)
        return ChangeRequest(base=self.history.base, between=between)


def _from_head(head: Snapshot) -> str:
    """The next step if older changes are not known."""
    return (
        f"read the rows of snapshot {head.snapshot_id} as a batch, and the changes after it with the option"
        f" start-snapshot-id={head.snapshot_id}"
    )
