"""Transforms of many random values and all edges, beside pyiceberg's (by its Rust core), mmh3 and Python's own numbers.

``ICEFLOE_TRANSFORM_VALUES`` is the number of values of each type: 20,000, or a million with the profile ``property``.
Where pyiceberg answers otherwise, a test of its own says so and why.
"""

from __future__ import annotations

import decimal
import functools
import os
import random
import struct
from collections.abc import Callable
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyiceberg.transforms as theirs
import pyiceberg.types as their_types
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
    UUID,
    Decimal,
    Fixed,
)
from icefloe.transforms import Day, Hour, Truncate, Year, parse_transform

MANY = 1_000_000 if os.environ.get("ICEFLOE_PROFILE") == "property" else 20_000
COUNT = int(os.environ.get("ICEFLOE_TRANSFORM_VALUES", str(MANY)))
DAY = 86_400
TICKS = {TIMESTAMP: 10**6, TIMESTAMPTZ: 10**6, TIMESTAMP_NS: 10**9, TIMESTAMPTZ_NS: 10**9}
FAR_DAYS = 260_000 * 365  # the calendar of pyiceberg's core ends some two thousand years later
EXACT = decimal.Context(prec=80)
HOURS = 2**31 * 3_600_000_000 - 1
ALPHABETS = ("ab", "aé", "日本語漢字", "\U0001f600\U0001f680z", "".join(map(chr, range(1, 0x250))))


def rng(seed: object) -> np.random.Generator:
    return np.random.default_rng(sum(str(seed).encode()))


def with_nulls(array: pa.Array) -> pa.Array:
    """Every eleventh value is null, and the array is a slice that begins inside a byte of its bitmap."""
    return pc.if_else(pa.array(np.arange(len(array)) % 11 != 10), array, pa.scalar(None, array.type)).slice(3)


