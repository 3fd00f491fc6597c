"""Equality deletes of values in memory, compared row by row with plain Python."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal as Number

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.deletes import equality_index
from icefloe.deletes.equality_index import EqualityIndex
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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    Decimal,
    Field,
    Fixed,
    Struct,
    Type,
)

OTHER_NAN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]  # another of the many NaNs
POOLS: list[tuple[Type, list[object]]] = [
    (INT, [0, 1, -1, 2**31 - 1, -(2**31)]),
    (LONG, [0, 1, -1, 2**32, 2**63 - 1, -(2**63)]),
    (STRING, ["", "a", "b", "ab", "a\0", "x" * 40, "é"]),
    (BINARY, [b"", b"\0", b"\0\0", b"abc"]),
    (BOOLEAN, [True, False]),
    (DOUBLE, [0.0, -0.0, 1.5, math.nan, OTHER_NAN, math.inf, -math.inf]),
    (FLOAT, [0.0, -0.0, 1.5, math.nan, math.inf]),
    (DATE, [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 1, 1)]),
    (TIME, [dt.time(0), dt.time(23, 59, 59, 999_999)]),
    (TIMESTAMPTZ, [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, 1, 1, 1, 5, tzinfo=dt.UTC)]),
    (TIMESTAMP_NS, [0, 1, 10**18 + 1]),
    (Decimal(9, 2), [Number("0.00"), Number("-1.25"), Number("1.25")]),
    (Decimal(38, 10), [Number("0.0000000000"), Number("-1.2500000000"), Number(10) ** 20]),
    (UUID, [bytes(16), bytes(range(16))]),
    (Fixed(3), [b"abc", b"abd"]),
    (UNKNOWN, [None]),
]


def told(value: object) -> object:
    """A value as it is compared: there is one NaN and there are two zeros; null is a value."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack(">d", value)
    return type(value).__name__, value


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, list[tuple[object, ...]], list[int], list[tuple[object, ...]], int]:
    """Columns, delete rows with their ages, data rows, and the age of the data."""
    chosen = draw(st.lists(st.sampled_from(POOLS), min_size=1, max_size=3))
    schema = Schema(fields=tuple(Field(n, f"c{n}", type_) for n, (type_, _) in enumerate(chosen, 1)))
    row = st.tuples(*(st.sampled_from([None, *pool]) for _, pool in chosen))
    deletes = draw(st.lists(row, max_size=12))
    ages = draw(st.lists(st.integers(1, 5), min_size=len(deletes), max_size=len(deletes)))
    return schema, deletes, ages, draw(st.lists(row, max_size=30)), draw(st.integers(0, 5))


def batch(schema: Schema, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    target = arrow_schema(schema)
    columns = [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(target)]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def brute_force(
    deletes: list[tuple[object, ...]], ages: list[int], rows: list[tuple[object, ...]], age: int
) -> list[bool]:
    newer = {tuple(map(told, delete)) for delete, its in zip(deletes, ages, strict=True) if its > age}
    return [tuple(map(told, row)) in newer for row in rows]


@given(cases())
def test_rows_are_deleted_as_the_specification_says(
    case: tuple[Schema, list[tuple[object, ...]], list[int], list[tuple[object, ...]], int],
) -> None:
    schema, deletes, ages, rows, age = case
    index = EqualityIndex(schema, pa.Table.from_batches([batch(schema, deletes)]), np.array(ages, np.int64))
    found = index.matches(batch(schema, rows), age)
    assert found.tolist() == brute_force(deletes, ages, rows, age)


@given(cases())
def test_rows_whose_hashes_collide_are_told_apart_by_their_values(
    case: tuple[Schema, list[tuple[object, ...]], list[int], list[tuple[object, ...]], int],
) -> None:
    schema, deletes, ages, rows, age = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equality_index, "FOLD", np.uint64(0))  # every hash is 0
        patch.setattr(equality_index, "COMPARED_TOGETHER", 3)
        index = EqualityIndex(schema, pa.Table.from_batches([batch(schema, deletes)]), np.array(ages, np.int64))
        found = index.matches(batch(schema, rows), age)
    assert found.tolist() == brute_force(deletes, ages, rows, age)


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
def test_there_is_one_nan_and_there_are_two_zeros(type_: Type) -> None:
    bits, width = (np.int32, np.float32) if type_ == FLOAT else (np.int64, np.float64)
    one, other = np.array([math.nan], width), (np.array([math.nan], width).view(bits) + bits(1)).view(width)
    schema = Schema(fields=(Field(1, "x", type_),))
    rows = batch(schema, [(0.0,), (-0.0,), (None,)])
    for given_, expected in ((one, [True, True]), (other, [True, True]), (np.array([-0.0], width), [False, False])):
        index = EqualityIndex(schema, pa.table([pa.array(given_)], schema=arrow_schema(schema)), np.array([2]))
        nans = pa.record_batch([pa.array(np.concatenate([one, other]))], schema=arrow_schema(schema))
        assert index.matches(nans, 1).tolist() == expected
        assert index.matches(rows, 1).tolist() == [False, not expected[0], False]


def test_a_field_inside_a_null_struct_is_null() -> None:
    schema = Schema(fields=(Field(1, "s", Struct((Field(2, "a", LONG),))),))
    type_ = arrow_schema(schema)
    deletes = pa.table({"s": pa.array([{"a": None}, {"a": 3}], type_.field("s").type)}, type_)
    index = EqualityIndex(schema, deletes, np.array([2, 2]))
    rows = pa.record_batch([pa.array([None, {"a": None}, {"a": 1}, {"a": 3}], type_.field("s").type)], schema=type_)
    assert index.matches(rows, 1).tolist() == [True, True, False, True]


def test_a_batch_that_is_a_slice_is_asked_with_its_own_rows() -> None:
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "note", STRING)))
    deletes = pa.table({"id": pa.array([3, None]), "note": ["c", "n"]}).cast(arrow_schema(schema))
    index = EqualityIndex(schema, deletes, np.array([2, 2]))
    rows = batch(schema, [(1, "a"), (2, "b"), (3, "c"), (None, "n"), (3, "d")])
    assert index.matches(rows.slice(2, 2), 0).tolist() == [True, True]
    assert index.matches(rows.slice(4), 0).tolist() == [False]


def test_many_delete_rows_are_found_among_many_rows() -> None:
    schema = Schema(fields=(Field(1, "id", LONG),))
    ids = np.random.default_rng(5).permutation(200_000)
    deletes = pa.table({"id": ids[:20_000] * 7}).cast(arrow_schema(schema))
    index = EqualityIndex(schema, deletes, np.full(20_000, 2))
    found = index.matches(pa.record_batch({"id": np.arange(200_000)}).cast(arrow_schema(schema)), 1)
    assert set(np.flatnonzero(found).tolist()) == {int(i) * 7 for i in ids[:20_000] if i * 7 < 200_000}
