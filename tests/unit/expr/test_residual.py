"""Residuals: what a partition decides is decided, and the rest of the filter stays as it is."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from filter_cases import PARTITIONS, SCHEMA, files, filters, truth
from hypothesis import given

from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Bound, Expr, Op, Predicate, TransformTerm
from icefloe.expr.prune.residual import residuals
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import BOUNDS, Measure, entries, partition_key, stat
from icefloe.model.partition.spec import PartitionField
from support.row_matching import matches

DAY = PartitionField(source_id=7, field_id=1000, name="t_day", transform="day")
BUCKET = PartitionField(source_id=2, field_id=1001, name="l_bucket", transform="bucket[16]")
FLOAT = PartitionField(source_id=3, field_id=1002, name="f", transform="identity")
MARCH = dt.date(2024, 3, 1)


def bound(text: str) -> Bound:
    return bind(parse_filter(text), SCHEMA)


def left(filter_: Bound | str, values: dict[int, Any]) -> Bound:
    """The residual of a filter for a file with some partition values, by field id."""
    row: dict[str, Any] = {"record_count": 1}
    for field_id, value in values.items():
        key, is_nan = partition_key(field_id), isinstance(value, float) and math.isnan(value)
        row |= {stat(bounded, key): None if is_nan else value for bounded in BOUNDS}
        row |= {stat(Measure.VALUES, key): 1, stat(Measure.NULLS, key): int(value is None)}
        row |= {stat(Measure.NANS, key): int(is_nan)}
    types = {partition_key(1000): pa.date32(), partition_key(1001): pa.int32(), partition_key(1002): pa.float64()}
    wanted = bound(filter_) if isinstance(filter_, str) else filter_
    (found,), _ = residuals(wanted, (DAY, BUCKET, FLOAT), SCHEMA, entries([row], types))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t >= '2024-03-01T00:00:00'", "true"),
        ("t < '2024-03-01T00:00:00'", "false"),
        ("t < '2024-03-01T12:00:00'", "t < '2024-03-01T12:00:00'"),
        ("t >= '2024-03-01T00:00:00' AND i = 5", "i = 5"),
        ("t >= '2024-03-02T00:00:00' OR i = 5", "i = 5"),
        ("t >= '2024-03-02T00:00:00' AND i = 5", "false"),
        ("t IS NULL", "false"),
        ("t IS NOT NULL", "true"),
        ("l = 34", "l = 34"),
        ("l = 35", "false"),
        ("l != 35", "true"),
        ("true", "true"),
    ],
)
def test_a_partition_decides_what_it_can(text: str, expected: str) -> None:
    assert left(text, {1000: MARCH, 1001: 3}) == bound(expected)


def test_null_partitions_match_null_only() -> None:
    nothing = {1000: None, 1001: None, 1002: None}
    assert left("t IS NULL AND l IS NULL", nothing) == ALWAYS_TRUE
    for text in ("t > '2024-03-01'", "l != 35", "l NOT IN (1, 2)", "f = 1", "isnan(f)"):
        assert left(text, nothing) == ALWAYS_FALSE
    assert left("NOT isnan(f)", nothing) == ALWAYS_TRUE


def test_a_partition_of_nan_is_above_every_number() -> None:
    nan = {1002: math.nan}
    assert left("f > 1e300", nan) == ALWAYS_TRUE
    assert left("isnan(f)", nan) == ALWAYS_TRUE
    assert left("f <= 1e300", nan) == ALWAYS_FALSE


def test_values_that_are_not_given_decide_nothing() -> None:
    assert left("t IS NULL AND l = 35", {}) == bound("t IS NULL AND l = 35")


def test_tests_of_buckets_are_decided_by_the_bucket() -> None:
    test = bind(Predicate(Op.EQ, TransformTerm("bucket[16]", "l"), (3,)), SCHEMA)
    assert left(test, {1001: 3}) == ALWAYS_TRUE
    assert left(test, {1001: 4}) == ALWAYS_FALSE


def test_only_distinct_partitions_are_looked_at() -> None:
    size = 300_000
    days = pa.array(np.arange(size) % 365 + 19_723, pa.int32()).cast(pa.date32())  # the days of 2024 but the last
    zeros, ones = pa.repeat(pa.scalar(0, pa.int64()), size), pa.repeat(pa.scalar(1, pa.int64()), size)
    table = pa.table(
        {
            "lower_bound:p1000": days,
            "upper_bound:p1000": days,
            "value_count:p1000": ones,
            "null_value_count:p1000": zeros,
        }
    )
    found, index = residuals(bound("t >= '2024-03-01T12:00:00' AND i = 5"), (DAY,), SCHEMA, table)
    assert len(found) == 3
    assert len(index) == size
    by_day = [found[index[day].as_py()] for day in (0, 59, 60, 61, 364)]
    whole = bound("t >= '2024-03-01T12:00:00' AND i = 5")
    assert by_day == [ALWAYS_FALSE, ALWAYS_FALSE, whole, bound("i = 5"), bound("i = 5")]


def test_files_of_other_specs_and_null_values_are_kept_apart() -> None:
    known = {"record_count": 2, "value_count:p1000": 2}
    rows: list[dict[str, Any]] = [
        known | {"null_value_count:p1000": 2},
        known | {"null_value_count:p1000": 0, "lower_bound:p1000": MARCH, "upper_bound:p1000": MARCH},
        {"record_count": 2},
    ]
    found, index = residuals(bound("t IS NULL"), (DAY,), SCHEMA, entries(rows, {partition_key(1000): pa.date32()}))
    assert [found[i] for i in index.to_pylist()] == [ALWAYS_TRUE, ALWAYS_FALSE, bound("t IS NULL")]


def test_without_partitions_or_tests_there_is_one_residual() -> None:
    table = entries([{"record_count": 1}, {"record_count": 2}])
    assert residuals(bound("i = 1"), (), SCHEMA, table)[0] == [bound("i = 1")]
    found, index = residuals(ALWAYS_TRUE, (DAY,), SCHEMA, table)
    assert (found, index.to_pylist()) == ([ALWAYS_TRUE], [0, 0])
    assert residuals(bound("t IS NULL"), (DAY,), SCHEMA, table.slice(0, 0))[1].to_pylist() == []


@given(made=files(), expr=filters)
def test_rows_match_the_residual_exactly_if_they_match_the_filter(
    made: tuple[list[list[dict[str, Any]]], pa.Table], expr: Expr
) -> None:
    contents, table = made
    found, index = residuals(bind(expr, SCHEMA), PARTITIONS, SCHEMA, table)
    for content, position in zip(contents, index.to_pylist(), strict=True):
        assert [matches(found[position], row) for row in content] == [truth(expr, row) is True for row in content]
