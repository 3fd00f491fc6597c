"""Filters answered for rows: as Spark SQL, and for one row in plain Python; ``batch_filter`` answers them with Arrow.

All follow Spark: a comparison with null is not a match; NaN equals NaN and is larger than every other value; -0.0
equals 0.0.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import (
    MATCHES_NAN,
    And,
    Bound,
    BoundPredicate,
    Branch,
    Constant,
    Expr,
    Leaf,
    Op,
    Predicate,
    fold,
    leaves,
)
from icefloe.expr.text.datetime_text import nanos
from icefloe.expr.text.spark_sql import sql_condition, sql_literal, sql_term
from icefloe.model.schema.types import STRING, TIME, TIMESTAMP_NS, TIMESTAMPTZ_NS

_COMPARE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
}


def references(expr: Expr) -> frozenset[str]:
    """The full names of the columns that an expression uses."""
    return frozenset(
        leaf.column if isinstance(leaf, Predicate) else leaf.name
        for leaf in leaves(expr)
        if not isinstance(leaf, Constant)
    )


def bound_leaf(leaf: Leaf) -> Constant | BoundPredicate:
    """The leaf of a bound filter; InputError for one that is not bound."""
    if isinstance(leaf, Predicate):
        raise InputError(f"bind the filter before evaluating it: {leaf.term} {leaf.op.value}")
    return leaf


def with_both_zeros(literals: tuple[object, ...]) -> tuple[object, ...]:
    """Sets are tested by hash, and the two zeros are equal but hash apart."""
    return (*literals, -0.0) if any(isinstance(value, float) and value == 0 for value in literals) else literals


def to_sql(bound: Bound) -> str:
    """The filter as Spark SQL that means the same in every session: names quoted, literals typed.

    >>> from icefloe.model.schema.types import LONG
    >>> to_sql(BoundPredicate(Op.IN, 1, ("a", "b"), LONG, (1, 2)))
    '`a`.`b` IN (1L, 2L)'
    """
    return fold(bound, _sql_leaf, _sql_branch)


def _sql_branch(node: Branch, parts: list[str]) -> str:
    return "(" + (" AND " if isinstance(node, And) else " OR ").join(parts) + ")"


def _sql_leaf(leaf: Leaf) -> str:
    node = bound_leaf(leaf)
    if isinstance(node, Constant):
        return "true" if node.value else "false"
    if node.type == TIME and len(node.literals) > 0:
        # As text, which has the same order: Spark takes literals of the type only in sessions that enable it.
        literals = [sql_literal(_time_text(value), STRING) for value in node.literals]
        return sql_condition(node.op, f"CAST({sql_term(node)} AS STRING)", literals)
    literals = [sql_literal(value, node.type) for value in with_both_zeros(node.literals)]
    condition = sql_condition(node.op, sql_term(node), literals)
    return f"({condition})" if node.op in (Op.NOT_NAN, Op.NOT_STARTS_WITH) else condition


def _time_text(value: Any) -> str:
    """A time as Spark casts it to a string: without zeros at the end of its fraction."""
    text: str = value.isoformat()
    return text.rstrip("0") if "." in text else text


def matches(bound: Bound, row: Mapping[str, Any]) -> bool:
    """Whether one row, a dictionary of Python values, matches: the reference for tests of the other evaluators."""

    def leaf(node: Leaf) -> bool:
        test = bound_leaf(node)
        return test.value if isinstance(test, Constant) else _test(test, _tested(row, test))

    def branch(node: Branch, parts: list[bool]) -> bool:
        return all(parts) if isinstance(node, And) else any(parts)

    return fold(bound, leaf, branch)


def _tested(row: Mapping[str, Any], node: BoundPredicate) -> Any:
    value: Any = row
    for name in node.path:
        value = None if value is None else value[name]
    if isinstance(value, uuid.UUID):
        value = value.bytes
    elif isinstance(value, dt.datetime) and node.column_type in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
        value = nanos(value)
    return value if node.source is None else node.transform.value(value, node.source)


def _test(node: BoundPredicate, value: Any) -> bool:
    nan = isinstance(value, float) and math.isnan(value)
    match node.op:
        case Op.IS_NULL:
            return value is None
        case Op.NOT_NULL:
            return value is not None
        case Op.IS_NAN:
            return nan
        case Op.NOT_NAN:
            return not nan
    if value is None:
        return False
    if nan:
        return node.op in MATCHES_NAN
    match node.op:
        case Op.IN:
            return value in node.literals
        case Op.NOT_IN:
            return value not in node.literals
        case Op.STARTS_WITH:
            return bool(value.startswith(node.literal))
        case Op.NOT_STARTS_WITH:
            return not value.startswith(node.literal)
        case _:
            return bool(_COMPARE[node.op](value, node.literal))
