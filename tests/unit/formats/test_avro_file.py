from __future__ import annotations

import io as streams
from pathlib import Path
from typing import Any

import fastavro
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.avro import block_index as avro_frame
from icefloe.errors import FormatError, InputError, NoSuchFile, UnsupportedError
from icefloe.formats.avro import file as avro_file
from icefloe.formats.avro import writer as avro_writer
from icefloe.formats.avro.file import open_avro
from icefloe.formats.avro.writer import AvroWriter
from icefloe.formats.read.batches import relabel
from icefloe.formats.write.entries import entries_of
from icefloe.formats.write.layout import layout
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.entries import column_key, stat
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.schema.name_mapping import mapping_of
from icefloe.model.schema.schema import Schema, fresh_ids
from icefloe.model.schema.types import INT, LONG, STRING, UNKNOWN, VARIANT, Field, List, Map, Struct, Type
from icefloe.model.text.ddl import parse_ddl
from support.avro_rows import PLACE, VALUES, as_stored, lanes, read_table, schemas_and_rows, write

IDS = Schema(fields=(Field(1, "id", LONG), Field(2, "s", STRING)))
FOREIGN: dict[str, Any] = {
    "type": "record",
    "name": "t",
    "fields": [
        {"name": "id", "type": ["long", "null"], "field-id": 1},
        {"name": "s", "type": ["null", "string"], "field-id": 2},
    ],
}


def same(found: pa.Table, expected: pa.Table) -> None:
    """Same values under the same names; ids and flags are compared elsewhere."""
    assert found.num_rows == expected.num_rows
    for batch, other in zip(found.combine_chunks().to_batches(), expected.combine_chunks().to_batches(), strict=True):
        assert relabel(batch, other.schema).to_pylist() == other.to_pylist()


def by_fastavro(schema: dict[str, Any], rows: list[dict[str, Any]], codec: str = "null", sync: int = 16000) -> bytes:
    sink = streams.BytesIO()
    fastavro.writer(sink, schema, rows, codec=codec, sync_interval=sync)
    return sink.getvalue()


def put(data: bytes) -> MemoryFileIO:
    io = MemoryFileIO()
    io.write_new(PLACE, data)
    return io


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "t", "fields": list(fields)}


@pytest.mark.parametrize("least", [1, 10**9], ids=["together", "in order"])
@pytest.mark.parametrize(("type_", "values"), VALUES, ids=[str(type_) for type_, _ in VALUES])
def test_values_of_every_type_come_back_bare_and_nested(type_: Type, values: list[Any], least: int) -> None:
    key = STRING if type_ == VARIANT else type_
    schema = Schema(
        fields=(
            Field(1, "bare", type_),
            Field(2, "s", Struct((Field(3, "x", type_), Field(4, "n", INT, True)))),
            Field(5, "l", List(6, type_)),
            Field(7, "m", Map(8, key, 9, type_)),
            Field(10, "deep", List(11, Struct((Field(12, "m", Map(13, STRING, 14, List(15, type_))),)))),
        )
    )
    full = [
        {
            "bare": value,
            "s": {"x": value, "n": 1},
            "l": [value, None, *values],
            "m": [("k" if key is STRING and type_ != STRING else value, value)],
            "deep": [{"m": [("a", [value]), ("b", None)]}, None, {"m": None}],
        }
        for value in values
    ]
    none: dict[str, Any] = dict.fromkeys(("bare", "s", "l", "m", "deep"))
    rows = [*full, none, {"bare": None, "s": {"x": None, "n": 2}, "l": [], "m": [], "deep": []}, *full]
    io = MemoryFileIO()
    assert write(io, schema, rows).rows == len(rows)
    with lanes(least):
        same(read_table(io, schema.fields), as_stored(schema, rows))


@given(schemas_and_rows(), st.sampled_from([1, 10**9]), st.integers(1, 200))
def test_rows_of_any_schema_come_back(case: tuple[Schema, list[dict[str, Any]]], least: int, block_bytes: int) -> None:
    schema, rows = case
    io = MemoryFileIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro_writer, "BLOCK_BYTES", block_bytes)
        write(io, schema, rows, compression_codec="uncompressed")
    with lanes(least):
        found = read_table(io, schema.fields)
    if len(rows) > 0:
        same(found, as_stored(schema, rows))
        assert found.num_rows == len(list(fastavro.reader(streams.BytesIO(io.read(PLACE)))))


