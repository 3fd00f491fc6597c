"""Columns of bounds say what single values say, whatever the layout of the arrays."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Dec
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.value.bounds import decode_bounds, encode_bounds
from icefloe.codecs.value.promoted_bounds import promoted
from icefloe.errors import FormatError
from icefloe.model.arrow.conform import arrow_type
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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    Decimal,
    Fixed,
    Geography,
    Geometry,
    Type,
)
from support.single_values import decode_value, encode_value

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
BYTES = st.binary(max_size=20)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Dec]:
    # Powers of 256 and their neighbours are where the number of bytes changes.
    edges = [n + sign * 256**power // 2 for power in range(17) for sign in (-1, 1) for n in (-1, 0, 1)]
    allowed = [n for n in edges if abs(n) < 10**precision]
    whole = st.sampled_from(allowed) | st.integers(1 - 10**precision, 10**precision - 1)
    return whole.map(lambda n: Dec(f"{n}E{-scale}"))


VALUES: list[tuple[Type, st.SearchStrategy[Any]]] = [
    (BOOLEAN, st.booleans()),
    (INT, INTS),
    (LONG, LONGS),
    (FLOAT, st.floats(width=32, allow_nan=False)),
    (DOUBLE, st.floats(allow_nan=False)),
    (DATE, st.dates()),
    (TIME, st.times()),
    (TIMESTAMP, st.datetimes()),
    (TIMESTAMPTZ, st.datetimes(timezones=st.just(dt.UTC))),
    (TIMESTAMP_NS, LONGS),
    (TIMESTAMPTZ_NS, LONGS),
    (STRING, st.text(max_size=10)),
    (UUID, st.binary(min_size=16, max_size=16)),
    (BINARY, BYTES),
    (Fixed(0), st.just(b"")),
    (Fixed(5), st.binary(min_size=5, max_size=5)),
    (Geometry(), BYTES),
    (Geography(), BYTES),
    (Decimal(1, 0), decimals(1, 0)),
    (Decimal(9, 2), decimals(9, 2)),
    (Decimal(18, 18), decimals(18, 18)),
    (Decimal(38, 10), decimals(38, 10)),
]
FORMER = [
    (INT, LONG, INTS),
    (FLOAT, DOUBLE, st.floats(width=32, allow_nan=False)),
    (DATE, TIMESTAMP, st.dates()),
    (DATE, TIMESTAMP_NS, st.integers(-(2**31), 2**31 - 1)),
    (Decimal(9, 2), Decimal(20, 2), decimals(9, 2)),
]


def laid_out(draw: st.DrawFn, column: list[Any], type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The column as a plain array, a slice of a longer one, or chunks that are slices."""
    whole = pa.array([*column[:1], *column, *column[-1:]], type_)
    middle = whole.slice(len(column[:1]), len(column))
    match draw(st.sampled_from(["plain", "slice", "chunks", "large"])):
        case "plain":
            return pa.array(column, type_)
        case "slice":
            return middle
        case "large" if type_ == pa.binary():
            return middle.cast(pa.large_binary())
        case _:
            cut = draw(st.integers(0, len(column)))
            return pa.chunked_array([middle.slice(0, cut), middle.slice(0, 0), middle.slice(cut)], type_)


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
def test_columns_agree_with_single_values(type_, values):
    @given(st.data())
    def agree(data):
        column = data.draw(st.lists(st.none() | values, max_size=20))
        expected = [None if value is None else encode_value(value, type_) for value in column]

        stored = encode_bounds(laid_out(data.draw, column, arrow_type(type_)), type_)
        read = decode_bounds(laid_out(data.draw, expected, pa.binary()), type_)

        stored.validate(full=True)
        read.validate(full=True)
        assert stored.type == pa.binary()
        assert stored.to_pylist() == expected
        assert read.type == arrow_type(type_)
        assert encode_bounds(read, type_).to_pylist() == expected  # tells -0.0 from 0.0, which equality does not

    agree()


@pytest.mark.parametrize(("former", "type_", "values"), FORMER, ids=[f"{f}-{t}" for f, t, _ in FORMER])
def test_columns_with_bounds_of_a_former_type_agree_with_single_values(former, type_, values):
    current = dict(VALUES).get(type_, decimals(20, 2))

    @given(st.data())
    def agree(data):
        old = values.map(lambda value: encode_value(value, former))
        new = current.map(lambda value: encode_value(value, type_))
        column = data.draw(st.lists(st.none() | old | new, max_size=20))

        read = decode_bounds(laid_out(data.draw, column, pa.binary()), type_)

        read.validate(full=True)
        assert read.equals(pa.array([None if d is None else decode_value(d, type_) for d in column], arrow_type(type_)))

    agree()


@pytest.mark.parametrize(("former", "type_", "values"), FORMER, ids=[f"{f}-{t}" for f, t, _ in FORMER])
def test_bounds_in_memory_are_promoted_as_their_bytes_are(former, type_, values):
    """Version 4 stores bounds as values: a day beyond all nanoseconds was no bound there, but an error."""

    @given(st.data())
    def agree(data):
        column = laid_out(data.draw, data.draw(st.lists(st.none() | values, max_size=20)), arrow_type(former))
        plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        read = promoted(plain, type_)
        read.validate(full=True)
        assert read.equals(decode_bounds(encode_bounds(plain, former), type_))

    agree()


@pytest.mark.parametrize(("bound", "type_"), [("11", LONG), (11.0, LONG), (11, DOUBLE), (b"1", DATE), (1, STRING)])
def test_bounds_of_another_kind_are_not_converted(bound, type_):
    """A text that spells a number was read as the bound of a column of numbers."""
    with pytest.raises(pa.ArrowTypeError, match="cannot become"):
        promoted(pa.array([bound, None]), type_)


@pytest.mark.parametrize("type_", [t for t, _ in VALUES], ids=str)
def test_bytes_are_refused_or_are_a_value_that_is_stored_again(type_):
    @given(st.binary(max_size=18) | st.sampled_from([4, 8, 16]).flatmap(lambda n: st.binary(min_size=n, max_size=n)))
    def agree(data):
        try:
            read = decode_bounds(pa.array([data], pa.binary()), type_)
        except FormatError:
            return
        read.validate()
        assert decode_bounds(encode_bounds(read, type_), type_).equals(read) or type_ in (FLOAT, DOUBLE)  # NaN

    agree()
