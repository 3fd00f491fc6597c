from __future__ import annotations

import datetime as dt
import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from icefloe.codecs.manifest.manifest_list import decode_manifest_list, encode_manifest_list
from icefloe.errors import FormatError, InputError, UnsupportedError
from icefloe.model.metadata.version_rules import MANIFEST_LIST_FIELDS, required
from icefloe.model.metadata.version_rules import fields as written_fields
from support.manifests.random_entries import Row, aggregated, data_dv, differences, manifest, mixed_manifest
from support.manifests.sample import DAY, context, data_file, table

V2 = context(2)


def encode(rows: list[Row], version: int = 2, parent_id: int | None = 6) -> bytes:
    return encode_manifest_list(table(rows), context(version), snapshot_id=7, parent_id=parent_id, sequence_number=5)


def decode(data: bytes, version: int = 2) -> pa.Table:
    return decode_manifest_list(data, context(version), where="here")


def listed(number: int = 0, *, delete: bool = False, **changes: object) -> Row:
    """A manifest row as a v2 list can express it."""
    kept = {"status": 0, "format_version": None, "file_format": "parquet", "first_row_id": None}
    return manifest(number, delete=delete) | kept | changes


def opened(data: bytes) -> tuple[Any, dict[str, str], list[Any]]:
    reader = fastavro.reader(io.BytesIO(data))
    records = list(reader)
    return reader.writer_schema, dict(reader.metadata), records


def test_a_version_2_list_has_exactly_the_ids_of_the_spec() -> None:
    schema, _, _ = opened(encode([listed()]))
    assert {field["name"]: field["field-id"] for field in schema["fields"]} == {
        "manifest_path": 500,
        "manifest_length": 501,
        "partition_spec_id": 502,
        "content": 517,
        "sequence_number": 515,
        "min_sequence_number": 516,
        "added_snapshot_id": 503,
        "added_files_count": 504,
        "existing_files_count": 505,
        "deleted_files_count": 506,
        "added_rows_count": 512,
        "existing_rows_count": 513,
        "deleted_rows_count": 514,
        "partitions": 507,
        "key_metadata": 519,
    }
    partitions = next(field["type"][1] for field in schema["fields"] if field["name"] == "partitions")
    assert partitions["element-id"] == 508
    summary = {field["name"]: field["field-id"] for field in partitions["items"]["fields"]}
    assert summary == {"contains_null": 509, "contains_nan": 518, "lower_bound": 510, "upper_bound": 511}


def test_version_3_adds_first_row_id() -> None:
    schema, _, _ = opened(encode([listed()], version=3))
    assert schema["fields"][-1]["field-id"] == 520
    rows = [listed(first_row_id=100)]
    assert differences(table(rows), decode(encode(rows, version=3), version=3)) == {}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_fields_of_a_version_are_those_of_its_table(version: int) -> None:
    schema, _, _ = opened(encode([listed()], version=version))
    assert [field["name"] for field in schema["fields"]] == list(written_fields(MANIFEST_LIST_FIELDS, version))
    needed = [field["name"] for field in schema["fields"] if not isinstance(field["type"], list)]
    assert needed == list(required(MANIFEST_LIST_FIELDS, version))


def test_a_version_1_list_has_no_deletes_and_may_lack_counts() -> None:
    unknown = {"added_files_count": None, "existing_rows_count": None}
    (row,) = decode(encode([listed(**unknown, sequence_number=0, min_sequence_number=0)], version=1)).to_pylist()
    assert (row["added_files_count"], row["deleted_files_count"], row["sequence_number"]) == (None, 0, 0)
    with pytest.raises(InputError, match="not a manifest that format version 1 has"):
        encode([listed(delete=True)], version=1)


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        (1, {"snapshot-id": "7", "parent-snapshot-id": "6", "format-version": "1"}),
        (
            3,
            {
                "snapshot-id": "7",
                "parent-snapshot-id": "6",
                "sequence-number": "5",
                "format-version": "3",
                "first-row-id": "40",
            },
        ),
    ],
)
def test_key_value_metadata_is_that_of_the_version(version: int, keys: dict[str, str]) -> None:
    data = encode_manifest_list(
        table([listed()]), context(version), snapshot_id=7, parent_id=6, sequence_number=5, first_row_id=40
    )
    assert {k: v for k, v in opened(data)[1].items() if not k.startswith("avro.")} == keys


