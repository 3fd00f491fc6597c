"""Types as files store them and as tables read them: promotions, foreign spellings, the types of version 3."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import FormatError, UnsupportedError
from icefloe.expr.filter.bind import bind
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.parquet.field_ids import with_time_zones
from icefloe.formats.read.align import Aligner
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.promotion import readable
from icefloe.formats.read.reader import read_file
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
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
    Field,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
)

FILE = "memory://t/f.parquet"
MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 10)
IN_UTC = MOMENT.replace(tzinfo=dt.UTC)


def field(name: str, type_: pa.DataType, id_: int, nullable: bool = True) -> pa.Field:
    return pa.field(name, type_, nullable=nullable, metadata={b"PARQUET:field_id": str(id_).encode()})


def stored(columns: dict[pa.Field, Any], **options: Any) -> MemoryFileIO:
    arrays = [values if isinstance(values, pa.Array) else pa.array(values, f.type) for f, values in columns.items()]
    io, sink = MemoryFileIO(), pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(list(columns))), sink, **options)
    io.write_new(FILE, sink.getvalue().to_pybytes())
    return io


def values(io: MemoryFileIO, type_: Type, **options: Any) -> list[Any]:
    schema = Schema(fields=(Field(1, "c", type_),))
    batches = list(read_file(io, FileRead(location=FILE, schema=schema, **options)))
    assert all(batch.schema.equals(arrow_schema(schema), check_metadata=True) for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    return [value for batch in batches for value in batch.column(0).to_pylist()]


STORED_AS: list[tuple[pa.DataType, list[Any], Type, list[Any]]] = [
    (pa.int32(), [1, None], LONG, [1, None]),
    (pa.int8(), [-1], INT, [-1]),
    (pa.uint8(), [255], INT, [255]),
    (pa.uint32(), [2**32 - 1, 0], LONG, [2**32 - 1, 0]),
    (pa.float32(), [0.5], DOUBLE, [0.5]),
    (pa.decimal128(5, 2), [decimal.Decimal("1.25")], Decimal(30, 2), [decimal.Decimal("1.25")]),
    (pa.decimal256(38, 2), [decimal.Decimal("1.25")], Decimal(38, 2), [decimal.Decimal("1.25")]),
    (pa.large_string(), ["x", None], STRING, ["x", None]),
    (pa.string_view(), ["x" * 40, "y"], STRING, ["x" * 40, "y"]),
    (pa.binary(), [b"x"], STRING, ["x"]),
    (pa.dictionary(pa.int8(), pa.string()), ["x", "y", "x", None], STRING, ["x", "y", "x", None]),
    (pa.dictionary(pa.int8(), pa.large_string()), ["x", "y"], STRING, ["x", "y"]),
    (pa.large_binary(), [b"x"], BINARY, [b"x"]),
    (pa.uuid(), [b"0" * 16, None], UUID, [b"0" * 16, None]),
    (pa.binary(16), [b"0" * 16], UUID, [b"0" * 16]),
    (pa.time32("ms"), [dt.time(1, 2, 3)], TIME, [dt.time(1, 2, 3)]),
    (pa.timestamp("ms"), [dt.datetime(2024, 1, 2)], TIMESTAMP, [dt.datetime(2024, 1, 2)]),
    (pa.timestamp("us", "Europe/Oslo"), [0], TIMESTAMPTZ, [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)]),
    (pa.date32(), [dt.date(2024, 1, 2), None], TIMESTAMP, [dt.datetime(2024, 1, 2), None]),
    (pa.list_(pa.int32()), [[1, None], None, []], List(2, LONG), [[1, None], None, []]),
    (pa.large_list(pa.int32()), [[1, None], None, []], List(2, LONG), [[1, None], None, []]),
    (pa.list_(pa.int32(), 2), [[1, None], [3, 4]], List(2, LONG), [[1, None], [3, 4]]),
    (pa.large_list(pa.int64()), [[1], None], List(2, LONG), [[1], None]),
    (pa.map_(pa.large_string(), pa.int32()), [[("k", 1)], None], Map(2, STRING, 3, LONG), [[("k", 1)], None]),
]


@pytest.mark.parametrize(("given", "content", "type_", "expected"), STORED_AS, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("keep_schema", [True, False])
def test_values_of_narrower_and_foreign_types_are_read(
    given: pa.DataType, content: list[Any], type_: Type, expected: list[Any], keep_schema: bool
) -> None:
    io = stored({field("old", given, 1): content}, store_schema=keep_schema)
    assert values(io, type_) == expected


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_old_timestamps_of_96_bits_have_the_zone_that_is_wanted(zone: str | None) -> None:
    inner = pa.struct([field("t", pa.timestamp("us"), 3)])
    io = stored(
        {field("c", pa.timestamp("us"), 1): [MOMENT, None], field("s", inner, 2): [{"t": MOMENT}, None]},
        use_deprecated_int96_timestamps=True,
        store_schema=False,
    )
    type_ = TIMESTAMP if zone is None else TIMESTAMPTZ
    schema = Schema(fields=(Field(1, "c", type_), Field(2, "s", Struct((Field(3, "t", type_),)))))
    expected = MOMENT if zone is None else IN_UTC
    [batch] = read_file(io, FileRead(location=FILE, schema=schema))
    assert batch.to_pylist() == [{"c": expected, "s": {"t": expected}}, {"c": None, "s": None}]
    filtered = read_file(io, FileRead(location=FILE, schema=schema, filter=bind(parse_filter("c IS NOT NULL"), schema)))
    assert [row["c"] for batch in filtered for row in batch.to_pylist()] == [expected]


@pytest.mark.parametrize(
    ("given", "value", "type_", "expected"),
    [
        (pa.list_(pa.timestamp("us")), [MOMENT], List(3, TIMESTAMPTZ), [IN_UTC]),
        (pa.map_(pa.string(), pa.timestamp("us")), [("k", MOMENT)], Map(3, STRING, 4, TIMESTAMPTZ), [("k", IN_UTC)]),
        (pa.map_(pa.timestamp("us"), pa.int64()), [(MOMENT, 1)], Map(3, TIMESTAMPTZ, 4, LONG), [(IN_UTC, 1)]),
        (pa.list_(pa.list_(pa.timestamp("us"))), [[MOMENT]], List(3, List(4, TIMESTAMPTZ)), [[IN_UTC]]),
        (pa.list_(pa.timestamp("us")), [MOMENT], List(3, TIMESTAMP), [MOMENT]),
    ],
    ids=["list", "map value", "map key", "list of lists", "without a zone"],
)
def test_old_timestamps_inside_of_lists_and_maps_have_the_zone_that_is_wanted(
    given: pa.DataType, value: Any, type_: Type, expected: Any
) -> None:
    """Arrays of Spark's own timestamps could not be read into a table of timestamptz."""
    io = stored(
        {field("before", pa.int64(), 9): [7, 8], field("old", given, 1): [value, None]},
        use_deprecated_int96_timestamps=True,
        store_schema=False,
    )
    assert values(io, type_) == [expected, None]


