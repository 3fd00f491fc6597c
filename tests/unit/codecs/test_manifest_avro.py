from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.json.partition_spec import spec_from_json
from icefloe.codecs.json.schema import schema_from_json
from icefloe.codecs.manifest.avro import decode_manifest, encode_manifest
from icefloe.errors import CorruptFile, FormatError, InputError, LimitError, UnsupportedError
from icefloe.limits import Limits
from icefloe.model.entries import ContentType
from icefloe.model.metadata.version_rules import DATA_FILE_FIELDS, MANIFEST_ENTRY_FIELDS, required
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.types import TIMESTAMP_NS
from support.manifests.random_entries import Row, data_dv, data_rows, differences, equality_delete, every_type
from support.manifests.sample import IDS, SCHEMA, column_stats, context, data_file, mixed_partition, table

V2 = context(2)
V3 = context(3)


def encode(
    rows: list[Row], *, spec_id: int = 0, content: ContentType = ContentType.DATA_MANIFEST, version: int = 2
) -> bytes:
    return encode_manifest(
        table(rows),
        context(version),
        content=content,
        spec_id=spec_id,
    )


def decode(data: bytes, *, content: ContentType | None = None, version: int = 2) -> pa.Table:
    return decode_manifest(
        data,
        context(version),
        where="here",
        content=content,
    )


def opened(data: bytes) -> tuple[Any, dict[str, str], list[Any]]:
    """What fastavro sees: schema, key-value metadata and records."""
    reader = fastavro.reader(io.BytesIO(data))
    records = list(reader)
    return reader.writer_schema, dict(reader.metadata), records


def ids_in(schema: Any, prefix: str = "") -> dict[str, int]:
    """Every id of an Avro schema by path."""
    found: dict[str, int] = {}
    for field in schema["fields"]:
        path = prefix + field["name"]
        found[path] = field["field-id"]
        options = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for option in options:
            if not isinstance(option, dict):
                continue
            if "element-id" in option:
                found[f"{path}.element"] = option["element-id"]
            inner = option.get("items", option)
            if isinstance(inner, dict) and "fields" in inner:
                found |= ids_in(inner, f"{path}.")
    return found


EXPECTED_IDS = {
    "status": 0,
    "snapshot_id": 1,
    "sequence_number": 3,
    "file_sequence_number": 4,
    "data_file": 2,
    "data_file.content": 134,
    "data_file.file_path": 100,
    "data_file.file_format": 101,
    "data_file.partition": 102,
    "data_file.partition.name": 1000,
    "data_file.partition.ts_day": 1001,
    "data_file.partition.id_bucket": 1002,
    "data_file.partition.price": 1003,
    "data_file.partition.flag_void": 1004,
    "data_file.record_count": 103,
    "data_file.file_size_in_bytes": 104,
    "data_file.column_sizes": 108,
    "data_file.column_sizes.key": 117,
    "data_file.column_sizes.value": 118,
    "data_file.value_counts": 109,
    "data_file.value_counts.key": 119,
    "data_file.value_counts.value": 120,
    "data_file.null_value_counts": 110,
    "data_file.null_value_counts.key": 121,
    "data_file.null_value_counts.value": 122,
    "data_file.nan_value_counts": 137,
    "data_file.nan_value_counts.key": 138,
    "data_file.nan_value_counts.value": 139,
    "data_file.lower_bounds": 125,
    "data_file.lower_bounds.key": 126,
    "data_file.lower_bounds.value": 127,
    "data_file.upper_bounds": 128,
    "data_file.upper_bounds.key": 129,
    "data_file.upper_bounds.value": 130,
    "data_file.key_metadata": 131,
    "data_file.split_offsets": 132,
    "data_file.split_offsets.element": 133,
    "data_file.equality_ids": 135,
    "data_file.equality_ids.element": 136,
    "data_file.sort_order_id": 140,
    "data_file.referenced_data_file": 143,
}
MIXED_ROW = data_file(**mixed_partition(), **column_stats("id", 1, 5))


def test_a_version_2_file_has_exactly_the_ids_of_the_spec() -> None:
    schema, _, _ = opened(encode([MIXED_ROW], spec_id=1))
    assert ids_in(schema) == EXPECTED_IDS


