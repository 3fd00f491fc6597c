"""However Arrow lays out the same values, a transform gives the same results."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import (
    BINARY,
    DATE,
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
)
from icefloe.transforms import Bucket, Day, Hour, Identity, Month, Truncate, Void, Year

TRANSFORMS = (Identity(), Bucket(97), Bucket(64), Truncate(3), Year(), Month(), Day(), Hour(), Void())
MOMENTS = [-(10**15), -86_400_000_001, -1, 0, 1, 3_600_000_000, None, 1_510_871_468_000_001, 10**15, None]
NUMBERS = [-2_000_000_000, -128, -1, 0, None, 1, 127, 255, 2_000_000_000, None]
WORDS = ["", "a", None, "ice", "iceberg", "é\U0001f600x", "a\0", "x" * 70, "y" * 700, None]
VALUES: dict[Any, list[Any]] = {
    INT: NUMBERS,
    LONG: [None if number is None else number * 2**32 + 5 for number in NUMBERS],
    DATE: [None if number is None else number // 1000 for number in NUMBERS],
    TIME: [dt.time(0), None, dt.time(23, 59, 59, 999_999), dt.time(12, 30)],
    TIMESTAMP: MOMENTS,
    TIMESTAMPTZ: MOMENTS,
    TIMESTAMP_NS: [None if moment is None else moment * 1000 - 1 for moment in MOMENTS],
    TIMESTAMPTZ_NS: [None if moment is None else moment * 1000 - 1 for moment in MOMENTS],
    STRING: WORDS,
    BINARY: [None if word is None else word.encode() for word in WORDS],
    UUID: [uuid.UUID(int=number**13).bytes for number in range(20)] + [None],
    Fixed(5): [b"12345", None, b"\0\0\0\0\0", b"\xff\xff\xff\xff\xff"],
    Fixed(80): [b"x" * 80, None, bytes(range(80))],
    Decimal(9, 2): [None if n is None else decimal.Decimal(n // 4).scaleb(-2) for n in NUMBERS],
    Decimal(38, 0): [None if n is None else decimal.Decimal(n * 2**90) for n in NUMBERS],
    UNKNOWN: [None, None],
}
CASES = [(source, transform) for source in VALUES for transform in TRANSFORMS if transform.accepts(source)]


def plain(source: Any) -> pa.Array:
    return pa.array(VALUES[source], arrow_type(source))


def same(found: pa.Array, expected: pa.Array) -> bool:
    found.validate(full=True)
    return bool(found.equals(expected))


@pytest.mark.parametrize(("source", "transform"), CASES, ids=str)
def test_slices_and_chunks_and_dictionaries(source: Any, transform: Any) -> None:
    array = plain(source)
    expected = transform.apply(array, source)
    assert expected.type == arrow_type(transform.result_type(source))
    assert expected.null_count == (len(array) if isinstance(transform, Void) else array.null_count)
    long = pa.concat_arrays([array] * 3)
    for start in range(len(array)):
        for length in (0, 1, len(array) - start):
            part = long.slice(len(array) + start, length)
            assert same(transform.apply(part, source), expected.slice(start, length))
    chunks = pa.chunked_array([array.slice(0, 1), array.slice(1, 0), array.slice(1)])
    assert same(transform.apply(chunks, source), expected)
    assert same(transform.apply(pa.chunked_array([], array.type), source), expected.slice(0, 0))
    if source != UNKNOWN:
        encoded = long.dictionary_encode()
        assert same(
            transform.apply(encoded.slice(2, len(array)), source), transform.apply(long.slice(2, len(array)), source)
        )


@pytest.mark.parametrize(("source", "transform"), CASES, ids=str)
def test_no_values_and_nulls_only(source: Any, transform: Any) -> None:
    type_, result = arrow_type(source), arrow_type(transform.result_type(source))
    for count in (0, 1, 9):
        assert same(transform.apply(pa.nulls(count, type_), source), pa.nulls(count, result))
        assert same(transform.apply(pa.nulls(count), source), pa.nulls(count, result))
    empty = pa.Array.from_buffers(pa.int64(), 0, [None, None])
    if source == LONG:
        assert same(transform.apply(empty, source), pa.nulls(0, result))
    assert transform.value(None, source) is None


OTHER_TYPES = [
    (STRING, pa.large_string()), (STRING, pa.string_view()), (STRING, pa.binary()), (BINARY, pa.large_binary()),
    (BINARY, pa.binary_view()), (STRING, pa.dictionary(pa.int8(), pa.large_string())), (BINARY, pa.string()),
    (INT, pa.int64()), (LONG, pa.decimal128(38, 0)), (Decimal(9, 2), pa.decimal32(9, 2)),
    (Decimal(9, 2), pa.decimal64(11, 4)), (Decimal(9, 2), pa.decimal128(30, 2)), (Decimal(9, 2), pa.decimal256(50, 9)),
    (Decimal(38, 0), pa.decimal256(76, 20)), (TIMESTAMP, pa.timestamp("ns")), (DATE, pa.date64()),
    (TIMESTAMPTZ, pa.timestamp("us", "Asia/Tokyo")), (TIMESTAMPTZ_NS, pa.timestamp("ns", "+05:30")),
    (TIME, pa.time64("ns")),
]  # fmt: skip


@pytest.mark.parametrize(("source", "other"), OTHER_TYPES, ids=str)
def test_other_types_that_hold_the_same_values(source: Any, other: Any) -> None:
    array = plain(source) if source != BINARY else plain(STRING).cast(pa.binary())
    for transform in TRANSFORMS:
        if transform.accepts(source):
            expected = transform.apply(array, source)
            assert same(transform.apply(array.cast(other), source), expected)
            assert same(transform.apply(array.cast(other).slice(3), source), expected.slice(3))


def test_uuids_of_arrows_own_type() -> None:
    stored = plain(UUID)
    assert same(
        Bucket(97).apply(pa.ExtensionArray.from_storage(pa.uuid(), stored), UUID), Bucket(97).apply(stored, UUID)
    )


@pytest.mark.parametrize(
    ("array", "source"),
    [
        (pa.array([1], pa.timestamp("ns")), TIMESTAMP), (pa.array([2**31]), INT), (pa.array([[1]]), LONG),
        (pa.array([b"\xff"]), STRING), (pa.array([decimal.Decimal("0.001")]), Decimal(9, 2)), (pa.array(["x"]), INT),
    ],
    ids=str,
)  # fmt: skip
def test_values_that_the_type_cannot_hold_are_refused(array: pa.Array, source: Any) -> None:
    with pytest.raises(InputError, match=f"cannot be read as {source}".replace("(", r"\(").replace(")", r"\)")):
        Bucket(4).apply(array, source)


@pytest.mark.parametrize(
    ("value", "source"),
    [("x", LONG), (2**63, LONG), (1, STRING), (b"1", Fixed(2)), (decimal.Decimal(1000), Decimal(2, 0))],
)
def test_a_value_of_another_type_is_refused(value: Any, source: Any) -> None:
    with pytest.raises(InputError, match="is no value of type"):
        Bucket(4).value(value, source)


def hiding(type_: pa.DataType, numbers: list[int], dtype: str) -> pa.Array:
    """An array whose values, but the last, lie under nulls."""
    validity = pa.py_buffer(bytes([1 << (len(numbers) - 1)]))
    return pa.Array.from_buffers(type_, len(numbers), [validity, pa.py_buffer(np.array(numbers, dtype))])


def test_what_lies_under_a_null_never_matters() -> None:
    assert Truncate(10).apply(hiding(pa.int64(), [-(2**63), -1], "i8"), LONG).to_pylist() == [None, -10]
    assert Truncate(10).apply(hiding(pa.int32(), [-(2**31), 19], "i4"), INT).to_pylist() == [None, 10]
    assert Hour().apply(hiding(pa.timestamp("us"), [2**63 - 1, -1], "i8"), TIMESTAMP).to_pylist() == [None, -1]
    assert Year().apply(hiding(pa.timestamp("us"), [-(2**63), -1], "i8"), TIMESTAMP).to_pylist() == [None, -1]


def test_a_dictionary_may_hold_numbers_that_no_row_has() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, None]), pa.array([-(2**63), 25]))
    assert Truncate(10).apply(column, LONG).to_pylist() == [20, None]


def test_a_dictionary_may_hold_a_null() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), pa.array(["iceberg", None]))
    assert Truncate(3).apply(column, STRING).to_pylist() == [None, "ice", None, None]


def test_columns_without_values_and_of_shapes() -> None:
    assert [t for t in TRANSFORMS if t.accepts(UNKNOWN)] == [Identity(), Void()]
    for type_ in (VARIANT, Geometry(), Geography("OGC:CRS84", "karney")):
        assert [t for t in TRANSFORMS if t.accepts(type_)] == [Void()]
        assert same(Void().apply(pa.nulls(2, arrow_type(type_)), type_), pa.nulls(2, arrow_type(type_)))


@pytest.mark.parametrize("source", [TIMESTAMP_NS, TIMESTAMPTZ_NS])
def test_one_moment_in_nanoseconds_is_a_number(source: Any) -> None:
    assert Identity().value(-1_000_000_001, source) == -1_000_000_001
    assert Day().value(-1, source) == dt.date(1969, 12, 31)
    assert [t.value(-1, source) for t in (Year(), Month(), Hour())] == [-1, -1, -1]
    assert Bucket(97).value(-1, source) == Bucket(97).value(-1, TIMESTAMP)
    assert Bucket(97).value(1_510_871_468_000_000_999, source) == Bucket(97).value(1_510_871_468_000_000, TIMESTAMP)