def test_only_timestamps_of_96_bits_get_a_zone_that_the_file_does_not_tell() -> None:
    """A column of 64 bits that is said to have no zone got one if any other column of its file had 96 bits."""
    schema = pa.schema([field("a", pa.timestamp("us"), 1), field("b", pa.timestamp("us"), 2)])
    wanted = (Field(1, "a", TIMESTAMPTZ), Field(2, "b", TIMESTAMPTZ))
    assert with_time_zones(schema, wanted, frozenset({1}), FILE).types == [
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
    ]


@pytest.mark.parametrize("type_", [TIMESTAMP_NS, TIMESTAMPTZ_NS])
def test_old_timestamps_are_refused_where_nanoseconds_are_wanted(type_: Type) -> None:
    """They lost their last three digits without a word; as nanoseconds, the year 1 would be another year."""
    io = stored(
        {field("old", pa.timestamp("ns"), 1): [1_700_000_000_123_456_789]},
        use_deprecated_int96_timestamps=True,
        store_schema=False,
    )
    with pytest.raises(UnsupportedError, match=rf"column 'old' has timestamps of 96 bits.* not as {type_}"):
        values(io, type_)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_any_unit_are_read_as_nanoseconds(unit: str) -> None:
    type_ = pa.timestamp(unit, "UTC")
    io = stored({field("c", type_, 1): [1, None, -1]}, version="2.6", store_schema=True)
    [batch] = read_file(io, FileRead(location=FILE, schema=Schema(fields=(Field(1, "c", TIMESTAMPTZ_NS),))))
    assert batch.column(0).equals(pa.array([1, None, -1], type_).cast(pa.timestamp("ns", "UTC")))