def test_a_version_3_file_adds_row_lineage_and_deletion_vectors() -> None:
    schema, _, _ = opened(encode([MIXED_ROW], spec_id=1, version=3))
    added = {"first_row_id": 142, "content_offset": 144, "content_size_in_bytes": 145}
    assert ids_in(schema) == EXPECTED_IDS | {f"data_file.{name}": number for name, number in added.items()}


def requiredness(schema: Any) -> dict[str, bool]:
    return {field["name"]: not isinstance(field["type"], list) for field in schema["fields"]}


def test_a_version_1_file_has_a_block_size_and_neither_content_nor_sequence_numbers() -> None:
    schema, metadata, (record,) = opened(encode([MIXED_ROW], spec_id=1, version=1))
    absent = ("content", "equality_ids", "referenced_data_file")
    outer = ("sequence_number", "file_sequence_number")
    gone = {*outer, *(f"data_file.{name}" for name in absent), *(f"data_file.{name}.element" for name in absent)}
    kept = {name: number for name, number in EXPECTED_IDS.items() if name not in gone}
    assert ids_in(schema) == kept | {"data_file.block_size_in_bytes": 105}
    assert requiredness(schema) == {"status": True, "snapshot_id": True, "data_file": True}
    assert record["data_file"]["block_size_in_bytes"] == 64 * 1024 * 1024
    assert "content" not in metadata
    assert (metadata["format-version"], metadata["partition-spec-id"]) == ("1", "1")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_fields_of_a_version_are_required_as_its_table_says(version: int) -> None:
    schema, _, _ = opened(encode([MIXED_ROW], spec_id=1, version=version))
    file = next(field["type"] for field in schema["fields"] if field["name"] == "data_file")
    for found, rule in ((schema, MANIFEST_ENTRY_FIELDS), (file, DATA_FILE_FIELDS)):
        names = {name for name, is_required in requiredness(found).items() if is_required}
        assert names == set(required(rule, version))


def test_version_1_rows_come_back_without_what_it_has_no_field_for() -> None:
    gone = {"sequence_number": None, "file_sequence_number": None}
    rows = [data_file(n, **mixed_partition(), **column_stats("id", n, n)) | {"format_version": 1} for n in range(3)]
    after = decode(encode(rows, spec_id=1, version=1), version=1)
    assert differences(table([row | gone for row in rows]), after) == {}


def test_version_1_refuses_deletes_and_unnamed_snapshots() -> None:
    with pytest.raises(InputError, match="format version 1 has no delete files"):
        encode([equality_delete()], content=ContentType.DELETE_MANIFEST, version=1)
    with pytest.raises(InputError, match="snapshot_id is null"):
        encode([data_file(snapshot_id=None)], version=1)


def test_version_3_keeps_first_row_ids() -> None:
    rows = [data_file(n, first_row_id=n * 10, format_version=3) for n in range(2)]
    assert differences(table(rows), decode(encode(rows, version=3), version=3)) == {}


def test_a_partition_by_nanoseconds_comes_back() -> None:
    part = PartitionField(source_id=90, field_id=1000, name="at", transform="identity")
    spec = PartitionSpec(spec_id=5, fields=(part,))
    nanos = replace(V3, specs={5: spec}, partition_types={1000: TIMESTAMP_NS}, types={90: TIMESTAMP_NS})
    row = table([data_file(partition_spec_id=5)])
    for measure in ("lower_bound", "upper_bound"):
        row = row.append_column(f"{measure}:p1000", pa.array([1_700_000_000_123_456_789], pa.timestamp("ns")))
    for measure, count in (("value_count", 10), ("null_value_count", 0)):
        row = row.append_column(f"{measure}:p1000", pa.array([count], pa.int64()))
    after = decode_manifest(
        encode_manifest(row, nanos, content=ContentType.DATA_MANIFEST, spec_id=5), nanos, where="here"
    )
    assert differences(row, after).keys() == {"format_version"}


def test_logical_types_of_partition_values_are_those_of_the_spec() -> None:
    schema, _, _ = opened(encode([MIXED_ROW], spec_id=1))
    data_file_type = schema["fields"][-1]["type"]
    tuple_type = next(f["type"] for f in data_file_type["fields"] if f["name"] == "partition")
    assert tuple_type["name"] == "r102"
    day = next(f for f in tuple_type["fields"] if f["name"] == "ts_day")
    assert (day["type"], day["default"]) == (["null", {"type": "int", "logicalType": "date"}], None)


