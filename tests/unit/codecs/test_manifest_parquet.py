from __future__ import annotations

import math
import struct
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.manifest.parquet import decode_parquet_manifest, encode_parquet_manifest
from icefloe.codecs.manifest.parquet_layout import with_short_footer
from icefloe.errors import CorruptFile, FormatError, InputError, LimitError, UnsupportedError
from icefloe.limits import Limits
from icefloe.model.entries import put
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field
from support.manifests.random_entries import (
    Row,
    data_dv,
    data_rows,
    differences,
    equality_delete,
    every_type,
    manifest,
    manifest_dv,
    mixed_manifest,
)
from support.manifests.sample import (
    IDS,
    LOCATION,
    SCHEMA,
    column_stats,
    context,
    data_file,
    mixed_partition,
    partition,
    table,
)

V4 = context(4)


def encode(rows: list[Row] | pa.Table, content: str = "root") -> bytes:
    entries = rows if isinstance(rows, pa.Table) else table(rows)
    return encode_parquet_manifest(entries, V4, content=content)  # type: ignore[arg-type]


def decode(data: bytes, content: str = "root") -> pa.Table:
    return decode_parquet_manifest(data, V4, where="here", content=(content,))


def parquet_tree(data: bytes) -> list[str]:
    """Every node of the Parquet schema: its path, id, type and whether it is required."""
    lines: list[str] = []

    def walk(fields: list[pa.Field], prefix: str) -> None:
        for field in fields:
            number = (field.metadata or {})[b"PARQUET:field_id"].decode()
            kind = "required" if not field.nullable else "optional"
            nested = pa.types.is_struct(field.type) or pa.types.is_list(field.type)
            shown = "group" if pa.types.is_struct(field.type) else "list" if nested else str(field.type)
            lines.append(f"{prefix}{field.name} = {number} {kind} {shown}")
            if nested:
                walk([field.type.field(i) for i in range(field.type.num_fields)], f"{prefix}{field.name}.")

    walk(list(pq.read_schema(pa.BufferReader(data))), "")
    return lines


EXPECTED_TREE = """
content_type = 134 required int32
location = 100 optional string
file_format = 101 required string
format_version = 157 optional int32
version_info = 5 optional group
version_info.status = 0 required int32
version_info.snapshot_id = 1 optional int64
version_info.sequence_number = 3 optional int64
version_info.file_sequence_number = 4 optional int64
deletion_vector = 147 optional group
deletion_vector.offset = 144 optional int64
deletion_vector.size_in_bytes = 145 optional int64
deletion_vector.inline_content = 146 optional binary
partition_spec_id = 148 required int32
sort_order_id = 140 optional int32
record_count = 103 required int64
file_size_in_bytes = 104 optional int64
content_stats = 149 optional group
content_stats.id = 10600 optional group
content_stats.id.lower_bound = 10601 optional int64
content_stats.id.upper_bound = 10602 optional int64
content_stats.id.tight_bounds = 10603 optional bool
content_stats.id.value_count = 10604 optional int64
content_stats.id.null_value_count = 10605 optional int64
content_stats.price = 11000 optional group
content_stats.price.lower_bound = 11001 optional double
content_stats.price.upper_bound = 11002 optional double
content_stats.price.tight_bounds = 11003 optional bool
content_stats.price.value_count = 11004 optional int64
content_stats.price.null_value_count = 11005 optional int64
content_stats.price.nan_value_count = 11006 optional int64
content_stats.ts = 11800 optional group
content_stats.ts.lower_bound = 11801 optional timestamp[us, tz=UTC]
content_stats.ts.upper_bound = 11802 optional timestamp[us, tz=UTC]
content_stats.ts.tight_bounds = 11803 optional bool
content_stats.ts.value_count = 11804 optional int64
content_stats.ts.null_value_count = 11805 optional int64
content_stats.name = 12000 optional group
content_stats.name.lower_bound = 12001 optional string
content_stats.name.upper_bound = 12002 optional string
content_stats.name.tight_bounds = 12003 optional bool
content_stats.name.value_count = 12004 optional int64
content_stats.name.null_value_count = 12005 optional int64
content_stats.name.avg_value_size_in_bytes = 12007 optional int32
content_stats.ts_day = 13600 optional group
content_stats.ts_day.lower_bound = 13601 optional date32[day]
content_stats.ts_day.upper_bound = 13602 optional date32[day]
content_stats.ts_day.tight_bounds = 13603 optional bool
content_stats.ts_day.value_count = 13604 optional int64
content_stats.ts_day.null_value_count = 13605 optional int64
content_stats.id_bucket = 13800 optional group
content_stats.id_bucket.lower_bound = 13801 optional int32
content_stats.id_bucket.upper_bound = 13802 optional int32
content_stats.id_bucket.tight_bounds = 13803 optional bool
content_stats.id_bucket.value_count = 13804 optional int64
content_stats.id_bucket.null_value_count = 13805 optional int64
manifest_stats = 521 optional group
manifest_stats.added_files_count = 504 required int32
manifest_stats.existing_files_count = 505 required int32
manifest_stats.deleted_files_count = 506 required int32
manifest_stats.added_rows_count = 512 required int64
manifest_stats.existing_rows_count = 513 required int64
manifest_stats.deleted_rows_count = 514 required int64
manifest_stats.min_sequence_number = 516 required int64
referenced_file = 143 optional string
key_metadata = 131 optional binary
split_offsets = 132 optional list
split_offsets.element = 133 required int64
equality_ids = 135 optional list
equality_ids.element = 136 required int32
first_row_id = 142 optional int64
"""

