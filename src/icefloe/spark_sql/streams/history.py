"""The snapshots that a stream reads: where it starts, and those after the one up to which it has read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from icefloe.commit.base import Base
from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import ancestors
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import is_primitive
from icefloe.tree.snapshot_changes import snapshots_between


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

    def before(self, timestamp_ms: int) -> Snapshot | None:
        """The last snapshot before a time; none if it has expired, or if the table had no rows then."""
        return next((each for each in self._known() if each.timestamp_ms < timestamp_ms), None)

    def begins_before(self, timestamp_ms: int) -> bool:
        """Whether a stream that begins at a time can read something already: there is a snapshot of that time."""
        return self.head is not None and self.head.timestamp_ms >= timestamp_ms

    @property
    def oldest_with_unknown_parent(self) -> Snapshot | None:
        """The oldest snapshot that is known, if the one before it has expired."""
        *_, oldest = (None, *self._known())
        return None if oldest is None or oldest.parent_id is None else oldest

    def _known(self) -> Iterator[Snapshot]:
        """The snapshots that are known, newest first."""
        return iter(()) if self.head is None else ancestors(self.base.metadata, self.head.snapshot_id)

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