def test_a_table_without_partitions_has_an_empty_tuple() -> None:
    schema, _, (record,) = opened(encode([data_file()]))
    tuple_type = next(f["type"] for f in schema["fields"][-1]["type"]["fields"] if f["name"] == "partition")
    assert tuple_type == {"type": "record", "name": "r102", "fields": []}
    assert record["data_file"]["partition"] == {}


def test_key_value_metadata_tells_schema_spec_version_and_content() -> None:
    _, metadata, _ = opened(encode([MIXED_ROW], spec_id=1))
    assert {k: v for k, v in metadata.items() if not k.startswith("avro.") and "schema" != k != "partition-spec"} == {
        "schema-id": "3",
        "partition-spec-id": "1",
        "format-version": "2",
        "content": "data",
    }
    assert schema_from_json(json.loads(metadata["schema"])) == SCHEMA
    assert spec_from_json(json.loads(metadata["partition-spec"])).fields == V2.specs[1].fields
    assert opened(encode([equality_delete()], content=ContentType.DELETE_MANIFEST))[1]["content"] == "deletes"


@given(st.lists(data_rows(version=2), max_size=5))
def test_data_rows_come_back_as_they_were(rows: list[Row]) -> None:
    for spec_id in (0, 1):
        mine = [row for row in rows if row["partition_spec_id"] == spec_id]
        assert differences(table(mine), decode(encode(mine, spec_id=spec_id))) == {}


def test_partition_values_and_bounds_of_every_type_come_back() -> None:
    rows = [every_type() | {"format_version": 2}]
    assert differences(table(rows), decode(encode(rows, spec_id=2))) == {}


def test_several_decimal_partitions_do_not_define_a_name_twice() -> None:
    amounts = tuple(
        PartitionField(source_id=IDS["amount"], field_id=2000 + n, name=f"a{n}", transform="identity") for n in range(2)
    )
    spec = PartitionSpec(spec_id=5, fields=amounts)
    types = {2000: V2.types[IDS["amount"]], 2001: V2.types[IDS["amount"]]}
    two = replace(V2, specs={5: spec}, partition_types=types)
    row = table([data_file(partition_spec_id=5)])
    for n in range(2):
        for measure in ("lower_bound", "upper_bound"):
            row = row.append_column(f"{measure}:p200{n}", pa.array([None], pa.decimal128(9, 2)))
        for measure in ("value_count", "null_value_count"):
            row = row.append_column(f"{measure}:p200{n}", pa.array([10], pa.int64()))
    after = decode_manifest(encode_manifest(row, two, content=ContentType.DATA_MANIFEST, spec_id=5), two, where="here")
    assert differences(row, after.drop_columns("format_version")).keys() == {"format_version"}


def test_deletes_come_back_and_version_3_keeps_deletion_vectors() -> None:
    rows = [equality_delete(1, format_version=3), data_dv(2, format_version=3)]
    assert (
        differences(
            table(rows),
            decode(
                encode(rows, content=ContentType.DELETE_MANIFEST, version=3),
                content=ContentType.DELETE_MANIFEST,
                version=3,
            ),
        )
        == {}
    )


def test_version_2_refuses_deletion_vectors() -> None:
    with pytest.raises(InputError, match="format version 2 has no deletion vectors"):
        encode([data_dv()], content=ContentType.DELETE_MANIFEST)


def test_bounds_of_position_deletes_are_kept() -> None:
    path = "2147483546"
    row = table([data_file(content_type=int(ContentType.POSITION_DELETES), format_version=2)])
    for measure in ("lower_bound", "upper_bound"):
        row = row.append_column(f"{measure}:{path}", pa.array(["s3://b/a.parquet"]))
    assert (
        differences(
            row,
            decode_manifest(encode_manifest(row, V2, content=ContentType.DELETE_MANIFEST, spec_id=0), V2, where="here"),
        )
        == {}
    )


def test_column_sizes_survive_a_rewrite() -> None:
    row = table([data_file(format_version=2)]).append_column("column_size:3", pa.array([123], pa.int64()))
    assert (
        differences(
            row,
            decode_manifest(encode_manifest(row, V2, content=ContentType.DATA_MANIFEST, spec_id=0), V2, where="here"),
        )
        == {}
    )