MIXED_ROW = data_file(0, **mixed_partition(), **column_stats("id", 1, 5))


EVERY_MEASURE = {f"tight_bounds:{key}": False for key in ("3", "5", "9", "10", "p1001", "p1002")} | {
    "nan_value_count:5": 0,
    "avg_value_size_in_bytes:10": 7,
}


def test_the_file_has_exactly_the_ids_names_and_types_of_the_format() -> None:
    every_field = {"sort_order_id": 0, "key_metadata": b"k", "split_offsets": [4], "first_row_id": 0}
    others = [mixed_manifest(), manifest_dv(), equality_delete()]
    found = parquet_tree(encode([{**MIXED_ROW, **EVERY_MEASURE, **every_field}, *others]))
    assert found == EXPECTED_TREE.split("\n")[1:-1]


def test_measures_that_no_row_has_are_not_stored() -> None:
    found = parquet_tree(encode([MIXED_ROW], "data"))
    assert set(found) < set(EXPECTED_TREE.split("\n"))
    assert not any("tight_bounds" in line for line in found)


def test_an_optional_field_that_no_row_has_is_not_stored() -> None:
    one = {**data_file(), "sort_order_id": None, "split_offsets": None, "first_row_id": None, "format_version": None}
    names = pq.read_schema(pa.BufferReader(encode([one]))).names
    required = ["content_type", "file_format", "version_info", "partition_spec_id", "record_count"]
    assert sorted(names) == sorted([*required, "location", "file_size_in_bytes"])
    assert differences(table([one]), decode(encode([one]))) == {}


@pytest.mark.parametrize("count", [0, 1, 4, 5, 33, 65, 128, 129, 300])
def test_every_number_of_rows_comes_back_as_it_was(count: int) -> None:
    rows = [data_file(number, **column_stats("id", number * 7919 % 101, number + 2**40)) for number in range(count)]
    assert differences(table(rows), decode(encode(rows, "data"), "data")) == {}


def test_few_rows_take_no_more_bytes_than_plain_and_compressed_columns() -> None:
    for count in (1, 3, 10, 30):
        rows = [data_file(n, **column_stats("id", n * 2_654_435_761 % 2**40, 2**50 - n**7)) for n in range(count)]
        data = encode(rows, "data")
        sink = pa.BufferOutputStream()
        stored = pq.ParquetFile(pa.BufferReader(data)).read()
        options = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
        pq.write_table(stored, sink, compression="zstd", write_page_checksum=True, **options)
        assert len(data) <= len(sink.getvalue())


def test_the_footer_has_no_fields_that_readers_of_manifests_do_not_use() -> None:
    data = encode([data_file(n, **column_stats("id", n, n)) for n in range(9)], "data")
    chunk = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(0)
    (length,) = struct.unpack("<I", data[-8:-4])
    names = [name for path in parquet_tree(data) for name in [path.partition(" ")[0]]]
    assert chunk.encodings == ("PLAIN", "RLE") or "DELTA_BINARY_PACKED" in chunk.encodings
    assert length < 90 * len(names)


