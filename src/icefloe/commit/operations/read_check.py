"""Checks that the rows an operation read are unchanged (spec: Commit Conflict Resolution and Retry)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.commit.conflicts import ConflictCheck
from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.expr.filter.nodes import Expr
from icefloe.model.metadata.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCheck(SnapshotOperation):
    """Fails if other commits changed rows that an operation read and did not change itself. Makes no snapshot.

    With ``added_rows`` it fails if rows were added that match ``filter``, with ``existing_rows`` if matching rows were
    deleted: existing rows decide what the operation does, such as an insert of rows that have no match.
    """

    read: Snapshot | None
    filter: Expr
    added_rows: bool = True
    existing_rows: bool = False

    def resolve(self, draft: Draft, work: Work) -> None:
        """Check for added and deleted rows, as far as these matter."""
        conflicts = ConflictCheck(draft, work, self.branch, self.read)
        if self.added_rows:
            conflicts.check_no_new_data(self.filter)
        if self.existing_rows:
            conflicts.check_no_new_deletes(self.filter)
            conflicts.check_no_data_removed(self.filter)