def integers(type_: pa.DataType, lowest: int, highest: int) -> pa.Array:
    """Numbers of every magnitude between two bounds; the bounds, and those around zero and powers of two."""
    draw = rng(type_)
    edges = [
        lowest,
        lowest + 1,
        highest - 1,
        highest,
        *(s * 2**b + d for b in range(63) for s in (1, -1) for d in (-1, 0, 1)),
    ]
    edges = [edge for edge in edges if lowest <= edge <= highest]
    wide = draw.integers(lowest, highest, COUNT // 2, np.int64, endpoint=True)
    narrow = wide >> draw.integers(0, 63, len(wide))
    narrow = narrow[(narrow >= lowest) & (narrow <= highest)]
    values = np.concatenate([np.array(edges, np.int64), wide, narrow])
    width = np.int32 if type_.bit_width == 32 else np.int64
    return pa.array(values.astype(width)).view(type_)


def decimals(precision: int, scale: int) -> pa.Array:
    draw = random.Random(precision)
    bound = 10**precision - 1
    edges = [s * 2**b + d for b in range(127) for s in (1, -1) for d in (-1, 0, 1)] + [bound, -bound, bound - 1, 0]
    numbers = [edge for edge in edges if abs(edge) <= bound]
    numbers += [draw.randint(-bound, bound) // 10 ** draw.randrange(precision) for _ in range(COUNT)]
    data = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(numbers), [None, pa.py_buffer(data)])


def texts() -> pa.Array:
    """Texts of one to four bytes per character, empty ones, and some that are much longer than the rest."""
    draw = random.Random(1)
    lengths = draw.choices(range(41), k=COUNT)
    for _ in range(COUNT // 500):
        lengths[draw.randrange(COUNT)] = draw.choice((60, 130, 400, 600, 3000))
    values = ["".join(draw.choices(ALPHABETS[i % len(ALPHABETS)], k=length)) for i, length in enumerate(lengths)]
    return pa.array(["", "\0", "a\0", "\U0010ffff", "e\u0301", *values])


def raw(width: int) -> pa.Array:
    data = rng(width).integers(0, 256, COUNT * width, np.uint8)
    return pa.Array.from_buffers(pa.binary(width), COUNT, [None, pa.py_buffer(data)])


def times(type_: pa.DataType, per_second: int) -> pa.Array:
    """Moments of all times, and those around the beginnings of days near 1970."""
    day, bound = DAY * per_second, min(2**63 - 1, FAR_DAYS * DAY * per_second)
    starts = np.arange(-800, 800, dtype=np.int64) * day
    near = np.concatenate([starts - 1, starts, starts + 1, starts + day // 24 - 1, starts + day // 24])
    return pa.concat_arrays([pa.array(near).view(type_), integers(type_, -bound, bound)])


SOURCES: dict[Any, tuple[Any, Callable[[], pa.Array]]] = {
    INT: (their_types.IntegerType(), lambda: integers(pa.int32(), -(2**31), 2**31 - 1)),
    LONG: (their_types.LongType(), lambda: integers(pa.int64(), -(2**63), 2**63 - 1)),
    DATE: (their_types.DateType(), lambda: integers(pa.date32(), -FAR_DAYS, FAR_DAYS)),
    TIME: (their_types.TimeType(), lambda: integers(pa.time64("us"), 0, DAY * 10**6 - 1)),
    TIMESTAMP: (their_types.TimestampType(), lambda: times(pa.timestamp("us"), 10**6)),
    TIMESTAMPTZ: (their_types.TimestamptzType(), lambda: times(pa.timestamp("us", "UTC"), 10**6)),
    TIMESTAMP_NS: (their_types.TimestampNanoType(), lambda: times(pa.timestamp("ns"), 10**9)),
    TIMESTAMPTZ_NS: (their_types.TimestamptzNanoType(), lambda: times(pa.timestamp("ns", "UTC"), 10**9)),
    STRING: (their_types.StringType(), texts),
    BINARY: (their_types.BinaryType(), lambda: texts().cast(pa.binary())),
    UUID: (their_types.UUIDType(), lambda: raw(16)),
    **{Fixed(width): (their_types.FixedType(width), functools.partial(raw, width)) for width in (1, 4, 7, 20)},
    **{
        Decimal(digits, scale): (their_types.DecimalType(digits, scale), functools.partial(decimals, digits, scale))
        for digits, scale in ((1, 1), (2, 2), (9, 2), (18, 2), (19, 0), (20, 2), (28, 28), (38, 2))
    },
}


@functools.lru_cache(maxsize=1)
def column(source: Any) -> pa.Array:
    return with_nulls(SOURCES[source][1]())


def transforms_of(source: Any) -> list[str]:
    found = ["bucket[16]", "bucket[7]", "bucket[2147483647]"]
    found += [f"truncate[{w}]" for w in (1, 3, 16, 10_000)] if Truncate(1).accepts(source) else []
    found += ["year", "month", "day"] if Year().accepts(source) else []
    return found + (["hour"] if Hour().accepts(source) else [])


def possible(array: pa.Array, source: Any, transform: Any) -> pa.Array:
    """The values that have a result: those too low to be cut, and too far for hours, become null."""
    if isinstance(transform, Hour) and source in (TIMESTAMP, TIMESTAMPTZ):
        outside = pc.greater(pc.abs(array.cast(pa.int64())), HOURS)
    elif isinstance(transform, Truncate) and isinstance(source, Decimal):
        lowest = decimal.Decimal(min(0, transform.width - 10**source.precision)).scaleb(-source.scale, EXACT)
        outside = pc.less(array, pa.scalar(lowest, array.type))
    elif isinstance(transform, Truncate) and source in (INT, LONG):
        outside = pc.less(array, pa.scalar(-(2 ** (array.type.bit_width - 1)) + transform.width, array.type))
    else:
        return array
    return pc.if_else(outside, pa.scalar(None, array.type), array)


def without_last_seconds(array: pa.Array, source: Any) -> pa.Array:
    """Null in place of the last second of every day before 1970, which pyiceberg's core takes for the next day."""
    ticks, second = array.cast(pa.int64()).fill_null(0).to_numpy(), TICKS[source]
    return pc.if_else(pa.array((ticks < 0) & (ticks % (DAY * second) >= (DAY - 1) * second)), None, array)


CASES = [(source, text) for source in SOURCES for text in transforms_of(source)]


@pytest.mark.parametrize(("source", "text"), CASES, ids=str)
def test_all_values_are_those_of_pyiceberg(source: Any, text: str) -> None:
    ours, other = parse_transform(text), theirs.parse_transform(text)
    array = possible(column(source), source, ours)
    if text == "day" and source != DATE:
        array = without_last_seconds(array, source)
    found = ours.apply(array, source)
    found.validate(full=True)
    assert found.type == arrow_type(ours.result_type(source))
    assert found.null_count == array.null_count > 0
    assert found.equals(other.pyarrow_transform(SOURCES[source][0])(array).cast(found.type))


def stored(value: Any) -> bytes:
    """The bytes that are hashed."""
    if isinstance(value, int):
        return struct.pack("<q", value)
    if isinstance(value, decimal.Decimal):
        number = int(value.scaleb(2, EXACT))
        return number.to_bytes((number ^ (number >> 200)).bit_length() // 8 + 1, "big", signed=True)
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("source", [INT, LONG, STRING, BINARY, UUID, Fixed(7), Decimal(9, 2), Decimal(38, 2)], ids=str)
def test_all_hashes_are_those_of_mmh3(source: Any) -> None:
    array = column(source)
    expected = [None if v is None else mmh3.hash(stored(v)) & 0x7FFFFFFF for v in array.to_pylist()]
    assert parse_transform(f"bucket[{2**31 - 1}]").apply(array, source).to_pylist() == [
        None if hashed is None else hashed % (2**31 - 1) for hashed in expected
    ]


@pytest.mark.parametrize("source", [TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS], ids=str)
def test_all_days_and_hours_are_those_of_python(source: Any) -> None:
    for text, seconds in (("day", DAY), ("hour", 3600)):
        array = possible(column(source), source, parse_transform(text))
        ticks = array.cast(pa.int64()).to_pylist()
        expected = [None if v is None else v // (seconds * TICKS[source]) for v in ticks]
        assert parse_transform(text).apply(array, source).cast(pa.int32()).to_pylist() == expected


@pytest.mark.parametrize("source", [DATE, TIMESTAMP, TIMESTAMPTZ_NS], ids=str)
def test_all_years_and_months_are_those_of_numpy(source: Any) -> None:
    unit = {DATE: "D", TIMESTAMP: "us", TIMESTAMPTZ_NS: "ns"}[source]
    array = column(source)
    ticks = array.cast(pa.int32() if source == DATE else pa.int64()).fill_null(0).to_numpy()
    for text, larger in (("year", "Y"), ("month", "M")):
        expected = ticks.astype(f"datetime64[{unit}]").astype(f"datetime64[{larger}]").astype(np.int32)
        found = parse_transform(text).apply(array, source)
        assert found.equals(pc.if_else(array.is_valid(), pa.array(expected), None))


@pytest.mark.parametrize("source", [INT, LONG], ids=str)
def test_all_cut_numbers_are_those_of_python(source: Any) -> None:
    for width in (1, 10, 2**16, 2**31 - 1):
        array = possible(column(source), source, Truncate(width))
        expected = [None if v is None else v - v % width for v in array.to_pylist()]
        assert Truncate(width).apply(array, source).to_pylist() == expected


def test_all_cut_texts_are_those_of_python() -> None:
    values = column(STRING).to_pylist()
    assert Truncate(5).apply(column(STRING), STRING).to_pylist() == [None if v is None else v[:5] for v in values]


@pytest.mark.parametrize(("source", "type_"), [(TIMESTAMP_NS, TIMESTAMP), (TIMESTAMPTZ_NS, TIMESTAMPTZ)], ids=str)
def test_nanoseconds_are_in_the_partitions_of_their_microseconds(source: Any, type_: Any) -> None:
    nanos = column(source)
    floor = np.floor_divide(nanos.cast(pa.int64()).fill_null(0).to_numpy(), 1000)
    micros = pa.array(floor, mask=nanos.is_null().to_numpy(zero_copy_only=False)).view(arrow_type(type_))
    for text in transforms_of(source):
        transform = parse_transform(text)
        assert transform.apply(nanos, source).equals(transform.apply(micros, type_))


@pytest.mark.parametrize(("source", "lowest"), [(INT, -(2**31)), (LONG, -(2**63))], ids=str)
def test_pyiceberg_wraps_around_below_the_lowest_number(source: Any, lowest: int) -> None:
    """The true multiple is no number of the type. pyiceberg's core stores a high one instead: readers lose the row."""
    array = pa.array([lowest], arrow_type(source))
    assert theirs.TruncateTransform(10).pyarrow_transform(SOURCES[source][0])(array)[0].as_py() > 0
    with pytest.raises(InputError, match="below the lowest"):
        Truncate(10).apply(array, source)


@pytest.mark.parametrize("source", [TIMESTAMP, TIMESTAMP_NS], ids=str)
def test_pyiceberg_takes_the_last_second_of_a_day_before_1970_for_the_next_day(source: Any) -> None:
    """Only its core does, which writers use; its code in Python, which readers use, rounds down as the format asks."""
    their_type, half = SOURCES[source][0], TICKS[source] // 2
    array = pa.array([-2 * DAY * TICKS[source] - half]).view(arrow_type(source))
    core = theirs.DayTransform().pyarrow_transform(their_type)(array)
    python = [theirs.DayTransform().transform(their_type)(v) for v in array.cast(pa.int64()).to_pylist()]
    assert core.to_pylist() == [-2]
    assert Day().apply(array, source).cast(pa.int32()).to_pylist() == python == [-3]


def test_pyiceberg_has_no_years_for_dates_its_calendar_lacks() -> None:
    """The format's dates are all ints; pyiceberg's core makes the far ones null, which is another partition."""
    far = pa.array([2**31 - 1, -(2**31)], pa.int32()).view(pa.date32())
    assert theirs.YearTransform().pyarrow_transform(their_types.DateType())(far).null_count == 2
    assert Year().apply(far, DATE).to_pylist() == [5_881_580 - 1970, -5_877_641 - 1970]
