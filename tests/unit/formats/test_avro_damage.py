"""Avro data files that lie, are cut or are built to hurt: typed errors that name the file, and nothing else."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pyarrow as pa
import pytest

from icefloe.codecs.avro.encode import encode_metadata, number
from icefloe.errors import CorruptFile, FormatError, LimitError, UnsupportedError
from icefloe.formats.avro.file import open_avro
from icefloe.io.memory import MemoryFileIO
from icefloe.limits import MIB, Limits
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, STRING, Field, Fixed, List, Map, Primitive, Type
from support.avro_rows import PLACE, lanes, read_table, write

SYNC = bytes(range(16))
Json = dict[str, Any]


def a_field(type_: Any, id_: Any = 1, name: str = "a") -> Json:
    return {"name": name, "type": type_, "field-id": id_}


def record(*fields: Json, name: str = "t") -> Json:
    return {"type": "record", "name": name, "fields": list(fields)}


def file_of(schema: Any, *blocks: tuple[int, bytes], codec: str = "null", sync: bytes = SYNC) -> bytes:
    header = encode_metadata({"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()})
    parts = [b"Obj\x01" + header + SYNC]
    for count, data in blocks:
        parts += [number(count), number(len(data)), data, sync]
    return b"".join(parts)


def put(data: bytes) -> MemoryFileIO:
    io = MemoryFileIO()
    io.write_new(PLACE, data)
    return io


def read(data: bytes, type_: Type | None = None) -> list[Any]:
    found = read_table(put(data), (Field(1, "a", INT if type_ is None else type_),), handed_over=False)
    return found["a"].to_pylist()  # type: ignore[no-any-return]


ONE = record(a_field("int"))
BAD_SCHEMAS: list[tuple[str, Any, type[Exception], str]] = [
    ("a number", 5, FormatError, "expected an Avro type"),
    ("no record", {"type": "array", "items": "int"}, FormatError, "is a record"),
    ("an optional record", ["null", ONE], FormatError, "is a record"),
    ("no fields", {"type": "record", "name": "t"}, FormatError, "list of fields"),
    ("no name", {"type": "record", "fields": []}, FormatError, "without a name"),
    ("a field without name", {"type": "record", "name": "t", "fields": [{"type": "int"}]}, FormatError, "with a name"),
    ("an unknown type", record(a_field("integer")), FormatError, "'integer' is not known"),
    ("an enum", record(a_field({"type": "enum", "name": "e", "symbols": ["a"]})), UnsupportedError, "'enum'"),
    ("a union of two", record(a_field(["int", "string"])), UnsupportedError, "unions of null and one"),
    ("a union of one", record(a_field(["int"])), UnsupportedError, "unions of null and one"),
    ("a union of nulls", record(a_field(["null", "null"])), UnsupportedError, "unions of null and one"),
    ("an id that is none", record(a_field("int", "x")), FormatError, "'x' is not an id"),
    ("an id that is negative", record(a_field("int", -1)), FormatError, "-1 is not an id"),
    ("an id twice", record(a_field("int"), a_field("int", 1, "b")), FormatError, "same id"),
    ("a fixed without size", record(a_field({"type": "fixed", "name": "f"})), FormatError, "number of bytes"),
    ("a huge fixed", record(a_field({"type": "fixed", "name": "f", "size": 2**40})), LimitError, "limit"),
    ("an array of nothing", record(a_field({"type": "array", "items": "null"})), UnsupportedError, "of nothing"),
    (
        "an array of empty records",
        record(a_field({"type": "array", "items": record(name="e")})),
        UnsupportedError,
        "of nothing",
    ),
    (
        "a map of no pairs",
        record(a_field({"type": "array", "logicalType": "map", "items": "int"})),
        FormatError,
        "a key and a value",
    ),
    (
        "a decimal of no digits",
        record(a_field({"type": "bytes", "logicalType": "decimal", "precision": 0})),
        FormatError,
        "precision 0",
    ),
    (
        "a variant of something else",
        record(a_field({**record(a_field("int", None, "x"), name="v"), "logicalType": "variant"})),
        FormatError,
        "metadata and value",
    ),
    (
        "a type that contains itself",
        record(a_field(["null", record(a_field(["null", "n"], 2, "next"), name="n")])),
        UnsupportedError,
        "contains itself|not known",
    ),
]


@pytest.mark.parametrize(
    ("schema", "kind", "problem"), [bad[1:] for bad in BAD_SCHEMAS], ids=[b[0] for b in BAD_SCHEMAS]
)
def test_a_schema_that_is_none_of_ours_is_refused(schema: Any, kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem) as caught:
        read(file_of(schema))
    assert PLACE in str(caught.value)


def test_types_nested_without_end_are_refused() -> None:
    text = '{"type":"array","items":' * 3000 + '"int"' + "}" * 3000
    whole = '{"type":"record","name":"t","fields":[{"name":"a","type":' + text + "}]}"
    data = b"Obj\x01" + encode_metadata({"avro.schema": whole.encode()}) + SYNC
    with pytest.raises(FormatError):
        read(data)


def test_types_that_double_at_each_step_are_refused() -> None:
    fields = [a_field(record(a_field("int", None, "x"), name="r0"), 1, "f0")]
    for step in range(1, 40):
        inner = [a_field(f"r{step - 1}", None, "x"), a_field(f"r{step - 1}", None, "y")]
        fields.append(a_field(record(*inner, name=f"r{step}"), step + 1, f"f{step}"))
    with pytest.raises(LimitError, match="nested too deeply"):
        read(file_of(record(*fields)))


def test_a_named_type_may_be_used_again() -> None:
    fixed = {"type": "fixed", "name": "f", "size": 2, "namespace": "n.s"}
    inner = record(a_field(fixed, 2, "x"), a_field("n.s.f", 3, "y"), a_field(["null", "n.s.f"], 4, "z"), name="r")
    data = file_of(record(a_field(inner)), (1, b"abcd\x02ef"))
    found = read_table(put(data), (Field(1, "a", INT),))
    assert found["a"].to_pylist() == [{"x": b"ab", "y": b"cd", "z": b"ef"}]


def test_times_of_other_programs_have_their_units() -> None:
    kinds: list[tuple[Any, pa.DataType]] = [
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "timestamp-millis", "adjust-to-utc": "true"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "timestamp-micros"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}, pa.timestamp("ns", "UTC")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, pa.decimal128(3, 1)),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
    ]
    for kind, expected in kinds:
        data = file_of(record(a_field(kind)), (1, b"\x02" if kind["type"] in ("int", "long") else b"\x02\x31"))
        assert read_table(put(data), (Field(1, "a", INT),)).schema.field("a").type == expected


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "uncompressed"])
def test_a_file_that_is_cut_anywhere_is_refused(codec: str) -> None:
    schema = Schema(fields=(Field(1, "a", INT), Field(2, "s", List(3, STRING))))
    io = MemoryFileIO()
    write(io, schema, [{"a": i, "s": ["x", None]} for i in range(50)], compression_codec=codec)
    data = io.read(PLACE)
    header = len(data) - len(data.rpartition(data[-16:])[0].rpartition(data[-16:])[2]) - 16
    for end in range(len(data)):
        if end == header:
            continue  # a file without blocks has no rows, and is a file
        with pytest.raises(FormatError, match=PLACE):
            read_table(put(data[:end]), schema.fields)


def test_a_block_that_does_not_end_with_the_marker_is_refused() -> None:
    with pytest.raises(CorruptFile, match="sync marker"):
        read(file_of(ONE, (1, b"\x02"), sync=bytes(16)))


@pytest.mark.parametrize("least", [1, 10**9], ids=["together", "in order"])
@pytest.mark.parametrize(
    ("count", "data"),
    [(1, b""), (2, b"\x02"), (1, b"\x02\x02"), (2**40, b"\x02"), (1, b"\xff" * 9 + b"\x01"), (1, b"\x80")],
)
def test_records_that_do_not_fill_their_block_are_refused(least: int, count: int, data: bytes) -> None:
    with lanes(least), pytest.raises(FormatError, match=PLACE):
        read(file_of(ONE, (count, data)))


def test_more_records_than_bytes_are_refused_even_if_none_of_their_columns_is_wanted() -> None:
    io = put(file_of(ONE, (2**50, b"\x02")))
    with pytest.raises(CorruptFile, match="records in 1 bytes"), open_avro(io, PLACE) as file:
        next(iter(file.read(file.row_groups[0], (), 1000)))


def test_blocks_without_records_are_passed_over() -> None:
    io = put(file_of(ONE, (0, b""), (1, b"\x02"), (0, b"junk"), (1, b"\x04"), (0, b"")))
    with open_avro(io, PLACE) as file:
        assert [group.rows for group in file.row_groups] == [2]
        assert len(file._runs[0].blocks) == 2  # type: ignore[attr-defined]
    assert read(io.read(PLACE)) == [1, 2]
    with open_avro(put(file_of(ONE, (0, b""))), PLACE) as file:
        assert file.row_groups == ()


def test_a_count_below_zero_is_refused() -> None:
    with pytest.raises(CorruptFile, match="a block of -1 records"):
        read(file_of(ONE, (-1, b"\x02")))


def test_records_without_a_byte_are_not_without_number() -> None:
    schema = record(a_field("null"))
    assert read(file_of(schema, (3, b""))) == [None] * 3
    with pytest.raises(LimitError, match="without a byte"):
        read(file_of(schema, (2**40, b"")))


@pytest.mark.parametrize("codec", ["deflate", "zstandard"])
def test_a_block_that_inflates_without_end_is_refused(codec: str) -> None:
    engine = zlib.compressobj(9, wbits=-15)
    zeros = bytes(3 * MIB)
    small = (
        engine.compress(zeros) + engine.flush() if codec == "deflate" else pa.Codec("zstd").compress(zeros).to_pybytes()
    )
    io = put(file_of(ONE, (len(zeros), small), codec=codec))
    with pytest.raises(LimitError, match="inflate beyond the limit"):  # noqa: SIM117
        with open_avro(io, PLACE, limits=Limits(avro_block_bytes=2 * MIB)) as file:
            list(file.read(file.row_groups[0], (Field(1, "a", INT),), 1000))


def test_a_compressed_block_without_its_end_is_refused() -> None:
    engine = zlib.compressobj(9, wbits=-15)
    unfinished = engine.compress(b"\x02") + engine.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(CorruptFile, match="deflate block is cut short"):
        read(file_of(ONE, (1, unfinished), codec="deflate"))


def test_a_codec_that_is_not_known_is_named() -> None:
    with pytest.raises(UnsupportedError, match="'lzo'"):
        read(file_of(ONE, (1, b"\x02"), codec="lzo"))


BAD_VALUES: list[tuple[str, Any, bytes, str]] = [
    ("text that is not UTF-8", "string", b"\x02\xff", "UTF|utf"),
    ("an int that is a long", "int", b"\x80\x80\x80\x80\x80\x01", "Integer value|Value|too large|out of range"),
    (
        "a time of the next day",
        {"type": "long", "logicalType": "time-micros"},
        number(24 * 3600 * 10**6),
        "within a day",
    ),
    (
        "a decimal of too many digits",
        {"type": "bytes", "logicalType": "decimal", "precision": 1},
        b"\x02\x64",
        "digits",
    ),
    ("a decimal of no bytes", {"type": "bytes", "logicalType": "decimal", "precision": 1}, b"\x00", "0 bytes"),
    (
        "a map with a null key",
        {
            "type": "array",
            "logicalType": "map",
            "items": record(a_field(["null", "int"], 2, "key"), a_field("int", 3, "value"), name="p"),
        },
        b"\x02\x00\x02\x00",
        "key of a map is null",
    ),
]


@pytest.mark.parametrize("least", [1, 10**9], ids=["together", "in order"])
@pytest.mark.parametrize(("type_", "data", "problem"), [b[1:] for b in BAD_VALUES], ids=[b[0] for b in BAD_VALUES])
def test_values_that_are_not_of_their_type_are_refused(type_: Any, data: bytes, problem: str, least: int) -> None:
    with lanes(least), pytest.raises(FormatError, match=problem) as caught:
        read(file_of(record(a_field(type_)), (1, data)))
    assert PLACE in str(caught.value)


def test_null_values_of_a_wide_type_come_in_small_batches() -> None:
    fixed = {"type": "fixed", "name": "f", "size": 8 * MIB}
    io = put(file_of(record(a_field(["null", fixed])), (20, bytes(20))))
    with open_avro(io, PLACE) as file:
        sizes = [batch.num_rows for batch in file.read(file.row_groups[0], (Field(1, "a", Fixed(8 * MIB)),), 1000)]
    assert sizes == [8, 8, 4]


def test_an_array_that_lies_about_its_size_is_read_by_its_items() -> None:
    schema = record(a_field({"type": "array", "items": "int", "element-id": 2}))
    lying = number(-2) + number(1) + b"\x02\x04" + b"\x00"
    with lanes(1):
        found = read_table(put(file_of(schema, (1, lying))), (Field(1, "a", List(2, INT)),), handed_over=True)
    assert found["a"].to_pylist() == [[1, 2]]


def test_maps_in_either_form_are_read() -> None:
    value: Primitive = INT
    pairs = [a_field("string", 2, "key"), a_field("int", 3, "value")]
    stored = {"type": "array", "logicalType": "map", "items": record(*pairs, name="p")}
    plain = {"type": "map", "values": "int", "key-id": 2, "value-id": 3}
    for type_ in (stored, plain):
        assert read(file_of(record(a_field(type_)), (1, b"\x02\x02k\x0a\x00")), Map(2, STRING, 3, value)) == [
            [("k", 5)]
        ]
