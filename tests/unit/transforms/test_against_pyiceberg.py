"""Transforms beside those of pyiceberg, one value at a time and, by its Rust core, on arrays.

Left out is what only one of them can say: timestamps outside the years 1 to 9999, and results below the lowest number.
"""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pyiceberg.transforms as theirs
import pyiceberg.types as their_types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import BINARY, DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, Decimal
from icefloe.transforms import parse_transform

EPOCH = dt.datetime(1970, 1, 1)
SOURCES: dict[Any, tuple[Any, st.SearchStrategy[Any]]] = {
    DATE: (their_types.DateType(), st.dates()),
    TIMESTAMP: (their_types.TimestampType(), st.datetimes()),
    TIMESTAMPTZ: (their_types.TimestamptzType(), st.datetimes().map(lambda value: value.replace(tzinfo=dt.UTC))),
    INT: (their_types.IntegerType(), st.integers(-(2**31) + 10_000, 2**31 - 1)),
    LONG: (their_types.LongType(), st.integers(-(2**63) + 10_000, 2**63 - 1)),
    Decimal(18, 2): (
        their_types.DecimalType(18, 2),
        st.integers(-(10**17), 10**17).map(lambda n: decimal.Decimal(n).scaleb(-2)),
    ),
    STRING: (their_types.StringType(), st.text(max_size=12)),
    BINARY: (their_types.BinaryType(), st.binary(max_size=12)),
}
TEXTS = {
    **dict.fromkeys((TIMESTAMP, TIMESTAMPTZ), ("year", "month", "day", "hour", "bucket[7]")),
    DATE: ("year", "month", "day", "bucket[7]"),
    **dict.fromkeys((INT, LONG, STRING, BINARY, Decimal(18, 2)), ("truncate[1]", "truncate[7]", "truncate[10000]")),
}
CASES = [(source, text) for source, texts in TEXTS.items() for text in texts]


def stored(value: Any) -> Any:
    """A value as pyiceberg keeps it: dates and times as numbers."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // dt.timedelta(microseconds=1)
    return (value - EPOCH.date()).days if isinstance(value, dt.date) else value


@pytest.mark.parametrize(("source", "text"), CASES, ids=str)
@given(data=st.data())
def test_values_and_arrays_are_those_of_pyiceberg(source: Any, text: str, data: st.DataObject) -> None:
    their_type, values = SOURCES[source]
    ours, other = parse_transform(text), theirs.parse_transform(text)
    drawn = data.draw(st.lists(st.none() | values, max_size=6))
    array = pa.array(drawn, arrow_type(source))
    found = ours.apply(array, source)
    convert = other.transform(their_type)
    assert [stored(value) for value in found.to_pylist()] == [
        None if value is None else convert(stored(value)) for value in drawn
    ]
    assert found.equals(other.pyarrow_transform(their_type)(array).cast(found.type))
