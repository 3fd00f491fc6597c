"""Rows measured as they pass by, for formats without a footer that can be read."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.formats.write.measure import Measurer, Measures
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    Decimal,
    Field,
    Fixed,
    Geometry,
    List,
    Struct,
    Type,
)


def measured(type_: Type, *parts: list[Any]) -> Measures:
    schema = Schema(fields=(Field(1, "x", type_),))
    measurer = Measurer(schema)
    for part in parts:
        measurer.add(pa.RecordBatch.from_arrays([pa.array(part, arrow_schema(schema).field(0).type)], names=["x"]))
    return measurer.measures()[1]


def bounds(found: Measures) -> tuple[Any, Any]:
    return (None if found.lower is None else found.lower.as_py(), None if found.upper is None else found.upper.as_py())


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (BOOLEAN, [False, True]),
        (INT, [-5, 7]),
        (LONG, [-(2**63), 2**63 - 1]),
        (FLOAT, [-1.5, 2.5]),
        (DOUBLE, [-math.inf, math.inf]),
        (Decimal(9, 2), [decimal.Decimal("-1.25"), decimal.Decimal("3.50")]),
        (Decimal(38, 0), [decimal.Decimal(-(10**37)), decimal.Decimal(10**37)]),
        (DATE, [datetime.date(1969, 1, 1), datetime.date(2026, 1, 1)]),
        (TIME, [datetime.time(1), datetime.time(23, 59)]),
        (TIMESTAMP, [datetime.datetime(1, 1, 1), datetime.datetime(9999, 1, 1)]),
        (STRING, ["\ue000", "\U00010000"]),
        (BINARY, [b"", b"\xff"]),
        (Fixed(2), [b"\x00\x7f", b"\x00\x80"]),
        (UUID, [b"\x00" * 16, b"\xff" * 16]),
    ],
)
def test_every_type_is_measured_over_all_batches(type_: Type, values: list[Any]) -> None:
    low, high = values
    found = measured(type_, [None, high], [], [None], [low, high, None])
    assert bounds(found) == (low, high)
    assert (found.values, found.nulls) == (6, 3)
    assert found.nans == (0 if type_ in (FLOAT, DOUBLE) else None)


def test_nanoseconds_are_not_rounded() -> None:
    found = measured(TIMESTAMPTZ_NS, [5], [-7, 3])
    assert found.lower is not None
    assert found.upper is not None
    assert (found.lower.value, found.upper.value) == (-7, 5)


def test_nan_is_counted_and_left_out_of_bounds() -> None:
    assert measured(DOUBLE, [math.nan, 2.0], [math.nan], [None, -3.0]) == Measures(
        values=5, nulls=1, nans=2, lower=pa.scalar(-3.0), upper=pa.scalar(2.0)
    )
    assert bounds(measured(FLOAT, [math.nan, None])) == (None, None)


def test_columns_without_an_order_are_counted_only() -> None:
    found = measured(Geometry(), [b"\x01", None])
    assert (found.values, found.nulls, *bounds(found)) == (2, 1, None, None)


def test_only_columns_outside_lists_are_measured_and_null_structs_make_null_fields() -> None:
    inner = Struct((Field(2, "a", LONG), Field(3, "l", List(4, LONG))))
    schema = Schema(fields=(Field(1, "s", inner), Field(5, "u", UNKNOWN), Field(6, "v", VARIANT), Field(7, "y", INT)))
    rows = [{"s": {"a": 3, "l": [1]}, "y": 1}, {"s": None, "y": None}]
    measurer = Measurer(schema)
    for batch in pa.Table.from_pylist(rows, schema=arrow_schema(schema)).to_batches():
        measurer.add(batch)
    found = measurer.measures()
    assert set(found) == {2, 7}
    assert (found[2].values, found[2].nulls, *bounds(found[2])) == (2, 1, 3, 3)
    assert set(Measurer(schema, only=frozenset({7})).measures()) == {7}


@given(st.lists(st.lists(st.none() | st.floats(width=32), max_size=5), max_size=5))
def test_measuring_in_parts_is_measuring_the_whole(parts: list[list[float | None]]) -> None:
    found = measured(FLOAT, *parts)
    flat = [value for part in parts for value in part]
    numbers = [value for value in flat if value is not None and not math.isnan(value)]
    assert (found.values, found.nulls) == (len(flat), flat.count(None))
    assert bounds(found) == (min(numbers, default=None), max(numbers, default=None))
    assert found.nans == len(flat) - flat.count(None) - len(numbers)
