"""Rows put in the place of others: of those that match a condition, of whole partitions, of all (spec: Snapshots)."""

from __future__ import annotations

from icefloe.commit.overwrite import OverwriteWhere, ReplacePartitions
from icefloe.engines.engine import Engine
from icefloe.errors import InputError
from icefloe.expr.nodes import Expr
from icefloe.expr.text import parse_filter
from icefloe.model.properties import DELETE_ISOLATION
from icefloe.model.snapshots import Operation
from icefloe.table.rows.delete import Matching
from icefloe.table.rows.prepared import Change, Prepared, operation_of
from icefloe.table.rows.target import Scratch, Target


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
    if removal.is_nothing:
        return Prepared(operation=Operation.OVERWRITE)
    operation = operation_of(removal)
    intent = OverwriteWhere(
        filter=matching.plan.filter, added=new, branch=target.branch, operation=operation, whole_files=True
    )
    dead = removal.rows_dead + sum(removal.dropped["record_count"].to_pylist())  # which this intent leaves in place
    return Prepared(operation=operation, intent=intent, rows_dead=dead)


def overwrite_partitions(target: Target, rows: object, engine: Engine) -> Prepared:
    """Put rows in the place of all that is in their partitions; of the whole table where it has none."""
    new = engine.write(target.io, rows, target.metadata)
    if new.num_rows == 0:
        return Prepared(operation=Operation.OVERWRITE)
    return Prepared(operation=Operation.OVERWRITE, intent=ReplacePartitions(added=new, branch=target.branch))
