"""The snapshots that a stream reads: where it starts, and those after the one up to which it has read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icefloe.commit.base import Base
from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import ancestors
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import is_primitive
from icefloe.tree.diff import snapshots_between


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHistory:
    """The history of a table in one state, up to ``head``, for a stream that reads the columns of ``schema``."""

    base: Base
    schema: Schema
    head: Snapshot | None

    def up_to(self, snapshot_id: int) -> StreamHistory:
        """The history up to a snapshot."""
        return replace(self, head=self.snapshot(snapshot_id))

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """A snapshot; NoSuchSnapshot if it has expired."""
        snapshot = self.base.metadata.snapshots.find(snapshot_id)
        if snapshot is None:
            raise NoSuchSnapshot(
                f"table {self.base.metadata.location}: snapshot {snapshot_id}, up to which the stream has read, has"
                " expired; start a new stream with a new checkpoint, and retain snapshots for longer",
                snapshot_id=snapshot_id,
            )
        return snapshot

    def before(self, timestamp_ms: int, *, instead: str) -> Snapshot | None:
        """The last snapshot before a time; none if the table had no rows then.

        NoSuchSnapshot if that snapshot has expired; ``instead`` is what its message recommends.
        """
        oldest = None
        for snapshot in ancestors(self.base.metadata, self.head.snapshot_id) if self.head is not None else ():
            if snapshot.timestamp_ms < timestamp_ms:
                return snapshot
            oldest = snapshot
        if oldest is None or oldest.parent_id is None:
            return None
        raise NoSuchSnapshot(
            f"table {self.base.metadata.location}: the snapshot before {oldest.snapshot_id} has expired, so it is not"
            f" known what changed since the time of stream-from-timestamp; give a later time, or {instead}",
            snapshot_id=oldest.parent_id,
        )

    def between(self, after: Snapshot | None, until: Snapshot) -> tuple[Snapshot, ...]:
        """The snapshots after ``after`` up to ``until``, oldest first."""
        return snapshots_between(self.base.metadata, after=after, until=until)

    def check_types(self) -> None:
        """InputError if a column has another type now than the query expects."""
        current = self.base.metadata.schema.by_id
        for field in self.schema.by_id.values():
            now = current.get(field.id)
            if now is not None and is_primitive(field.type) and now.type != field.type:
                raise InputError(
                    f"table {self.base.metadata.location}: column {field.name!r} is {now.type} now, and was"
                    f" {field.type} when the stream was started; start it again, with the same checkpoint",
                    field=field.name,
                )
