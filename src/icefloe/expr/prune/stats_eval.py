"""Filters answered for whole files from their statistics, for all entries of a table at once (spec: Scan Planning).

NONE: no row can match. ALL: every row matches. SOME: undecided. The first two are guarantees; a
missing or null statistic never leads to one. Both come from one evaluation of each predicate, so pruning and deleting
whole files cannot disagree.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import MATCHES_NAN, And, Bound, BoundPredicate, Branch, Constant, Leaf, Op, fold
from icefloe.expr.filter.preimage import over_columns
from icefloe.expr.prune.column_stats import Evidence, Mask, Statistics, certain
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.types import is_primitive
from icefloe.transforms.truncate import successor


class Match(IntEnum):
    """How many rows of a file match a filter."""

    NONE = 0
    SOME = 1  # undecided: possibly none or all
    ALL = 2


# Masks: entries in which no row matches, and entries in which every row matches. In neither: undecided.
Verdict: TypeAlias = tuple[Mask, Mask]

_BATCH = 65_536  # entries evaluated together, to bound the memory of filters with thousands of terms


def evaluate(bound: Bound, table: pa.Table, partitions: tuple[PartitionField, ...] = ()) -> pa.Array:
    """The ``Match`` value of each entry; ``partitions`` are the partition fields of every spec in use.

    >>> from icefloe.model.entries import column_key, entries
    >>> from icefloe.model.schema.types import LONG
    >>> files = entries([{"record_count": 9, "upper_bound:1": 5}], {column_key(1): pa.int64()})
    >>> evaluate(BoundPredicate(Op.GT, 1, ("id",), LONG, (5,)), files).to_pylist()
    [0]
    """
    over_column = over_columns(bound)
    answers = np.empty(table.num_rows, np.int8)
    for start in range(0, table.num_rows, _BATCH):
        size = min(_BATCH, table.num_rows - start)
        answers[start : start + size] = _evaluate(over_column, Statistics(table, partitions, start, size))
    return pa.array(answers)


def _evaluate(bound: Bound, statistics: Statistics) -> npt.NDArray[np.int8]:
    size = statistics.size
    evidence: dict[object, list[Evidence]] = {}

    def leaf(node: Leaf) -> Verdict:
        if isinstance(node, Constant):
            return np.full(size, not node.value), np.full(size, node.value)
        if not isinstance(node, BoundPredicate):
            raise InputError(f"bind the filter before evaluating it: {node}")
        if not is_primitive(node.column_type):  # the specification does not define counts of lists and structs
            return np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        about = (node.field_id, node.transform, node.op.takes_literals)
        if about not in evidence:
            evidence[about] = list(statistics.about(node))
        return _predicate(node, evidence[about])

    none, every = fold(bound, leaf, _branch)
    # For a file without rows both answers are right, and NONE saves work.
    none = none | statistics.no_rows
    return (every.view(np.int8) + np.int8(Match.SOME)) * ~none


def _branch(node: Branch, parts: list[Verdict]) -> Verdict:
    none, every = (np.logical_or, np.logical_and) if isinstance(node, And) else (np.logical_and, np.logical_or)
    return none.reduce([part[0] for part in parts]), every.reduce([part[1] for part in parts])


def _predicate(node: BoundPredicate, evidence: list[Evidence]) -> Verdict:
    """The verdict of all evidence together: what one item proves holds."""
    verdicts = [_verdict(node, item) for item in evidence]
    none, every = verdicts[0]
    for says_none, says_every in verdicts[1:]:
        none, every = none | says_none, every | says_every
    return none, every


def _verdict(node: BoundPredicate, evidence: Evidence) -> Verdict:
    """Where no row matches for certain, and where every row does."""
    match node.op:
        case Op.IS_NULL:
            return evidence.no_nulls, evidence.all_null
        case Op.NOT_NULL:
            return evidence.all_null, evidence.no_nulls
        case Op.IS_NAN:
            return evidence.no_nan, evidence.all_nan
        case Op.NOT_NAN:
            return evidence.all_nan, evidence.no_nan
    never, always = _ordinary(node, evidence)
    never, always = never | evidence.no_ordinary, always | evidence.no_ordinary
    if node.op in MATCHES_NAN:
        return evidence.all_null | (never & evidence.no_nan), evidence.no_nulls & always
    return never, evidence.no_nulls & always & evidence.no_nan


def _ordinary(node: BoundPredicate, evidence: Evidence) -> Verdict:
    """Where no value that is neither null nor NaN matches, and where every such value does."""
    match node.op:
        case Op.EQ | Op.IN:
            return _absent(node, evidence), _constant_among(node, evidence)
        case Op.NE | Op.NOT_IN:
            return _constant_among(node, evidence), _absent(node, evidence)
        case Op.STARTS_WITH:
            return _no_prefix(node, evidence), _every_prefix(node, evidence)
        case Op.NOT_STARTS_WITH:
            return _every_prefix(node, evidence), _no_prefix(node, evidence)
    value = pa.scalar(node.literal, arrow_type(node.type))
    lower, upper = evidence.lower, evidence.upper
    match node.op:
        case Op.LT:
            never, always = evidence.where(pc.greater_equal, lower, value), evidence.where(pc.less, upper, value)
        case Op.LE:
            never, always = evidence.where(pc.greater, lower, value), evidence.where(pc.less_equal, upper, value)
        case Op.GT:
            never, always = evidence.where(pc.less_equal, upper, value), evidence.where(pc.greater, lower, value)
        case _:
            never, always = evidence.where(pc.less, upper, value), evidence.where(pc.greater_equal, lower, value)
    below = _below(node, evidence)
    return (never, always | below) if node.op in (Op.LT, Op.LE) else (never | below, always)


def _below(node: BoundPredicate, evidence: Evidence) -> Mask:
    """Where even the highest value of a transform that keeps order is less than that of the literal."""
    known = evidence.transformed
    if known is None or not known.transform.preserves_order:
        return evidence.nowhere
    literal = known.transform.apply(pa.array(node.literals, arrow_type(node.type)), node.type)[0]
    return evidence.where(pc.less, known.highest, literal)


def _absent(node: BoundPredicate, evidence: Evidence) -> Mask:
    """Where none of the literals occurs."""
    literals = pa.array(node.literals, arrow_type(node.type))
    absent = _none_within(literals, evidence, evidence.lower, evidence.upper)
    if (known := evidence.transformed) is not None:
        results = pc.unique(known.transform.apply(literals, node.type)).sort()
        absent = absent | _none_within(results, evidence, known.lowest, known.highest)
    return absent


def _none_within(literals: pa.Array, evidence: Evidence, lower: Any, upper: Any) -> Mask:
    """Where no literal is between the bounds; the literals are sorted."""
    beyond = evidence.where(pc.greater, lower, literals[-1]) | evidence.where(pc.less, upper, literals[0])
    if len(literals) == 1 or lower is None or upper is None:
        return beyond
    candidate = literals.take(pa.array(np.minimum(_first_at_least(literals, lower), len(literals) - 1)))
    return beyond | certain(pc.and_(pc.is_valid(lower), pc.greater(candidate, upper)))


def _first_at_least(literals: pa.Array, values: Any) -> npt.NDArray[np.int64]:
    """For each value, the index of the first literal that is not less; arbitrary where the value is null."""
    numbers, wanted = _as_numbers(literals), _as_numbers(values)
    if numbers is not None and wanted is not None:
        return np.searchsorted(numbers, wanted, side="left").astype(np.int64, copy=False)
    low = np.zeros(len(values), np.int64)
    high = np.full(len(values), len(literals), np.int64)
    for _ in range(len(literals).bit_length()):
        middle = (low + high) // 2
        probe = literals.take(pa.array(np.minimum(middle, len(literals) - 1)))
        less = certain(pc.less(probe, values)) & (low < high)
        low, high = np.where(less, middle + 1, low), np.where(less, high, np.where(low < high, middle, high))
    return low


def _as_numbers(values: Any) -> npt.NDArray[Any] | None:
    """Values of a numeric or temporal type as numpy numbers of the same order, nulls as 0; None for other types."""
    type_ = values.type
    if pa.types.is_date32(type_):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(type_) or pa.types.is_time64(type_):
        values = values.cast(pa.int64())
    elif not (pa.types.is_integer(type_) or pa.types.is_floating(type_)):
        return None
    numbers: npt.NDArray[Any] = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    return numbers


def _constant_among(node: BoundPredicate, evidence: Evidence) -> Mask:
    """Where all values are equal and one of the literals."""
    lower, upper = evidence.lower, evidence.upper
    if lower is None or upper is None:
        return evidence.nowhere
    literals = pa.array(node.literals, arrow_type(node.type))
    among = literals[0]
    if len(literals) > 1:
        among = literals.take(pa.array(np.minimum(_first_at_least(literals, lower), len(literals) - 1)))
    return certain(pc.equal(lower, upper)) & certain(pc.equal(lower, among))


def _every_prefix(node: BoundPredicate, evidence: Evidence) -> Mask:
    """Where every value starts with the literal."""
    prefix = str(node.literal)
    certainly = _with_prefix(prefix, evidence, evidence.lower, evidence.upper)
    if (known := evidence.transformed) is not None and known.transform.prefix_length(node.type) is not None:
        certainly = certainly | _with_prefix(prefix, evidence, known.lowest, known.highest)
    return certainly


def _no_prefix(node: BoundPredicate, evidence: Evidence) -> Mask:
    """Where no value starts with the literal."""
    prefix = str(node.literal)
    certainly = _without_prefix(prefix, evidence, evidence.lower, evidence.upper)
    if (known := evidence.transformed) is None or (length := known.transform.prefix_length(node.type)) is None:
        return certainly
    # Whatever starts with the literal was cut to something that starts with the literal so cut.
    return certainly | _without_prefix(prefix[:length], evidence, known.lowest, known.highest)


def _with_prefix(prefix: str, evidence: Evidence, lower: Any, upper: Any) -> Mask:
    return evidence.where(pc.starts_with, lower, prefix) & evidence.where(pc.starts_with, upper, prefix)


def _without_prefix(prefix: str, evidence: Evidence, lower: Any, upper: Any) -> Mask:
    # Texts with the prefix are at least the prefix and less than its successor.
    below = evidence.where(pc.less, upper, pa.scalar(prefix))
    end = successor(prefix)
    return below if end is None else below | evidence.where(pc.greater_equal, lower, pa.scalar(end))
