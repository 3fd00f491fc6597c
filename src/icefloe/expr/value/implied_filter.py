"""The filter that a condition on values implies: true for every row for which the condition is true.

Filters prune files and row groups, values do not. A condition need not be a filter: what filters cannot express is
left out, so that the filter may be true for more rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, Op, Predicate, conjunction, disjunction
from icefloe.expr.text.datetime_text import Nanos
from icefloe.expr.value.nodes import Call, Constant, Node, Reference
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, FLOAT

_COMPARISONS = {"=": Op.EQ, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE, "!=": Op.NE}
_REVERSED = {"=": Op.EQ, "<": Op.GT, "<=": Op.GE, ">": Op.LT, ">=": Op.LE, "!=": Op.NE}
_NULL_TESTS = {"is null": Op.IS_NULL, "is not null": Op.NOT_NULL}


def implied_filter(node: Node, schema: Schema, *, alias: str) -> Expr:
    """A filter of a table that is true wherever the condition is; the condition names the table by ``alias``.

    >>> from icefloe.expr.value.expressions import parse_value
    >>> from icefloe.model.text.ddl import parse_ddl
    >>> condition = parse_value("t.id > 5 AND length(t.note) = s.n").node
    >>> implied_filter(condition, parse_ddl("id bigint, note string"), alias="t")
    Predicate(op=<Op.GT: '>'>, term='id', literals=(5,))
    """
    if not isinstance(node, Call):
        return ALWAYS_TRUE
    if node.function == "and":
        return conjunction(implied_filter(part, schema, alias=alias) for part in node.arguments)
    if node.function == "or":
        return disjunction([implied_filter(part, schema, alias=alias) for part in node.arguments])
    predicate = _predicate(node, alias)
    if predicate is None:
        return ALWAYS_TRUE
    try:
        bind(predicate, schema)
    except InputError:  # a filter cannot compare the column with these constants
        return ALWAYS_TRUE
    # Filters compare floating-point columns with decimal constants exactly, values convert the constant to a float.
    return ALWAYS_TRUE if schema.field(predicate.column).type in (FLOAT, DOUBLE) else predicate


def filter_literal(value: pa.Scalar) -> object:
    """An Arrow scalar as a literal of filters."""
    if pa.types.is_timestamp(value.type) and value.type.unit == "ns":
        return Nanos(value.value, value.type.tz is not None)
    return value.as_py()


def _predicate(node: Call, alias: str) -> Predicate | None:
    """The predicate of a test of one column against constants; none for other tests."""
    if node.function in _NULL_TESTS:
        name = _column_name(node.arguments[0], alias)
        return None if name is None else Predicate(_NULL_TESTS[node.function], name)
    if node.function == "in":
        return _comparison(Op.IN, node.arguments[0], node.arguments[1:], alias)
    if node.function not in _COMPARISONS:
        return None
    left, right = node.arguments
    predicate = _comparison(_COMPARISONS[node.function], left, (right,), alias)
    return _comparison(_REVERSED[node.function], right, (left,), alias) if predicate is None else predicate


def _comparison(op: Op, tested: Node, others: Sequence[Node], alias: str) -> Predicate | None:
    name = _column_name(tested, alias)
    constants = [filter_literal(other.value) for other in others if isinstance(other, Constant)]
    return None if name is None or len(constants) < len(others) else Predicate(op, name, tuple(constants))


def _column_name(node: Any, alias: str) -> str | None:
    is_column = isinstance(node, Reference) and len(node.path) > 1 and node.path[0] == alias
    return ".".join(node.path[1:]) if is_column else None