def test_a_footer_of_another_form_is_left_as_it_is() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2]}), sink)  # with a dictionary, so with two kinds of pages
    data = sink.getvalue().to_pybytes()
    assert with_short_footer(data, 1) == data


def test_a_name_with_the_bytes_of_an_unused_field_does_not_damage_the_footer() -> None:
    name = b"\x49\x1c\x15\x00\x15\x0a\x15\x02\x00\x00\x00".decode("latin1")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({name: [1, 2], "b": [3, 4]}), sink, use_dictionary=False, write_statistics=False)
    data = with_short_footer(sink.getvalue().to_pybytes(), 2)
    assert pq.ParquetFile(pa.BufferReader(data)).read().to_pydict() == {name: [1, 2], "b": [3, 4]}


@pytest.mark.parametrize(("content", "row"), [("root", manifest()), ("data", data_file()), ("delete", data_dv())])
def test_key_value_metadata_is_format_version_and_content_and_nothing_else(content: str, row: Row) -> None:
    found = pq.read_metadata(pa.BufferReader(encode([row], content))).metadata
    assert found == {b"format-version": b"4", b"content": content.encode()}


@given(st.lists(data_rows(), max_size=5))
def test_data_rows_come_back_as_they_were(rows: list[Row]) -> None:
    assert differences(table(rows), decode(encode(rows, "data"), "data")) == {}


def test_ordinals_count_physical_rows() -> None:
    rows = [data_file(n, status=2 if n == 0 else 1) for n in range(3)]
    assert decode(encode(rows, "data"), "data")["ordinal"].to_pylist() == [0, 1, 2]


def test_partition_values_and_bounds_of_every_type_come_back() -> None:
    before = table([every_type()])
    assert differences(before, decode(encode(before, "data"), "data")) == {}


def test_a_root_mixes_files_manifests_and_deletion_vectors() -> None:
    rows = [
        data_file(1, **mixed_partition("x" * 1000, price=math.nan), first_row_id=5),
        data_file(2, first_row_id=15),
        mixed_manifest(1),
        manifest_dv(1, (0, 2)),
        mixed_manifest(2, delete=True),
        manifest(3, delete=True, referenced_file=f"{LOCATION}/metadata/m1.parquet"),
        data_dv(1, **mixed_partition("x" * 1000, price=None, count=3)),
        equality_delete(4, **mixed_partition(None, None, None, None)),
    ]
    assert differences(table(rows), decode(encode(rows))) == {}


def test_an_identity_value_is_stored_whole_as_bounds_of_its_column() -> None:
    value = "long " * 300
    short = column_stats("name", value[:16], value[:15] + "z")
    after = decode(encode([data_file(**mixed_partition(value), **short)], "data"), "data")
    key = IDS["name"]
    for name in (f"lower_bound:{key}", f"upper_bound:{key}", "lower_bound:p1000", "upper_bound:p1000"):
        assert after[name].to_pylist() == [value]


def test_a_derived_value_is_stored_once_on_files_and_twice_on_manifests() -> None:
    stored = pq.read_table(pa.BufferReader(encode([MIXED_ROW, mixed_manifest()])))["content_stats"].to_pylist()
    assert [row["id_bucket"]["lower_bound"] for row in stored] == [3, 0]
    assert [row["id_bucket"]["upper_bound"] for row in stored] == [None, 15]


def test_a_null_partition_value_is_told_from_an_unknown_one() -> None:
    after = decode(encode([data_file(**mixed_partition(None, None, None, None))], "data"), "data")
    for key in ("p1000", "p1001", "p1002", "p1003"):
        assert after[f"null_value_count:{key}"].to_pylist() == after[f"value_count:{key}"].to_pylist() == [10]


def test_a_file_without_rows_keeps_its_partition_value() -> None:
    row = data_file(record_count=0, **mixed_partition(count=0))
    after = decode(encode([row], "data"), "data")
    assert [after[f"lower_bound:p{i}"][0].as_py() for i in (1000, 1002, 1003)] == ["a", 3, 1.5]


def test_a_missing_partition_value_is_refused_on_writing_and_on_reading() -> None:
    with pytest.raises(InputError, match="entry 1 has no value of partition field 'ts_day'"):
        encode([data_file(0), data_file(1, partition_spec_id=1, **partition(1000, "a"))], "data")
    unpartitioned = replace(V4, specs={1: replace(V4.specs[1], fields=())})
    data = encode_parquet_manifest(table([data_file(partition_spec_id=1)]), unpartitioned, content="data")
    with pytest.raises(FormatError, match="here: row 0 has no value of partition field 'name'"):
        decode(data, "data")


