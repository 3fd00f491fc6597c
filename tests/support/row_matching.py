"""Filters evaluated for one row in plain Python: the reference for tests of the other evaluators."""

from __future__ import annotations

import datetime as dt
import math
import operator
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from icefloe.expr.filter.nodes import (
    MATCHES_NAN,
    And,
    Bound,
    BoundPredicate,
    Branch,
    Constant,
    Leaf,
    Op,
    bound_leaf,
    fold,
)
from icefloe.expr.text.datetime_text import nanos
from icefloe.model.schema.types import TIMESTAMP_NS, TIMESTAMPTZ_NS

_COMPARE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
}


def matches(bound: Bound, row: Mapping[str, Any]) -> bool:
    """Whether one row, a dictionary of Python values, matches."""

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
