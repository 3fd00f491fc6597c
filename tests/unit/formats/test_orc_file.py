from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import math
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from icefloe.errors import CorruptFile, FormatError, InputError, NoSuchFile, UnsupportedError
from icefloe.expr.filter.bind import bind
from icefloe.expr.text.filter_parser import parse_filter as parse
from icefloe.formats.orc.file import open_orc
from icefloe.formats.orc.writer import OrcWriter
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.formats.write.entries import WrittenFile, entries_of
from icefloe.formats.write.layout import layout
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema, conform
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.schema.name_mapping import mapping_of
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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
)
from icefloe.model.text.ddl import parse_ddl
from support.row_histories.columns import VALUES as VALUES_OF_ROWS
from support.row_histories.columns import Column, Kind, draw, in_order, plain, shown
from support.selection import examples

PLACE = "memory://lake/data/f.orc"
UTC = dt.UTC
Rows = list[dict[str, Any]]

VALUES: list[tuple[Type, list[Any]]] = [
    (BOOLEAN, [True, False]),
    (INT, [-(2**31), 2**31 - 1]),
    (LONG, [-(2**63), 2**63 - 1]),
    (FLOAT, [1.5, -0.0, math.inf]),
    (DOUBLE, [1e300, -0.0, -math.inf]),
    (DATE, [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    (TIME, [dt.time(0), dt.time(23, 59, 59, 999_999)]),
    (TIMESTAMP, [dt.datetime(1677, 9, 22), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2262, 4, 11)]),
    (TIMESTAMPTZ, [dt.datetime(1900, 1, 1, 0, 0, 0, 1, UTC), dt.datetime(2026, 11, 15, 12, tzinfo=UTC)]),
    (TIMESTAMP_NS, [-1, 1, 1_700_000_000_123_456_789]),
    (TIMESTAMPTZ_NS, [-1_000_000_001, 0, 1_700_000_000_123_456_789]),
    (STRING, ["", "a", "\U0001f600 \u00e9\x00"]),
    (UUID, [bytes(16), bytes(range(16))]),
    (Fixed(3), [b"abc", b"\x00\x00\x00"]),
    (BINARY, [b"", b"\xff\x00"]),
    (Decimal(9, 2), [decimal.Decimal("-1.25"), decimal.Decimal("9999999.99")]),
    (Decimal(38, 10), [decimal.Decimal("1234567890123456789012345678.0123456789")]),
    (Geometry(), [b"\x01\x01\x00\x00\x00"]),
    (Geography(), [b"\x01\x02"]),
    (VARIANT, [{"metadata": b"\x01\x00", "value": b"\x00"}]),
]


def write(io: MemoryFileIO, schema: Schema, rows: Rows, **properties: str) -> WrittenFile:
    """One file at PLACE; the names of properties have underscores for dots."""
    given = {name.replace("__", "-").replace("_", "."): value for name, value in properties.items()}
    writer = OrcWriter(io, PLACE, layout(schema, given), ())
    for batch in pa.Table.from_pylist(rows, arrow_schema(schema)).to_batches(max_chunksize=1000):
        writer.add(batch, {})
    return writer.close()


def read(io: MemoryFileIO, schema: Schema, **options: Any) -> Rows:
    batches = read_file(io, FileRead(location=PLACE, file_format="orc", schema=schema, **options))
    return [row for batch in batches for row in batch.to_pylist()]


def stored(io: MemoryFileIO) -> Any:
    return orc.ORCFile(pa.BufferReader(io.read(PLACE)))


def rows_of(schema: Schema, rows: Rows) -> Rows:
    return pa.Table.from_pylist(rows, arrow_schema(schema)).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("type_", "values"), VALUES, ids=[str(type_) for type_, _ in VALUES])