def test_nanoseconds_keep_their_last_digits_and_are_filtered_by_them() -> None:
    io = stored({field("c", pa.timestamp("ns"), 1): [1, 2, 3, None]}, version="2.6")
    schema = Schema(fields=(Field(1, "c", TIMESTAMP_NS),))
    bound = bind(parse_filter("c > '1970-01-01T00:00:00.000000001'"), schema)
    [batch] = read_file(io, FileRead(location=FILE, schema=schema, filter=bound))
    assert batch.column(0).cast(pa.int64()).to_pylist() == [2, 3]


@pytest.mark.parametrize(
    ("given", "type_"),
    [
        (pa.timestamp("ns"), TIMESTAMP),
        (pa.timestamp("us"), TIMESTAMPTZ),
        (pa.timestamp("us", "UTC"), TIMESTAMP),
        (pa.date32(), TIMESTAMPTZ),
        (pa.uint64(), LONG),
        (pa.uint32(), INT),
        (pa.float64(), LONG),
        (pa.bool_(), INT),
        (pa.binary(4), UUID),
        (pa.string(), BINARY),
        (pa.struct([pa.field("a", pa.int64())]), LONG),
        (pa.int64(), Struct((Field(2, "a", LONG),))),
        (pa.int64(), VARIANT),
        (pa.list_(pa.string()), List(2, LONG)),
    ],
    ids=str,
)
def test_values_of_another_kind_are_refused_by_name(given: pa.DataType, type_: Type) -> None:
    with pytest.raises(FormatError, match=r"at.x: column 'c.*' is .* in the file, which cannot be read as ") as raised:
        Aligner(pa.schema([field("c", given, 1)]), Schema(fields=(Field(1, "c", type_),)), "at.x", {})
    assert raised.value.context["location"] == "at.x"


def test_a_date_becomes_a_moment_only_without_a_zone() -> None:
    assert readable(pa.date32(), pa.timestamp("us"))
    assert readable(pa.date32(), pa.timestamp("ns"))
    assert not readable(pa.date32(), pa.timestamp("us", "UTC"))
    assert not readable(pa.timestamp("us"), pa.date32())


def test_shapes_are_their_bytes_whether_the_file_says_so_or_not() -> None:
    point = b"\x01\x01\x00\x00\x00" + bytes(16)
    io = stored({field("c", pa.binary(), 1): [point, None]})
    assert values(io, Geometry()) == [point, None]
    assert values(io, Geography()) == [point, None]


VARIANT_ROW = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}


@pytest.mark.parametrize("order", [("metadata", "value"), ("value", "metadata")])
@pytest.mark.parametrize("bytes_", [pa.binary(), pa.large_binary()])
def test_variants_are_their_two_byte_strings_in_any_order(order: tuple[str, ...], bytes_: pa.DataType) -> None:
    type_ = pa.struct([pa.field(name, bytes_, nullable=False) for name in order])
    io = stored({field("c", type_, 1): [VARIANT_ROW, None]})
    assert values(io, VARIANT) == [VARIANT_ROW, None]
    nested = stored({field("c", pa.list_(field("element", type_, 2)), 1): [[VARIANT_ROW, None], None, []]})
    assert values(nested, List(2, VARIANT)) == [[VARIANT_ROW, None], None, []]


def test_a_variant_in_columns_of_its_own_is_refused_by_name() -> None:
    type_ = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.int64()})
    with pytest.raises(UnsupportedError, match=r"f.parquet: column 'c' is a variant stored in columns of its own"):
        values(stored({field("c", type_, 1): [None]}), VARIANT)
    with pytest.raises(FormatError, match=r"'c' is a variant whose value is int64, not binary"):
        values(stored({field("c", pa.struct({"metadata": pa.binary(), "value": pa.int64()}), 1): [None]}), VARIANT)


def test_columns_of_unknown_type_are_null_and_never_read() -> None:
    io = stored(
        {field("a", pa.int64(), 1): [1, 2], field("s", pa.struct([field("x", pa.int64(), 4)]), 3): [{"x": 1}, None]}
    )
    schema = Schema(
        fields=(
            Field(2, "u", UNKNOWN),
            Field(1, "a", LONG),
            Field(3, "s", Struct((Field(5, "u", UNKNOWN), Field(4, "x", LONG)))),
            Field(6, "l", List(7, UNKNOWN)),
        )
    )
    [batch] = read_file(io, FileRead(location=FILE, schema=schema))
    assert batch.schema.equals(arrow_schema(schema), check_metadata=True)
    assert batch.to_pylist() == [
        {"u": None, "a": 1, "s": {"u": None, "x": 1}, "l": None},
        {"u": None, "a": 2, "s": None, "l": None},
    ]
    became = Schema(fields=(Field(2, "u", BOOLEAN),))  # unknown is promoted to any type
    assert [batch.to_pylist() for batch in read_file(io, FileRead(location=FILE, schema=became))] == [
        [{"u": None}, {"u": None}]
    ]


