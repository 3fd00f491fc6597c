"""Rewrites tests of a transform as tests of its column (spec: Partition Transforms).

A transform that preserves order divides the values of a column into intervals, so a test of its results is a test of
the column against the ends of intervals: ``day(t) = d`` matches the times from the start of ``d`` to the start of the
next day. Statistics of the column can then be used for the transform too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias, cast

from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    IDENTITY,
    And,
    Bound,
    BoundPredicate,
    Expr,
    Leaf,
    Not,
    Op,
    Or,
    conjunction,
    disjunction,
    fold,
)
from icefloe.transforms import BEYOND, Limits

# From a value on, up to but without another; None is no limit on that side.
_Range: TypeAlias = tuple[Any, Any]


def over_columns(bound: Bound) -> Bound:
    """The same filter with every test of a transform that keeps order rewritten as one of its column.

    Tests of a bucket stay, and those whose limits are no values of the column's type in Python.

    >>> from icefloe.model.schema.types import INT
    >>> from icefloe.transforms import Truncate
    >>> over_columns(BoundPredicate(Op.LE, 1, ("i",), INT, (20,), Truncate(10), INT)).literal
    30
    """

    def leaf(node: Leaf) -> Expr:
        return over_column(node) if isinstance(node, BoundPredicate) else node

    def branch(node: And | Or | Not, parts: list[Expr]) -> Expr:
        return conjunction(parts) if isinstance(node, And) else disjunction(parts)

    return cast(Bound, fold(bound, leaf, branch))


def over_column(node: BoundPredicate) -> Expr:
    """One test of a transform as a test of its column, or the test itself where that is not possible."""
    if node.transform == IDENTITY:
        return node
    column = replace(node, type=node.column_type, transform=IDENTITY, source=None)
    if node.op in (Op.IS_NULL, Op.NOT_NULL):
        return column
    length = node.transform.prefix_length(node.column_type)
    if length is not None and node.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return _prefix(column, length)
    limits = node.transform.limits(node.column_type)
    if limits is None:
        return node
    ranges = _ranges(node, limits)
    if any(limit is BEYOND for ends in ranges for limit in ends):
        return node
    return disjunction(_between(low, high, column) for low, high in ranges)


def _prefix(column: BoundPredicate, length: int) -> Expr:
    """A truncated text starts with the same prefix as the text, unless the prefix is longer than the width."""
    if len(str(column.literal)) <= length:
        return column
    return ALWAYS_FALSE if column.op is Op.STARTS_WITH else replace(column, op=Op.NOT_NULL, literals=())


def _ranges(node: BoundPredicate, limits: Limits) -> list[_Range]:
    """The column ranges in which the predicate holds: sorted and disjoint."""
    match node.op:
        case Op.LT:
            return _upto(limits.at_least(node.literal))
        case Op.LE:
            return _upto(limits.above(node.literal))
        case Op.GT:
            return _onwards(limits.above(node.literal))
        case Op.GE:
            return _onwards(limits.at_least(node.literal))
    inside: list[_Range] = []
    for literal in node.literals:
        low, high = limits.at_least(literal), limits.above(literal)
        if low is None or (low == high and low is not BEYOND):
            continue  # no value of the column has this result
        if len(inside) > 0 and inside[-1][1] == low:
            low = inside.pop()[0]
        inside.append((low, high))
    return inside if node.op in (Op.EQ, Op.IN) else _outside(inside)


def _upto(limit: Any) -> list[_Range]:
    return [(None, limit)]


def _onwards(limit: Any) -> list[_Range]:
    return [] if limit is None else [(limit, None)]


def _outside(ranges: list[_Range]) -> list[_Range]:
    starts = [None, *(high for _, high in ranges if high is not None)]
    ends = [low for low, _ in ranges]
    if len(ends) < len(starts):
        ends.append(None)
    return list(zip(starts, ends, strict=True))


def _between(low: Any, high: Any, column: BoundPredicate) -> Expr:
    parts = [
        replace(column, op=op, literals=(limit,)) for op, limit in ((Op.GE, low), (Op.LT, high)) if limit is not None
    ]
    return conjunction(parts) if len(parts) > 0 else replace(column, op=Op.NOT_NULL, literals=())
