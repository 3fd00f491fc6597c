"""Appendix D, by hand, by property and against pyiceberg."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context
from decimal import Decimal as PyDecimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import conversions
from pyiceberg import types as peer

from icefloe.codecs.value.bounds import decode_bounds, encode_bounds, known_bounds
from icefloe.errors import FormatError, InputError, LimitError
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
    UNKNOWN,
    UUID,
    VARIANT,
    Decimal,
    Fixed,
    Geography,
    Geometry,
    List,
)
from support.selection import examples
from support.single_values import decode_value, encode_value

SOME_UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")

SPEC = [
    (BOOLEAN, False, "00"),
    (BOOLEAN, True, "01"),
    (INT, 34, "22000000"),
    (INT, -1, "ffffffff"),
    (LONG, 34, "2200000000000000"),
    (LONG, -(2**63), "0000000000000080"),
    (FLOAT, 1.0, "0000803f"),
    (DOUBLE, 1.0, "000000000000f03f"),
    (DOUBLE, -0.0, "0000000000000080"),
    (DATE, date(1970, 1, 2), "01000000"),
    (DATE, date(1969, 12, 31), "ffffffff"),
    (TIME, time(0, 0, 1), "40420f0000000000"),
    (TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1), "40420f0000000000"),
    (TIMESTAMP, datetime(1969, 12, 31, 23, 59, 59, 999999), "ffffffffffffffff"),
    (TIMESTAMPTZ, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "40420f0000000000"),
    (STRING, "iceberg", "69636562657267"),
    (STRING, "", ""),
    (STRING, "é€😀", "c3a9e282acf09f9880"),
    (UUID, SOME_UUID.bytes, "f79c3e09677c4bbda4793f349cb785e7"),
    (Fixed(4), b"\x00\x01\x02\xff", "000102ff"),
    (BINARY, b"\x00\x01\x02\xff", "000102ff"),
    (BINARY, b"", ""),
    (Decimal(9, 2), PyDecimal("14.20"), "058c"),
    (Decimal(9, 2), PyDecimal("0.00"), "00"),
    (Decimal(9, 2), PyDecimal("-0.01"), "ff"),
    (Decimal(9, 2), PyDecimal("1.27"), "7f"),
    (Decimal(9, 2), PyDecimal("1.28"), "0080"),
    (Decimal(9, 2), PyDecimal("-1.28"), "80"),
    (Decimal(9, 2), PyDecimal("-1.29"), "ff7f"),
    (TIMESTAMP_NS, 1, "0100000000000000"),
    (TIMESTAMP_NS, -(2**63), "0000000000000080"),
    (TIMESTAMPTZ_NS, 0x0123456789ABCDEF, "efcdab8967452301"),
    (Geometry(), b"\x00" * 8 + b"\xff" * 8, "00" * 8 + "ff" * 8),
    (Geography(), b"", ""),
    (Decimal(38, 0), PyDecimal(10**38 - 1), "4b3b4ca85a86c47a098a223fffffffff"),
    (Decimal(38, 0), PyDecimal(-(10**38) + 1), "b4c4b357a5793b85f675ddc000000001"),
]


@pytest.mark.parametrize(("type_", "value", "expected"), SPEC, ids=[f"{t}-{v!r}" for t, v, _ in SPEC])
def test_every_type_has_the_bytes_of_the_specification(type_, value, expected):
    data = bytes.fromhex(expected)

    assert decode_value(data, type_) == value
    assert encode_bounds(pa.array([value, None], arrow_type(type_)), type_).to_pylist() == [data, None]
    assert decode_bounds(pa.array([None, data], pa.binary()), type_).equals(pa.array([None, value], arrow_type(type_)))


def test_negative_zero_keeps_its_sign():
    assert math.copysign(1, decode_value(encode_value(-0.0, DOUBLE), DOUBLE)) == -1


def test_any_byte_but_zero_is_true():
    assert decode_value(b"\x02", BOOLEAN) is True
    assert decode_bounds(pa.array([b"\x02", b"\x00"]), BOOLEAN).to_pylist() == [True, False]


def test_a_timestamp_with_zone_is_stored_in_utc():
    local = datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))

    assert encode_value(local, TIMESTAMPTZ) == bytes(8)


def test_int_bounds_are_read_after_the_column_became_long():
    stored = pa.array([encode_value(-7, INT), encode_value(2**40, LONG), None, encode_value(5, INT)])

    assert decode_value(encode_value(-7, INT), LONG) == -7
    assert decode_bounds(stored, LONG).to_pylist() == [-7, 2**40, None, 5]


def test_float_bounds_are_read_after_the_column_became_double():
    stored = pa.array([encode_value(0.5, FLOAT), encode_value(0.1, DOUBLE)])

    assert decode_value(encode_value(0.5, FLOAT), DOUBLE) == 0.5
    assert decode_bounds(stored, DOUBLE).to_pylist() == [0.5, 0.1]


def test_date_bounds_are_read_after_the_column_became_a_timestamp():
    stored = pa.array([encode_value(date(1969, 12, 31), DATE), None, encode_value(7, LONG)])

    assert decode_value(stored[0].as_py(), TIMESTAMP) == datetime(1969, 12, 31)
    assert decode_value(stored[0].as_py(), TIMESTAMP_NS) == -86_400_000_000_000
    assert decode_bounds(stored, TIMESTAMP).cast(pa.int64()).to_pylist() == [-86_400_000_000, None, 7]
    assert decode_bounds(stored, TIMESTAMP_NS).cast(pa.int64()).to_pylist() == [-86_400_000_000_000, None, 7]


@pytest.mark.parametrize(("day", "nanos"), [(date(1500, 1, 1), -(2**63)), (date(9999, 12, 31), 2**63 - 1)])
def test_a_date_beyond_nanoseconds_is_the_outermost_bound_there_is(day, nanos):
    stored = encode_value(day, DATE)

    assert decode_value(stored, TIMESTAMP_NS) == nanos
    assert decode_bounds(pa.array([stored]), TIMESTAMP_NS).cast(pa.int64()).to_pylist() == [nanos]


def test_decimal_bounds_are_read_after_the_precision_grew():
    stored = encode_value(PyDecimal("14.20"), Decimal(4, 2))

    assert decode_value(stored, Decimal(38, 2)) == PyDecimal("14.20")
    assert decode_bounds(pa.array([stored]), Decimal(38, 2)).to_pylist() == [PyDecimal("14.20")]


def test_decimal_bounds_longer_than_needed_are_read():
    assert decode_value(b"\x00\x00\x7f", Decimal(9, 2)) == PyDecimal("1.27")
    assert decode_bounds(pa.array([b"\xff\xff\x80"]), Decimal(9, 2)).to_pylist() == [PyDecimal("-1.28")]


def test_truncated_bounds_of_a_fixed_column_are_filled_up():
    assert decode_value(b"ab", Fixed(4)) == b"ab\0\0"
    assert decode_bounds(pa.array([b"ab", None, b"abcd"]), Fixed(4)).to_pylist() == [b"ab\0\0", None, b"abcd"]


def test_a_fixed_column_too_wide_for_the_memory_is_a_limit_error():
    with pytest.raises(LimitError, match="bounds of x: 2 values"):
        decode_bounds(pa.array([None, b"a"], pa.binary()), Fixed(999_999_999), where="bounds of x")


def test_slices_and_chunks_are_read_where_they_are():
    values = pa.array([1, None, 3, 4], pa.int64())
    stored = encode_bounds(values, LONG)

    assert encode_bounds(values.slice(1, 2), LONG).to_pylist() == stored.to_pylist()[1:3]
    assert decode_bounds(stored.slice(1, 2), LONG).to_pylist() == [None, 3]
    assert decode_bounds(pa.chunked_array([stored.slice(3), stored.slice(0, 2)]), LONG).to_pylist() == [4, 1, None]
    assert decode_bounds(pa.array([], pa.binary()), LONG).to_pylist() == []
    amounts = pa.array([PyDecimal(1), PyDecimal(2), PyDecimal(3)], pa.decimal128(9, 0))
    assert encode_bounds(amounts.slice(1), Decimal(9, 0)).to_pylist() == [b"\2", b"\3"]
    assert encode_bounds(pa.array([None, None], pa.decimal128(5, 1)), Decimal(5, 1)).to_pylist() == [None, None]


WRONG = [
    (BOOLEAN, b""),
    (BOOLEAN, b"\1\1"),
    (INT, b"\1"),
    (INT, bytes(8)),
    (LONG, bytes(5)),
    (FLOAT, bytes(8)),
    (DOUBLE, b""),
    (DATE, bytes(8)),
    (TIMESTAMPTZ, bytes(4)),
    (UUID, bytes(15)),
    (Fixed(2), bytes(3)),
    (Decimal(9, 2), b""),
    (Decimal(9, 2), bytes(17)),
    (Decimal(3, 2), encode_value(1000, LONG)),
    (Decimal(38, 0), b"\x7f" + b"\xff" * 15),
    (TIMESTAMPTZ_NS, bytes(4)),
    (TIMESTAMP_NS, bytes(5)),
    (UNKNOWN, b""),
    (VARIANT, b"\0"),
    (STRING, b"\xff"),
    (List(1, INT), b"1"),
]


@pytest.mark.parametrize(("type_", "data"), WRONG, ids=[f"{t}-{len(d)}" for t, d in WRONG])
def test_bytes_that_are_no_value_are_a_format_error(type_, data):
    with pytest.raises(FormatError, match="manifest m1"):
        decode_bounds(pa.array([None, data], pa.binary()), type_, where="manifest m1")


@pytest.mark.parametrize(("data", "type_"), [(2**62, TIMESTAMP), (-1, TIME), (2**31 - 1, DATE)])
def test_a_number_beyond_pythons_calendar_is_kept(data, type_):
    stored = encode_value(data, type_)

    assert encode_bounds(decode_bounds(pa.array([stored]), type_), type_).to_pylist() == [stored]


def test_bounds_beyond_pythons_calendar_are_known_beside_damaged_ones():
    stored = pa.array([b"short", encode_value(2**62, TIMESTAMP)])

    assert known_bounds(stored, TIMESTAMP).cast(pa.int64()).to_pylist() == [None, 2**62]


def test_nested_and_variant_columns_have_no_bounds():
    with pytest.raises(InputError):
        encode_bounds(pa.array([[1]]), List(1, INT))
    with pytest.raises(InputError):
        encode_bounds(pa.array([b"\0"]), VARIANT)


def test_an_unknown_column_has_only_null_bounds():
    assert encode_bounds(pa.nulls(2), UNKNOWN).equals(pa.nulls(2, pa.binary()))
    assert decode_bounds(pa.nulls(2, pa.binary()), UNKNOWN).equals(pa.nulls(2))


def decimals(precision: int, scale: int) -> st.SearchStrategy[PyDecimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda n: PyDecimal(n).scaleb(-scale, Context(prec=38)))


moments = st.datetimes()
PEERS = [
    (BOOLEAN, peer.BooleanType(), st.booleans()),
    (INT, peer.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (LONG, peer.LongType(), st.integers(-(2**63), 2**63 - 1)),
    (FLOAT, peer.FloatType(), st.floats(width=32, allow_nan=False)),
    (DOUBLE, peer.DoubleType(), st.floats(allow_nan=False)),
    (DATE, peer.DateType(), st.dates()),
    (TIME, peer.TimeType(), st.times()),
    (TIMESTAMP, peer.TimestampType(), moments),
    (TIMESTAMPTZ, peer.TimestamptzType(), moments.map(lambda m: m.replace(tzinfo=UTC))),
    (STRING, peer.StringType(), st.text(max_size=20)),
    (UUID, peer.UUIDType(), st.uuids().map(lambda u: u.bytes)),
    (BINARY, peer.BinaryType(), st.binary(max_size=20)),
    (Fixed(5), peer.FixedType(5), st.binary(min_size=5, max_size=5)),
    (Decimal(9, 2), peer.DecimalType(9, 2), decimals(9, 2)),
    (Decimal(38, 10), peer.DecimalType(38, 10), decimals(38, 10)),
]


@pytest.mark.parametrize(("type_", "theirs", "values"), PEERS, ids=[str(t) for t, _, _ in PEERS])
def test_pyiceberg_agrees_in_both_directions(type_, theirs, values):
    @settings(max_examples=examples(40), deadline=None)
    @given(values)
    def agree(value):
        data = encode_value(value, type_)
        assert conversions.to_bytes(theirs, value) == data
        read = conversions.from_bytes(theirs, data)
        assert encode_value(read.bytes if isinstance(read, uuid.UUID) else read, type_) == data
        assert decode_value(data, type_) == value

    agree()
