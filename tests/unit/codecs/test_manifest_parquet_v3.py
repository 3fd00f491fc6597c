"""Parquet manifests with version 3 entries, as Apache Iceberg 1.12 writes in its interim version 4."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.codecs.manifest.avro import decode_manifest, encode_manifest
from icefloe.codecs.manifest.manifests import decode_leaf
from icefloe.errors import CorruptFile, FormatError, LimitError
from icefloe.limits import Limits
from icefloe.model.entries import ContentType
from support.manifests.sample import DAY, IDS, column_stats, context, data_file, mixed_partition, table

LONG, INT, TEXT, BYTES = pa.int64(), pa.int32(), pa.string(), pa.binary()


def field(name: str, type_: pa.DataType, number: int, *, required: bool = False) -> pa.Field:
    return pa.field(name, type_, not required, metadata={"PARQUET:field_id": str(number)})


def map_of(value: pa.DataType, key_id: int) -> pa.DataType:
    return pa.map_(field("key", INT, key_id, required=True), field("value", value, key_id + 1))


TUPLE = pa.struct(
    [
        field("name", TEXT, 1000),
        field("ts_day", pa.date32(), 1001),
        field("id_bucket", INT, 1002),
        field("price", pa.float64(), 1003),
        field("flag_void", pa.bool_(), 1004),
    ]
)
FILE = pa.struct(
    [
        field("content", INT, 134, required=True),
        field("file_path", TEXT, 100, required=True),
        field("file_format", TEXT, 101, required=True),
        field("partition", TUPLE, 102, required=True),
        field("record_count", LONG, 103, required=True),
        field("file_size_in_bytes", LONG, 104, required=True),
        field("value_counts", map_of(LONG, 119), 109),
        field("null_value_counts", map_of(LONG, 121), 110),
        field("lower_bounds", map_of(BYTES, 126), 125),
        field("upper_bounds", map_of(BYTES, 129), 128),
        field("split_offsets", pa.list_(field("element", LONG, 133)), 132),
        field("sort_order_id", INT, 140),
        field("first_row_id", LONG, 142),
    ]
)
SCHEMA = pa.schema(
    [
        field("status", INT, 0, required=True),
        field("snapshot_id", LONG, 1),
        field("sequence_number", LONG, 3),
        field("file_sequence_number", LONG, 4),
        field("data_file", FILE, 2, required=True),
    ]
)
KEYS = {"format-version": "4", "content": "data", "partition-spec-id": "1"}


def stored(number: int) -> dict[str, Any]:
    key = IDS["id"]
    file = {
        "content": 0,
        "file_path": data_file(number)["location"],
        "file_format": "PARQUET",
        "partition": {"name": "a", "ts_day": DAY, "id_bucket": 3, "price": 1.5, "flag_void": None},
        "record_count": 10,
        "file_size_in_bytes": 1000 + number,
        "value_counts": [(key, 10), (777, 5)],
        "null_value_counts": [(key, 0)],
        "lower_bounds": [(key, struct.pack("<q", number))],
        "upper_bounds": [(key, struct.pack("<q", 2 * number))] if number > 0 else None,
        "split_offsets": [4],
        "sort_order_id": 0,
        "first_row_id": number * 10,
    }
    return {"status": 1, "snapshot_id": 77, "sequence_number": 5, "file_sequence_number": 5, "data_file": file}


def parquet(rows: list[dict[str, Any]], schema: pa.Schema = SCHEMA, **keys: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
        writer.add_key_value_metadata({**KEYS, **{k.replace("_", "-"): v for k, v in keys.items()}})
    return bytes(sink.getvalue())


def decode(data: bytes, **more: Any) -> pa.Table:
    return decode_leaf(data, context(4, **more), where="here", content=ContentType.DATA_MANIFEST)


def test_rows_are_those_of_an_avro_manifest_with_the_same_entries() -> None:
    found = decode(parquet([stored(n) for n in range(3)]))
    rows = [
        data_file(
            n,
            **mixed_partition(),
            **column_stats("id", n, 2 * n if n > 0 else None),
            split_offsets=[4],
            sort_order_id=0,
            first_row_id=10 * n,
        )
        for n in range(3)
    ]
    avro = encode_manifest(table(rows), context(3), content=ContentType.DATA_MANIFEST, spec_id=1)
    expected = decode_manifest(avro, context(4), where="here").drop_columns("format_version")
    assert found["format_version"].to_pylist() == [4, 4, 4]
    assert found.select(expected.column_names).to_pylist() == expected.to_pylist()
    assert set(found.column_names) == {*expected.column_names, "format_version"}


def test_only_the_wanted_statistics_are_given() -> None:
    found = decode_leaf(
        parquet([stored(1)]), context(4), where="here", content=ContentType.DATA_MANIFEST, wanted=frozenset()
    )
    assert {name for name in found.column_names if ":" in name and ":p" not in name} == set()
    assert found["lower_bound:p1000"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"content": "roots"}, "content is 'roots'"),
        ({"partition_spec_id": "9"}, "has partition spec 9, which the table lacks"),
        ({"format_version": "x"}, "format-version"),
    ],
)
def test_wrong_metadata_is_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises(FormatError, match=f"here.*{message}"):
        decode(parquet([stored(1)], **keys))


def test_the_list_says_the_spec_whatever_the_file_says() -> None:
    for header in ("1", "2", "9"):
        data = parquet([stored(1)], partition_spec_id=header)
        found = decode_leaf(data, context(4), where="here", content=ContentType.DATA_MANIFEST, spec_id=1)
        assert found["partition_spec_id"].to_pylist() == [1]
        assert found["lower_bound:p1000"].to_pylist() == ["a"]
    with pytest.raises(FormatError, match=r"here: the partition tuple has the fields \[name \(1000\), .*spec 2"):
        decode_leaf(parquet([stored(1)]), context(4), where="here", content=ContentType.DATA_MANIFEST, spec_id=2)


def test_a_missing_tuple_or_required_field_is_refused() -> None:
    kept = [each for each in FILE if each.name != "partition"]
    schema = SCHEMA.set(4, field("data_file", pa.struct(kept), 2, required=True))
    with pytest.raises(FormatError, match="here: partition is missing"):
        decode(parquet([stored(1)], schema))
    kept = [each for each in FILE if each.name != "file_path"]
    schema = SCHEMA.set(4, field("data_file", pa.struct(kept), 2, required=True))
    with pytest.raises(FormatError, match=r"here: file_path \(field id 100\) is missing"):
        decode(parquet([stored(1)], schema))


def test_limits_hold_and_damage_is_named() -> None:
    data = parquet([stored(n) for n in range(3)])
    with pytest.raises(LimitError, match="3 rows"):
        decode(data, limits=Limits(manifest_entries=2))
    for cut in range(4, len(data), 50):
        with pytest.raises(CorruptFile):
            decode(data[:cut])
