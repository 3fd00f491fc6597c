"""Publishing staged snapshots: what one snapshot did, done again on the head of a branch (write, audit, publish)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import Draft, State, Work
from icefloe.commit.operations.remove_files import live_tasks
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.commit.resolved import Resolved
from icefloe.commit.stage import now
from icefloe.errors import InputError
from icefloe.model.entries import ContentType, Status, choose, of_type, put
from icefloe.model.metadata.snapshots import MAIN, Operation
from icefloe.model.metadata.table_metadata import ancestors
from icefloe.tree.diff import snapshot_changes

SOURCE_SNAPSHOT = "source-snapshot-id"
STAGED_WAP_ID, PUBLISHED_WAP_ID = "wap.id", "published-wap-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class CherryPick(SnapshotOperation):
    """The changes of a snapshot, on main; one whose parent is the head is simply made current.

    Appends are done again on any head, and so are removals of whole files, while those are live. Everything else was
    computed from rows as they were: it would bring rows back that were deleted since, so it is refused.
    """

    snapshot_id: int
    operation: Operation = Operation.APPEND

    @property
    def name(self) -> str:
        """What it does."""
        return "cherry-pick"

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with the snapshot's changes on main."""
        metadata, picked = draft.metadata, draft.metadata.snapshot(self.snapshot_id)
        head = metadata.current_snapshot_id
        self._check_not_published(draft)
        if picked.parent_id == head:
            return draft.with_metadata(metadata.set_current_snapshot(self.snapshot_id, timestamp_ms=now(draft, work)))
        published = picked.summary.get(STAGED_WAP_ID)
        keys = {SOURCE_SNAPSHOT: str(self.snapshot_id)}
        keys |= {} if published is None else {PUBLISHED_WAP_ID: published}
        again = replace(self, operation=picked.operation, properties={**self.properties, **keys}, branch=MAIN)
        return SnapshotOperation.apply(again, draft, work)

    def resolve(self, state: State) -> Resolved:
        """The files that the snapshot added, and those that it removed."""
        picked = state.metadata.snapshot(self.snapshot_id)
        changes = snapshot_changes(state.store, state.metadata, picked)
        whole_files = pc.all(of_type(changes, ContentType.DATA), min_count=0).as_py()
        if not whole_files or picked.operation not in (Operation.APPEND, Operation.DELETE):
            raise InputError(
                f"snapshot {self.snapshot_id} changes rows of files ({picked.operation}), and can only be published on"
                " the snapshot it was made on; make it again on the head of main",
                snapshot_id=self.snapshot_id,
            )
        added = choose(changes, pc.equal(changes["status"], int(Status.ADDED)))
        gone = choose(changes, pc.equal(changes["status"], int(Status.DELETED)))["location"].combine_chunks()
        removed = live_tasks(state, gone) if len(gone) > 0 else None
        resolved = Resolved(added=_anew(added.drop_columns(["manifest"])))
        return resolved if removed is None else replace(resolved, removed=removed)

    def _check_not_published(self, draft: Draft) -> None:
        """Refuse to do the same twice, told by the ids that snapshots of main keep in their summaries."""
        head = draft.metadata.current_snapshot_id
        picked = draft.metadata.snapshot(self.snapshot_id)
        wap = picked.summary.get(STAGED_WAP_ID)
        for snapshot in () if head is None else ancestors(draft.metadata, head):
            same = snapshot.snapshot_id == self.snapshot_id or (
                snapshot.summary.get(SOURCE_SNAPSHOT) == str(self.snapshot_id)
            )
            if same or (wap is not None and wap in map(snapshot.summary.get, (STAGED_WAP_ID, PUBLISHED_WAP_ID))):
                raise InputError(
                    f"snapshot {self.snapshot_id} is published already, by snapshot {snapshot.snapshot_id}",
                    snapshot_id=self.snapshot_id,
                )


def _anew(rows: pa.Table) -> pa.Table:
    """Entries as if they were new: they get the numbers of the snapshot that takes them."""
    for name in ("sequence_number", "file_sequence_number", "snapshot_id", "first_row_id"):
        rows = put(rows, name, pa.nulls(rows.num_rows, rows.schema.field(name).type))
    return rows
