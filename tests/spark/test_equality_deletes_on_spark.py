"""Equality deletes on Spark: the rows are those that this process reads, and no row comes to the driver."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import QueryExecutionException
from pyspark.sql import SparkSession

from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.entries import ContentType, entries
from icefloe.model.schema.schema import Schema
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.counting_io import CountingFileIO
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from support.people import COPY, MERGE, check, ids_of, lineage_of, new_table, people, rows_of
from support.tables import new_catalog, sorted_rows

pytestmark = pytest.mark.spark
DELETE_MANIFEST = ContentType.DELETE_MANIFEST


def delete_equal(table: Table, rows: Mapping[str, list[object]]) -> None:
    """Commit equality deletes of these rows, which apply wherever the columns determine the partition."""
    metadata = table.metadata
    fields = tuple(metadata.schema.by_name[name] for name in rows)
    types = arrow_schema(Schema(fields=fields))
    added = write_equality_deletes(pointer_of(table).io, pa.table(dict(rows), types), fields, metadata=metadata)
    commit_deletes(table, added)


def delete_by_file(table: Table, folder: Path, rows: pa.Table, ids: Sequence[int], **entry: object) -> None:
    """Commit an equality delete file that another program has written."""
    path = folder / f"{random.random()}.parquet"
    pq.write_table(rows, path, store_schema=False)
    row = {
        "content_type": int(ContentType.EQUALITY_DELETES),
        "location": str(path),
        "file_format": "parquet",
        "status": 1,
        "partition_spec_id": 0,
        "record_count": rows.num_rows,
        "file_size_in_bytes": path.stat().st_size,
        "equality_ids": list(ids),
    }
    commit_deletes(table, entries([{**row, **entry}]))


def commit_deletes(table: Table, added: pa.Table) -> None:
    head = table.metadata.current_snapshot
    assert head is not None
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=added), read=head))


def spark_rows(spark: SparkSession, table: Table, where: str | None = None) -> list[tuple[object, ...]]:
    return sorted_rows(table.scan(where).to_spark(spark).toArrow())


def same_on_both(spark: SparkSession, table: Table) -> list[tuple[object, ...]]:
    rows = spark_rows(spark, table)
    assert rows == sorted_rows(table.scan().to_arrow())
    return rows


@pytest.mark.parametrize("version", [4, 2, 3])
def test_deletes_of_several_key_sets_apply_by_partition_and_sequence_number(spark, version, tmp_path):
    table = new_table(tmp_path, version, partition_by=("city",))
    table.append(people(*range(6)))
    table.append(people(*range(6), city="Rome", amount=2))
    table.append(people(7, 8, city=None, amount=None))
    delete_equal(table, {"id": [1, 7], "city": ["Oslo", None]})
    table.append(people(1, amount=9))  # newer than the delete
    delete_equal(table, {"city": ["Rome", "Oslo"], "amount": [2, 7]})
    table.append(people(5, city="Rome", amount=2))
    delete_equal(table, {"id": [5], "amount": [2], "city": ["Oslo"]})
    expected = [(0, "Oslo", 1), (1, "Oslo", 9), *((n, "Oslo", 1) for n in range(2, 6)), (5, "Rome", 2), (8, None, None)]
    assert same_on_both(spark, table) == sorted(expected, key=repr)
    frame = table.scan().to_spark(spark)
    assert sorted(row[0] for row in frame.where("city = 'Oslo' and amount > 1").select("id").collect()) == [1]
    assert frame.select("amount").where("id < 3").count() == 3
    assert spark_rows(spark, table, "city is null") == [(8, None, None)]


def test_files_without_equality_deletes_are_read_without_joins(spark, tmp_path):
    table = new_table(tmp_path, 2, partition_by=("city",))
    table.append(people(1, 2))
    plain = table.scan().to_spark(spark)
    assert "Join" not in plain._jdf.queryExecution().toString()
    delete_equal(table, {"id": [1], "city": ["Oslo"]})
    table.append(people(3, city="Rome"))
    shown = table.scan().to_spark(spark).where("city = 'Rome'")
    assert [row.id for row in shown.collect()] == [3]
    both = table.scan().to_spark(spark)
    assert "BroadcastHashJoin" in both._jdf.queryExecution().executedPlan().toString()


def test_nulls_and_the_two_zeros_and_nan_are_told_apart(spark, tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema="n int, x double, y float", format_version=2)
    nan = float("nan")
    payload = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]
    table.append(
        pa.table(
            {
                "n": pa.array(range(7), pa.int32()),
                "x": pa.array([0.0, -0.0, nan, None, 1.5, payload, 2.0], pa.float64()),
                "y": pa.array([0.0, -0.0, nan, None, 1.5, nan, -0.0], pa.float32()),
            }
        )
    )
    x, y = (
        pa.field(name, type_, metadata={"PARQUET:field_id": id_})
        for name, type_, id_ in (("x", pa.float64(), "2"), ("y", pa.float32(), "3"))
    )
    delete_by_file(table, tmp_path, pa.table({"x": pa.array([-0.0, nan])}, pa.schema([x])), [2])
    pairs = [pa.array([None, 2.0, 0.0], pa.float64()), pa.array([None, 0.0, 0.0], pa.float32())]
    delete_by_file(table, tmp_path, pa.table(pairs, pa.schema([x, y])), [2, 3])
    assert [row.n for row in table.scan().to_spark(spark).collect()] == [4, 6]
    assert table.scan().to_arrow()["n"].to_pylist() == [4, 6]


def test_a_delete_file_without_a_delete_column_is_refused(spark, tmp_path):
    """Read by id, the column would be null in all its rows."""
    table = new_table(tmp_path, 2)
    table.append(people(1, 2, city=None))
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    delete_by_file(table, tmp_path, pa.table({"id": pa.array([1])}, pa.schema([field])), [2])
    with pytest.raises(QueryExecutionException, match="lacks its delete column 2"):
        table.scan().to_spark(spark).collect()


def test_renamed_and_promoted_delete_columns_are_found_by_id(spark, tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema="id int, name string, n int", format_version=2)
    numbers = pa.array([1, 2, 3], pa.int32())
    table.append(pa.table({"id": numbers, "name": ["a", "b", None], "n": numbers}))
    delete_equal(table, {"id": [1]})
    delete_equal(table, {"name": [None]})
    with table.update_schema() as change:
        change.rename_column("id", "key")
        change.update_column("key", type="bigint")
        change.rename_column("name", "label")
    assert same_on_both(spark, table) == [(2, "b", 2)]
    delete_equal(table, {"key": [2]})
    assert same_on_both(spark, table) == []
    assert table.scan(columns=["n"]).to_spark(spark).count() == 0


@pytest.mark.parametrize("mode", [(2, MERGE), (3, COPY), (4, MERGE)], ids=lambda mode: f"v{mode[0]}-{mode[1]}")
def test_rows_are_changed_on_spark_upon_equality_deletes(spark, tmp_path, mode):
    table = new_table(tmp_path, *mode)
    table.append(people(*range(10)))
    table.upsert(people(2, 3, amount=5), on=["id"], deletes="equality")
    assert table.delete("id in (2, 4)", spark=spark).rows_deleted == 2
    frame = spark.createDataFrame([(3, "Rome", 7), (30, "Rome", 7)], "id bigint, city string, amount int")
    result = table.upsert(frame, on=["id"])
    assert (result.rows_added, result.rows_deleted) == (2, 1)
    assert ids_of(table) == [0, 1, 3, 5, 6, 7, 8, 9, 30]
    assert same_on_both(spark, table) == rows_of(table)
    if mode[0] > 2:
        ids = table.scan(columns=["id", "_row_id", "_last_updated_sequence_number"]).to_spark(spark).toArrow()
        assert {row["id"]: tuple(row.values())[1:] for row in ids.to_pylist()} == lineage_of(table)
    check(table)


@pytest.mark.parametrize("version", [2, 3])
def test_a_dataframe_is_made_without_reading_delete_manifests(spark, tmp_path, version):
    table = new_table(tmp_path, version, MERGE)
    table.append(people(1, 2, 3))
    table.delete("id = 2")
    table.append(people(4))
    counted = CountingFileIO(pointer_of(table).io)
    fresh = new_catalog(tmp_path).load_table("db.people")
    store = pointer_of(fresh).held().store
    store.io = counted
    frame = fresh.scan().to_spark(spark)
    head = fresh.metadata.current_snapshot
    deletes = {leaf.location for leaf in read_root(store, head).leaves(DELETE_MANIFEST)}
    assert deletes.isdisjoint(call.location for call in counted.calls)
    assert sorted(row.id for row in frame.collect()) == [1, 3, 4]
    assert deletes <= {call.location for call in counted.calls}


def test_a_summary_that_does_not_count_equality_deletes_is_no_reason_for_wrong_rows(spark, tmp_path):
    table = new_table(tmp_path, 2)
    table.append(people(1, 2))
    delete_equal(table, {"id": [1]})
    head = table.metadata.current_snapshot
    summary = {**head.summary, "total-equality-deletes": "0"}
    snapshots = table.metadata.snapshots.without({head.snapshot_id}).add(replace(head, summary=summary))
    pointer_of(table).remember(table.metadata_location, replace(table.metadata, snapshots=snapshots))
    scan = table.scan()
    with pytest.raises(QueryExecutionException, match=r"to_spark\(spark, inspect_files=True\)"):
        scan.to_spark(spark).collect()
    assert [row.id for row in scan.to_spark(spark, inspect_files=True).collect()] == [2]


@pytest.mark.parametrize("seed", range(12))
def test_random_upserts_by_equality_deletes_are_the_same_on_both_engines(spark, tmp_path, seed):
    dice = random.Random(seed)
    version = dice.choice([2, 3, 4])
    table = new_table(tmp_path, version, MERGE, partition_by=dice.choice([(), ("city",), ("bucket(3, id)",)]))
    for _ in range(6):
        ids = dice.sample(range(20), dice.randint(1, 8))
        rows = people(*ids, city=dice.choice(["Oslo", "Rome", "Bern"]), amount=dice.randint(0, 3))
        match dice.randint(0, 3):
            case 0:
                table.append(rows)
            case 1:
                table.delete(f"id < {dice.randint(0, 4)} and amount = {dice.randint(0, 3)}")
            case _:
                on = dice.choice([["id", "city"], ["city", "amount", "id"]])
                table.upsert(rows, on=on, deletes="equality")
    same_on_both(spark, table)
    where = f"amount >= {dice.randint(0, 3)} or id = {dice.randint(0, 19)}"
    assert spark_rows(spark, table, where) == sorted_rows(table.scan(where).to_arrow())