def test_values_of_every_type_come_back_bare_and_in_structs_lists_and_maps(type_: Type, values: list[Any]) -> None:
    key = type_ if not isinstance(type_, (Struct, type(VARIANT))) else STRING
    schema = Schema(
        fields=(
            Field(1, "bare", type_),
            Field(2, "s", Struct((Field(3, "x", type_), Field(4, "n", INT, True)))),
            Field(5, "l", List(6, type_)),
            Field(7, "m", Map(8, key, 9, type_)),
            Field(10, "deep", List(11, Struct((Field(12, "m", Map(13, STRING, 14, List(15, type_))),)))),
        )
    )
    keys = values if key is type_ else ["k"] * len(values)
    rows = [
        {
            "bare": value,
            "s": {"x": value, "n": 1},
            "l": [value, None, value],
            "m": [(each, value)],
            "deep": [{"m": [("a", [value, None]), ("b", None)]}, None, {"m": None}],
        }
        for value, each in zip(values, keys, strict=True)
    ]
    rows += [{}, {"s": {"x": None, "n": 2}, "l": [], "m": [(keys[0], None)], "deep": []}]
    io = MemoryFileIO()
    write(io, schema, rows)
    assert str(read(io, schema)) == str(rows_of(schema, rows))  # as text, in which -0.0 is not 0.0


def test_slices_of_nested_columns_are_written_as_they_are() -> None:
    schema = parse_ddl("s struct<a: int, t: struct<b: int>>, l array<struct<c: int>>, m map<string, struct<d: int>>")
    rows: Rows = [
        {"s": {"a": 1, "t": {"b": 2}}, "l": [{"c": 3}], "m": [("k", {"d": 4})]},
        {"s": None, "l": None, "m": None},
        {"s": {"a": None, "t": None}, "l": [None], "m": [("k", None)]},
    ]
    io = MemoryFileIO()
    writer = OrcWriter(io, PLACE, layout(schema, {}), ())
    [batch] = pa.Table.from_pylist(rows * 3, arrow_schema(schema)).to_batches()
    for start in range(9):
        writer.add(batch.slice(start, 1), {})
    writer.close()
    assert read(io, schema) == rows * 3


def test_nothing_is_written_below_a_struct_that_is_null() -> None:
    schema = parse_ddl("s struct<t: struct<b: int>>, l array<struct<t: struct<b: int>>>")
    inner: Rows = [{"t": {"b": 1}}, {"t": None}, {"t": {"b": None}}, {"t": {"b": 2}}, {"t": {"b": 3}}]
    rows: Rows = [{"s": each, "l": [each, each]} for each in inner]
    io = MemoryFileIO()
    write(io, schema, rows)
    assert read(io, schema) == rows


@pytest.mark.parametrize("seed", range(25))
def test_random_nested_rows_come_back_whatever_batches_they_come_in(seed: int) -> None:
    rng = random.Random(seed)
    columns = tuple(_random_column(rng, number, 3) for number in range(1, 5))
    schema = parse_ddl(", ".join(f"{column.name} {column.kind}" for column in columns))
    rows = [shown({c.key: draw(rng, c.kind, 0.3) for c in columns}, columns) for _ in range(rng.choice((3, 40)))]
    io = MemoryFileIO()
    writer = OrcWriter(io, PLACE, layout(schema, {}), ())
    [whole] = pa.Table.from_pylist(rows, arrow_schema(schema)).to_batches()
    start = 0
    while start < len(rows):
        length = rng.choice((1, 2, 7))
        writer.add(whole.slice(start, length), {})
        start += length
    writer.close()
    assert in_order(read(io, schema)) == in_order(rows)
    assert len(read(io, schema, batch_rows=2)) == len(rows)


def _random_column(rng: random.Random, key: int, depth: int) -> Column:
    return Column(key=key, name=f"c{key}", kind=_random_kind(rng, depth))


