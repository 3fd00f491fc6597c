"""A new transform needs three methods and an entry in the table of transforms; then its partitions prune soundly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import UnsupportedError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Bound, Op, Predicate, TransformTerm
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.spark_sql import to_sql
from icefloe.formats.write.partition_values import folder, partition_fields
from icefloe.model.entries import entries, partition_key
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, Field, Type
from icefloe.transforms import Transform
from icefloe.transforms import transform as transforms
from support.row_matching import matches

SCHEMA = Schema(fields=(Field(1, "i", INT),))
COMPARISONS = [Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE]


@dataclass(frozen=True, slots=True)
class Half(Transform):
    """The half of an int, rounded down; ordered, but it says no more than that."""

    preserves_order: ClassVar[bool] = True

    def __str__(self) -> str:
        return "half"

    def accepts(self, source: Type) -> bool:
        return source == INT

    def result_type(self, source: Type) -> Type:
        return INT

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        halves = np.floor_divide(array.fill_null(0).to_numpy(), 2).astype(np.int32)
        return pa.array(halves, mask=array.is_null().to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class Parity(Half):
    """Whether an int is odd, which has no order."""

    preserves_order: ClassVar[bool] = False

    def __str__(self) -> str:
        return "parity"

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        odd = (array.fill_null(0).to_numpy() % 2).astype(np.int32)
        return pa.array(odd, mask=array.is_null().to_numpy(zero_copy_only=False))


@pytest.fixture(autouse=True, scope="module")
def registered() -> object:
    with pytest.MonkeyPatch.context() as patch:
        for new in (Half(), Parity()):
            patch.setitem(transforms.NAMED, str(new), new)
        yield


def field_of(transform: str) -> PartitionField:
    return PartitionField(source_id=1, field_id=1000, name="p", transform=transform)


def bound(op: Op, literal: int) -> Bound:
    return bind(Predicate(op, "i", (literal,)), SCHEMA)


@pytest.mark.parametrize("transform", [Half(), Parity()], ids=str)
@given(op=st.sampled_from(COMPARISONS), literal=st.integers(-9, 9), values=st.lists(st.integers(-9, 9), min_size=1))
def test_files_with_matching_rows_stay_and_only_full_matches_are_certain(
    transform: Transform, op: Op, literal: int, values: list[int]
) -> None:
    filter_, field = bound(op, literal), field_of(str(transform))
    results = [transform.value(value, INT) for value in values]
    rows = [
        {"record_count": 1, "lower_bound:p1000": n, "upper_bound:p1000": n, "null_value_count:p1000": 0}
        for n in results
    ]
    answers = evaluate(filter_, entries(rows, {partition_key(1000): pa.int32()}), (field,)).to_pylist()
    for value, answer in zip(values, answers, strict=True):
        assert answer != (Match.NONE if matches(filter_, {"i": value}) else Match.ALL)


def test_folders_and_filters_on_the_transform_work() -> None:
    columns = partition_fields(SCHEMA, PartitionSpec(fields=(field_of("half"),)))
    assert folder((3,), columns) == "p=3"
    test = bind(Predicate(Op.EQ, TransformTerm("half", "i"), (3,)), SCHEMA)
    assert [i for i in range(10) if matches(test, {"i": i})] == [6, 7]
    with pytest.raises(UnsupportedError, match="no function for half"):
        to_sql(test)
