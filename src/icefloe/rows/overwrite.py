"""Rows put in the place of others: of those that match a condition, of whole partitions, of all (spec: Snapshots)."""

from __future__ import annotations

import logging

from icefloe.commit.conflicts import Isolation, isolation_of
from icefloe.commit.operations.overwrite import OverwriteWhere, ReplacePartitions
from icefloe.engines.engine import Engine
from icefloe.errors import IcefloeError, InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.metadata.properties import DELETE_ISOLATION
from icefloe.model.metadata.snapshots import Operation, SummaryKey
from icefloe.rows.delete import Matching
from icefloe.rows.prepared import CountedChanges, Prepared, ReadSet
from icefloe.rows.target import Scratch, Target

logger = logging.getLogger(__name__)


def overwritten(where: str | Expr | None, *, overwrite_all: bool) -> Expr:
    """Which rows an overwrite takes away: a condition, or all of them if that is said outright."""
    if (where is None) != overwrite_all:
        raise InputError("overwrite: say which rows to replace by where=, or all of them by overwrite_all=True")
    return parse_filter(where)


def overwrite(target: Target, rows: object, where: Expr, engine: Engine) -> Prepared:
    """Delete the rows that match ``where`` and add others, as one snapshot; rows for which it is null stay.

    If no file contains both rows that match and rows that do not, each attempt chooses the files to remove by metadata
    alone, so other commits do not conflict.
    """
    matching = Matching.of(target, where)
    with Scratch(target.io) as scratch:
        new = scratch.keep(engine.write(target.io, rows, target.metadata))
        if matching.partly.files > 0:
            read = ReadSet.of(target, matching.plan.filter, DELETE_ISOLATION)
            return read.prepared(matching.deletion(target, engine).with_added(new))
        changes = matching.whole_files.with_added(new)
    update = OverwriteWhere(
        filter=matching.plan.filter, added=new, branch=target.branch, operation=changes.operation, whole_files=True
    )
    if changes.is_empty:
        strict = isolation_of(DELETE_ISOLATION, target.properties) is Isolation.SERIALIZABLE
        return Prepared(operation=Operation.OVERWRITE, read_check=update if strict else None)
    return Prepared(operation=changes.operation, update=update, rows_already_deleted=_already_deleted(changes))


def overwrite_partitions(target: Target, rows: object, engine: Engine) -> Prepared:
    """Put rows in the place of all that is in their partitions; of the whole table where it has none."""
    with Scratch(target.io) as scratch:
        new = scratch.keep(engine.write(target.io, rows, target.metadata))
        if new.num_rows == 0:
            return Prepared(operation=Operation.OVERWRITE)
        update = ReplacePartitions(added=new, branch=target.branch)
        return Prepared(
            operation=Operation.OVERWRITE, update=update, rows_already_deleted=_deleted_in_partitions(target, update)
        )


def _deleted_in_partitions(target: Target, update: ReplacePartitions) -> int:
    """How many rows of the replaced files are already deleted; the summary of a table without deletes says so."""
    head = target.head
    if head is None or head.summary.get(SummaryKey.TOTAL_DELETE_FILES) == "0":
        return 0
    plan = target.plan()
    replaced = plan.with_tasks(update.replaced_files(plan.tasks, target.base.store.context))
    nothing = plan.with_tasks(plan.tasks.slice(0, 0))
    try:
        matching = Matching(plan=plan, whole=replaced, partly=nothing, drops=replaced.deleted_rows(target.io))
        return _already_deleted(matching.whole_files)
    except IcefloeError as error:  # a wrong count must not stop a commit, which may replace damaged files
        logger.warning("rows_deleted includes rows that were already deleted: %s", error)
        return 0


def _already_deleted(changes: CountedChanges) -> int:
    """The rows that were already deleted, for an update that does not remove the delete files of its files."""
    in_delete_files: int = sum(changes.files.removed_deletes["record_count"].to_pylist())
    return changes.rows_already_deleted + in_delete_files
