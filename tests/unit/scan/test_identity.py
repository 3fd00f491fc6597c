from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest

from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.types import DATE, DOUBLE, LONG, STRING, Field, Type
from icefloe.scan.partition_values import identity_columns, identity_values


def by(source_id: int, field_id: int, transform: str = "identity") -> PartitionField:
    return PartitionField(source_id=source_id, field_id=field_id, name=f"p{field_id}", transform=transform)


def tasks(specs: list[int | None], **columns: pa.Array) -> pa.Table:
    named = {name.replace("__", ":"): values for name, values in columns.items()}
    return pa.table({"partition_spec_id": pa.array(specs, pa.int32()), **named})


ONE = (PartitionSpec(spec_id=0, fields=(by(1, 1000),)),)


@pytest.mark.parametrize(
    ("type_", "values"),
    [(STRING, ["", "a/b=c", None]), (LONG, [0, -(2**63), None]), (DATE, [dt.date(1969, 1, 1), dt.date.max, None])],
)
def test_values_are_the_bounds_and_nulls_are_told_by_counts(type_: Type, values: list[object]) -> None:
    table = tasks(
        [0, 0, 0],
        lower_bound__p1000=pa.array(values),
        null_value_count__p1000=pa.array([0, 0, 5]),
        value_count__p1000=pa.array([5, 5, 5]),
    )
    found = identity_values(table, ONE, Field(1, "x", type_))
    assert found.values.to_pylist() == values
    assert found.known.to_pylist() == [True, True, True]


def test_nan_is_told_by_its_count() -> None:
    table = tasks(
        [0, 0],
        lower_bound__p1000=pa.array([None, 1.5]),
        null_value_count__p1000=pa.array([0, 0]),
        nan_value_count__p1000=pa.array([3, 0]),
    )
    found = identity_values(table, ONE, Field(1, "x", DOUBLE))
    assert math.isnan(found.values[0].as_py())
    assert found.values[1].as_py() == 1.5
    assert found.known.to_pylist() == [True, True]


def test_a_value_that_is_not_recorded_is_not_known() -> None:
    assert identity_values(tasks([0]), ONE, Field(1, "x", LONG)).known.to_pylist() == [False]


def test_each_file_is_read_by_its_own_spec() -> None:
    specs = (
        PartitionSpec(spec_id=0, fields=(by(1, 1000),)),
        PartitionSpec(spec_id=1, fields=(by(1, 1000, "void"), by(1, 1001))),
        PartitionSpec(spec_id=2, fields=(by(1, 1002, "bucket[4]"), by(2, 1003))),
    )
    table = tasks(
        [0, 1, 2, None],
        lower_bound__p1000=pa.array([1, 9, 9, 9]),
        lower_bound__p1001=pa.array([9, 2, 9, 9]),
        lower_bound__p1002=pa.array([9, 9, 3, 9]),
    )
    found = identity_values(table, specs, Field(1, "x", LONG))
    assert found.known.to_pylist() == [True, True, False, False]
    assert found.values.to_pylist() == [1, 2, None, None]
    assert identity_columns(specs) == (1, 2)


def test_values_have_the_type_of_the_column() -> None:
    table = tasks([0], lower_bound__p1000=pa.array([7], pa.int32()))
    assert identity_values(table, ONE, Field(1, "x", LONG)).values.type == pa.int64()