def test_statistics_of_dropped_columns_go_but_partition_values_stay() -> None:
    data = encode([data_file(**mixed_partition(), **column_stats("id", 1, 5))], "data")
    shrunk = replace(V4, schema=Schema(fields=tuple(f for f in SCHEMA.fields if f.name not in ("id", "name"))))
    after = decode_parquet_manifest(data, shrunk, where="here", content=("data",))
    again = encode_parquet_manifest(after, shrunk, content="data")
    stored = pq.read_schema(pa.BufferReader(again)).field("content_stats").type
    assert "column_10" in [field.name for field in stored]
    assert "id" not in [field.name for field in stored]
    assert decode(again, "data")["lower_bound:p1000"].to_pylist() == ["a"]


def test_bounds_written_before_a_promotion_are_read_in_the_new_type() -> None:
    data = encode([data_file(**column_stats("small", -7, 7))], "data")
    promoted = replace(V4, types={**V4.types, IDS["small"]: LONG})
    after = decode_parquet_manifest(data, promoted, where="here", content=("data",))
    assert after["lower_bound:2"].type == pa.int64()
    assert after["lower_bound:2"].to_pylist() == [-7]


def test_a_column_in_a_struct_has_statistics_under_its_full_name() -> None:
    row = data_file() | {"lower_bound:17": 1, "upper_bound:17": 2, "value_count:17": 10}
    stored = pq.read_schema(pa.BufferReader(encode([row], "data"))).field("content_stats").type
    assert [field.name for field in stored] == ["s_x"]
    assert differences(table([row]), decode(encode([row], "data"), "data")) == {}


def test_locations_under_the_table_are_stored_relative() -> None:
    others = [f"{LOCATION}2/a", "s3://b/a", f"{LOCATION}//a", f"{LOCATION}/../a", f"{LOCATION}/x:y", f"{LOCATION}/"]
    rows = [data_file(0), *(data_file(0, location=other) for other in others)]
    data = encode(rows, "data")
    assert pq.read_table(pa.BufferReader(data))["location"].to_pylist() == ["data/00000.parquet", *others]
    assert decode(data, "data")["location"].to_pylist() == [row["location"] for row in rows]


def test_a_moved_table_reads_its_files_at_the_new_place() -> None:
    moved = replace(V4, location="s3://elsewhere/t")
    after = decode_parquet_manifest(encode([data_dv(7)], "delete"), moved, where="here", content=("delete",))
    assert after["location"].to_pylist() == ["s3://elsewhere/t/data/00007.puffin"]
    assert after["referenced_file"].to_pylist() == ["s3://elsewhere/t/data/00007.parquet"]


@pytest.mark.parametrize("location", ["", "../x", "a/./b"])
def test_a_location_that_would_need_interpreting_is_refused(location: str) -> None:
    foreign = replace(V4, location="never:a prefix")
    data = encode_parquet_manifest(table([data_file(location=location)]), foreign, content="data")
    with pytest.raises(FormatError, match="here: row 0: location"):
        decode(data, "data")


BAD_ROWS: list[tuple[str, str, Row]] = [
    ("data", "content type is not allowed", data_dv()),
    ("delete", "content type is not allowed", data_file()),
    ("data", "content type is not allowed", manifest()),
    ("root", "status is not", data_file(status=3)),
    ("root", "sequence numbers", data_file(status=0, sequence_number=None)),
    ("root", "record_count is negative", data_file(record_count=-1)),
    ("root", "location is null", data_file(location=None)),
    ("root", "file_size_in_bytes is null", data_file(file_size_in_bytes=None)),
    ("root", "equality_ids", data_file(equality_ids=[1])),
    ("root", "equality_ids", {**equality_delete(), "equality_ids": None}),
    ("root", "first_row_id", equality_delete(first_row_id=1)),
    ("root", "only deletion vectors", data_file(dv_offset=4, dv_size_in_bytes=42)),
    ("root", "both offset and size", {**data_dv(), "dv_size_in_bytes": None}),
    ("root", "either inline or at", {**data_dv(), "dv_offset": None, "dv_size_in_bytes": None}),
    ("root", "cannot be inline", {**data_dv(), "dv_offset": None, "dv_size_in_bytes": None, "dv_inline_content": b"x"}),
    ("root", "either inline or at", manifest_dv(dv_offset=4, dv_size_in_bytes=42)),
    ("root", "file_size_in_bytes is null", {**manifest_dv(), "location": f"{LOCATION}/x"}),
    ("root", "split_offsets of .* do not ascend", data_file(split_offsets=[4, 900, 30])),
    ("root", "too small", {**data_dv(), "dv_size_in_bytes": 19}),
    ("root", "offset is negative", {**data_dv(), "dv_offset": -1}),
    ("root", "referenced_file", {**data_dv(), "referenced_file": None}),
    ("root", "referenced_file must be null", data_file(referenced_file="x")),
    ("root", "added_files_count", manifest(added_files_count=None)),
    ("root", "min_sequence_number", manifest(min_sequence_number=None)),
    ("root", "added_rows_count", data_file(added_rows_count=1)),
    ("root", "two sequence numbers", manifest(sequence_number=4)),
]