@pytest.mark.parametrize(("parent_id", "text"), [(6, "6"), (None, "null")])
def test_key_value_metadata_tells_the_snapshot(parent_id: int | None, text: str) -> None:
    _, metadata, _ = opened(encode([listed()], parent_id=parent_id))
    expected = {"snapshot-id": "7", "parent-snapshot-id": text, "sequence-number": "5", "format-version": "2"}
    assert {k: v for k, v in metadata.items() if not k.startswith("avro.")} == expected


def test_manifest_rows_come_back_as_they_were() -> None:
    rows = [
        listed(1),
        listed(2, delete=True, key_metadata=b"k"),
        listed(3, location="s3://b/m.avro", file_format="avro"),
    ]
    after = decode(encode(rows))
    assert differences(table(rows), after) == {}
    assert after["ordinal"].to_pylist() == [0, 1, 2]


def test_unassigned_numbers_are_those_of_the_snapshot() -> None:
    none = {"sequence_number": None, "file_sequence_number": None, "min_sequence_number": None, "snapshot_id": None}
    (row,) = decode(encode([listed(**none)])).to_pylist()
    assert (row["sequence_number"], row["file_sequence_number"], row["min_sequence_number"]) == (5, 5, 5)
    assert row["snapshot_id"] == 7


def summaries(row: Row) -> list[dict[str, object]] | None:
    _, _, (record,) = opened(encode([row]))
    found: list[dict[str, object]] | None = record["partitions"]
    return found


def test_summaries_follow_the_fields_of_the_spec() -> None:
    name, day, bucket, price, void = summaries(mixed_manifest()) or []
    assert name == {"contains_null": False, "contains_nan": False, "lower_bound": b"a", "upper_bound": b"z"}
    assert day["lower_bound"] == ((DAY - dt.date(1970, 1, 1)).days).to_bytes(4, "little")
    assert (bucket["contains_null"], bucket["upper_bound"]) == (True, b"\x0f\x00\x00\x00")
    assert (price["contains_null"], price["contains_nan"]) == (False, True)
    assert void == {"contains_null": True, "contains_nan": False, "lower_bound": None, "upper_bound": None}


def test_an_unpartitioned_manifest_has_no_summaries_in_its_list() -> None:
    assert summaries(listed()) == []


def test_partition_statistics_come_back_as_far_as_a_summary_tells() -> None:
    after = decode(encode([mixed_manifest()]))
    assert after["lower_bound:p1000"].to_pylist() == ["a"]
    assert after["upper_bound:p1001"].to_pylist() == [dt.date(2027, 1, 1)]
    assert after["null_value_count:p1000"].to_pylist() == [0]
    assert after["null_value_count:p1002"].to_pylist() == [None]
    assert after["nan_value_count:p1003"].to_pylist() == [None]
    assert after["value_count:p1000"].to_pylist() == [30]


def all_of(field_id: int, *, nulls: int, nan: int | None = None) -> Row:
    row = mixed_manifest() | aggregated(field_id, None, None, nulls=nulls)
    return row if nan is None else row | {f"nan_value_count:p{field_id}": nan}


def test_a_manifest_of_nulls_only_is_told_from_one_without_bounds() -> None:
    after = decode(encode([all_of(1000, nulls=30)]))
    assert after["lower_bound:p1000"].null_count == 1
    assert after["null_value_count:p1000"].to_pylist() == after["value_count:p1000"].to_pylist() == [30]
    again = decode(encode_manifest_list(after, V2, snapshot_id=7, parent_id=None, sequence_number=5))
    assert again["null_value_count:p1000"].to_pylist() == [30]