def test_rows_are_the_same_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [Field(0, f"c{i}", type_) for i, (type_, _) in enumerate(VALUES)]
    columns += [Field(0, f"l{i}", List(0, type_)) for i, (type_, _) in enumerate(VALUES)]
    columns += [Field(0, f"m{i}", Map(0, STRING, 0, type_)) for i, (type_, _) in enumerate(VALUES)]
    schema = Schema(fields=fresh_ids(tuple(columns)))
    made = [
        {
            **{f"c{i}": (*values, None)[at % (len(values) + 1)] for i, (_, values) in enumerate(VALUES)},
            **{f"l{i}": [values[at % len(values)]] * (at % 3) for i, (_, values) in enumerate(VALUES)},
            **{f"m{i}": [(f"{at}", values[at % len(values)]), ("", None)] for i, (_, values) in enumerate(VALUES)},
        }
        for at in range(11)
    ]
    rows = as_stored(schema, made)
    monkeypatch.setattr(avro_writer, "SLICE_ROWS", 4)
    monkeypatch.setattr(avro_file, "BATCH_FIXED_BYTES", 200)
    io = MemoryFileIO()
    writer = AvroWriter(io, PLACE, layout(schema, {}), ())
    writer.add(rows.to_batches()[0].slice(1, 9), {})
    assert writer.close().rows == 9
    with lanes(1):
        same(read_table(io, schema.fields), rows.slice(1, 9))


def test_a_file_has_the_ids_of_its_columns_at_every_depth() -> None:
    schema = parse_ddl("a int not null, s struct<x: int not null, l: array<map<int, string>>>, m map<string, date>")
    io = MemoryFileIO()
    write(io, schema, [])
    with open_avro(io, PLACE) as file:
        assert file.schema.equals(arrow_schema(schema), check_metadata=True)
        assert file.row_groups == ()
        assert file.statistics(schema) is None


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "uncompressed"])
def test_every_codec_is_written_and_read(codec: str) -> None:
    io = MemoryFileIO()
    rows = [{"id": i, "s": "x" * (i % 50)} for i in range(5000)]
    write(io, IDS, rows, compression_codec=codec)
    assert read_table(io, IDS.fields).to_pylist() == rows
    if codec == "snappy":
        assert polars.read_avro(streams.BytesIO(io.read(PLACE))).to_dicts() == rows
    elif codec != "zstd":  # which fastavro reads only with another package
        assert list(fastavro.reader(streams.BytesIO(io.read(PLACE)))) == rows


