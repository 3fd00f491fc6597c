"""Transforms: text, types, values, and arrays with nulls, slices and chunks."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import FormatError, InputError, UnsupportedError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.partition.transform_names import TRANSFORM_NAMES
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
    List,
)
from icefloe.transforms import (
    Bucket,
    Day,
    Hour,
    Identity,
    Month,
    Truncate,
    UnknownTransform,
    Void,
    Year,
    parse_transform,
)

MOMENT = dt.datetime(2017, 11, 16, 22, 31, 8)
PACIFIC = dt.timezone(dt.timedelta(hours=-8))


@pytest.mark.parametrize(
    ("text", "transform"),
    [
        ("identity", Identity()),
        ("void", Void()),
        ("year", Year()),
        ("month", Month()),
        ("day", Day()),
        ("hour", Hour()),
        ("bucket[16]", Bucket(16)),
        ("truncate[10]", Truncate(10)),
    ],
)
def test_texts_of_the_specification_parse_and_print(text: str, transform: Any) -> None:
    assert parse_transform(text) == transform
    assert str(transform) == text


@pytest.mark.parametrize(
    "text",
    [
        "week", "years", "truncate", "truncate[-4]", "truncate[ 4]", "zorder[1,2]", "", "bucket[x]", "bucket[]",
        "bucket[\u0664]", "buc\u212aet[4]", "bucket[4]\n", " day", "day[1]",
    ],
)  # fmt: skip
def test_unknown_transforms_parse_and_are_refused_in_use(text: str) -> None:
    transform = parse_transform(text)
    assert transform == UnknownTransform(text)
    assert str(transform) == text
    assert not transform.accepts(LONG)
    for use in (
        lambda: transform.apply(pa.array([1]), LONG),
        lambda: transform.result_type(LONG),
        lambda: transform.value(1, LONG),
    ):
        with pytest.raises(UnsupportedError, match="cannot be computed"):
            use()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Identity", "identity"), ("VOID", "void"), ("Year", "year"), ("MONTH", "month"), ("dAy", "day"),
        ("Hour", "hour"), ("Bucket[16]", "bucket[16]"), ("TRUNCATE[7]", "truncate[7]"), ("bucket[0016]", "bucket[16]"),
        ("bucket[2147483647]", "bucket[2147483647]"),
    ],
)  # fmt: skip
def test_other_spellings_of_known_transforms_print_as_in_the_specification(text: str, canonical: str) -> None:
    assert str(parse_transform(text)) == canonical
    assert parse_transform(text) == parse_transform(canonical)


TOO_MANY_DIGITS = "1" + "0" * 5000


@pytest.mark.parametrize("text", ["bucket[0]", "bucket[2147483648]", "BUCKET[000]", f"bucket[{TOO_MANY_DIGITS}]"])
def test_impossible_numbers_of_buckets_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="number of buckets"):
        parse_transform(text)


@pytest.mark.parametrize("text", ["truncate[0]", "truncate[2147483648]", f"truncate[{TOO_MANY_DIGITS}]"])
def test_impossible_widths_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="the width is 1 to"):
        parse_transform(text)


HASHES = [
    (34, INT, 2017239379),
    (34, LONG, 2017239379),
    (decimal.Decimal("14.20"), Decimal(9, 2), -500754589),
    (dt.date(2017, 11, 16), DATE, -653330422),
    (dt.time(22, 31, 8), TIME, -662762989),
    (MOMENT, TIMESTAMP, -2047944441),
    (MOMENT.replace(hour=14, tzinfo=PACIFIC), TIMESTAMPTZ, -2047944441),
    (1_510_871_468_000_000_999, TIMESTAMP_NS, -2047944441),
    (1_510_871_468_000_000_001, TIMESTAMPTZ_NS, -2047944441),
    ("iceberg", STRING, 1210000089),
    (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), UUID, 1488055340),
    (b"\x00\x01\x02\x03", Fixed(4), -188683207),
    (b"\x00\x01\x02\x03", BINARY, -188683207),
]


@pytest.mark.parametrize(("value", "type_", "hashed"), HASHES)
def test_buckets_follow_the_hashes_of_the_specification(value: Any, type_: Any, hashed: int) -> None:
    for count in (1, 16, 1000, 2**31 - 1):
        transform = Bucket(count)
        assert transform.accepts(type_)
        assert transform.result_type(type_) == INT
        assert transform.value(value, type_) == (hashed & 0x7FFFFFFF) % count
        assert transform.value(None, type_) is None


def test_a_bucket_does_not_change_when_an_int_becomes_a_long() -> None:
    values = [0, 1, -1, 2**31 - 1, -(2**31), None]
    narrow, wide = pa.array(values, pa.int32()), pa.array(values, pa.int64())
    assert Bucket(97).apply(narrow, INT).equals(Bucket(97).apply(wide, LONG))


@given(st.lists(st.lists(st.none() | st.text(max_size=9))), st.integers(1, 50))
def test_chunks_and_nulls_keep_their_places(chunks: list[list[str | None]], count: int) -> None:
    column = pa.chunked_array(chunks, pa.string())
    found = Bucket(count).apply(column, STRING)
    assert found.type == pa.int32()
    expected = [None if v is None else (mmh3.hash(v) & 0x7FFFFFFF) % count for chunk in chunks for v in chunk]
    assert found.to_pylist() == expected


@given(st.lists(st.none() | st.datetimes()), st.integers(0, 2))
def test_a_day_is_rounded_towards_the_past(values: list[dt.datetime | None], start: int) -> None:
    array = pa.array(values, pa.timestamp("us")).slice(start)
    found = Day().apply(array, TIMESTAMP)
    assert found.type == pa.date32()
    assert found.to_pylist() == [None if value is None else value.date() for value in values[start:]]


def test_a_day_is_a_day_in_utc() -> None:
    last = dt.datetime(1969, 12, 31, 16, 0, tzinfo=PACIFIC) - dt.timedelta(microseconds=1)
    assert Day().value(last, TIMESTAMPTZ) == dt.date(1969, 12, 31)
    assert Day().value(last + dt.timedelta(microseconds=1), TIMESTAMPTZ) == dt.date(1970, 1, 1)
    assert Day().value(dt.date(1969, 12, 31), DATE) == dt.date(1969, 12, 31)
    assert Day().result_type(TIMESTAMP) == DATE


def test_identity_and_void() -> None:
    array = pa.chunked_array([["a", None], ["b"]])
    assert Identity().apply(array, STRING).to_pylist() == ["a", None, "b"]
    assert Identity().apply(pa.chunked_array([], pa.string()), STRING).to_pylist() == []
    assert Void().apply(array, STRING).equals(pa.nulls(3, pa.string()))
    assert Identity().result_type(Decimal(9, 2)) == Void().result_type(Decimal(9, 2)) == Decimal(9, 2)


NESTED = List(1, LONG)
PRIMITIVES = (
    BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, STRING, UUID, BINARY, Decimal(9, 2),
    Fixed(4), TIMESTAMP_NS, TIMESTAMPTZ_NS,
)  # fmt: skip
STAMPS = (TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)
DAYS = (DATE, *STAMPS)


@pytest.mark.parametrize(
    ("transform", "accepted"),
    [
        (Identity(), PRIMITIVES),
        (Bucket(2), tuple(type_ for type_ in PRIMITIVES if type_ not in (BOOLEAN, FLOAT, DOUBLE))),
        (Truncate(2), (INT, LONG, STRING, BINARY, Decimal(9, 2))),
        (Year(), DAYS),
        (Month(), DAYS),
        (Day(), DAYS),
        (Hour(), STAMPS),
    ],
)
def test_types_that_a_transform_does_not_take_are_refused(transform: Any, accepted: tuple[Any, ...]) -> None:
    for type_ in (*PRIMITIVES, NESTED):
        assert transform.accepts(type_) == (type_ in accepted)
        if type_ in accepted:
            found = transform.apply(pa.nulls(1, arrow_type(type_)), type_)
            assert found.equals(pa.nulls(1, arrow_type(transform.result_type(type_))))
        else:
            with pytest.raises(InputError, match="cannot be applied"):
                transform.apply(pa.nulls(1), type_)


def test_which_transforms_preserve_order() -> None:
    assert all(t.preserves_order for t in (Identity(), Year(), Month(), Day(), Hour(), Truncate(2)))
    assert not any(t.preserves_order for t in (Bucket(2), Void(), UnknownTransform("x")))


def test_every_name_of_the_model_is_a_transform_that_is_computed() -> None:
    for name in TRANSFORM_NAMES:
        transform = parse_transform(f"{name.name}[4]" if name.is_sized else name.name)
        assert transform.is_known
        assert str(transform).partition("[")[0] == name.name
