"""Every example of Appendix C is read, means what it says, and is written again."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from icefloe.codecs.json.content_file import content_files_from_json, content_files_to_json
from icefloe.codecs.json.name_mapping import decode_mapping, encode_mapping
from icefloe.codecs.json.partition_spec import spec_from_json, spec_to_json
from icefloe.codecs.json.scan_task import scan_task_from_json, scan_task_to_json
from icefloe.codecs.json.schema import schema_from_json, schema_to_json
from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.codecs.manifest.context import ManifestContext, partition_types
from icefloe.expr.filter.nodes import Op, Predicate
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.json_values import value_from_json
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, STRING, TIMESTAMPTZ, Field
from icefloe.transforms import parse_transform

LIST = {"type": "list", "element-id": 3, "element-required": True, "element": "string"}
MAP = {"type": "map", "key-id": 4, "key": "string", "value-id": 5, "value-required": False, "value": "double"}
STRUCT = {
    "type": "struct",
    "fields": [
        {
            "id": 1,
            "name": "id",
            "required": True,
            "type": "uuid",
            "initial-default": "0db3e2a8-9d1d-42b9-aa7b-74ebe558dceb",
            "write-default": "ec5911be-b0a7-458c-8438-c9a3e53cffae",
        },
        {"id": 2, "name": "data", "required": False, "type": LIST},
    ],
}
TYPES = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
    "fixed[16]",
    "binary",
    "decimal(9,2)",
    "decimal(9, 2)",
    STRUCT,
    LIST,
    MAP,
]


def written(value: object) -> Any:
    """JSON as a reader of the text sees it."""
    return json.loads(msgspec.json.encode(value))


@pytest.mark.parametrize("example", TYPES, ids=[t if isinstance(t, str) else t["type"] for t in TYPES])
def test_a_type_is_read_and_written(example):
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 9, "name": "x", "required": False, "type": example}]}

    again = written(schema_to_json(schema_from_json(schema)))

    assert again["fields"][0]["type"] == ("decimal(9, 2)" if example == "decimal(9,2)" else example)


def test_a_schema_has_an_id_and_identifier_fields():
    example = {"schema-id": 0, "identifier-field-ids": [1, 2]}
    fields = [{"id": i, "name": f"c{i}", "required": True, "type": "int"} for i in (1, 2)]
    schema = {"type": "struct", **example, "fields": fields}

    read = schema_from_json(schema)

    assert (read.schema_id, read.identifier_field_ids) == (0, (1, 2))
    assert written(schema_to_json(read)) == schema


def test_defaults_are_single_values():
    field = schema_from_json({"schema-id": 0, **STRUCT}).field("id")

    assert value_from_json(field.initial_default, field.type).hex() == "0db3e2a89d1d42b9aa7b74ebe558dceb"
    assert value_from_json(field.write_default, field.type).hex() == "ec5911beb0a7458c8438c9a3e53cffae"


SPEC = {
    "spec-id": 0,
    "fields": [
        {"source-id": 4, "field-id": 1000, "name": "ts_day", "transform": "day"},
        {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[16]"},
    ],
}
TRANSFORMS = ["identity", "bucket[16]", "truncate[20]", "year", "month", "day", "hour"]


def test_a_partition_spec_is_read_and_written():
    assert written(spec_to_json(spec_from_json(SPEC))) == SPEC


def test_a_partition_spec_is_also_read_from_its_field_list():
    assert spec_from_json(SPEC["fields"]) == spec_from_json(SPEC)


def test_fields_of_version_1_without_ids_count_from_1000():
    bare = [{k: v for k, v in field.items() if k != "field-id"} for field in SPEC["fields"]]

    assert spec_from_json(bare) == spec_from_json(SPEC)


def test_a_partition_field_is_an_object_of_four_keys():
    example = {"source-id": 1, "field-id": 1000, "name": "id_bucket", "transform": "bucket[16]"}

    read = spec_from_json([example])

    assert read.fields == (PartitionField(source_id=1, field_id=1000, name="id_bucket", transform="bucket[16]"),)
    assert written(spec_to_json(read))["fields"] == [example]


@pytest.mark.parametrize("text", TRANSFORMS)
def test_a_transform_is_its_text(text):
    field = {"source-id": 1, "field-id": 1000, "name": "x", "transform": text}

    assert str(parse_transform(text)) == text
    assert written(spec_to_json(spec_from_json([field])))["fields"] == [field]


SORT_FIELDS = [
    {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"},
    {"transform": "bucket[4]", "source-id": 3, "direction": "desc", "null-order": "nulls-last"},
]
SNAPSHOT = 3051729675574597004
TAGGED = 123456789000
COLUMNS = [
    {"id": i, "name": f"c{i}", "required": False, "type": "timestamptz" if i == 4 else "int"} for i in (1, 2, 3, 4)
]
METADATA = {
    "format-version": 1,
    "table-uuid": "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94",
    "location": "s3://b/wh/data.db/table",
    "last-updated-ms": 1515100955770,
    "last-column-id": 22,
    "schema": {"type": "struct", "schema-id": 0, "fields": COLUMNS},
    "schemas": [{"type": "struct", "schema-id": 0, "fields": COLUMNS}],
    "current-schema-id": 0,
    "partition-spec": SPEC["fields"],
    "partition-specs": [SPEC],
    "default-spec-id": 0,
    "last-partition-id": 1000,
    "properties": {"write.format.default": "avro", "commit.retry.num-retries": "4"},
    "current-snapshot-id": SNAPSHOT,
    "snapshots": [
        {
            "snapshot-id": SNAPSHOT,
            "timestamp-ms": 1515100955770,
            "summary": {"operation": "append"},
            "manifest-list": "s3://b/wh/.../s1.avro",
            "schema-id": 0,
        },
        {
            "snapshot-id": TAGGED,
            "timestamp-ms": 1515100955700,
            "summary": {"operation": "append"},
            "manifest-list": "s3://b/wh/.../s0.avro",
            "schema-id": 0,
        },
    ],
    "snapshot-log": [{"snapshot-id": SNAPSHOT, "timestamp-ms": 1515100955770}],
    "metadata-log": [{"metadata-file": "s3://bucket/.../v1.json", "timestamp-ms": 1515100955770}],
    "sort-orders": [{"order-id": 0, "fields": []}, {"order-id": 1, "fields": SORT_FIELDS}],
    "default-sort-order-id": 0,
    "refs": {
        "main": {"snapshot-id": SNAPSHOT, "type": "branch"},
        "test": {"snapshot-id": TAGGED, "type": "tag", "max-ref-age-ms": 10000000},
    },
}


@pytest.mark.parametrize("key", METADATA)
@pytest.mark.parametrize("version", [1, 2])
def test_a_key_of_table_metadata_is_read_and_written(key, version):
    document = {**METADATA, "format-version": version}
    if version == 2:
        del document["schema"], document["partition-spec"]
        document["last-sequence-number"] = 0

    metadata = decode_metadata(json.dumps(document).encode(), where="s3://b/wh/data.db/table/metadata/v2.json")

    again = json.loads(encode_metadata(metadata))
    assert [again[key]] == [document[key]] if key in document else key not in again


def test_the_examples_of_table_metadata_mean_what_they_say():
    metadata = decode_metadata(json.dumps(METADATA).encode(), where="v2.json")

    snapshot = metadata.snapshot(SNAPSHOT)
    assert (snapshot.root, snapshot.schema_id, snapshot.summary["operation"]) == ("s3://b/wh/.../s1.avro", 0, "append")
    assert (metadata.refs["test"].type, metadata.refs["test"].max_ref_age_ms) == ("tag", 10000000)
    second = metadata.sort_orders[1].fields[1]
    assert (second.transform, second.source_id) == ("bucket[4]", 3)
    assert (second.direction, second.null_order) == ("desc", "nulls-last")


MAPPING = """
[ { "field-id": 1, "names": ["id", "record_id"] },
   { "field-id": 2, "names": ["data"] },
   { "field-id": 3, "names": ["location"], "fields": [
       { "field-id": 4, "names": ["latitude", "lat"] },
       { "field-id": 5, "names": ["longitude", "long"] }
     ] } ]