def test_gzip_is_the_codec_if_none_is_named_and_levels_count() -> None:
    rows = [{"id": i * i, "s": f"{i * 7919}"} for i in range(5000)]
    sizes = {}
    for level in ("1", "9"):
        io = MemoryFileIO()
        sizes[level] = write(io, IDS, rows, compression_level=level).size
        assert b"deflate" in io.read(PLACE)[:1000]
    assert sizes["9"] < sizes["1"]
    assert write(MemoryFileIO(), IDS, rows, compression_codec="snappy", compression_level="none").record_count == 5000


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"compression_codec": "lzo"}, "expected gzip, snappy, uncompressed or zstd, got 'lzo'"),
        ({"compression_level": "10"}, "'10' is not from 0 to 9"),
        ({"compression_codec": "zstd", "compression_level": "x"}, "expected a whole number, got 'x'"),
    ],
)
def test_a_wrong_property_is_refused_by_name(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        write(MemoryFileIO(), IDS, [], **properties)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_files_of_another_writer_are_read(codec: str) -> None:
    rows = [{"id": i, "s": None if i % 3 == 0 else f"row {i}"} for i in range(3000)]
    io = put(by_fastavro(FOREIGN, rows, codec, sync=500))
    assert read_table(io, IDS.fields).to_pylist() == rows
    with lanes(10**9):
        assert read_table(io, IDS.fields).to_pylist() == rows


@pytest.mark.slow
def test_records_that_cannot_be_read_together_are_read_in_order() -> None:
    long = [{"id": 1, "s": None, "l": list(range(60_000))}]
    field = {"name": "l", "type": {"type": "array", "items": "int", "element-id": 4}, "field-id": 3}
    schema = {**FOREIGN, "fields": [*FOREIGN["fields"], field]}
    io = put(by_fastavro(schema, long))
    with lanes(1):
        wanted = (Field(3, "l", List(4, INT)),)
        assert read_table(io, wanted, handed_over=True).to_pylist() == [{"l": long[0]["l"]}]


def test_only_wanted_columns_come_back_and_of_nested_ones_only_wanted_fields() -> None:
    schema = parse_ddl("a int, s struct<x: int, y: struct<z: int, w: string>>, l array<struct<p: int, q: date>>, b int")
    row = {"a": 1, "s": {"x": 2, "y": {"z": 3, "w": "w"}}, "l": [{"p": 4, "q": None}, None], "b": 5}
    io = MemoryFileIO()
    write(io, schema, [row, dict.fromkeys(row)])
    y, s, p, items = (schema.by_name[name] for name in ("s.y", "s", "l.element.p", "l"))
    wanted = (
        Field(s.id, "renamed", Struct((Field(y.id, "y", Struct((Field(999, "absent", INT),))),))),
        Field(items.id, "l", List(schema.by_name["l.element"].id, Struct((Field(p.id, "pp", INT),)))),
    )
    for least in (1, 10**9):
        with lanes(least):
            found = read_table(io, wanted).to_pylist()
        # Something of a struct is read even if nothing of it is wanted, to know where it is null.
        assert found == [{"s": {"y": {"z": 3}}, "l": [{"p": 4}, None]}, {"s": None, "l": None}]


def test_without_columns_there_still_are_rows() -> None:
    io = MemoryFileIO()
    write(io, IDS, [{"id": i, "s": None} for i in range(2500)])
    with open_avro(io, PLACE) as file:
        batches = list(file.read(file.row_groups[0], (Field(77, "other", INT),), 1000))
    assert [(batch.num_rows, batch.num_columns) for batch in batches] == [(1000, 0), (1000, 0), (500, 0)]


def test_a_table_of_unknown_columns_alone_has_its_rows() -> None:
    schema = Schema(fields=(Field(1, "u", UNKNOWN),))
    io = MemoryFileIO()
    write(io, schema, [{"u": None}] * 70_000)
    assert read_table(io, schema.fields).to_pylist() == [{"u": None}] * 70_000


def test_each_run_of_blocks_is_read_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_file, "RUN_BYTES", 2000)
    monkeypatch.setattr(avro_file, "GROUP_BYTES", 1500)
    rows = [{"id": i, "s": f"{i}"} for i in range(5000)]
    io = put(by_fastavro(FOREIGN, rows, sync=700))
    with open_avro(io, PLACE) as file:
        assert len(file.row_groups) > 10
        assert [group.group for group in file.row_groups] == list(range(len(file.row_groups)))
        for group in reversed(file.row_groups):
            found = [row for batch in file.read(group, IDS.fields, 50) for row in batch.to_pylist()]
            assert found == rows[group.start : group.start + group.rows]
    assert file.row_groups[-1].start + file.row_groups[-1].rows == len(rows)


def test_a_large_file_far_away_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_file, "KEPT_BYTES", 0)
    monkeypatch.setattr(avro_file, "FAR_BYTES", 3000)
    monkeypatch.setattr(avro_frame, "HEADER_BYTES", 10)  # more is asked for until the header is whole
    rows = [{"id": i, "s": f"{i}"} for i in range(5000)]
    io = put(by_fastavro(FOREIGN, rows, sync=700))
    assert read_table(io, IDS.fields).to_pylist() == rows


