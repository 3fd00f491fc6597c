"""Rows put in the place of others: of those that match a condition, of whole partitions, of all (spec: Snapshots)."""

from __future__ import annotations

import logging

from icefloe.commit.conflicts import Isolation, isolation_of
from icefloe.commit.draft import State
from icefloe.commit.operations.overwrite import OverwriteWhere, ReplacePartitions
from icefloe.engines.engine import Engine
from icefloe.errors import IcefloeError, InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.metadata.properties import DELETE_ISOLATION
from icefloe.model.metadata.snapshots import Operation, SummaryKey
from icefloe.rows.delete import Matching
from icefloe.rows.prepared import Change, Prepared, Removal, operation_of
from icefloe.rows.target import Scratch, Target

logger = logging.getLogger(__name__)


def overwritten(where: str | Expr | None, *, overwrite_all: bool) -> Expr:
    """Which rows an overwrite takes away: a condition, or all of them if that is said outright."""
    if (where is None) != overwrite_all:
        raise InputError("overwrite: say which rows to replace by where=, or all of them by overwrite_all=True")
    return parse_filter(where)


def overwrite(target: Target, rows: object, where: Expr, engine: Engine) -> Prepared:
    """Delete the rows that match ``where`` and add others, as one snapshot; rows for which it is null stay.

    Where no file holds both rows that match and rows that do not, metadata alone decides what leaves, on each base
    anew: then nothing that others commit meanwhile is in the way.
    """
    matching = Matching.of(target, where)
    with Scratch(target.io) as scratch:
        new = scratch.keep(engine.write(target.io, rows, target.metadata))
        if matching.partly.files > 0:
            change = Change.of(target, matching.plan.filter, DELETE_ISOLATION)
            return change.prepared(matching.removal(target, engine).and_rows(new))
        removal = matching.whole_files.and_rows(new)
    operation = operation_of(removal)
    update = OverwriteWhere(
        filter=matching.plan.filter, added=new, branch=target.branch, operation=operation, whole_files=True
    )
    if removal.is_nothing:
        strict = isolation_of(DELETE_ISOLATION, target.properties) is Isolation.SERIALIZABLE
        return Prepared(operation=Operation.OVERWRITE, read_check=update if strict else None)
    return Prepared(operation=operation, update=update, rows_dead=_left_in_place(removal))


def overwrite_partitions(target: Target, rows: object, engine: Engine) -> Prepared:
    """Put rows in the place of all that is in their partitions; of the whole table where it has none."""
    with Scratch(target.io) as scratch:
        new = scratch.keep(engine.write(target.io, rows, target.metadata))
        if new.num_rows == 0:
            return Prepared(operation=Operation.OVERWRITE)
        update = ReplacePartitions(added=new, branch=target.branch)
        return Prepared(operation=Operation.OVERWRITE, update=update, rows_dead=_dead(target, update))


def _dead(target: Target, update: ReplacePartitions) -> int:
    """Rows of the files that leave which are deleted already; summaries of a table without deletes save the look."""
    head = target.head
    if head is None or head.summary.get(SummaryKey.TOTAL_DELETE_FILES) == "0":
        return 0
    plan = target.plan()
    state = State(metadata=target.metadata, store=target.base.store, head=head)
    leaving = plan.with_tasks(update.leaving(plan.tasks, state))
    nothing = plan.with_tasks(plan.tasks.slice(0, 0))
    try:
        matching = Matching(plan=plan, whole=leaving, partly=nothing, drops=leaving.deleted_rows(target.io))
        return _left_in_place(matching.whole_files)
    except IcefloeError as error:  # a figure stops no commit, least of all one that replaces what is damaged
        logger.warning("rows that were deleted before are counted among those that leave: %s", error)
        return 0


def _left_in_place(removal: Removal) -> int:
    """The dead rows of an update that names no delete files, and so leaves those of its files in place."""
    left: int = sum(removal.dropped["record_count"].to_pylist())
    return removal.rows_dead + left
