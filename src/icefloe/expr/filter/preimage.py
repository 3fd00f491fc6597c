"""Tests of a transform rewritten as tests of the column itself (spec: Partition Transforms).

A transform that keeps order cuts the values of a column into intervals, so a test of its results is a test of the
column against the ends of intervals: ``day(t) = d`` asks for the times from the start of ``d`` to that of the next
day. What is known about the column, and every rule for it, then serves the transform too.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

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
from icefloe.model.schema.types import DATE, INT, LONG, TIMESTAMP_NS, TIMESTAMPTZ, TIMESTAMPTZ_NS, Decimal
from icefloe.transforms import Hour, TimeTransform, Truncate

MICROS_PER_DAY = 86_400_000_000
MICROS_PER_HOUR = 3_600_000_000
_EPOCH = dt.datetime(1970, 1, 1)
_FIRST_DATE, _LAST_DATE = ((day - _EPOCH.date()).days for day in (dt.date.min, dt.date.max))
_LAST_CHARACTER, _BEFORE_SURROGATES, _AFTER_SURROGATES = "\U0010ffff", "\ud7ff", "\ue000"
_EXACT = decimal.Context(prec=100)
_BEYOND = object()  # a limit that Python has no value for, although a column may hold values beyond it

# From a value on, up to but without another; None is no limit on that side.
_Range: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class _Limits:
    """The least values of the column whose result is at least, and above, a literal; None if there is no such value."""

    at_least: Callable[[Any], Any]
    above: Callable[[Any], Any]


def over_columns(bound: Bound) -> Bound:
    """The same filter with every test of a transform that keeps order rewritten as one of its column.

    Tests of a bucket stay, and those whose limits are no values of the column's type in Python.

    >>> from icefloe.model.schema.types import INT
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
    if isinstance(node.transform, Truncate) and node.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return _prefix(column, node.transform.width)
    limits = _limits(node)
    if limits is None:
        return node
    ranges = _ranges(node, limits)
    if any(limit is _BEYOND for each in ranges for limit in each):
        return node
    return disjunction(_between(low, high, column) for low, high in ranges)


def _prefix(column: BoundPredicate, width: int) -> Expr:
    """A cut text starts with what the text starts with, unless that is longer than the cut."""
    if len(str(column.literal)) <= width:
        return column
    return ALWAYS_FALSE if column.op is Op.STARTS_WITH else replace(column, op=Op.NOT_NULL, literals=())


def _ranges(node: BoundPredicate, limits: _Limits) -> list[_Range]:
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
        if low is None or (low == high and low is not _BEYOND):
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


def _limits(node: BoundPredicate) -> _Limits | None:
    transform, source = node.transform, node.column_type
    if isinstance(transform, TimeTransform):
        return _Limits(
            lambda unit: _moment(_start(transform, _unit(unit)), source),
            lambda unit: _moment(_start(transform, _unit(unit) + 1), source),
        )
    if not isinstance(transform, Truncate):
        return None
    width = transform.width
    if source in (INT, LONG) or isinstance(source, Decimal):
        return _Limits(
            lambda value: _number(-(-_unscaled(value, source) // width) * width, source),
            lambda value: _number(_unscaled(value, source) // width * width + width, source),
        )
    return _Limits(
        lambda value: value if len(value) <= width else successor(value[:width]),
        lambda value: _next(value) if len(value) < width else successor(value[:width]),
    )


# -- times


def _unit(literal: Any) -> int:
    return (literal - _EPOCH.date()).days if isinstance(literal, dt.date) else int(literal)


def _start(transform: TimeTransform, unit: int) -> int:
    """The first microsecond of a unit, counted from 1970."""
    if isinstance(transform, Hour):
        return unit * MICROS_PER_HOUR
    return int(np.int64(unit).astype(f"datetime64[{transform.unit}]").astype("datetime64[D]").astype(np.int64)) * (
        MICROS_PER_DAY
    )


def _moment(start: int, source: object) -> Any:
    """A number of microseconds as a value of a type; the least value for what is before all values."""
    if source in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
        if start * 1000 >= 2**63:
            return None
        return max(start * 1000, -(2**63))
    days = start // MICROS_PER_DAY
    if not _FIRST_DATE <= days <= _LAST_DATE:
        return _BEYOND
    moment = _EPOCH + dt.timedelta(microseconds=start)
    if source == DATE:
        return moment.date()
    return moment.replace(tzinfo=dt.UTC) if source == TIMESTAMPTZ else moment


# -- numbers


def _unscaled(value: Any, source: object) -> int:
    return int(value.scaleb(source.scale, _EXACT)) if isinstance(source, Decimal) else int(value)


def _number(number: int, source: object) -> Any:
    """A number as a value of a type: the least value for what is below all, None for what is above all."""
    if isinstance(source, Decimal):
        last = 10**source.precision - 1
        number = max(number, -last)
        return None if number > last else decimal.Decimal(number).scaleb(-source.scale, _EXACT)
    last = 2**31 - 1 if source == INT else 2**63 - 1
    return None if number > last else max(number, -last - 1)


# -- texts and bytes


def _next(value: Any) -> Any:
    """The least text or bytes above these."""
    return value + ("\0" if isinstance(value, str) else b"\0")


def successor(prefix: Any) -> Any:
    """The least text or bytes above all that start with these; None if there is none.

    >>> successor("ab"), successor(bytes([1, 255])), successor(bytes([255]))
    ('ac', b'\\x02', None)
    """
    if isinstance(prefix, bytes):
        kept = prefix.rstrip(b"\xff")
        return None if len(kept) == 0 else kept[:-1] + bytes([kept[-1] + 1])
    kept = prefix.rstrip(_LAST_CHARACTER)
    if len(kept) == 0:
        return None
    return kept[:-1] + (_AFTER_SURROGATES if kept[-1] == _BEFORE_SURROGATES else chr(ord(kept[-1]) + 1))
