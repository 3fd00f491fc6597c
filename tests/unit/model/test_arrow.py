"""Types in Arrow, schemas from Arrow, and user data conformed to a table."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal as PyDecimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.arrow.conform import FIELD_ID, arrow_schema, arrow_type, as_table, conform, nulls, schema_from_arrow
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
    Map,
    Struct,
    walk,
)

NESTED = Schema(
    fields=(
        Field(1, "id", LONG, True),
        Field(2, "s", Struct((Field(3, "a", STRING, True), Field(4, "b", List(5, INT, True))))),
        Field(6, "m", Map(7, STRING, 8, Struct((Field(9, "x", DOUBLE),)), True)),
    )
)


def of(type_, required: bool = False) -> Schema:
    return Schema(fields=(Field(1, "c", type_, required),))


def one(values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return pa.table({"c": values})


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (BOOLEAN, pa.bool_()),
        (INT, pa.int32()),
        (LONG, pa.int64()),
        (FLOAT, pa.float32()),
        (DOUBLE, pa.float64()),
        (DATE, pa.date32()),
        (TIME, pa.time64("us")),
        (TIMESTAMP, pa.timestamp("us")),
        (TIMESTAMPTZ, pa.timestamp("us", tz="UTC")),
        (STRING, pa.string()),
        (UUID, pa.binary(16)),
        (BINARY, pa.binary()),
        (Fixed(3), pa.binary(3)),
        (Decimal(9, 2), pa.decimal128(9, 2)),
    ],
)
def test_every_primitive_has_its_arrow_type(type_, expected):
    assert arrow_type(type_) == expected
    assert schema_from_arrow(pa.schema({"c": expected})).fields[0].type == (Fixed(16) if type_ == UUID else type_)


def test_every_field_at_every_depth_carries_its_id_and_nullability():
    schema = arrow_schema(NESTED)

    assert schema_from_arrow(schema) == NESTED
    assert schema.field("id").nullable is False
    assert schema.field("s").type.field("b").type.value_field == pa.field("element", pa.int32(), nullable=False)
    assert schema.field("m").type.item_field.metadata == {FIELD_ID: b"8"}
    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer)
    assert schema_from_arrow(pq.read_schema(buffer)) == NESTED


def test_ids_are_assigned_when_any_field_lacks_one():
    whole = arrow_schema(NESTED)
    partly = pa.schema([whole.field("id"), whole.field("s"), pa.field("z", pa.int8())])

    fresh = schema_from_arrow(partly)

    assert [(f.id, name) for name, f in walk(fresh.fields)] == [
        (1, "id"),
        (2, "s"),
        (4, "s.a"),
        (5, "s.b"),
        (6, "s.b.element"),
        (3, "z"),
    ]


def test_a_field_id_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="'c'"):
        schema_from_arrow(pa.schema([pa.field("c", pa.int8(), metadata={FIELD_ID: b"one"})]))


@pytest.mark.parametrize(
    ("given_type", "expected"),
    [
        (pa.int8(), INT),
        (pa.uint16(), INT),
        (pa.uint32(), LONG),
        (pa.float16(), FLOAT),
        (pa.large_string(), STRING),
        (pa.string_view(), STRING),
        (pa.large_binary(), BINARY),
        (pa.binary_view(), BINARY),
        (pa.uuid(), UUID),
        (pa.dictionary(pa.int8(), pa.large_string()), STRING),
        (pa.timestamp("s"), TIMESTAMP),
        (pa.timestamp("ms", tz="Europe/Paris"), TIMESTAMPTZ),
        (pa.time32("ms"), TIME),
        (pa.decimal256(20, 3), Decimal(20, 3)),
        (pa.large_list(pa.int16()), List(2, INT)),
        (pa.list_(pa.int16(), 3), List(2, INT)),
    ],
)
def test_wider_and_narrower_arrow_types_are_taken(given_type, expected):
    assert schema_from_arrow(pa.schema({"c": given_type})).fields[0].type == expected


@pytest.mark.parametrize(
    "given_type",
    [
        pa.timestamp("ns"),
        pa.timestamp("ns", tz="UTC"),
        pa.time64("ns"),
        pa.uint64(),
        pa.duration("us"),
        pa.null(),
        pa.decimal256(60, 2),
        pa.decimal128(5, -2),
        pa.list_view(pa.int64()),
        pa.month_day_nano_interval(),
        pa.struct({"inner": pa.duration("us")}),
    ],
)
def test_types_without_a_counterpart_are_refused_by_the_columns_name(given_type):
    with pytest.raises(UnsupportedError, match=r"'c(\.inner)?'"):
        schema_from_arrow(pa.schema({"c": given_type}))


def test_endless_nesting_is_refused():
    deep = pa.int8()
    for _ in range(150):
        deep = pa.struct({"x": deep})

    with pytest.raises(InputError, match="nested"):
        schema_from_arrow(pa.schema({"c": deep}))


def test_rows_are_taken_from_anything_that_speaks_arrow():
    table = pa.table({"a": [1, 2]})

    assert as_table(table) is table
    assert as_table(table.to_batches()[0]) == table
    assert as_table(table.to_reader()) == table
    for wrong in ([{"a": 1}], {"a": [1]}, None, "a"):
        with pytest.raises(InputError, match="cannot read rows"):
            as_table(wrong)


def test_a_pandas_frame_conforms():
    frame = pd.DataFrame({"id": [1, 2]})

    assert conform(as_table(frame), NESTED)["id"].to_pylist() == [1, 2]


class Foreign:
    """A frame of another library, as Arrow's stream protocol shows it: wide strings and lists."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_a_frame_of_another_library_conforms():
    struct = pa.struct([("a", pa.large_string()), ("b", pa.large_list(pa.int64()))])
    frame = Foreign(pa.table({"id": pa.array([1]), "s": pa.array([{"a": "x", "b": [1, 2]}], struct)}))

    assert conform(as_table(frame), NESTED).to_pylist() == [{"id": 1, "s": {"a": "x", "b": [1, 2]}, "m": None}]