def test_days_read_as_moments_are_filtered_as_moments() -> None:
    io = stored({field("c", pa.date32(), 1): [dt.date(2024, 1, day) for day in range(1, 9)]}, row_group_size=2)
    schema = Schema(fields=(Field(1, "c", TIMESTAMP),))
    bound = bind(parse_filter("c > '2024-01-03T12:00:00' AND c <= '2024-01-06T00:00:00'"), schema)
    assert values(io, TIMESTAMP, filter=bound) == [dt.datetime(2024, 1, day) for day in (4, 5, 6)]
    assert values(io, DATE) == [dt.date(2024, 1, day) for day in range(1, 9)]


def test_unsigned_columns_are_filtered_by_their_values() -> None:
    io = stored({field("c", pa.uint32(), 1): [1, 2**31, 2**32 - 1]}, row_group_size=1)
    schema = Schema(fields=(Field(1, "c", LONG),))
    assert values(io, LONG, filter=bind(parse_filter("c > 1"), schema)) == [2**31, 2**32 - 1]


def test_two_columns_of_one_id_are_refused() -> None:
    io = stored({field("a", pa.int64(), 1): [1], field("b", pa.int64(), 1): [2]})
    with pytest.raises(FormatError, match=r"f.parquet: the columns 'a' and 'b' both have the field id 1"):
        values(io, LONG)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ([{"a": 1, "l": [1]}, {"a": None, "l": [1]}], "s.a"),
        ([{"a": 1, "l": [1, None]}], "s.l.element"),
    ],
)
def test_nulls_where_the_table_requires_values_are_refused_by_name(content: list[Any], name: str) -> None:
    type_ = pa.struct([field("a", pa.int64(), 2), field("l", pa.list_(field("element", pa.int64(), 4)), 3)])
    io = stored({field("s", type_, 1): content})
    inner = Struct((Field(2, "a", LONG, True), Field(3, "l", List(4, LONG, True))))
    with pytest.raises(FormatError, match=rf"f.parquet: required column '{name}' has 1 nulls in the file"):
        list(read_file(io, FileRead(location=FILE, schema=Schema(fields=(Field(1, "s", inner),)))))
    below = stored({field("s", type_, 1): [None, {"a": 1, "l": None}]})  # a null struct has no fields that could lack
    [batch] = read_file(below, FileRead(location=FILE, schema=Schema(fields=(Field(1, "s", inner),))))
    assert batch.to_pylist() == [{"s": None}, {"s": {"a": 1, "l": None}}]


@pytest.mark.parametrize("start", [0, 1, 3, 8, 9])
def test_slices_of_batches_are_read_like_the_whole(start: int) -> None:
    inner = pa.struct([field("a", pa.int32(), 2), field("l", pa.list_(field("element", pa.int32(), 4)), 3)])
    map_ = pa.map_(pa.field("key", pa.string(), nullable=False), field("value", pa.int32(), 7))
    content = [
        {
            "s": None if n % 3 == 0 else {"a": n, "l": None if n % 4 == 0 else [n, None]},
            "m": None if n % 5 == 0 else [(str(n), n), ("x", None)],
        }
        for n in range(20)
    ]
    stored_ = pa.schema([field("s", inner, 1), field("m", map_, 5)])
    fields = (Field(3, "l", List(4, LONG)), Field(9, "new", INT, initial_default=4), Field(2, "a", LONG))
    now = Schema(fields=(Field(5, "m", Map(6, STRING, 7, LONG)), Field(1, "t", Struct(fields))))
    batch = pa.RecordBatch.from_pylist(content, schema=stored_)
    found = Aligner(stored_, now, "f", {})(batch.slice(start))
    found.validate(full=True)
    assert found.to_pylist() == [
        {"m": row["m"], "t": None if row["s"] is None else {"l": row["s"]["l"], "new": 4, "a": row["s"]["a"]}}
        for row in content[start:]
    ]