def test_a_file_on_the_local_disk_is_read(tmp_path: Path) -> None:
    rows = [{"id": i, "s": f"{i}"} for i in range(5000)]
    (tmp_path / "f.avro").write_bytes(by_fastavro(FOREIGN, rows, sync=700))
    with open_avro(LocalFileIO(), f"file://{tmp_path}/f.avro") as file:
        (group,) = file.row_groups
        found = [row for batch in file.read(group, IDS.fields, 999) for row in batch.to_pylist()]
    assert found == rows


def test_a_file_without_ids_is_read_by_name_mapping() -> None:
    fields: list[dict[str, Any]] = [
        {"name": "id", "type": "long"},
        {
            "name": "tags",
            "type": {
                "type": "array",
                "items": {"type": "record", "name": "e", "fields": [{"name": "k", "type": "string"}]},
            },
        },
        {"name": "m", "type": {"type": "map", "values": "int"}},
    ]
    rows = [{"id": 1, "tags": [{"k": "a"}], "m": {"x": 1}}]
    io = put(by_fastavro(record(*fields), rows))
    schema = parse_ddl("id bigint, tags array<struct<k: string>>, m map<string, int>")
    found = read_table(io, schema.fields, mapping_of(schema))
    assert found.to_pylist(maps_as_pydicts="strict") == rows
    with pytest.raises(FormatError, match="no column has a field id"):
        read_table(io, schema.fields)


def test_names_that_avro_does_not_allow_come_back() -> None:
    schema = Schema(fields=(Field(1, "a b", Struct((Field(2, "9-x", INT),))), Field(3, "é", INT)))
    io = MemoryFileIO()
    write(io, schema, [{"a b": {"9-x": 1}, "é": 2}])
    assert read_table(io, schema.fields).to_pylist() == [{"a b": {"9-x": 1}, "é": 2}]


def test_names_that_are_the_same_in_avro_are_refused() -> None:
    schema = Schema(fields=(Field(1, "s", Struct((Field(2, "a b", INT), Field(3, "a_x20b", INT)))),))
    with pytest.raises(UnsupportedError, match="'a b' and 'a_x20b' have the same name"):
        write(MemoryFileIO(), schema, [])


@pytest.mark.parametrize("type_", [UNKNOWN, Struct((Field(9, "u", UNKNOWN),))], ids=str)
def test_lists_of_nothing_are_refused_by_name(type_: Type) -> None:
    schema = Schema(fields=(Field(1, "s", Struct((Field(2, "l", List(3, type_, type_ != UNKNOWN)),))),))
    with pytest.raises(UnsupportedError, match=r"column 's\.l': Avro files have no lists of"):
        write(MemoryFileIO(), schema, [])


def test_a_map_to_nothing_is_written() -> None:
    schema = Schema(fields=(Field(1, "m", Map(2, STRING, 3, UNKNOWN)),))
    io = MemoryFileIO()
    write(io, schema, [{"m": [("a", None), ("b", None)]}])
    for least in (1, 10**9):
        with lanes(least):
            assert read_table(io, schema.fields).to_pylist() == [{"m": [("a", None), ("b", None)]}]


def test_an_entry_has_counts_and_bounds_of_the_columns() -> None:
    schema = parse_ddl("id bigint, s struct<x: double>")
    io = MemoryFileIO()
    rows: list[dict[str, Any]] = [
        {"id": 5, "s": {"x": float("nan")}},
        {"id": 3, "s": None},
        {"id": None, "s": {"x": 2.5}},
    ]
    file = write(io, schema, rows)
    entry = entries_of([file], schema=schema, spec=UNPARTITIONED).to_pylist()[0]
    assert (entry["file_format"], entry["record_count"]) == ("avro", 3)
    assert entry["file_size_in_bytes"] == len(io.read(PLACE))
    id_, x = (column_key(schema.by_name[name].id) for name in ("id", "s.x"))
    assert [entry[stat(m, id_)] for m in ("null_value_count", "lower_bound", "upper_bound")] == [1, 3, 5]
    assert [entry[stat(m, x)] for m in ("nan_value_count", "lower_bound", "upper_bound")] == [1, 2.5, 2.5]


def test_a_missing_file_is_named() -> None:
    with pytest.raises(NoSuchFile, match=PLACE), open_avro(MemoryFileIO(), PLACE):
        pass
