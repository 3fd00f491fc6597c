"""Filters answered for batches of rows at once, with Arrow's kernels.

The meaning is that of ``row_filter``: a comparison with null does not match; NaN equals NaN and is larger than every
other value; -0.0 equals 0.0. Kernels are called one by one, because an Arrow expression costs more to set up than most
batches take to test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import MATCHES_NAN, And, Bound, BoundPredicate, Branch, Constant, Leaf, Op, fold
from icefloe.expr.filter.row_filter import with_both_zeros
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import DOUBLE, FLOAT

_COMPARE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
}


def evaluate_rows(bound: Bound, rows: pa.RecordBatch) -> pa.BooleanArray:
    """True where a row matches; false or null where it does not.

    >>> from icefloe.model.schema.types import LONG
    >>> evaluate_rows(BoundPredicate(Op.GT, 1, ("id",), LONG, (1,)), pa.record_batch({"id": [1, None, 3]})).to_pylist()
    [False, None, True]
    """
    return fold(bound, functools.partial(_leaf, rows), _branch)


def _branch(node: Branch, parts: list[Any]) -> Any:
    return functools.reduce(pc.and_kleene if isinstance(node, And) else pc.or_kleene, parts)


def _leaf(rows: pa.RecordBatch, node: Leaf) -> Any:
    if isinstance(node, Constant):
        return pa.repeat(node.value, rows.num_rows)
    if not isinstance(node, BoundPredicate):
        raise InputError(f"bind the filter before evaluating it: {node}")
    column = _tested(rows, node)
    match node.op:
        case Op.IS_NULL:
            return column.is_null()
        case Op.NOT_NULL:
            return column.is_valid()
        case Op.IS_NAN:
            return pc.is_nan(column)
        case Op.NOT_NAN:
            return pc.or_kleene(column.is_null(), pc.invert(pc.is_nan(column)))
        case Op.STARTS_WITH:
            return pc.starts_with(column, node.literal)
        case Op.NOT_STARTS_WITH:
            return pc.invert(pc.starts_with(column, node.literal))
    found = _compared(node, column)
    if node.type not in (FLOAT, DOUBLE):
        return found
    nan = pc.is_nan(column)
    return pc.or_kleene(found, nan) if node.op in MATCHES_NAN else pc.and_not_kleene(found, nan)


def _tested(rows: pa.RecordBatch, node: BoundPredicate) -> Any:
    column = rows.column(node.path[0])
    if len(node.path) > 1:  # null wherever a struct around it is
        column = pc.struct_field(column, list(node.path[1:]))
    if node.source is None:
        return column
    type_ = arrow_type(node.source)
    return node.transform.apply(column if column.type == type_ else column.cast(type_), node.source)


def _compared(node: BoundPredicate, column: Any) -> Any:
    type_ = arrow_type(node.type)
    if node.op not in (Op.IN, Op.NOT_IN):
        return _COMPARE[node.op](column, pa.scalar(node.literal, type_))
    member = pc.is_in(column, value_set=pa.array(with_both_zeros(node.literals), type_))
    return member if node.op is Op.IN else pc.and_not(column.is_valid(), member)