"""


def test_a_name_mapping_is_read_and_written():
    mapping = decode_mapping(MAPPING)

    assert json.loads(encode_mapping(mapping)) == json.loads(MAPPING)
    assert mapping.by_name["record_id"].field_id == 1
    assert mapping.by_name["location"].by_name["lat"].field_id == 4


IDS = Schema(fields=tuple(Field(i, f"c{i}", INT) for i in (1, 3, 4)))
BY_ID = PartitionSpec(
    spec_id=1, fields=(PartitionField(source_id=1, field_id=1000, name="id_bucket", transform="bucket[16]"),)
)


def table_context(schema: Schema, spec: PartitionSpec) -> ManifestContext:
    types = {field.id: field.type for field in schema.fields}
    return ManifestContext(
        location="s3://b/wh/data.db/table",
        format_version=2,
        schema=schema,
        types=types,
        specs={spec.spec_id: spec},
        partition_types=partition_types([spec], types),
    )


FILE = {
    "spec-id": 1,
    "content": "DATA",
    "file-path": "s3://b/wh/data.db/table",
    "file-format": "PARQUET",
    "partition": {"1000": 1},
    "record-count": 1,
    "file-size-in-bytes": 1024,
    "column-sizes": {"keys": [3, 4], "values": [100, 200]},
    "value-counts": {"keys": [3, 4], "values": [90, 180]},
    "null-value-counts": {"keys": [3, 4], "values": [10, 20]},
    "nan-value-counts": {"keys": [3, 4], "values": [0, 0]},
    "lower-bounds": {"keys": [3, 4], "values": ["01000000", "02000000"]},
    "upper-bounds": {"keys": [3, 4], "values": ["05000000", "0A000000"]},
    "key-metadata": "00000000000000000000000000000000",
    "split-offsets": [128, 256],
    "equality-ids": [1],
    "sort-order-id": 1,
}
MEANING = {
    "partition_spec_id": 1,
    "content_type": 0,
    "location": "s3://b/wh/data.db/table",
    "file_format": "parquet",
    "lower_bound:p1000": 1,
    "upper_bound:p1000": 1,
    "record_count": 1,
    "file_size_in_bytes": 1024,
    "column_size:4": 200,
    "value_count:3": 90,
    "null_value_count:4": 20,
    "nan_value_count:3": 0,
    "lower_bound:3": 1,
    "upper_bound:4": 10,
    "key_metadata": bytes(16),
    "split_offsets": [128, 256],
    "equality_ids": [1],
    "sort_order_id": 1,
}


def test_a_content_file_means_what_it_says():
    row = content_files_from_json([FILE], table_context(IDS, BY_ID)).to_pylist()[0]

    assert {name: row[name] for name in MEANING} == MEANING


@pytest.mark.parametrize("content", ["DATA", "POSITION_DELETES", "EQUALITY_DELETES"])
@pytest.mark.parametrize("format_", ["AVRO", "ORC", "PARQUET"])
def test_a_content_file_is_read_and_written(content, format_):
    known = table_context(IDS, BY_ID)
    example = {**FILE, "content": content, "file-format": format_}

    assert content_files_to_json(content_files_from_json([example], known), known) == [example]


def test_a_file_scan_task_is_read_and_written():
    schema = Schema(fields=(Field(1, "id", INT), *IDS.fields[1:]))
    task = {
        "schema": schema_to_json(schema),
        "spec": spec_to_json(BY_ID),
        "data-file": FILE,
        "delete-files": [{**FILE, "content": "POSITION_DELETES"}],
        "residual-filter": {"type": "eq", "term": "id", "value": 1},
    }

    read = scan_task_from_json(written(task))

    assert read.residual == Predicate(Op.EQ, "id", (1,))
    assert read.delete_files["content_type"].to_pylist() == [1]
    assert written(scan_task_to_json(read)) == written(task)


def test_the_first_partition_spec_of_the_appendix_partitions_files():
    columns = (Field(1, "id", INT), Field(4, "ts", TIMESTAMPTZ), Field(9, "s", STRING))
    known = table_context(Schema(fields=columns), spec_from_json(SPEC))
    example = {**FILE, "spec-id": 0, "partition": {"1000": "2017-11-16", "1001": 3}}
    plain = {key: value for key, value in example.items() if not isinstance(value, dict) or key == "partition"}

    assert content_files_to_json(content_files_from_json([plain], known), known) == [plain]
