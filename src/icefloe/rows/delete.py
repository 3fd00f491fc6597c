"""Rows deleted by a condition (spec: Row-level Deletes).

Files in which every row matches are removed without being read. Of other files only the columns of the condition are
read.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.engine import Engine
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.prune.stats_eval import Match
from icefloe.model.metadata.properties import DELETE_ISOLATION, DELETE_MODE
from icefloe.rows.prepared import CountedChanges, Prepared, ReadSet
from icefloe.rows.removal import deleted_before, remove_files, remove_rows
from icefloe.rows.target import Target
from icefloe.scan.tasks import Plan


def delete(target: Target, where: Expr, engine: Engine) -> Prepared:
    """Delete the rows that match ``where``; rows for which it is null stay."""
    matching = Matching.of(target, where)
    return ReadSet.of(target, matching.plan.filter, DELETE_ISOLATION).prepared(matching.deletion(target, engine))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The files that may hold rows that match: those of which statistics say that all rows do, and the others."""

    plan: Plan
    whole: Plan
    partly: Plan
    drops: DeletedRows

    @classmethod
    def of(cls, target: Target, where: Expr) -> Matching:
        """The files of a branch."""
        plan = target.plan(where)
        all_match = pc.equal(plan.tasks["match"], int(Match.ALL))
        return cls(
            plan=plan,
            whole=plan.with_tasks(plan.tasks.filter(all_match)),
            partly=plan.with_tasks(plan.tasks.filter(pc.invert(all_match))),
            drops=plan.deleted_rows(target.io),
        )

    def deletion(self, target: Target, engine: Engine) -> CountedChanges:
        """The changes that delete the matching rows."""
        found = engine.find_rows(target.io, self.partly, self.drops)
        return self.whole_files.combined(remove_rows(target, self.partly, self.drops, found, engine, DELETE_MODE))

    @property
    def whole_files(self) -> CountedChanges:
        """The removal of the files in which every row matches."""
        tasks = self.whole.tasks
        listed = tasks.filter(pc.greater(pc.list_value_length(tasks["deletes"]), 0))
        return remove_files(self.whole, tasks, deleted_before(self.drops, listed))
