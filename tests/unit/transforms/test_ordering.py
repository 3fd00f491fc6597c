"""Rows in the order of a sort order, beside an oracle in plain Python that compares row by row."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import math
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.partition.sort_order import UNSORTED, SortField, SortOrder
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
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Struct,
    Type,
)
from icefloe.transforms import Void, transform_of
from icefloe.transforms.ordering import ordered, sort_indices

NEGATIVE_NAN = struct.unpack("<d", bytes.fromhex("000000000000f8ff"))[0]
OTHER_NAN = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]
FLOATS = (
    NEGATIVE_NAN,
    -math.inf,
    -1.7e308,
    -1.5,
    -5e-324,
    -0.0,
    0.0,
    5e-324,
    1.5,
    1.7e308,
    math.inf,
    math.nan,
)
VALUES: dict[Type, st.SearchStrategy[object]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -1.5]),
    DOUBLE: st.sampled_from([*FLOATS, OTHER_NAN]),
    DATE: st.dates(dt.date(1960, 1, 1), dt.date(1980, 1, 1)),
    TIME: st.times(),
    TIMESTAMP: st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(1980, 1, 1)),
    TIMESTAMPTZ: st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(1980, 1, 1), timezones=st.just(dt.UTC)),
    STRING: st.text(st.sampled_from("aZ\x00é\uffff\U0001f600"), max_size=3),
    UUID: st.binary(min_size=16, max_size=16),
    Fixed(2): st.binary(min_size=2, max_size=2),
    BINARY: st.binary(max_size=3),
    Decimal(9, 2): st.decimals(-9999, 9999, places=2, allow_nan=False, allow_infinity=False),
}
TRANSFORMS = ("identity", "void", "bucket[4]", "truncate[2]", "year", "month", "day", "hour")


def is_before(a: object, b: object) -> int:
    """-1, 0 or 1 as the spec orders two values of one type."""
    if isinstance(a, float) and isinstance(b, float):
        return _sign(_rank(a), _rank(b))
    if isinstance(a, str) and isinstance(b, str):
        return _sign(a.encode(), b.encode())
    return _sign(a, b)


def _rank(value: float) -> tuple[int, float]:
    if math.isnan(value):
        return (-2 if math.copysign(1, value) < 0 else 2), 0.0
    if value == 0:
        return 0, math.copysign(1, value)
    return (-1 if value < 0 else 1), value


def _sign(a, b) -> int:
    return (a > b) - (a < b)


def expected(rows: list[dict[str, object]], order: SortOrder, schema: Schema) -> list[int]:
    """Insertion of each row number behind all that are not after it: stable by construction."""

    def compare(i: int, j: int) -> int:
        for field in order.fields:
            transform, column = transform_of(field), schema.by_id[field.source_id]
            if isinstance(transform, Void):
                continue
            a, b = (transform.value(rows[k][column.name], column.type) for k in (i, j))
            if a is None or b is None:
                found = _sign(a is not None, b is not None) * (1 if field.null_order == "nulls-first" else -1)
            else:
                found = is_before(a, b) * (1 if field.direction == "asc" else -1)
            if found != 0:
                return found
        return _sign(i, j)

    return sorted(range(len(rows)), key=functools.cmp_to_key(compare))


@st.composite
def cases(draw):
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    schema = Schema(fields=tuple(Field(i + 1, f"c{i}", t) for i, t in enumerate(types)))
    row = st.fixed_dictionaries({f.name: st.none() | VALUES[f.type] for f in schema.fields})
    rows = draw(st.lists(row, max_size=12))
    fields = []
    for column in draw(st.permutations(schema.fields)):
        fitting = [t for t in TRANSFORMS if transform_of(SortField(source_id=1, transform=t)).accepts(column.type)]
        fields.append(
            SortField(
                source_id=column.id,
                transform=draw(st.sampled_from(fitting)),
                direction=draw(st.sampled_from(["asc", "desc"])),
                null_order=draw(st.sampled_from(["nulls-first", "nulls-last"])),
            )
        )
    return schema, rows, SortOrder(order_id=1, fields=tuple(fields))


def table_of(schema: Schema, rows: list[dict[str, object]]) -> pa.Table:
    return pa.table({f.name: pa.array([row[f.name] for row in rows], arrow_type(f.type)) for f in schema.fields})


@given(cases())
def test_rows_come_in_the_order_that_comparing_them_one_by_one_gives(case):
    schema, rows, order = case

    assert sort_indices(table_of(schema, rows), order, schema).to_pylist() == expected(rows, order, schema)


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE], ids=str)
def test_floating_point_numbers_have_the_total_order_of_the_spec(type_):
    schema = Schema(fields=(Field(1, "x", type_),))
    values = [v for v in FLOATS if type_ == DOUBLE or abs(v) not in (1.7e308, 5e-324)]
    shuffled = values[::2] + values[1::2]
    column = pa.array(shuffled, pa.float64()).cast(arrow_type(type_))
    for direction, wanted in (("asc", values), ("desc", values[::-1])):
        order = SortOrder(order_id=1, fields=(SortField(source_id=1, direction=direction),))

        found = sort_indices(pa.table({"x": column}), order, schema).to_pylist()

        assert [str(_rank(shuffled[i])) for i in found] == [str(_rank(v)) for v in wanted]


def test_nans_of_one_sign_are_equal_whatever_their_other_bits():
    values = pa.array([math.nan, OTHER_NAN, -math.nan, NEGATIVE_NAN])

    assert ordered(values).to_pylist() == [2**63 - 1, 2**63 - 1, -(2**63), -(2**63)]


def test_texts_are_ordered_by_their_bytes_and_not_by_utf_16():
    schema = Schema(fields=(Field(1, "s", STRING),))
    rows = pa.table({"s": ["\U0001f600", "\uffff", "é", "z"]})

    order = SortOrder(order_id=1, fields=(SortField(source_id=1),))

    assert sort_indices(rows, order, schema).to_pylist() == [3, 2, 1, 0]


def test_each_key_has_its_own_place_for_nulls():
    schema = Schema(fields=(Field(1, "a", LONG), Field(2, "b", LONG)))
    rows = pa.table({"a": [1, None, 1, None], "b": [None, 2, 3, None]})
    keys = (SortField(source_id=1, null_order="nulls-last"), SortField(source_id=2, null_order="nulls-first"))

    assert sort_indices(rows, SortOrder(order_id=1, fields=keys), schema).to_pylist() == [0, 2, 3, 1]


def test_columns_inside_structs_are_found_by_path_and_null_where_the_struct_is():
    inner = Struct((Field(2, "x.y", LONG), Field(3, "z", LONG)))
    schema = Schema(fields=(Field(1, "s", inner), Field(4, "s.w", LONG)))
    rows = pa.table({"s": [{"x.y": 5, "z": 2}, None, {"x.y": 1, "z": None}, {"x.y": 3, "z": 1}], "s.w": [1, 2, 3, 4]})
    for source_id, wanted in ((2, [1, 2, 3, 0]), (3, [1, 2, 3, 0]), (4, [0, 1, 2, 3])):
        order = SortOrder(order_id=1, fields=(SortField(source_id=source_id),))

        assert sort_indices(rows, order, schema).to_pylist() == wanted


def test_chunks_and_equal_rows_keep_their_order():
    schema = Schema(fields=(Field(1, "a", LONG),))
    rows = pa.table({"a": pa.chunked_array([[2, 1], [], [2, 1, None]])})
    order = SortOrder(order_id=1, fields=(SortField(source_id=1, direction="desc", null_order="nulls-last"),))

    assert sort_indices(rows, order, schema).to_pylist() == [0, 2, 1, 3, 4]


def test_an_order_without_keys_leaves_rows_alone():
    schema = Schema(fields=(Field(1, "a", LONG),))
    void = SortOrder(order_id=1, fields=(SortField(source_id=1, transform="void"),))
    for order in (UNSORTED, void):
        assert sort_indices(pa.table({"a": [2, 1]}), order, schema).to_pylist() == [0, 1]
    assert sort_indices(pa.table({"a": pa.array([], pa.int64())}), UNSORTED, schema).to_pylist() == []


def test_what_cannot_be_sorted_by_is_refused():
    schema = Schema(fields=(Field(1, "a", LONG), Field(2, "l", List(3, LONG))))
    rows = pa.table({"a": [1], "l": [[1]]})
    for field, error in (
        (SortField(source_id=9), InputError),
        (SortField(source_id=3), InputError),
        (SortField(source_id=1, transform="zorder"), UnsupportedError),
        (SortField(source_id=1, other_source_ids=(3,), transform="bucket[4]"), UnsupportedError),
    ):
        with pytest.raises(error):
            sort_indices(rows, SortOrder(order_id=1, fields=(field,)), schema)


def test_decimals_are_ordered_by_value():
    schema = Schema(fields=(Field(1, "d", Decimal(38, 2)),))
    numbers = [decimal.Decimal(t) for t in ("10.00", "-10.01", "9.99", "123456789012345678901234567890.00")]
    rows = pa.table({"d": pa.array(numbers, pa.decimal128(38, 2))})

    order = SortOrder(order_id=1, fields=(SortField(source_id=1),))

    assert sort_indices(rows, order, schema).to_pylist() == [1, 2, 0, 3]
