"""Publishes a staged snapshot: applies its changes to the main branch (write, audit, publish)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.remove_files import live_files
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.commit.stage import commit_timestamp
from icefloe.errors import InputError
from icefloe.model.entries import ContentType, Status, choose, of_status, of_type, put
from icefloe.model.metadata.snapshots import MAIN, Operation, Snapshot
from icefloe.model.metadata.table_metadata import ancestors
from icefloe.model.metadata.transactions import is_intermediate, is_part, transaction_of
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.snapshot_changes import snapshot_changes

SOURCE_SNAPSHOT = "source-snapshot-id"
STAGED_WAP_ID, PUBLISHED_WAP_ID = "wap.id", "published-wap-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class CherryPick(SnapshotOperation):
    """Applies the changes of a snapshot to main. A snapshot whose parent is the head of main becomes current as it is.

    Appends can be applied to any head, and so can removals of whole files while these are live. Other operations are
    refused: they were computed from the rows of their parent, and would bring back rows that were deleted since.
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
        _check_whole(picked, head)
        if picked.parent_id == head:
            timestamp_ms = commit_timestamp(draft, work)
            return draft.with_metadata(metadata.set_current_snapshot(self.snapshot_id, timestamp_ms=timestamp_ms))
        published = picked.summary.get(STAGED_WAP_ID)
        keys = {SOURCE_SNAPSHOT: str(self.snapshot_id)}
        keys |= {} if published is None else {PUBLISHED_WAP_ID: published}
        again = replace(self, operation=picked.operation, properties={**self.properties, **keys}, branch=MAIN)
        return SnapshotOperation.apply(again, draft, work)

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The files that the snapshot added, and those that it removed."""
        picked = draft.metadata.snapshot(self.snapshot_id)
        changes = snapshot_changes(draft.store, draft.metadata, picked)
        whole_files = pc.all(of_type(changes, ContentType.DATA), min_count=0).as_py()
        if not whole_files or picked.operation not in (Operation.APPEND, Operation.DELETE):
            raise InputError(
                f"snapshot {self.snapshot_id} changes rows of files ({picked.operation}), and can only be published"
                " while its parent is the head of main; repeat its operation on main",
                snapshot_id=self.snapshot_id,
            )
        added = _as_new(choose(changes, of_status(changes, Status.ADDED)).drop_columns(["manifest"]))
        removed = choose(changes, of_status(changes, Status.DELETED))["location"].combine_chunks()
        if len(removed) == 0:
            return FileChanges(added=added)
        return FileChanges(added=added, removed=live_files(draft, self.branch, removed))

    def _check_not_published(self, draft: Draft) -> None:
        """Refuse to publish a snapshot twice; summaries on main record the ids of published snapshots."""
        head = draft.metadata.current_snapshot_id
        picked = draft.metadata.snapshot(self.snapshot_id)
        wap = picked.summary.get(STAGED_WAP_ID)
        for snapshot in () if head is None else ancestors(draft.metadata, head):
            same = snapshot.snapshot_id == self.snapshot_id or (
                snapshot.summary.get(SOURCE_SNAPSHOT) == str(self.snapshot_id)
            )
            if same or (wap is not None and wap in map(snapshot.summary.get, (STAGED_WAP_ID, PUBLISHED_WAP_ID))):
                raise InputError(
                    f"snapshot {self.snapshot_id} is already published by snapshot {snapshot.snapshot_id}",
                    snapshot_id=self.snapshot_id,
                )


def _check_whole(picked: Snapshot, head: int | None) -> None:
    """Refuse a snapshot that would make a half of its transaction visible."""
    if is_part(picked) and (is_intermediate(picked) or picked.parent_id != head):
        raise InputError(
            f"snapshot {picked.snapshot_id} is one of several of transaction {transaction_of(picked)}, and main would"
            " show a half of it; publish the branch of the transaction, or repeat its operations on main",
            snapshot_id=picked.snapshot_id,
        )


def _as_new(rows: pa.Table) -> pa.Table:
    """The entries without the numbers of the picked snapshot; the new snapshot assigns its own."""
    for name in ("sequence_number", "file_sequence_number", "snapshot_id", "first_row_id"):
        rows = put(rows, name, pa.nulls(rows.num_rows, rows.schema.field(name).type))
    return rows