def test_nan_is_a_value_in_the_file_and_a_count_in_memory() -> None:
    data = encode([data_file(**mixed_partition(price=math.nan))], spec_id=1)
    _, _, (record,) = opened(data)
    assert math.isnan(record["data_file"]["partition"]["price"])
    after = decode(data)
    assert after["lower_bound:p1003"].null_count == 1
    assert after["nan_value_count:p1003"].to_pylist() == [10]


def test_formats_are_written_in_capitals_and_read_in_small_letters() -> None:
    data = encode([data_file()])
    assert opened(data)[2][0]["data_file"]["file_format"] == "PARQUET"
    assert decode(data)["file_format"].to_pylist() == ["parquet"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (data_file(status=0, sequence_number=None), "sequence number"),
        (data_file(status=2, sequence_number=None), "sequence number"),
        (data_file(partition_spec_id=1), "partition spec 0"),
        (data_file(location=None), "location is null"),
        (equality_delete(), "content type"),
    ],
)
def test_rows_that_cannot_be_written_are_refused(row: Row, message: str) -> None:
    with pytest.raises(InputError, match=rf"entry 0 cannot be written: .*{message}"):
        encode([row])


def test_a_missing_partition_value_is_refused() -> None:
    with pytest.raises(InputError, match="no value of partition field 'name'"):
        encode([data_file(partition_spec_id=1)], spec_id=1)


def test_other_versions_are_not_written_as_avro() -> None:
    with pytest.raises(UnsupportedError, match="version 4"):
        encode([data_file()], version=4)


def test_an_unknown_transform_is_read_around_and_not_written() -> None:
    part = PartitionField(source_id=IDS["id"], field_id=1000, name="z", transform="zorder[3]")
    odd = replace(V2, specs={0: PartitionSpec(fields=(part,))}, partition_types={})
    with pytest.raises(UnsupportedError, match="zorder"):
        encode_manifest(table([data_file()]), odd, content=ContentType.DATA_MANIFEST, spec_id=0)
    assert decode_manifest(encode([data_file()]), odd, where="here").num_rows == 1


def test_an_older_entry_without_a_record_count_stays_so() -> None:
    rows = [data_file(1, status=0, record_count=None, **mixed_partition()), data_file(2, status=0, **mixed_partition())]
    data = encode(rows, spec_id=1)
    _, _, records = opened(data)
    assert [record["data_file"]["record_count"] for record in records] == [-1, 10]
    found = decode(data)
    assert found["record_count"].to_pylist() == [None, 10]
    assert found["value_count:p1000"].null_count == 0
    with pytest.raises(InputError, match="entry 0 cannot be written: record_count is null"):
        encode([data_file(record_count=None)])


def test_the_other_kind_of_manifest_is_refused() -> None:
    with pytest.raises(FormatError, match="here: row 0: content 0 does not belong in a manifest of deletes"):
        decode(encode([data_file()]), content=ContentType.DELETE_MANIFEST)


def foreign(schema: Any, records: list[Any], codec: str = "null", **metadata: str) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, codec=codec, metadata=metadata)
    return sink.getvalue()


def version_1(**changes: Any) -> tuple[Any, list[Any]]:
    """A manifest as version 1 wrote it: no content, no sequence numbers, deprecated fields."""

    def field(name: str, number: int, type_: Any) -> dict[str, Any]:
        return {"name": name, "type": type_, "field-id": number}

    inner = [
        field("file_path", 100, "string"),
        field("file_format", 101, "string"),
        field("partition", 102, {"type": "record", "name": "r102", "fields": []}),
        field("record_count", 103, "long"),
        field("file_size_in_bytes", 104, "long"),
        field("block_size_in_bytes", 105, "long"),
    ]
    outer = [
        field("status", 0, "int"),
        field("snapshot_id", 1, "long"),
        field("data_file", 2, {"type": "record", "name": "r2", "fields": inner}),
    ]
    values = {"file_path": "s3://b/a.orc", "file_format": "ORC", "partition": {}, "record_count": 5}
    file = {**values, "file_size_in_bytes": 9, "block_size_in_bytes": 1, **changes}
    record = {"status": 1, "snapshot_id": 3, "data_file": file}
    return {"type": "record", "name": "manifest_entry", "fields": outer}, [record]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_version_1_manifest_is_read(codec: str) -> None:
    rows = decode(foreign(*version_1(), codec=codec), content=ContentType.DATA_MANIFEST)
    (row,) = rows.to_pylist()
    assert (row["content_type"], row["location"], row["file_format"]) == (0, "s3://b/a.orc", "orc")
    assert (row["format_version"], row["sequence_number"], row["partition_spec_id"]) == (1, None, 0)


