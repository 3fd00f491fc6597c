from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.codecs.parquet.partition_statistics import (
    COUNTS,
    collect_partition_statistics,
    encode_partition_statistics,
)
from icefloe.codecs.puffin.puffin_file import Blob
from icefloe.codecs.puffin.statistics_file import distinct_values, encode_statistics, theta_blob
from icefloe.model.entries import ContentType, Status
from support.manifests.random_entries import Row, data_dv, equality_delete
from support.manifests.sample import context, data_file, mixed_partition, table
from support.statistics_files import decode_partition_statistics, decode_statistics

PLACE = "s3://b/t/metadata/s.puffin"
SKETCH = theta_blob(b"\x01\x03\x03" * 50, field_id=3, ndv=12345, snapshot_id=7, sequence_number=2)
NOTE = Blob(type="note", data=b"any bytes", fields=(1, 2), snapshot_id=7, sequence_number=2)


def test_a_statistics_file_comes_back_as_its_entry_says() -> None:
    data, entry = encode_statistics([SKETCH, NOTE], snapshot_id=7, location=PLACE, created_by="a test")
    assert (entry.snapshot_id, entry.statistics_path, entry.file_size_in_bytes) == (7, PLACE, len(data))
    assert data[-entry.file_footer_size_in_bytes :].startswith(b"PFA1{")
    assert [blob.type for blob in entry.blob_metadata] == ["apache-datasketches-theta-v1", "note"]
    assert decode_statistics(data, entry) == (SKETCH, NOTE)
    assert distinct_values(entry) == {3: 12345}


def test_sketches_without_a_number_tell_nothing() -> None:
    odd = [replace(SKETCH, properties={}), replace(SKETCH, properties={"ndv": "many"}), replace(SKETCH, fields=(1, 2))]
    _, entry = encode_statistics(odd, snapshot_id=7, location=PLACE, created_by="a test")
    assert distinct_values(entry) == {}


# -- partitions


def files() -> pa.Table:
    a, b = mixed_partition("a"), mixed_partition(None, price=math.nan)
    return table(
        [
            data_file(0, **a, snapshot_id=1),
            data_file(1, **a, snapshot_id=2) | {"record_count": 5},
            data_file(2, **b, snapshot_id=1),
            data_dv(0, **{**a, "snapshot_id": 3}),
            equality_delete(4, **{**b, "snapshot_id": 9}),
            data_file(5, **b, content_type=int(ContentType.POSITION_DELETES), snapshot_id=2),
        ]
    )


def by_name(rows: pa.Table) -> dict[object, Row]:
    return {row["p1000"]: row for row in rows.to_pylist()}


def test_partitions_are_counted_with_their_deletes() -> None:
    rows = by_name(collect_partition_statistics(files(), context(3), {1: 100, 2: 200, 3: 300}))
    assert len(rows) == 2
    one, other = rows["a"], rows[None]
    assert (one["spec_id"], one["data_file_count"], one["data_record_count"]) == (1, 2, 15)
    assert (one["total_data_file_size_in_bytes"], one["dv_count"], one["position_delete_file_count"]) == (2001, 1, 0)
    assert (one["last_updated_at"], one["last_updated_snapshot_id"]) == (300, 3)
    assert (other["data_file_count"], other["equality_delete_file_count"], other["dv_count"]) == (1, 1, 0)
    assert (other["position_delete_file_count"], other["position_delete_record_count"]) == (1, 10)
    assert other["total_record_count"] is None
    assert math.isnan(float(str(other["p1003"])))


def test_a_file_of_an_expired_snapshot_does_not_say_when_its_partition_was_updated() -> None:
    (row,) = (
        row
        for row in collect_partition_statistics(files(), context(3), {1: 100, 2: 200}).to_pylist()
        if row["p1000"] is None
    )
    assert (row["last_updated_at"], row["last_updated_snapshot_id"]) == (200, 2)
    (row, _) = collect_partition_statistics(files(), context(3)).to_pylist()
    assert (row["last_updated_at"], row["last_updated_snapshot_id"]) == (None, None)


def test_a_removed_file_is_not_counted_but_updates_its_partition() -> None:
    gone = {"status": int(Status.DELETED), "snapshot_id": 2}
    entries = table(
        [
            data_file(0, **mixed_partition("a"), snapshot_id=1),
            data_file(1, **mixed_partition("a")) | gone,
            data_file(2, **mixed_partition("b")) | gone,
        ]
    )
    (row,) = collect_partition_statistics(entries, context(3), {1: 100, 2: 100}).to_pylist()
    assert (row["p1000"], row["data_file_count"]) == ("a", 1)
    assert (row["last_updated_at"], row["last_updated_snapshot_id"]) == (100, 2)


def test_a_partition_statistics_file_has_the_ids_of_the_spec_and_is_sorted() -> None:
    rows = collect_partition_statistics(files(), context(3))
    data, entry = encode_partition_statistics(rows, context(3), snapshot_id=7, location="s3://b/p.parquet")
    assert (entry.snapshot_id, entry.file_size_in_bytes) == (7, len(data))
    stored = pq.read_table(pa.BufferReader(data))
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in stored.schema}
    assert ids == {"partition": 1, **{name: number for name, (number, _, _) in COUNTS.items()}}
    assert pc.struct_field(stored["partition"], "name").to_pylist() == [None, "a"]
    after = decode_partition_statistics(data, context(3))
    assert repr(after.to_pylist()) == repr(rows.select(after.column_names).to_pylist())


def test_files_of_version_2_have_no_count_of_deletion_vectors() -> None:
    plain = collect_partition_statistics(files().slice(0, 3), context(2))
    data, _ = encode_partition_statistics(plain, context(2), snapshot_id=7, location="x")
    assert "dv_count" not in pq.read_schema(pa.BufferReader(data)).names


def test_a_table_without_partitions_has_one_row() -> None:
    bare = replace(context(3), partition_types={})
    rows = collect_partition_statistics(table([data_file(0), data_file(1)]), bare)
    data, _ = encode_partition_statistics(rows, bare, snapshot_id=7, location="x")
    (row,) = decode_partition_statistics(data, bare).to_pylist()
    assert (row["spec_id"], row["data_file_count"], row["data_record_count"]) == (0, 2, 20)
