"""Partition field ids that mean other values in other specs, as writers of version 1 gave them out.

Kept by such an id, values of one spec were read as those of another. In memory each value has an id of its own now,
while files keep theirs: other programs look for no other.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from icefloe.codecs.json.content_file import content_file_from_json, content_files_to_json
from icefloe.codecs.json.scan_task import FileScanTask, scan_task_from_json, scan_task_to_json
from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.codecs.manifest.avro import decode_manifest, encode_manifest
from icefloe.codecs.manifest.context import ManifestContext, manifest_context
from icefloe.codecs.parquet.partition_statistics import (
    collect_partition_statistics,
    encode_partition_statistics,
)
from icefloe.errors import UnsupportedError
from icefloe.model.entries import ContentType, Measure, StatKey, entries, partition_key, stat, stat_keys
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import FIRST_ID_APART, PartitionField, PartitionSpec, with_distinct_ids
from icefloe.model.schema.types import INT, STRING
from support.manifests.sample import DAY, IDS, MIXED, SCHEMA, data_file, metadata, partition
from unit.codecs import test_manifest_parquet_v3 as parquet_v3

BY_NAME = PartitionField(source_id=IDS["name"], field_id=1000, name="name", transform="identity")
BY_SMALL = PartitionField(source_id=IDS["small"], field_id=1000, name="small", transform="identity")
SPECS = with_distinct_ids(
    [
        PartitionSpec(spec_id=0, fields=(BY_NAME,)),
        PartitionSpec(spec_id=1, fields=(BY_SMALL,)),
        PartitionSpec(spec_id=2),
    ]
)
TYPES = {partition_key(1000): pa.string(), partition_key(FIRST_ID_APART): pa.int32()}


def shared(version: int) -> TableMetadata:
    return replace(metadata(version), specs=SPECS, default_spec_id=1, last_partition_id=1000, expressions=())


def context(version: int = 2) -> ManifestContext:
    return manifest_context(shared(version))


def file(spec_id: int, value: object) -> pa.Table:
    field_id = (1000, FIRST_ID_APART)[spec_id]
    row = data_file(spec_id, partition_spec_id=spec_id, **partition(field_id, value))
    return entries([row], TYPES)


def value_of(rows: pa.Table) -> dict[StatKey, Any]:
    """The partition values of a row by their keys."""
    keys = [key for key in stat_keys(rows) if key.is_partition]
    return {key: rows[stat(Measure.LOWER, key)][0].as_py() for key in keys}


def stored(data: bytes) -> list[list[tuple[str, int]]]:
    return [[(f["name"], f["field-id"]) for f in spec["fields"]] for spec in json.loads(data)["partition-specs"]]


def test_every_value_has_a_type_of_its_own():
    assert context().partition_types == {1000: STRING, FIRST_ID_APART: INT}
    assert context().specs_with == {1000: (0,), FIRST_ID_APART: (1,)}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_metadata_is_written_with_the_ids_that_it_was_read_with(version):
    data = encode_metadata(shared(version))
    after = decode_metadata(data, where="x")

    assert stored(data) == [[("name", 1000)], [("small", 1000)], []]
    assert after.specs == SPECS
    assert encode_metadata(after) == data
    if version == 1:
        assert [field["field-id"] for field in json.loads(data)["partition-spec"]] == [1000]


def test_specs_without_any_ids_are_counted_from_1000_each_and_told_apart():
    """The oldest tables have none; counting them the same way in each spec mixed their values up."""
    document = json.loads(encode_metadata(shared(1)))
    fields = [*document["partition-spec"], *(f for spec in document["partition-specs"] for f in spec["fields"])]
    for each in fields:
        del each["field-id"]
    del document["last-partition-id"]

    after = decode_metadata(json.dumps(document).encode(), where="x")

    assert after.specs == SPECS
    assert after.last_partition_id == 1000


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(("spec_id", "value"), [(0, "x"), (1, 7), (1, None)])
def test_a_manifest_has_the_id_of_its_spec_and_entries_the_id_of_the_value(version, spec_id, value):
    before = file(spec_id, value)

    data = encode_manifest(before, context(version), content=ContentType.DATA_MANIFEST, spec_id=spec_id)

    reader = fastavro.reader(io.BytesIO(data))
    (outer,) = (f for f in reader.writer_schema["fields"] if f["name"] == "data_file")
    (inner,) = (f for f in outer["type"]["fields"] if f["name"] == "partition")
    assert [f["field-id"] for f in inner["type"]["fields"]] == [1000]
    assert [f["field-id"] for f in json.loads(reader.metadata["partition-spec"])] == [1000]
    after = decode_manifest(data, context(version), where="x")
    assert value_of(after) == {partition_key((1000, FIRST_ID_APART)[spec_id]): value}


def test_a_parquet_manifest_of_version_3_entries_is_found_by_the_stored_ids():
    first = PartitionSpec(spec_id=0, fields=(BY_SMALL,))
    apart = manifest_context(replace(metadata(4), specs=with_distinct_ids((first, MIXED))))

    rows = parquet_v3.decode_leaf(
        parquet_v3.parquet([parquet_v3.stored(1)]), apart, where="here", content=ContentType.DATA_MANIFEST
    )

    assert value_of(rows) == {
        partition_key(FIRST_ID_APART): "a",
        **{partition_key(i): value for i, value in ((1001, DAY), (1002, 3), (1003, 1.5))},
    }


@pytest.mark.parametrize(("spec_id", "value"), [(0, "x"), (1, 7)])
def test_a_file_in_json_has_the_id_of_its_spec(spec_id, value):
    (written,) = content_files_to_json(file(spec_id, value), context())

    assert written["partition"] == {"1000": value}
    for given in ({"1000": value}, [value]):
        after = content_file_from_json({**written, "partition": given}, context())
        assert value_of(after) == value_of(file(spec_id, value))


@pytest.mark.parametrize("known", [True, False])
def test_a_scan_task_means_the_same_with_and_without_its_table(known):
    none = file(1, 7).slice(0, 0)
    task = FileScanTask(schema=SCHEMA, spec=SPECS[1], data_file=file(1, 7), delete_files=none)

    written = scan_task_to_json(task, context() if known else None)
    after = scan_task_from_json(written, context=context() if known else None)

    assert (written["spec"]["fields"][0]["field-id"], written["data-file"]["partition"]) == (1000, {"1000": 7})
    assert value_of(after.data_file) == {partition_key(FIRST_ID_APART if known else 1000): 7}
    assert [field.field_id for field in after.spec.fields] == [FIRST_ID_APART if known else 1000]


def test_partition_statistics_are_refused_where_one_id_means_two_values():
    """Their tuple has the fields of all specs under the ids of the table, so it cannot hold both."""
    rows = collect_partition_statistics(file(1, 7), context())
    with pytest.raises(UnsupportedError, match="'small' has id 1000, which another partition spec"):
        encode_partition_statistics(rows, context(), snapshot_id=1, location="x")