WHOLE = [
    (INT, pa.array([1, None], pa.int8()), [1, None]),
    (LONG, pa.array([2**40], pa.uint64()), [2**40]),
    (FLOAT, pa.array([0.5, float("inf"), None]), [0.5, float("inf"), None]),
    (DOUBLE, pa.array([3], pa.int32()), [3.0]),
    (Decimal(5, 1), pa.array([3], pa.int64()), [PyDecimal("3.0")]),
    (Decimal(5, 1), pa.array([PyDecimal("1.20")]), [PyDecimal("1.2")]),
    (STRING, pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
    (STRING, pa.array(["a"], pa.string_view()), ["a"]),
    (STRING, pa.nulls(2), [None, None]),
    (BINARY, pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    (Fixed(2), pa.array([b"ab"], pa.large_binary()), [b"ab"]),
    (UUID, pa.array([uuid.UUID(int=5).bytes], pa.uuid()), [uuid.UUID(int=5).bytes]),
    (TIMESTAMP, pa.array([1_000], pa.timestamp("ns")), [dt.datetime(1970, 1, 1, microsecond=1)]),
    (TIMESTAMPTZ, pa.array([1], pa.timestamp("s", tz="Asia/Tokyo")), [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)]),
    (DATE, pa.array([86_400_000], pa.date64()), [dt.date(1970, 1, 2)]),
    (TIME, pa.array([1], pa.time32("s")), [dt.time(0, 0, 1)]),
    (List(2, LONG), pa.array([[1], None, []], pa.large_list(pa.int8())), [[1], None, []]),
    (List(2, LONG), pa.array([[1, 2]], pa.list_(pa.int8(), 2)), [[1, 2]]),
]


@pytest.mark.parametrize(("type_", "values", "expected"), WHOLE, ids=[f"{v.type} to {t}" for t, v, _ in WHOLE])
def test_values_that_survive_are_cast(type_, values, expected):
    fitted = conform(one(values), of(type_))

    fitted.validate(full=True)
    assert fitted.schema.equals(arrow_schema(of(type_)), check_metadata=True)
    assert fitted["c"].to_pylist() == expected


LOSSY = [
    (INT, pa.array([2**31])),
    (INT, pa.array([1.0])),
    (INT, pa.array(["1"])),
    (INT, pa.array([True])),
    (FLOAT, pa.array([0.1])),
    (FLOAT, pa.array([1e300])),
    (DOUBLE, pa.array([2**53 + 1])),
    (Decimal(3, 1), pa.array([PyDecimal("1.25")])),
    (Decimal(3, 1), pa.array([100])),
    (STRING, pa.array([1])),
    (STRING, pa.array([b"a"])),
    (BINARY, pa.array(["a"])),
    (Fixed(2), pa.array([b"abc"])),
    (UUID, pa.array([b"abc"])),
    (BOOLEAN, pa.array([1])),
    (DATE, pa.array([0], pa.timestamp("us"))),
    (TIMESTAMP, pa.array([1], pa.timestamp("ns"))),
    (TIMESTAMP, pa.array([1], pa.timestamp("us", tz="UTC"))),
    (TIMESTAMPTZ, pa.array([1], pa.timestamp("us"))),
    (TIMESTAMP, pa.array([2**62], pa.timestamp("s"))),
    (LONG, pa.array([[1]])),
    (List(2, LONG), pa.array([1])),
    (Struct((Field(2, "a", LONG),)), pa.array([[1]])),
]


@pytest.mark.parametrize(("type_", "values"), LOSSY, ids=[f"{v.type} to {t}" for t, v in LOSSY])
def test_values_that_would_change_are_refused_by_the_columns_name(type_, values):
    with pytest.raises(InputError, match="column 'c'"):
        conform(one(values), of(type_))


def test_nan_is_a_float():
    assert conform(one(pa.array([float("nan")])), of(FLOAT))["c"].type == pa.float32()


def test_columns_are_matched_by_name_in_the_tables_order():
    given_rows = pa.table({"m": pa.nulls(1), "id": [1]})

    assert conform(given_rows, NESTED).column_names == ["id", "s", "m"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"s": pa.nulls(1)}), "required column id is missing"),
        (pa.table({"id": pa.array([1, None])}), "'id' is required and has 1 null"),
        (pa.table({"id": [1], "extra": [1], "more": [2]}), "no column extra, more; it has: id, s, m"),
        (pa.table([[1], [2]], names=["id", "id"]), "two columns are named 'id'"),
        (pa.table({"id": [1], "s": [{"a": None}]}), "'s.a' is required"),
        (pa.table({"id": [1], "s": [{"b": [1]}]}), "required column s.a is missing"),
        (pa.table({"id": [1], "s": [{"a": "x", "z": 1}]}), "no column s.z"),
        (pa.table({"id": [1], "s": [{"a": "x", "b": [1, None]}]}), "'s.b.element' is required"),
        (pa.table({"id": [1], "m": pa.array([[("k", None)]], pa.map_(pa.string(), pa.null()))}), "'m.value'"),
    ],
)
def test_rows_that_break_the_schema_are_refused_by_name(rows, message):
    with pytest.raises(InputError, match=message):
        conform(rows, NESTED)


