"""The result of planning changes: for each snapshot, the files whose rows it changed."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from icefloe.expr.filter.nodes import Bound
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import Plan
from icefloe.tree.opened_manifests import OpenedManifests

CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT = "_change_type", "_change_ordinal", "_commit_snapshot_id"
CHANGE_COLUMNS = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT)
INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER = "insert", "delete", "update_before", "update_after"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStep:
    """The files whose rows one commit changed.

    The live rows of ``added`` are new and those of ``removed`` are gone. ``before`` and ``after`` are the same data
    files with the deletes of the parent and of the snapshot: rows that are live in one of them only have changed.
    """

    ordinal: int  # of the commit, among those that may change rows
    snapshot: Snapshot  # the last one of the commit
    added: Plan
    removed: Plan
    before: Plan
    after: Plan

    @property
    def may_insert(self) -> bool:
        """Whether the step may have new rows."""
        return self.added.files + self.after.files > 0

    @property
    def may_delete(self) -> bool:
        """Whether the step may have removed rows."""
        return self.removed.files + self.before.files > 0

    @property
    def files(self) -> int:
        """How many data files are to be read."""
        return self.added.files + self.removed.files + self.before.files

    @property
    def rows(self) -> int:
        """How many rows these data files have."""
        return self._sum("record_count")

    @property
    def bytes(self) -> int:
        """The size of these data files."""
        return self._sum("file_size_in_bytes")

    def _sum(self, column: str) -> int:
        plans = (self.added, self.removed, self.before)
        return sum(int(pc.sum(plan.tasks[column], min_count=0).as_py()) for plan in plans)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan:
    """The files that the changes between two snapshots are read from, by snapshot, oldest first.

    ``steps`` has only snapshots that change rows which may match the filter.
    """

    steps: tuple[ChangeStep, ...]
    schema: Schema  # the columns to return, besides CHANGE_COLUMNS
    table_schema: Schema  # all columns, with the schema of the last snapshot
    filter: Bound  # bound to table_schema
    manifests: OpenedManifests

    @property
    def files(self) -> int:
        """How many data files are to be read; one that several snapshots change counts several times."""
        return sum(step.files for step in self.steps)

    @property
    def rows(self) -> int:
        """How many rows these data files have; of most of them only some are read."""
        return sum(step.rows for step in self.steps)

    @property
    def bytes(self) -> int:
        """The size of these data files; of most of them only some rows are read."""
        return sum(step.bytes for step in self.steps)

    def __repr__(self) -> str:
        steps, opened = len(self.steps), self.manifests
        return (
            f"changes of {steps} snapshot{'' if steps == 1 else 's'}: {self.files} data files ({self.bytes} bytes) to"
            f" read; {opened.roots} roots and {opened.leaves} leaf manifests opened"
        )