def _random_kind(rng: random.Random, depth: int) -> Kind:
    name = rng.choice(("struct", "struct", "list", "map", "int", "string", "double", "timestamp_ntz"))
    if depth == 0 or name in VALUES_OF_ROWS:
        return plain(rng.choice(tuple(VALUES_OF_ROWS)))
    if name == "struct":
        return Kind(name=name, fields=tuple(_random_column(rng, i, depth - 1) for i in range(1, rng.choice((2, 3)))))
    return Kind(name=name, inside=_random_kind(rng, depth - 1))


def test_every_field_has_its_attributes_and_no_other_ids() -> None:
    schema = Schema(
        fields=(
            Field(1, "id", LONG, True),
            Field(2, "at", TIME),
            Field(3, "u", List(4, UUID, True)),
            Field(5, "m", Map(6, Fixed(2), 7, TIMESTAMP_NS)),
        )
    )
    io = MemoryFileIO()
    write(io, schema, [])
    found = stored(io).schema
    assert found.field("id").metadata == {b"iceberg.id": b"1", b"iceberg.required": b"true"}
    assert found.field("at").metadata[b"iceberg.long-type"] == b"TIME"
    element = found.field("u").type.value_field
    assert element.metadata == {
        b"iceberg.id": b"4",
        b"iceberg.required": b"true",
        b"iceberg.binary-type": b"UUID",
    }
    key, value = found.field("m").type.key_field, found.field("m").type.item_field
    assert (key.metadata[b"iceberg.binary-type"], key.metadata[b"iceberg.length"]) == (b"FIXED", b"2")
    assert value.metadata[b"iceberg.timestamp-unit"] == b"NANOS"


def test_columns_are_found_by_id_whatever_they_are_called() -> None:
    io = MemoryFileIO()
    write(io, parse_ddl("a int, s struct<x: int, y: string>, l array<struct<p: int>>"), [{"a": 1, "s": {"x": 2}}])
    now = Schema(
        fields=(
            Field(2, "a", Struct((Field(5, "why", STRING), Field(4, "z", LONG)))),
            Field(1, "s", LONG),
            Field(9, "new", STRING),
        )
    )
    assert read(io, now) == [{"a": {"why": None, "z": 2}, "s": 1, "new": None}]


def test_only_what_is_wanted_is_read_of_structs() -> None:
    schema = parse_ddl("a int, s struct<x: int, y: string, t: struct<u: int>>")
    io = MemoryFileIO()
    write(io, schema, [{"a": 1, "s": {"x": 2, "y": "b", "t": {"u": 3}}}, {"a": 2}])
    wanted = (Field(2, "s", Struct((Field(schema.by_name["s.y"].id, "y", STRING),))),)
    with open_orc(io, PLACE) as file:
        [batch] = file.read(file.row_groups[0], wanted, 100)
        assert batch.to_pylist() == [{"s": {"y": "b"}}, {"s": None}]
        gone = (Field(2, "s", Struct((Field(99, "new", INT),))),)
        [batch] = file.read(file.row_groups[0], gone, 100)
        assert batch["s"].is_valid().to_pylist() == [True, False]
        [batch] = file.read(file.row_groups[0], (Field(99, "new", INT),), 100)
        assert (batch.num_columns, batch.num_rows) == (0, 2)


def test_names_with_dots_in_them_are_not_taken_for_paths() -> None:
    schema = Schema(fields=(Field(1, "a.b", INT), Field(2, "a", Struct((Field(3, "c", INT), Field(4, "d", INT))))))
    io = MemoryFileIO()
    write(io, schema, [{"a.b": 1, "a": {"c": 2, "d": 3}}])
    assert read(io, Schema(fields=(schema.fields[0],))) == [{"a.b": 1}]
    assert read(io, Schema(fields=(Field(2, "s", Struct((Field(3, "t", INT),))),))) == [{"s": {"t": 2}}]