@pytest.mark.parametrize(("content", "message", "row"), BAD_ROWS, ids=[str(i) for i in range(len(BAD_ROWS))])
def test_rows_that_break_the_format_are_refused_on_writing(content: str, message: str, row: Row) -> None:
    with pytest.raises(InputError, match=rf"row 0: .*{message}"):
        encode([row], content)


@pytest.mark.parametrize(("content", "message", "row"), BAD_ROWS, ids=[str(i) for i in range(len(BAD_ROWS))])
def test_rows_that_break_the_format_are_refused_on_reading(
    content: str, message: str, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("icefloe.codecs.manifest.parquet.check_entries", lambda *_, **__: None)
        patch.setattr("icefloe.codecs.manifest.parquet._required", lambda array, _: array)
        try:
            data = encode([row], content)
        except pa.ArrowException:
            return  # Parquet itself refuses to store it
    with pytest.raises(FormatError, match="here"):
        decode(data, content)


def rewritten(data: bytes, change: object, metadata: dict[str, str] | None = None) -> bytes:
    """A manifest with its Parquet columns changed."""
    stored = change(pq.read_table(pa.BufferReader(data)))  # type: ignore[operator]
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, stored.schema, store_schema=False) as writer:
        writer.write_table(stored)
        writer.add_key_value_metadata({"format-version": "4", "content": "data"} if metadata is None else metadata)
    return bytes(sink.getvalue())


