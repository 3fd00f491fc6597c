"""Manifests exchanged with pyiceberg, in both directions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestEntryStatus, ManifestFile, read_manifest_list
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType

from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.codecs.manifest.context import ManifestContext, manifest_context
from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.codecs.manifest.manifests import decode_leaf, decode_root, encode_leaf, encode_root
from icefloe.model.entries import ContentType, Status
from support.manifests.random_entries import differences, mixed_manifest
from support.manifests.sample import DAY, column_stats, context, data_file, mixed_partition, table
from support.shared_files import shared

pytestmark = pytest.mark.interop

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "ts", TimestamptzType(), required=False),
    NestedField(3, "region", StringType(), required=False),
    NestedField(4, "price", DoubleType(), required=False),
)
SPEC = PartitionSpec(
    PartitionField(3, 1000, IdentityTransform(), "region"),
    PartitionField(2, 1001, DayTransform(), "ts_day"),
    PartitionField(1, 1002, BucketTransform(4), "id_bucket"),
)
FIRST = dt.datetime(2026, 11, 5, 23, 59, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    folder = tmp_path_factory.mktemp("warehouse")
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", schema=SCHEMA, partition_spec=SPEC, properties={"format-version": "2"})
    for day in range(2):
        stamps = [FIRST + dt.timedelta(days=day, hours=n) for n in range(6)]
        ids = list(range(day * 10, day * 10 + 6))
        regions = ["north", None, "south" * 20, "north", "ö", None]
        prices = [1.0, None, float("nan"), -0.0, 2.5, 0.0]
        made.append(
            pa.table(
                {
                    "id": pa.array(ids, pa.int64()),
                    "ts": pa.array(stamps, pa.timestamp("us", tz="UTC")),
                    "region": pa.array(regions),
                    "price": pa.array(prices, pa.float64()),
                }
            )
        )
    yield made
    catalog.close()


def read(location: str) -> bytes:
    return Path(location.removeprefix("file://")).read_bytes()


@pytest.fixture(scope="module")
def known(theirs: Table) -> ManifestContext:
    return manifest_context(decode_metadata(read(theirs.metadata_location), where=theirs.metadata_location))


def test_their_manifest_list_is_read(theirs: Table, known: ManifestContext) -> None:
    snapshot = theirs.current_snapshot()
    assert snapshot is not None
    rows = decode_root(read(snapshot.manifest_list), known, where="list")
    manifests = snapshot.manifests(theirs.io)
    assert rows["location"].to_pylist() == [m.manifest_path for m in manifests]
    assert rows["added_files_count"].to_pylist() == [m.added_files_count for m in manifests]
    assert rows["sequence_number"].to_pylist() == [m.sequence_number for m in manifests]
    assert rows["lower_bound:p1000"].to_pylist() == ["north", "north"]
    assert rows["upper_bound:p1000"].to_pylist() == ["ö", "ö"]
    assert rows["null_value_count:p1000"].to_pylist() == [None, None]
    assert rows["null_value_count:p1002"].to_pylist() == [0, 0]


def test_their_manifests_are_read_with_partitions_counts_and_bounds(theirs: Table, known: ManifestContext) -> None:
    snapshot = theirs.current_snapshot()
    assert snapshot is not None
    for manifest in snapshot.manifests(theirs.io):
        rows = decode_leaf(
            read(manifest.manifest_path), known, where="leaf", content=ContentType.DATA_MANIFEST
        ).to_pylist()
        entries = manifest.fetch_manifest_entry(theirs.io)
        assert len(rows) == len(entries) == 6
        for row, entry in zip(rows, entries, strict=True):
            file = entry.data_file
            assert (row["location"], row["record_count"]) == (file.file_path, file.record_count)
            assert row["lower_bound:p1000"] == row["upper_bound:p1000"] == file.partition[0]
            assert (row["lower_bound:p1001"] - dt.date(1970, 1, 1)).days == file.partition[1]
            assert row["lower_bound:p1002"] == file.partition[2]
            assert row["null_value_count:3"] == file.null_value_counts[3]
            assert row["column_size:1"] == file.column_sizes[1]
            assert row["lower_bound:1"] == int.from_bytes(file.lower_bounds[1], "little")
            assert row["lower_bound:2"] == row["upper_bound:2"]


def test_what_they_wrote_survives_writing_it_again(theirs: Table, known: ManifestContext, tmp_path: Path) -> None:
    snapshot = theirs.current_snapshot()
    assert snapshot is not None
    (manifest, *_) = snapshot.manifests(theirs.io)
    before = decode_leaf(read(manifest.manifest_path), known, where="leaf", content=ContentType.DATA_MANIFEST)
    again = encode_leaf(before, known, content=ContentType.DATA_MANIFEST, spec_id=0)
    assert differences(before, decode_leaf(again, known, where="leaf", content=ContentType.DATA_MANIFEST)) == {}
    original = [entry.data_file for entry in manifest.fetch_manifest_entry(theirs.io)]
    Path(manifest_copy := str(tmp_path / "m.avro")).write_bytes(again)
    copied = [entry.data_file for entry in at(manifest, manifest_copy).fetch_manifest_entry(PyArrowFileIO())]
    for theirs_file, ours_file in zip(original, copied, strict=True):
        for name in ("file_path", "file_format", "partition", "record_count", "column_sizes", "value_counts"):
            assert getattr(ours_file, name) == getattr(theirs_file, name)
        for name in ("null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds", "split_offsets"):
            assert (getattr(ours_file, name) or None) == (getattr(theirs_file, name) or None)


def at(manifest: ManifestFile, path: str) -> ManifestFile:
    """A pyiceberg manifest row that points somewhere else."""
    return ManifestFile(path, *manifest._data[1:])


def test_our_manifest_and_list_are_read_by_them(tmp_path: Path) -> None:
    ours = context(2)
    stats = column_stats("name", "a", "b", nulls=2)
    rows = table(
        [
            data_file(0, **mixed_partition(), **stats, split_offsets=[4], sort_order_id=0),
            data_file(1, **mixed_partition(None, None, None, None), status=0),
            data_file(2, **mixed_partition(), status=2),
        ]
    )
    leaf = encode_leaf(rows, ours, content=ContentType.DATA_MANIFEST, spec_id=1)
    path = tmp_path / "m.avro"
    path.write_bytes(leaf)
    row = manifest_row(
        rows,
        ours,
        location=str(path),
        size=len(leaf),
        content=ContentType.DATA_MANIFEST,
        status=Status.ADDED,
        snapshot_id=77,
        sequence_number=5,
    )
    list_path = tmp_path / "list.avro"
    list_path.write_bytes(encode_root(row, ours, snapshot_id=77, parent_id=None, sequence_number=5))
    io = PyArrowFileIO()
    (manifest,) = read_manifest_list(io.new_input(str(list_path)))
    assert (manifest.manifest_path, manifest.manifest_length) == (str(path), len(leaf))
    assert (manifest.content, manifest.partition_spec_id) == (ManifestContent.DATA, 1)
    assert (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count) == (1, 1, 1)
    assert manifest.partitions is not None
    assert [p.contains_null for p in manifest.partitions] == [True, True, True, True, True]
    assert manifest.partitions[0].lower_bound == b"a"
    first, second, third = manifest.fetch_manifest_entry(io, discard_deleted=False)
    assert (first.status, third.status) == (ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED)
    assert first.data_file.content == DataFileContent.DATA
    assert list(first.data_file.partition)[:3] == ["a", (DAY - dt.date(1970, 1, 1)).days, 3]
    assert list(second.data_file.partition) == [None] * 5
    assert first.data_file.lower_bounds == {10: b"a"}
    assert first.data_file.null_value_counts == {10: 2}
    assert first.data_file.split_offsets == [4]
    assert first.sequence_number == 5


def test_several_manifests_of_ours_are_listed_for_them(tmp_path: Path) -> None:
    path = tmp_path / "list.avro"
    rows = table([mixed_manifest(1), mixed_manifest(2, delete=True)])
    path.write_bytes(encode_root(rows, context(2), snapshot_id=1, parent_id=2, sequence_number=3))
    data, deletes = read_manifest_list(PyArrowFileIO().new_input(str(path)))
    assert (data.content, deletes.content) == (ManifestContent.DATA, ManifestContent.DELETES)
    assert data.partitions is not None
    assert data.partitions[2].upper_bound == b"\x0f\x00\x00\x00"
    assert pc.sum(rows["added_rows_count"]).as_py() == data.added_rows_count + deletes.added_rows_count


GOLDEN = ("equality_deletes", "iceberg_v1_repro", "null_stats", "partition_decimal_bigint", "partition_double", "uuid")


@pytest.mark.parametrize("name", GOLDEN)
def test_manifests_of_spark_and_others_are_read(name: str) -> None:
    folder = shared(f"golden/tables/{name}")
    files = {path.name: path for path in folder.rglob("*.avro")}
    found = 0
    for path in sorted(folder.rglob("*.metadata.json")):
        known = manifest_context(decode_metadata(path.read_bytes(), where=str(path)))
        for snapshot in decode_metadata(path.read_bytes(), where=str(path)).snapshots:
            if (listed := files.get(Path(snapshot.root).name)) is None:
                continue
            for row in decode_root(listed.read_bytes(), known, where=listed.name).to_pylist():
                leaf = files[Path(row["location"]).name]
                rows = decode_leaf(
                    leaf.read_bytes(),
                    known,
                    where=leaf.name,
                    content=ContentType.DELETE_MANIFEST if row["content_type"] == 4 else ContentType.DATA_MANIFEST,
                )
                # Lists of version 1 may leave their counts out.
                assert row["record_count"] in (None, rows.num_rows)
                found += rows.num_rows
    assert found > 0