def test_stripes_are_row_groups_with_statistics_and_are_skipped_by_them() -> None:
    schema = parse_ddl("id bigint, text string, x double, at timestamp_ntz, d decimal(9,2), ok boolean, day date")
    day = dt.date(2026, 1, 1)
    rows: Rows = [
        {
            "id": n,
            "text": f"{n:06d}",
            "x": n / 2,
            "at": dt.datetime(2026, 1, 1) + dt.timedelta(hours=n),
            "d": decimal.Decimal(n) / 4,
            "ok": n < 20_000,
            "day": day + dt.timedelta(days=n // 1000),
        }
        for n in range(40_000)
    ]
    io = MemoryFileIO()
    made = write(io, schema, rows, write_orc_stripe__size__bytes="100000")
    with open_orc(io, PLACE) as file:
        groups, stats = file.row_groups, file.statistics(schema)
        assert len(groups) > 1
        assert sum(group.rows for group in groups) == made.rows == 40_000
        assert len(made.split_offsets) == len(groups)
        assert [group.start for group in groups] == [sum(p.rows for p in groups[:i]) for i in range(len(groups))]
        assert stats is not None
        for group, row in zip(groups, stats.to_pylist(), strict=True):
            first, last = rows[group.start], rows[group.start + group.rows - 1]
            assert row["record_count"] == group.rows
            for id_, name in enumerate(("id", "text", "x", "at", "d", "ok", "day"), 1):
                low, high = row[f"lower_bound:{id_}"], row[f"upper_bound:{id_}"]
                if name == "at":
                    assert 0 <= (first["at"] - low).total_seconds() <= 2
                    assert 0 <= (high - last["at"]).total_seconds() <= 2.1
                elif name == "ok":
                    assert (low, high) == (last["ok"], first["ok"])
                else:
                    assert (low, high) == (first[name], last[name])
            assert row["nan_value_count:3"] == 0
        last = groups[-1]
        [batch, *_] = file.read(last, (schema.fields[0],), 10)
        assert batch["id"].to_pylist() == list(range(last.start, last.start + 10))
    for text in ("id >= 39990", "text = '000005'", "x > 19990.5", "at < '2026-01-01T05:00:00'", "d = 2.25", "not ok"):
        filter = bind(parse(text), schema)
        expected = [row["id"] for row in rows if _matches(text, row)]
        assert [
            row["id"] for row in read(io, Schema(fields=schema.fields[:1]), filter=filter, table_schema=schema)
        ] == (expected)


def _matches(text: str, row: dict[str, Any]) -> bool:
    tests = {
        "id >= 39990": row["id"] >= 39990,
        "text = '000005'": row["text"] == "000005",
        "x > 19990.5": row["x"] > 19990.5,
        "at < '2026-01-01T05:00:00'": row["at"] < dt.datetime(2026, 1, 1, 5),
        "d = 2.25": row["d"] == decimal.Decimal("2.25"),
        "not ok": not row["ok"],
    }
    return bool(tests[text])


def test_the_bounds_of_a_column_with_a_nan_are_not_believed() -> None:
    schema = parse_ddl("x double")
    rows = [{"x": 1.0}] * 12_000 + [{"x": math.nan}] + [{"x": 100.0}] * 5_000  # a NaN first in a group of 10,000 rows
    io = MemoryFileIO()
    write(io, schema, rows)
    with open_orc(io, PLACE) as file:
        stats = file.statistics(schema)
    assert stats is not None
    assert stats["upper_bound:1"].to_pylist() == [None]
    assert stats["nan_value_count:1"].to_pylist() == [None]
    assert len(read(io, schema, filter=bind(parse("x > 50"), schema))) >= 5_000


def test_entries_have_counts_bounds_and_offsets() -> None:
    schema = parse_ddl("id bigint, x double, s struct<t: string>, l array<int>")
    rows: Rows = [{"id": 1, "x": math.nan, "s": {"t": "b"}}, {"id": None, "x": 2.0, "s": None}]
    io = MemoryFileIO()
    made = write(io, schema, rows)
    [entry] = entries_of([made], schema=schema, spec=UNPARTITIONED).to_pylist()
    assert (entry["file_format"], entry["record_count"], entry["split_offsets"]) == ("orc", 2, [3])
    assert entry["file_size_in_bytes"] == io.size(PLACE)
    assert (entry["lower_bound:1"], entry["null_value_count:1"], entry["nan_value_count:2"]) == (1, 1, 1)
    text = schema.by_name["s.t"].id
    assert (entry[f"upper_bound:{text}"], entry[f"null_value_count:{text}"]) == ("b", 1)


def test_columns_of_type_unknown_are_left_out_of_files() -> None:
    schema = Schema(
        fields=(
            Field(1, "a", INT),
            Field(2, "nothing", UNKNOWN),
            Field(3, "s", Struct((Field(4, "none", UNKNOWN), Field(5, "x", INT)))),
        )
    )
    rows: Rows = [{"a": 1, "s": {"x": 2}}, {"a": 2}]
    io = MemoryFileIO()
    write(io, schema, rows)
    assert stored(io).schema.names == ["a", "s"]
    assert read(io, schema) == rows_of(schema, rows)
    with pytest.raises(UnsupportedError, match=r"'l\.element'.*unknown"):
        write(io, Schema(fields=(Field(1, "l", List(2, UNKNOWN)),)), [])


@pytest.mark.parametrize("year", [1600, 9999])
def test_times_that_arrow_cannot_read_back_are_refused(year: int) -> None:
    io, when = MemoryFileIO(), dt.datetime(year, 1, 1)
    with pytest.raises(InputError, match=r"'at'.*1677.*2262"):
        write(io, parse_ddl("at timestamp"), [{"at": when}])
    with pytest.raises(InputError, match=r"'m\.value\.element'"):
        write(io, parse_ddl("m map<string, array<timestamp>>"), [{"m": [("a", [when])]}])


def test_a_file_of_others_with_such_times_is_refused_by_name() -> None:
    io = MemoryFileIO()
    field = pa.field("at", pa.timestamp("us"), metadata={"iceberg.id": "1"})
    sink = pa.BufferOutputStream()
    with orc.ORCWriter(sink) as writer:
        writer.write(pa.table([pa.array([dt.datetime(9999, 1, 1)], pa.timestamp("us"))], schema=pa.schema([field])))
    io.write_new(PLACE, sink.getvalue().to_pybytes())
    with pytest.raises(UnsupportedError, match=r"f\.orc: .*out of range"):
        read(io, parse_ddl("at timestamp"))


def test_a_file_without_ids_is_read_by_a_name_mapping() -> None:
    schema = parse_ddl("a int, s struct<x: int>, l array<int>, m map<string, int>")
    rows = [{"a": 1, "s": {"x": 2}, "l": [3], "m": [("k", 4)]}]
    sink = pa.BufferOutputStream()
    with orc.ORCWriter(sink) as writer:
        plain = pa.table({name: [row[name] for row in rows] for name in ("a", "s", "l")})
        writer.write(plain.append_column("m", pa.array([[("k", 4)]], pa.map_(pa.string(), pa.int32()))).cast(_narrow()))
    io = MemoryFileIO()
    io.write_new(PLACE, sink.getvalue().to_pybytes())
    assert read(io, schema, mapping=mapping_of(schema)) == rows
    with pytest.raises(FormatError, match="no column has a field id"):
        read(io, schema)


def _narrow() -> pa.Schema:
    number = pa.int32()
    return pa.schema(
        {"a": number, "s": pa.struct({"x": number}), "l": pa.list_(number), "m": pa.map_(pa.string(), number)}
    )


@pytest.mark.parametrize("codec", ["zlib", "snappy", "lz4", "zstd", "none"])
def test_every_codec_is_written_and_its_end_is_read(codec: str) -> None:
    schema = parse_ddl("id bigint, text string")
    rows = [{"id": n, "text": "same"} for n in range(30_000)]
    io = MemoryFileIO()
    settings = {"write_orc_compression__codec": codec, "write_orc_stripe__size__bytes": "20000"}
    write(io, schema, rows, **settings)
    assert stored(io).compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    with open_orc(io, PLACE) as file:
        assert sum(group.rows for group in file.row_groups) == 30_000
    assert read(io, schema) == rows


def test_properties_are_checked() -> None:
    schema = parse_ddl("id bigint, s struct<t: string>")
    for name, value in [
        ("write_orc_compression__codec", "lzo"),
        ("write_orc_compression__strategy", "fastest"),
        ("write_orc_stripe__size__bytes", "0"),
        ("write_orc_bloom_filter_fpp", "2"),
        ("write_orc_bloom_filter_columns", "id,nope"),
    ]:
        with pytest.raises(InputError, match=r"property write\.orc"):
            write(MemoryFileIO(), schema, [], **{name: value})
    io, plain = MemoryFileIO(), MemoryFileIO()
    rows = [{"id": n, "s": {"t": str(n)}} for n in range(1000)]
    write(io, schema, rows, write_orc_bloom_filter_columns="id, s.t")
    write(plain, schema, rows)
    assert io.size(PLACE) > plain.size(PLACE) + 1000
    assert read(io, schema) == rows


def test_flushing_finishes_the_file() -> None:
    schema = parse_ddl("id bigint")
    io = MemoryFileIO()
    writer = OrcWriter(io, PLACE, layout(schema, {}), ())
    writer.add(conform(pa.table({"id": [1]}), schema).to_batches()[0], {})
    assert writer.takes({})
    assert writer.pending_bytes > 0
    writer.flush()
    assert (writer.takes({}), writer.is_full, writer.pending_bytes) == (False, True, 0)
    assert writer.close().rows == 1
    assert read(io, schema) == [{"id": 1}]


def test_a_missing_a_cut_and_a_damaged_file_are_told_apart() -> None:
    schema = parse_ddl("id bigint, text string")
    io = MemoryFileIO()
    with pytest.raises(NoSuchFile, match=r"f\.orc"):
        read(io, schema)
    write(io, schema, [{"id": n, "text": str(n)} for n in range(100)])
    data = io.read(PLACE)
    cut = (b"", b"ORC", data[:-1], data[: len(data) // 2])
    for damaged in (*cut, data[:-4] + bytes(4), data[:-40] + bytes(39) + data[-1:]):
        bad = MemoryFileIO()
        bad.write_new(PLACE, damaged)
        with pytest.raises(CorruptFile, match=r"f\.orc"):
            read(bad, schema)


@settings(max_examples=examples(60))
@given(st.data())
def test_a_damaged_end_gives_an_error_of_this_library_or_rows(data: st.DataObject) -> None:
    schema = parse_ddl("id bigint, text string, at timestamp")
    io = MemoryFileIO()
    write(io, schema, [{"id": n, "text": str(n), "at": dt.datetime(2026, 1, 1)} for n in range(10)])
    whole = bytearray(io.read(PLACE))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[-data.draw(st.integers(1, 120))] = data.draw(st.integers(0, 255))
    bad = MemoryFileIO()
    bad.write_new(PLACE, bytes(whole))
    with contextlib.suppress(FormatError, UnsupportedError):
        read(bad, schema, filter=bind(parse("id > 3 and text > '2'"), schema))


def test_a_fixed_value_of_another_length_is_refused() -> None:
    io = MemoryFileIO()
    marks = {"iceberg.id": "1", "iceberg.binary-type": "FIXED", "iceberg.length": "3"}
    sink = pa.BufferOutputStream()
    with orc.ORCWriter(sink) as writer:
        schema = pa.schema([pa.field("f", pa.binary(), metadata=marks)])
        writer.write(pa.table([pa.array([b"abcd"])], schema=schema))
    io.write_new(PLACE, sink.getvalue().to_pybytes())
    with pytest.raises(CorruptFile, match="'f'"):
        read(io, Schema(fields=(Field(1, "f", Fixed(3)),)))
