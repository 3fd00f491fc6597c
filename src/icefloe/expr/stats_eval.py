"""Filters answered for whole files from their statistics, for all entries of a table at once (spec: Scan Planning).

The answer has three values: no row can match, every row matches, or it cannot be told. The first two are promises; a
missing or null statistic never leads to one. Both directions come from one judgement of each predicate, so that
pruning and deleting whole files cannot disagree.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.expr.evidence import Evidence, Mask, Statistics, certain
from icefloe.expr.nodes import And, Bound, BoundPredicate, Branch, Constant, Leaf, Op, fold
from icefloe.model.arrow import arrow_type
from icefloe.model.partitioning import PartitionField
from icefloe.transforms import Truncate


class Match(IntEnum):
    """How many rows of a file match a filter."""

    NONE = 0
    SOME = 1  # or none, or all: it cannot be told
    ALL = 2


Answers: TypeAlias = npt.NDArray[np.int8]

_BATCH = 65_536  # entries judged together, to bound the memory of filters with thousands of terms
_NAN_MATCHES = frozenset({Op.GT, Op.GE, Op.NE, Op.NOT_IN})


def evaluate(bound: Bound, table: pa.Table, partitions: tuple[PartitionField, ...] = ()) -> pa.Array:
    """``Match`` values for each entry: ``partitions`` are the partition fields of every spec in use.

    >>> from icefloe.model.entries import entries
    >>> from icefloe.model.types import LONG
    >>> files = entries([{"record_count": 9, "upper_bound:1": 5}], {"1": pa.int64()})
    >>> evaluate(BoundPredicate(Op.GT, 1, ("id",), LONG, (5,)), files).to_pylist()
    [0]
    """
    batches = [table.slice(start, _BATCH) for start in range(0, table.num_rows, _BATCH)]
    answers = [_evaluate(bound, Statistics(batch, partitions)) for batch in batches]
    return pa.array(np.concatenate([np.empty(0, np.int8), *answers]), pa.int8())


def _evaluate(bound: Bound, statistics: Statistics) -> Answers:
    size = statistics.table.num_rows
    evidence: dict[int, list[Evidence]] = {}

    def leaf(node: Leaf) -> Answers:
        if isinstance(node, Constant):
            return np.full(size, Match.ALL if node.value else Match.NONE, np.int8)
        if not isinstance(node, BoundPredicate):
            raise InputError(f"bind the filter before evaluating it: {node}")
        if node.field_id not in evidence:
            evidence[node.field_id] = list(statistics.about(node.field_id, node.type))
        return _predicate(node, evidence[node.field_id], size)

    def branch(node: Branch, parts: list[Answers]) -> Answers:
        joined: Answers = (np.minimum if isinstance(node, And) else np.maximum).reduce(parts)
        return joined

    answers = fold(bound, leaf, branch)
    if statistics.table.schema.get_field_index("record_count") >= 0:
        answers = np.where(certain(pc.equal(statistics.table["record_count"], 0)), np.int8(Match.NONE), answers)
    return answers


def _predicate(node: BoundPredicate, evidence: list[Evidence], size: int) -> Answers:
    """NONE if any evidence says so, else ALL if any says so."""
    none, every = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    for each in evidence:
        says_none, says_all = _judge(node, each)
        none, every = none | says_none, every | says_all
    return np.where(none, np.int8(Match.NONE), np.where(every, np.int8(Match.ALL), np.int8(Match.SOME)))


def _judge(node: BoundPredicate, evidence: Evidence) -> tuple[Mask, Mask]:
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
    if node.op in _NAN_MATCHES:
        return evidence.all_null | (never & evidence.no_nan), evidence.no_nulls & always
    return never, evidence.no_nulls & always & evidence.no_nan


def _ordinary(node: BoundPredicate, evidence: Evidence) -> tuple[Mask, Mask]:
    """Where no value that is neither null nor NaN matches, and where every such value does."""
    lower, upper = evidence.lower, evidence.upper
    unknown = pa.nulls(evidence.size, arrow_type(node.type))
    lower, upper = unknown if lower is None else lower, unknown if upper is None else upper
    match node.op:
        case Op.EQ | Op.IN:
            return _absent(node, evidence, lower, upper), _constant_among(node, lower, upper)
        case Op.NE | Op.NOT_IN:
            return _constant_among(node, lower, upper), _absent(node, evidence, lower, upper)
        case Op.STARTS_WITH:
            return _no_prefix(node, evidence, lower, upper), _every_prefix(node, evidence, lower, upper)
        case Op.NOT_STARTS_WITH:
            return _every_prefix(node, evidence, lower, upper), _no_prefix(node, evidence, lower, upper)
    value = pa.scalar(node.literal, arrow_type(node.type))
    below = _below(node, evidence)
    match node.op:
        case Op.LT:
            return certain(pc.greater_equal(lower, value)), below | certain(pc.less(upper, value))
        case Op.LE:
            return certain(pc.greater(lower, value)), below | certain(pc.less_equal(upper, value))
        case Op.GT:
            return below | certain(pc.less_equal(upper, value)), certain(pc.greater(lower, value))
        case _:
            return below | certain(pc.less(upper, value)), certain(pc.greater_equal(lower, value))


def _below(node: BoundPredicate, evidence: Evidence) -> Mask:
    """Where even the highest value of a transform that keeps order is less than that of the literal."""
    known = evidence.transformed
    if known is None or not known.transform.preserves_order:
        return np.zeros(evidence.size, np.bool_)
    literal = known.transform.apply(pa.array(node.literals, arrow_type(node.type)), node.type)[0]
    return certain(pc.less(known.highest, literal))


def _absent(node: BoundPredicate, evidence: Evidence, lower: Any, upper: Any) -> Mask:
    """Where none of the literals occurs."""
    literals = pa.array(node.literals, arrow_type(node.type))
    absent = _none_within(literals, lower, upper)
    if (known := evidence.transformed) is not None:
        found = pc.unique(known.transform.apply(literals, node.type)).sort()
        absent |= _none_within(found, known.lowest, known.highest)
    return absent


def _none_within(literals: pa.Array, lower: Any, upper: Any) -> Mask:
    """Where no literal (they are sorted) lies between the bounds."""
    beyond = certain(pc.greater(lower, literals[-1])) | certain(pc.less(upper, literals[0]))
    if len(literals) == 1:
        return beyond
    candidate = literals.take(pa.array(np.minimum(_first_at_least(literals, lower), len(literals) - 1)))
    return beyond | certain(pc.and_(pc.is_valid(lower), pc.greater(candidate, upper)))


def _first_at_least(literals: pa.Array, values: Any) -> npt.NDArray[np.int64]:
    """For each value, the index of the first literal that is not less; any index where the value is null."""
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


def _constant_among(node: BoundPredicate, lower: Any, upper: Any) -> Mask:
    """Where all values are equal and one of the literals."""
    equal = certain(pc.equal(lower, upper))
    if len(node.literals) == 1:
        return equal & certain(pc.equal(lower, pa.scalar(node.literal, arrow_type(node.type))))
    literals = pa.array(node.literals, arrow_type(node.type))
    nearest = literals.take(pa.array(np.minimum(_first_at_least(literals, lower), len(literals) - 1)))
    return equal & certain(pc.equal(lower, nearest))


def _every_prefix(node: BoundPredicate, evidence: Evidence, lower: Any, upper: Any) -> Mask:
    """Where every value starts with the literal."""
    found = _with_prefix(str(node.literal), lower, upper)
    if (known := evidence.transformed) is not None and isinstance(known.transform, Truncate):
        found |= _with_prefix(str(node.literal), known.lowest, known.highest)
    return found


def _no_prefix(node: BoundPredicate, evidence: Evidence, lower: Any, upper: Any) -> Mask:
    """Where no value starts with the literal."""
    found = _without_prefix(str(node.literal), lower, upper)
    if (known := evidence.transformed) is not None and isinstance(known.transform, Truncate):
        # Whatever starts with the literal was cut to something that starts with the literal so cut.
        found |= _without_prefix(str(node.literal)[: known.transform.width], known.lowest, known.highest)
    return found


def _with_prefix(prefix: str, lower: Any, upper: Any) -> Mask:
    return certain(pc.starts_with(lower, prefix)) & certain(pc.starts_with(upper, prefix))


def _without_prefix(prefix: str, lower: Any, upper: Any) -> Mask:
    above = pc.greater(pc.utf8_slice_codeunits(lower, 0, len(prefix)), prefix)
    below = pc.less(pc.utf8_slice_codeunits(upper, 0, len(prefix)), prefix)
    return certain(above) | certain(below)
