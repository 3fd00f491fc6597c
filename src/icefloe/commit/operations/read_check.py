"""Checks that the rows an operation read are unchanged (spec: Commit Conflict Resolution and Retry)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.commit.conflicts import Since
from icefloe.commit.draft import State
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.expr.filter.nodes import Expr
from icefloe.model.metadata.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCheck(SnapshotOperation):
    """What an operation read and left as it was, which must be so where its commit lands; it makes no snapshot.

    An operation that finds no rows has read that there are none. With ``present``, rows that are there also decide what
    it does, as for one that adds rows unless there are some like them: then none of these may leave.
    """

    read: Snapshot | None
    filter: Expr
    present: bool = False

    def resolve(self, state: State) -> None:
        """No row came that it would have read, and none left that matters."""
        since = Since(state, self.read)
        since.check_no_new_data(self.filter)
        if self.present:
            since.check_no_new_deletes(self.filter)
            since.check_no_data_left(self.filter)
