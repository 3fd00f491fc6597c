"""Truncation: numbers floor to multiples, texts are cut by code point, bytes by byte."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import BINARY, INT, LONG, STRING, Decimal
from icefloe.transforms import Truncate

WIDTHS = st.integers(1, 100) | st.sampled_from([2**16, 2**30, 2**31 - 1]) | st.integers(1, 2**31 - 1)
EXACT = decimal.Context(prec=80)


def cut(value: int, width: int) -> int:
    return value - value % width


@pytest.mark.parametrize(
    ("width", "value", "type_", "expected"),
    [
        (10, 1, INT, 0), (10, -1, INT, -10), (10, 1, LONG, 0), (10, -1, LONG, -10), (10, 10, INT, 10),
        (10, -10, LONG, -10), (50, decimal.Decimal("10.65"), Decimal(9, 2), decimal.Decimal("10.50")),
        (10, decimal.Decimal("-0.05"), Decimal(9, 2), decimal.Decimal("-0.10")), (3, "iceberg", STRING, "ice"),
        (3, "ic", STRING, "ic"), (1, "\U0001f600é", STRING, "\U0001f600"), (2, "", STRING, ""),
        (2, b"\x00\xff\x01", BINARY, b"\x00\xff"), (3, b"\xff", BINARY, b"\xff"),
    ],
)  # fmt: skip
def test_values_are_cut_as_in_the_specification(width: int, value: Any, type_: Any, expected: Any) -> None:
    found = Truncate(width).value(value, type_)
    assert found == expected
    assert str(found) == str(expected)
    assert Truncate(width).value(None, type_) is None
    assert Truncate(width).result_type(type_) == type_


@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)), WIDTHS, st.integers(0, 2))
def test_ints_floor_also_in_slices(values: list[int | None], width: int, start: int) -> None:
    kept = [v if v is None or cut(v, width) >= -(2**31) else None for v in values]
    found = Truncate(width).apply(pa.array(kept, pa.int32()).slice(start), INT)
    assert found.type == pa.int32()
    assert found.to_pylist() == [None if v is None else cut(v, width) for v in kept[start:]]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), WIDTHS)
def test_longs_floor_as_ints_do(values: list[int | None], width: int) -> None:
    kept = [v if v is None or cut(v, width) >= -(2**63) else None for v in values]
    found = Truncate(width).apply(pa.array(kept, pa.int64()), LONG)
    assert found.to_pylist() == [None if v is None else cut(v, width) for v in kept]


DIGITS = [1, 2, 9, 18, 19, 20, 38]
UNSCALED = st.sampled_from(DIGITS).flatmap(lambda n: st.integers(1 - 10**n, 10**n - 1)) | st.sampled_from(
    [sign * 2**64 * high + low for sign in (1, -1) for high in (0, 1, 2**20) for low in (-1, 0, 1)]
)


@given(st.lists(st.none() | UNSCALED), WIDTHS, st.sampled_from([0, 2, 38]), st.integers(0, 2))
def test_decimals_floor_in_units_of_the_last_digit(
    values: list[int | None], width: int, scale: int, start: int
) -> None:
    kept = [v if v is None or cut(v, width) > -(10**38) else None for v in values]

    def scaled(value: int | None) -> decimal.Decimal | None:
        return None if value is None else decimal.Decimal(value).scaleb(-scale, EXACT)

    array = pa.array([scaled(v) for v in kept], pa.decimal128(38, scale)).slice(start)
    found = Truncate(width).apply(array, Decimal(38, scale))
    found.validate(full=True)
    assert found.to_pylist() == [None if v is None else scaled(cut(v, width)) for v in kept[start:]]


@given(st.lists(st.none() | st.text(max_size=9)), st.lists(st.none() | st.binary(max_size=9)), st.integers(1, 9))
def test_texts_and_bytes_are_cut_to_a_prefix(texts: list[str | None], raw: list[bytes | None], width: int) -> None:
    halves = pa.chunked_array([texts[:3], texts[3:]], pa.string())
    assert Truncate(width).apply(halves, STRING).to_pylist() == [None if v is None else v[:width] for v in texts]
    found = Truncate(width).apply(pa.array(raw, pa.binary()).slice(1), BINARY)
    assert found.to_pylist() == [None if v is None else v[:width] for v in raw[1:]]


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (-(2**31), INT), (-(2**63), LONG), (decimal.Decimal("-9999999.99"), Decimal(9, 2)),
        (decimal.Decimal(1 - 10**38), Decimal(38, 0)),
    ],
)  # fmt: skip
def test_a_result_that_the_type_cannot_hold_is_refused(value: Any, type_: Any) -> None:
    for values in ([value], [None, value, None]):
        with pytest.raises(InputError, match="below the lowest"):
            Truncate(10).apply(pa.array(values, arrow_type(type_)), type_)
    assert Truncate(1).value(value, type_) == value


def test_what_lies_under_a_null_does_not_matter() -> None:
    lowest = pa.array([decimal.Decimal(-99), decimal.Decimal(-90)], pa.decimal128(2, 0))
    hidden = pa.Array.from_buffers(lowest.type, 2, [pa.py_buffer(b"\x02"), lowest.buffers()[1]])
    assert Truncate(10).apply(hidden, Decimal(2, 0)).to_pylist() == [None, decimal.Decimal(-90)]