def test_fields_are_found_by_id_whatever_they_are_called() -> None:
    schema, records = version_1()
    text = json.dumps(schema).replace('"record_count"', '"rows"').replace('"data_file"', '"file"')
    (record,) = records
    file = {("rows" if k == "record_count" else k): v for k, v in record["data_file"].items()}
    data = foreign(json.loads(text), [{"status": 1, "snapshot_id": 3, "file": file}])
    assert decode(data)["record_count"].to_pylist() == [5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partition-spec-id": "9"}, "partition spec"),
        ({"partition-spec-id": "x"}, "expected a number"),
        ({"content": "roots"}, "content is 'roots'"),
        ({"format-version": "two"}, "format-version"),
        ({"content": "deletes"}, "row 0: content"),
    ],
)
def test_wrong_metadata_is_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(FormatError, match=f"here.*{message}"):
        decode(foreign(*version_1(), **change))


def test_a_manifest_without_files_in_it_is_refused() -> None:
    schema = {"type": "record", "name": "x", "fields": [{"name": "status", "type": "int", "field-id": 0}]}
    with pytest.raises(FormatError, match="data_file"):
        decode(foreign(schema, [{"status": 1}]))


def test_an_array_of_nothing_cannot_make_the_decoder_run_for_ever() -> None:
    nothing = {"type": "array", "items": "null"}
    schema = {"type": "record", "name": "x", "fields": [{"name": "a", "type": nothing, "field-id": 9}]}
    data = bytearray(foreign(schema, [{"a": [None] * 3}]))
    with pytest.raises(FormatError, match="here"):
        decode(bytes(data))


def test_a_small_block_cannot_inflate_beyond_the_limit() -> None:
    schema, records = version_1(file_path="x" * 100_000)
    data = foreign(schema, records, codec="deflate")
    tight = replace(V2, limits=Limits(manifest_bytes=10_000))
    with pytest.raises(LimitError, match="inflate"):
        decode_manifest(data, tight, where="here")
    with pytest.raises(LimitError, match="limit 100"):
        decode_manifest(data, replace(V2, limits=Limits(manifest_bytes=100)), where="here")


def test_more_entries_than_the_limit_are_refused() -> None:
    tight = replace(V2, limits=Limits(manifest_entries=2))
    with pytest.raises(LimitError, match="records"):
        decode_manifest(encode([data_file(n) for n in range(3)]), tight, where="here")


def test_an_unknown_codec_is_named() -> None:
    data = encode([data_file()]).replace(b"\x0edeflate", b"\x0edeflatE")
    with pytest.raises(UnsupportedError, match="deflatE"):
        decode(data)


@pytest.mark.parametrize("data", [b"", b"Obj", b"Obj\x01", b"PAR1"])
def test_what_is_no_avro_file_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFile, match="here"):
        decode(data)


def test_many_rows_make_several_blocks_and_keep_their_order() -> None:
    rows = [data_file(n, format_version=2, **column_stats("name", f"{n:09d}", f"{n:09d}")) for n in range(2000)]
    before = table(rows)
    data = encode_manifest(before, V2, content=ContentType.DATA_MANIFEST, spec_id=0)
    sync = data[-16:]
    assert data.count(sync) > 2
    assert differences(before, decode(data)) == {}


def test_an_empty_manifest_comes_back_empty() -> None:
    assert decode(encode([])).num_rows == 0


def test_a_field_name_that_avro_forbids_is_made_safe() -> None:
    part = PartitionField(source_id=IDS["id"], field_id=1002, name="9 id-bucket", transform="bucket[16]")
    odd = replace(V2, specs={1: PartitionSpec(spec_id=1, fields=(part,))})
    row = table([data_file(**mixed_partition())])
    data = encode_manifest(row, odd, content=ContentType.DATA_MANIFEST, spec_id=1)
    _, _, (record,) = opened(data)
    assert record["data_file"]["partition"] == {"_9_x20id_x2Dbucket": 3}
    assert decode_manifest(data, odd, where="here")["lower_bound:p1002"].to_pylist() == [3]
