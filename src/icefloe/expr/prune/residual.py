"""The part of a filter that must be evaluated on the rows of a partition (spec: Scan Planning).

A partition value may decide a predicate for all rows of the partition: it becomes true if every row passes it, and
false if no row does. The other predicates are evaluated on rows. A plan has few distinct partitions and many files, so
it has one residual for each distinct set of answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Bound,
    BoundPredicate,
    Branch,
    Expr,
    Leaf,
    conjunction,
    disjunction,
    fold,
    leaves,
)
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.model.columns import joint_codes
from icefloe.model.entries import BOUNDS, Measure, partition_key, stat
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import is_primitive
from icefloe.transforms import transform_of

_PARTS = (Measure.NULLS, Measure.NANS)


def residuals(
    bound: Bound, fields: Sequence[PartitionField], schema: Schema, entries: pa.Table
) -> tuple[list[Bound], pa.Array]:
    """The distinct residuals of a filter for the partitions of entries, and for each entry the index of its residual.

    >>> from icefloe.expr.filter.nodes import Op
    >>> from icefloe.model.schema.types import INT, Field
    >>> schema = Schema(fields=(Field(1, "i", INT),))
    >>> tens = PartitionField(source_id=1, field_id=1000, name="tens", transform="truncate[10]")
    >>> files = pa.table({"lower_bound:p1000": [0, 20, 0], "upper_bound:p1000": [0, 20, 0]})
    >>> filters, index = residuals(BoundPredicate(Op.GT, 1, ("i",), INT, (25,)), [tens], schema, files)
    >>> [getattr(filter, "value", "test rows") for filter in filters], index.to_pylist()
    ([False, 'test rows'], [0, 1, 0])
    """
    tests = list(dict.fromkeys(node for node in leaves(bound) if isinstance(node, BoundPredicate)))
    tested = dict.fromkeys(node.field_id for node in tests)
    chosen = tuple(f for i in tested for f in fields if f.source_id == i and _is_evidence(f, schema))
    tuples, of_entry = _distinct(_values(entries, chosen))
    if len(tests) == 0 or len(chosen) == 0:
        return [bound], pa.array(np.zeros(entries.num_rows, np.int64))
    answers = np.column_stack([evaluate(node, tuples, chosen).to_numpy() for node in tests])
    combinations, of_tuple = np.unique(answers, axis=0, return_inverse=True)
    decided = [_decided(bound, dict(zip(tests, combination, strict=True))) for combination in combinations.tolist()]
    return decided, pa.array(of_tuple.reshape(-1)[of_entry], pa.int64())


def _is_evidence(field: PartitionField, schema: Schema) -> bool:
    """Whether values of a partition field decide predicates on its source column."""
    source, transform = schema.by_id.get(field.source_id), transform_of(field)
    if source is None or not transform.is_evidence(source.type) or not is_primitive(source.type):
        return False
    return is_primitive(transform.result_type(source.type))


def _decided(bound: Bound, answers: Mapping[BoundPredicate, int]) -> Bound:
    """A filter with its decided predicates replaced by their answers."""

    def leaf(node: Leaf) -> Expr:
        if not isinstance(node, BoundPredicate):
            return node
        constants = {int(Match.NONE): ALWAYS_FALSE, int(Match.ALL): ALWAYS_TRUE}
        return constants.get(answers[node], node)

    def branch(node: Branch, parts: list[Expr]) -> Expr:
        return conjunction(parts) if isinstance(node, And) else disjunction(parts)

    return cast(Bound, fold(bound, leaf, branch))


def _values(entries: pa.Table, fields: Sequence[PartitionField]) -> pa.Table:
    """The partition values of entries in the form of statistics of files with one row."""
    columns: dict[str, Any] = {"record_count": pa.repeat(pa.scalar(1, pa.int64()), entries.num_rows)}
    for field in fields:
        key = partition_key(field.field_id)
        names = {measure: stat(measure, key) for measure in (*BOUNDS, *_PARTS, Measure.VALUES)}
        present = {m: entries[name] for m, name in names.items() if entries.schema.get_field_index(name) >= 0}
        columns |= {names[m]: present[m] for m in BOUNDS if m in present}
        columns[names[Measure.VALUES]] = columns["record_count"]
        for measure in _PARTS:
            if measure in present:
                columns[names[measure]] = _share(present[measure], present.get(Measure.VALUES))
    return pa.table(columns)


def _share(count: Any, total: Any) -> Any:
    """A count as that of one row: all, none, or unknown."""
    none = pc.if_else(pc.equal(count, 0), pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
    return (
        none
        if total is None
        else pc.if_else(
            pc.fill_null(pc.and_(pc.greater(count, 0), pc.equal(count, total)), False), pa.scalar(1, pa.int64()), none
        )
    )


def _distinct(table: pa.Table) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The distinct rows of a table in order of appearance, and for each row its index among them."""
    group = joint_codes(table.columns, table.num_rows)
    first = np.empty(int(group.max(initial=-1)) + 1, np.int64)
    first[group[::-1]] = np.arange(len(group) - 1, -1, -1)
    return table.take(pa.array(first)), group
