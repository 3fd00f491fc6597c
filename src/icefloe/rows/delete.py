"""Deletes rows by a condition (spec: Row-level Deletes).

Files in which every row matches are removed without being read. Of other files only the columns of the condition are
read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from icefloe.commit.phases import Phase
from icefloe.engines.choose import engine_for
from icefloe.engines.engine import Engine
from icefloe.engines.work import Condition, PlannedFiles
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.prune.stats_eval import Match
from icefloe.model.metadata.properties import DELETE_ISOLATION, DELETE_MODE
from icefloe.rows.prepared import CountedChanges, Prepared, RowChange, prepared
from icefloe.rows.removal import deleted_before, remove_files, remove_rows
from icefloe.rows.target import Target
from icefloe.scan.metadata_filter import tested_metadata_columns


def delete(where: str | Expr, spark: Any = None) -> RowChange:
    """Delete the rows that match ``where``; rows for which it is null are kept."""
    engine = engine_for(spark)

    def prepare(target: Target) -> Prepared:
        matching = MatchingFiles.of(target, engine.condition(where, target.metadata.schema))
        return prepared(target, matching.filter, DELETE_ISOLATION, matching.deletion(target, engine))

    return RowChange(engine=engine, prepare=prepare)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingFiles:
    """The files that may contain matching rows: ``whole`` ones, in which every row matches, and the others.

    With ``is_exact`` the filter of the plan alone is the condition.
    """

    condition: Condition
    is_exact: bool
    whole: PlannedFiles
    partly: PlannedFiles

    @classmethod
    def of(cls, target: Target, condition: Condition) -> MatchingFiles:
        """The matching files of a branch."""
        files = target.planned(condition.filter)
        tasks, is_decided = files.plan.tasks, condition.is_exact and files.plan.metadata_filter is None
        all_match = pc.and_(pc.equal(tasks["match"], int(Match.ALL)), is_decided)
        metadata_columns = tested_metadata_columns(condition.filter, target.metadata.schema)
        return cls(
            condition=condition,
            is_exact=condition.is_exact and len(metadata_columns) == 0,
            whole=files.with_tasks(tasks.filter(all_match)),
            partly=files.with_tasks(tasks.filter(pc.invert(all_match))),
        )

    @property
    def filter(self) -> Expr:
        """The bound filter of the plan."""
        return self.partly.plan.filter

    def deletion(self, target: Target, engine: Engine) -> CountedChanges:
        """The changes that delete the matching rows."""
        with target.timer.of(Phase.MATCH):
            positions = engine.find_rows(self.partly, self.condition)
        with target.timer.of(Phase.WRITE):
            return removal_of(self.whole).combined(remove_rows(target, self.partly, positions, engine, DELETE_MODE))


def removal_of(files: PlannedFiles) -> CountedChanges:
    """The removal of planned files as a whole."""
    tasks = files.plan.tasks
    with_delete_files = tasks.filter(pc.greater(pc.list_value_length(tasks["deletes"]), 0))
    return remove_files(files.plan, tasks, deleted_before(files.deleted_rows, with_delete_files))
