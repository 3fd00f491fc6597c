"""Filters answered for rows: as an Arrow expression, as Spark SQL, and for one row in plain Python.

All three follow Spark: a comparison with null is not a match; NaN equals NaN and is larger than every other value;
-0.0 equals 0.0. Arrow by itself compares NaN as IEEE 754 does, so floating-point comparisons name the case of NaN.
Transforms of columns are functions registered with Arrow, and plain SQL for Spark (spec: Partition Transforms).
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import operator
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
from icefloe.expr.text.spark_sql import sql_literal, sql_term
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import DOUBLE, FLOAT, TIMESTAMP_NS, TIMESTAMPTZ_NS, PrimitiveType
from icefloe.transforms import Transform

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


def _bound(leaf: Leaf) -> Constant | BoundPredicate:
    if isinstance(leaf, Predicate):
        raise InputError(f"bind the filter before evaluating it: {leaf.term} {leaf.op.value}")
    return leaf


def to_arrow(bound: Bound) -> pc.Expression:
    """The filter over columns of the current names, for rows that have been read.

    Do not let Arrow prune row groups with it on floating-point columns: where both bounds of a row group are equal,
    Arrow takes the column for constant, although Parquet's bounds leave NaN out.

    >>> from icefloe.model.schema.types import LONG
    >>> table = pa.table({"id": [1, None, 3]})
    >>> table.filter(to_arrow(BoundPredicate(Op.NE, 1, ("id",), LONG, (1,))))["id"].to_pylist()
    [3]
    """
    return fold(bound, _arrow_leaf, _arrow_branch)


def _arrow_branch(node: Branch, parts: list[Any]) -> Any:
    join = operator.and_ if isinstance(node, And) else operator.or_
    # In pairs, so that the depth grows with the logarithm: Arrow walks expressions recursively.
    while len(parts) > 1:
        parts = [functools.reduce(join, parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def _arrow_leaf(leaf: Leaf) -> Any:
    node = _bound(leaf)
    if isinstance(node, Constant):
        return pc.scalar(node.value)
    column = _arrow_term(node)
    match node.op:
        case Op.IS_NULL:
            return column.is_null()
        case Op.NOT_NULL:
            return column.is_valid()
        case Op.IS_NAN:
            return pc.is_nan(column)
        case Op.NOT_NAN:
            return column.is_null() | ~pc.is_nan(column)
        case Op.STARTS_WITH:
            return pc.starts_with(column, node.literal)
        case Op.NOT_STARTS_WITH:
            return ~pc.starts_with(column, node.literal)
    found = _arrow_comparison(node, column)
    if node.type not in (FLOAT, DOUBLE):
        return found
    # Also where IEEE would agree: Arrow simplifies comparisons by Parquet's bounds, and those leave NaN out.
    return found | pc.is_nan(column) if node.op in MATCHES_NAN else found & ~pc.is_nan(column)


def _arrow_term(node: BoundPredicate) -> Any:
    column = pc.field(*node.path)
    if node.source is None:
        return column
    # A registered function takes one type only, and columns may come in a wider one, such as large strings.
    return pc.Expression._call(_registered(node.transform, node.source), [column.cast(arrow_type(node.source))])


_REGISTERED: set[str] = set()
_REGISTERING = threading.Lock()


def _registered(transform: Transform, source: PrimitiveType) -> str:
    """The name of the Arrow function that computes a transform of columns of a type; it is registered at first use."""
    name = f"icefloe {transform} of {source}"
    with _REGISTERING:
        if name not in _REGISTERED:
            result = arrow_type(transform.result_type(source))
            doc = {"summary": name, "description": f"The partition transform {transform} of a column of {source}."}
            pc.register_scalar_function(
                functools.partial(_compute, transform, source), name, doc, {"column": arrow_type(source)}, result
            )
            _REGISTERED.add(name)
    return name


def _compute(transform: Transform, source: PrimitiveType, _context: Any, values: Any) -> Any:
    if isinstance(values, pa.Scalar):
        return transform.apply(pa.repeat(values, 1), source)[0]
    return transform.apply(values, source)


def _arrow_comparison(node: BoundPredicate, column: Any) -> Any:
    type_ = arrow_type(node.type)
    if node.op not in (Op.IN, Op.NOT_IN):
        return _COMPARE[node.op](column, pa.scalar(node.literal, type_))
    member = column.isin(pa.array(with_both_zeros(node.literals), type_))
    return member if node.op is Op.IN else column.is_valid() & ~member


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
    node = _bound(leaf)
    if isinstance(node, Constant):
        return "true" if node.value else "false"
    name = sql_term(node)
    literals = [sql_literal(value, node.type) for value in with_both_zeros(node.literals)]
    match node.op:
        case Op.IS_NULL | Op.NOT_NULL:
            return f"{name} {node.op.value.upper()}"
        case Op.IS_NAN:
            return f"isnan({name})"
        case Op.NOT_NAN:
            return f"(NOT isnan({name}))"
        case Op.IN | Op.NOT_IN:
            return f"{name} {node.op.value.upper()} ({', '.join(literals)})"
        case Op.STARTS_WITH:
            return f"startswith({name}, {literals[0]})"
        case Op.NOT_STARTS_WITH:
            return f"(NOT startswith({name}, {literals[0]}))"
        case _:
            return f"{name} {node.op.value} {literals[0]}"


def matches(bound: Bound, row: Mapping[str, Any]) -> bool:
    """Whether one row, a dictionary of Python values, matches: the plain definition that the others are tested by."""

    def leaf(node: Leaf) -> bool:
        found = _bound(node)
        return found.value if isinstance(found, Constant) else _test(found, _tested(row, found))

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
