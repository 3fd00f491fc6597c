"""Evaluates filters on batches of rows with Arrow kernels, and converts them to Arrow expressions.

The meaning is Spark's: a comparison with null does not match; NaN equals NaN and is larger than every other value; -0.0
equals 0.0. Arrow by itself compares NaN as IEEE 754 does, so floating-point comparisons name the case
of NaN. For batches, kernels are called one by one, because an Arrow expression costs more to set up than most batches
take to evaluate. In expressions, transforms of columns are functions registered with Arrow (spec: Partition
Transforms).
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
    with_both_zeros,
)
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import DOUBLE, FLOAT, PrimitiveType
from icefloe.transforms import Transform

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


def _leaf(rows: pa.RecordBatch, leaf: Leaf) -> Any:
    node = bound_leaf(leaf)
    return pa.repeat(node.value, rows.num_rows) if isinstance(node, Constant) else _test(node, _tested(rows, node))


def _tested(rows: pa.RecordBatch, node: BoundPredicate) -> Any:
    column = rows.column(node.path[0])
    if len(node.path) > 1:  # null wherever a struct around it is
        column = pc.struct_field(column, list(node.path[1:]))
    if node.source is None:
        return column
    type_ = arrow_type(node.source)
    return node.transform.apply(column if column.type == type_ else column.cast(type_), node.source)


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
    node = bound_leaf(leaf)
    return pc.scalar(node.value) if isinstance(node, Constant) else _test(node, _arrow_term(node))


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


def _test(node: BoundPredicate, column: Any) -> Any:
    """The test of a column, which is an Arrow array or the expression of one."""
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
    matching = _compared(node, column)
    if node.type not in (FLOAT, DOUBLE):
        return matching
    # Also where IEEE would agree: Arrow simplifies expressions by Parquet's bounds, and those leave NaN out.
    nan = pc.is_nan(column)
    return pc.or_kleene(matching, nan) if node.op in MATCHES_NAN else pc.and_not_kleene(matching, nan)


def _compared(node: BoundPredicate, column: Any) -> Any:
    type_ = arrow_type(node.type)
    if node.op not in (Op.IN, Op.NOT_IN):
        return _COMPARE[node.op](column, pa.scalar(node.literal, type_))
    member = pc.is_in(column, value_set=pa.array(with_both_zeros(node.literals), type_))
    return member if node.op is Op.IN else pc.and_not(column.is_valid(), member)