def test_columns_are_found_by_id_whatever_they_are_called() -> None:
    before = table([MIXED_ROW])
    data = rewritten(encode(before, "data"), lambda t: t.rename_columns([f"c{n}" for n in range(t.num_columns)]))
    assert differences(before, decode(data, "data")) == {}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "format-version"),
        ({"format-version": "5", "content": "data"}, "5"),
        ({"format-version": "4"}, "content is ''"),
    ],
)
def test_other_key_value_metadata_is_refused(metadata: dict[str, str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        decode(rewritten(encode([data_file()], "data"), lambda t: t, metadata), "data")


def test_a_manifest_of_another_kind_is_refused() -> None:
    with pytest.raises(FormatError, match="content is 'data', expected root"):
        decode(encode([data_file()], "data"), "root")


def test_both_spellings_of_delete_are_read() -> None:
    data = rewritten(encode([data_dv()], "delete"), lambda t: t, {"format-version": "4", "content": "deletes"})
    rows = decode_parquet_manifest(data, V4, where="here", content=("delete", "deletes"))
    assert differences(table([data_dv()]), rows) == {}


@pytest.mark.parametrize("column", ["content_type", "file_format", "version_info", "partition_spec_id", "record_count"])
def test_a_missing_required_column_is_named(column: str) -> None:
    with pytest.raises(FormatError, match=column):
        decode(rewritten(encode([data_file()], "data"), lambda t: t.drop_columns([column])), "data")


def field(name: str, type_: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, type_, metadata={b"PARQUET:field_id": str(number).encode()})


def test_apaches_layouts_are_refused_by_name() -> None:
    status = pa.struct([field("status", pa.int32(), 0)])
    tracked = pa.table(
        {"tracking": pa.array([{"status": 1}], status)}, schema=pa.schema([field("tracking", status, 147)])
    )
    with pytest.raises(UnsupportedError, match="tracked files"):
        decode(rewritten(encode([data_file()], "data"), lambda _: tracked), "data")
    interim = pa.table(
        {"data_file": pa.array([{"status": 1}], status)}, schema=pa.schema([field("data_file", status, 2)])
    )
    with pytest.raises(UnsupportedError, match="interim"):
        decode(rewritten(encode([data_file()], "data"), lambda _: interim), "data")


def test_a_column_of_the_wrong_type_is_named() -> None:
    def change(stored: pa.Table) -> pa.Table:
        index = stored.schema.get_field_index("record_count")
        return stored.set_column(index, field("record_count", pa.string(), 103), pa.array(["many"]))

    with pytest.raises(FormatError, match=r"record_count \(field id 103\) is string, expected int64"):
        decode(rewritten(encode([data_file()], "data"), change), "data")


def test_an_unknown_spec_is_refused() -> None:
    odd = replace(V4, specs={7: V4.specs[0]})
    data = encode_parquet_manifest(table([data_file(partition_spec_id=7)]), odd, content="data")
    with pytest.raises(FormatError, match="names partition spec 7"):
        decode(data, "data")


def test_a_nan_bound_counts_as_unknown() -> None:
    after = decode(encode([data_file(**column_stats("price", math.nan, 1.0))], "data"), "data")
    assert "lower_bound:5" not in after.column_names
    assert after["upper_bound:5"].to_pylist() == [1.0]


def test_limits_are_checked_before_rows_are_decoded() -> None:
    tight = replace(V4, limits=Limits(manifest_entries=1))
    with pytest.raises(LimitError, match="2 rows"):
        decode_parquet_manifest(encode([data_file(), data_file(1)], "data"), tight, where="here", content=("data",))


def test_a_flipped_byte_in_a_page_is_noticed() -> None:
    rows = [data_file(n, **column_stats("id", n, n + 1)) for n in range(50)]
    data = bytearray(encode(rows, "data"))
    place = data.index(b"data/00000") if b"data/00000" in data else 60
    data[place] ^= 0xFF
    with pytest.raises(CorruptFile, match="here"):
        decode(bytes(data), "data")


def test_an_empty_manifest_comes_back_empty() -> None:
    assert decode(encode([], "data"), "data").num_rows == 0


def test_many_chunks_are_written_as_one() -> None:
    pieces = pa.concat_tables([table([data_file(n)]) for n in range(3)])
    assert decode(encode(pieces, "data"), "data").num_rows == 3


def test_other_programs_read_a_root_as_plain_parquet(tmp_path: Path) -> None:
    rows = [
        data_file(1, **mixed_partition(None, price=math.nan)),
        mixed_manifest(1),
        manifest_dv(1),
        data_dv(1, **mixed_partition(count=3)),
    ]
    path = tmp_path / "root.parquet"
    path.write_bytes(encode(rows))
    by_duckdb = duckdb.sql(
        "select content_type, version_info.status, content_stats.id_bucket.lower_bound, file_row_number"
        f" from read_parquet('{path}', file_row_number = true) order by file_row_number"
    ).fetchall()
    assert by_duckdb == [(0, 1, 3, 0), (3, 1, 0, 1), (5, 1, None, 2), (1, 1, 3, 3)]
    assert pq.read_table(path)["content_stats"].is_null().to_pylist() == [False, False, True, False]


def test_a_thousand_rows_come_back(tmp_path: Path) -> None:
    rows = [data_file(n, **mixed_partition(f"n{n}", bucket=n % 16), **column_stats("id", n, n)) for n in range(1000)]
    before = table(rows)
    after = decode(encode(before, "data"), "data")
    assert differences(before, after) == {}
    assert np.array_equal(after["ordinal"], np.arange(1000))


def test_rows_without_a_status_are_refused() -> None:
    with pytest.raises(InputError, match="status"):
        encode(put(table([data_file()]), "status", None))


def test_statistics_of_columns_added_later_are_ignored_by_an_older_reader() -> None:
    wider = replace(
        V4,
        schema=Schema(fields=(*SCHEMA.fields, Field(30, "later", LONG))),
        types={**V4.types, 30: LONG},
    )
    rows = table([data_file()]).append_column("lower_bound:30", pa.array([1], pa.int64()))
    data = encode_parquet_manifest(rows, wider, content="data")
    assert "lower_bound:30" not in decode(data, "data").column_names