def test_a_manifest_of_nan_only_comes_back() -> None:
    after = decode(encode([all_of(1003, nulls=0, nan=30)]))
    assert after["nan_value_count:p1003"].to_pylist() == [30]
    assert after["null_value_count:p1003"].to_pylist() == [0]


def test_unknown_bounds_give_no_summaries_because_null_bounds_would_prune() -> None:
    assert summaries(all_of(1000, nulls=3)) is None
    assert summaries(listed(partition_spec_id=1)) is None
    after = decode(encode([listed(1, partition_spec_id=1), mixed_manifest(2)]))
    assert after["lower_bound:p1000"].to_pylist() == [None, "a"]
    assert after["value_count:p1000"].to_pylist() == [None, 30]


def test_only_manifests_can_be_listed() -> None:
    for row in (data_file(), data_dv()):
        with pytest.raises(InputError, match="not a manifest"):
            encode([row])


def test_unknown_counts_cannot_be_listed() -> None:
    with pytest.raises(InputError, match="existing_files_count is null"):
        encode([listed(existing_files_count=None)])


def test_version_4_has_no_list() -> None:
    with pytest.raises(UnsupportedError, match="no manifest lists"):
        encode([listed()], version=4)


def foreign(*records: dict[str, Any]) -> bytes:
    """A list with the fields of version 1."""
    kinds = {
        "manifest_path": "string",
        "manifest_length": "long",
        "partition_spec_id": "int",
        "added_snapshot_id": "long",
    }
    numbers = {"manifest_path": 500, "manifest_length": 501, "partition_spec_id": 502, "added_snapshot_id": 503}
    fields: list[dict[str, Any]] = [{"name": n, "type": kinds[n], "field-id": numbers[n]} for n in kinds]
    fields.append({"name": "added_data_files_count", "type": ["null", "int"], "default": None, "field-id": 504})
    summary = [
        {"name": "contains_null", "type": "boolean", "field-id": 509},
        {"name": "lower_bound", "type": ["null", "bytes"], "field-id": 510},
        {"name": "upper_bound", "type": ["null", "bytes"], "field-id": 511},
    ]
    items = {"type": "record", "name": "r508", "fields": summary}
    partitions = {"type": "array", "items": items, "element-id": 508}
    fields.append({"name": "partitions", "type": ["null", partitions], "default": None, "field-id": 507})
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "manifest_file", "fields": fields}, records)
    return sink.getvalue()


PLAIN = {"manifest_path": "m.avro", "manifest_length": 9, "partition_spec_id": 0, "added_snapshot_id": 3}


def test_a_version_1_list_is_read_with_its_defaults() -> None:
    (row,) = decode(foreign({**PLAIN, "added_data_files_count": 4})).to_pylist()
    assert (row["content_type"], row["sequence_number"], row["min_sequence_number"]) == (3, 0, 0)
    assert (row["added_files_count"], row["existing_files_count"], row["record_count"]) == (4, None, None)


def test_summaries_that_do_not_fit_the_spec_are_refused() -> None:
    summary = {"contains_null": False, "lower_bound": b"a", "upper_bound": b"b"}
    with pytest.raises(FormatError, match="do not fit partition spec 1"):
        decode(foreign({**PLAIN, "partition_spec_id": 1, "partitions": [summary]}))
    with pytest.raises(FormatError, match="names partition spec 8"):
        decode(foreign({**PLAIN, "partition_spec_id": 8, "partitions": []}))


def test_a_bound_of_the_wrong_width_is_named() -> None:
    summary = {"contains_null": False, "lower_bound": b"abc", "upper_bound": b"abc"}
    with pytest.raises(FormatError, match="ts_day"):
        decode(foreign({**PLAIN, "partition_spec_id": 1, "partitions": [summary] * 5}))