def test_nothing_is_asked_of_values_below_a_null():
    names = pa.array(["x", None, None])
    ints = pa.ListArray.from_arrays(pa.array([0, 1, 2, 2]), pa.array([1, None]), mask=pa.array([False, True, True]))
    struct = pa.StructArray.from_arrays([names, ints], names=["a", "b"], mask=pa.array([False, True, True]))
    rows = pa.table({"id": [1, 2, 3], "s": struct})

    for part in (rows, rows.slice(1, 1), rows.slice(2, 0)):
        fitted = conform(part, NESTED)
        fitted.validate(full=True)
        assert fitted["s"].to_pylist() == part["s"].to_pylist()
        pq.write_table(fitted, io.BytesIO())  # refuses nulls in required fields, even below a null


def test_nulls_of_a_struct_with_required_fields_can_be_written():
    type_ = Struct((Field(2, "a", Struct((Field(3, "b", List(4, INT), True),)), True),))

    array = nulls(type_, 3)

    array.validate(full=True)
    assert array.to_pylist() == [None, None, None]
    pq.write_table(pa.Table.from_arrays([array], schema=arrow_schema(of(type_))), io.BytesIO())


rows_of_nested = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(-(2**63), 2**63 - 1),
            "s": st.none()
            | st.fixed_dictionaries(
                {"a": st.text(max_size=3), "b": st.none() | st.lists(st.integers(0, 9), max_size=3)}
            ),
            "m": st.none()
            | st.lists(
                st.tuples(st.text(max_size=2), st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)})), max_size=2
            ),
        }
    ),
    max_size=6,
)
LOOSE = pa.schema(
    {
        "m": pa.map_(pa.large_string(), pa.struct({"x": pa.int8()})),
        "s": pa.struct({"b": pa.large_list(pa.int64()), "a": pa.string_view()}),
        "id": pa.int64(),
    }
)


@given(rows_of_nested, st.integers(0, 3))
def test_conformed_rows_are_the_same_rows(rows, start):
    table = pa.Table.from_pylist(rows, schema=LOOSE).slice(start)

    fitted = conform(table, NESTED)

    fitted.validate(full=True)
    assert fitted.to_pylist() == rows[start:]
    assert fitted.schema.equals(arrow_schema(NESTED), check_metadata=True)
    buffer = io.BytesIO()
    pq.write_table(fitted, buffer)
    assert pq.read_table(buffer).to_pylist() == rows[start:]
