"""Streams that read changes: ``spark.readStream.table("demo.db.t.changes")``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import icefloe
from support.people import COPY, EACH_MODE, MERGE, SCHEMA, people

CHANGES = "demo.db.people.changes"
SECONDS = 120
FILES, ROWS, SNAPSHOTS = (f"streaming-max-{what}-per-micro-batch" for what in ("files", "rows", "snapshots"))
Row = tuple[Any, ...]


def new_table(demo: icefloe.Catalog, version: int, mode: str, **options: Any) -> icefloe.Table:
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    return demo.create_table("db.people", schema=SCHEMA, format_version=version, properties=modes, **options)


def read(spark: SparkSession, **options: str) -> DataFrame:
    return spark.readStream.options(**options).table(CHANGES)


def run(frame: DataFrame, folder: Path, mode: str = "append") -> list[list[Row]]:
    """The rows of each batch that the checkpoint in the folder has not seen; batches without rows are left out."""
    batches: list[list[Row]] = []

    def collect(batch: DataFrame, number: int) -> None:
        batches.append(sorted((tuple(row) for row in batch.collect()), key=repr))

    writer = frame.writeStream.foreachBatch(collect).outputMode(mode).option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS)
    if query.exception() is not None:
        raise query.exception()
    return [batch for batch in batches if len(batch) > 0]


def in_one(batches: list[list[Row]]) -> list[Row]:
    return sorted((row for batch in batches for row in batch), key=repr)


def expected(table: icefloe.Table, since: int | None = None, **options: Any) -> list[Row]:
    """The changes as Arrow returns them, with the change types of SQL."""
    rows = table.changes(since, **options).to_arrow().to_pylist()
    rows = [{**row, "_change_type": row["_change_type"].upper()} for row in rows]
    return sorted((tuple(row.values()) for row in rows), key=repr)


def change(table: icefloe.Table, *, first: int) -> None:
    """Snapshots of every kind: appends, an update, deletes, a rewrite of files, and upserts."""
    table.append(people(first, first + 1, first + 2, first + 3))
    table.update({"amount": "amount + 1"}, where=f"id in ({first}, {first + 1})")
    table.delete(f"id = {first + 2}")
    table.compact(options={"rewrite-all": "true"}).execute()
    if table.metadata.format_version > 1:
        table.upsert(people(first, first + 3, amount=8), on=["id"], deletes="equality")
    table.upsert(people(first + 1, first + 9, amount=7), on=["id"])
    table.delete(f"id = {first + 3}")


@pytest.mark.parametrize("mode", EACH_MODE)
def test_the_batches_of_a_stream_are_the_changes_of_the_history(
    mode: tuple[int, str], spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path
) -> None:
    """A stream that is stopped and started again reads what one batch query reads, in batches of whole snapshots."""
    table = new_table(demo, *mode)
    change(table, first=10)
    batches = run(read(spark, **{SNAPSHOTS: "1"}), tmp_path / "stream")
    middle = table.metadata.current_snapshot_id
    assert in_one(batches) == expected(table)
    assert all(len({row[-1] for row in batch}) == 1 for batch in batches)
    assert [batch[0][-2] for batch in batches] == sorted({row[-2] for row in expected(table)})
    change(table, first=20)
    batches += run(read(spark), tmp_path / "stream")
    assert in_one(batches) == expected(table)
    assert run(read(spark), tmp_path / "stream") == []
    paired = read(spark, images="true", keys="id", **{"start-snapshot-id": str(middle)})
    assert in_one(run(paired, tmp_path / "paired")) == expected(table, middle, images=True, keys=["id"])


@pytest.mark.thorough
def test_a_stream_of_changes_is_filtered_aggregated_and_written(
    spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path
) -> None:
    """Aggregates keep their state from batch to batch, also over batches without changes."""
    table = new_table(demo, 4, MERGE)
    frame = read(spark, **{SNAPSHOTS: "1"}).groupBy("_change_type").count()
    assert run(frame, tmp_path / "counted", "complete") == []
    table.append(people(1, 2, 3))
    assert run(frame, tmp_path / "counted", "complete")[-1] == [("INSERT", 3)]
    table.update({"amount": "5"}, where="id = 1")
    table.compact(options={"rewrite-all": "true"}).execute()
    assert run(frame, tmp_path / "counted", "complete")[-1] == [("DELETE", 1), ("INSERT", 4)]
    table.delete("id = 2")
    assert run(frame, tmp_path / "counted", "complete")[-1] == [("DELETE", 2), ("INSERT", 4)]
    filtered = read(spark).where("id = 1 AND _change_type = 'INSERT'").select("amount")
    assert run(filtered, tmp_path / "filtered") == [[(1,), (5,)]]
    writer = read(spark).writeStream.option("checkpointLocation", str(tmp_path / "written"))
    assert writer.trigger(availableNow=True).toTable("demo.db.log").awaitTermination(SECONDS)
    log = demo.load_table("db.log").scan().to_arrow().to_pylist()
    assert sorted((tuple(row.values()) for row in log), key=repr) == expected(table)


@pytest.mark.thorough
def test_a_stream_of_changes_is_loaded_by_name_and_of_branches(
    spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path
) -> None:
    table = new_table(demo, 2, COPY)
    first = table.append(people(1)).snapshot_id
    table.branch("audit", snapshot=first)
    table.append(people(9), branch="audit")
    loaded = spark.readStream.format("icefloe").load(CHANGES)
    assert [row[0] for row in in_one(run(loaded, tmp_path / "a"))] == [1]
    audit = spark.readStream.table("demo.db.people.changes.branch_audit")
    assert [row[0] for row in in_one(run(audit, tmp_path / "b"))] == [1, 9]
    assert [row[0] for row in in_one(run(read(spark, branch="audit"), tmp_path / "c"))] == [1, 9]
    other = spark.readStream.option("readChangeFeed", "true").table("demo.db.people")
    with pytest.raises(PySparkException, match=r"option readChangeFeed: .*demo\.db\.t\.changes"):
        run(other, tmp_path / "d")
    with pytest.raises(PySparkException, match="checkpoints of their own"):
        run(spark.readStream.table("demo.db.people"), tmp_path / "a")


@pytest.mark.thorough
def test_history_that_is_gone_ends_a_stream_of_changes(
    spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path
) -> None:
    table = new_table(demo, 3, MERGE)
    first = table.append(people(1)).snapshot_id
    second = table.append(people(2)).snapshot_id
    assert len(in_one(run(read(spark), tmp_path))) == 2
    table.rollback(snapshot=first)
    with pytest.raises(PySparkException, match=f"does not contain snapshot {second}"):
        run(read(spark), tmp_path)
    table.expire(snapshots=[second]).execute()
    with pytest.raises(PySparkException, match=f"snapshot {second}, up to which the stream has read, has expired"):
        run(read(spark), tmp_path)


@pytest.mark.parametrize("version", [2, 4])
def test_a_transaction_of_several_snapshots_is_one_step_of_a_stream_and_of_the_metadata_table(
    spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path, version: int
) -> None:
    """A batch could end inside a transaction, so that a sum over the changes was that of no state of the table."""
    table = new_table(demo, version, MERGE)
    table.append(people(1, 2, amount=100))
    first = table.metadata.current_snapshot_id
    with table.transaction() as tx:
        tx.update({"amount": "amount - 30"}, "id = 1", spark=spark)
        tx.upsert(spark.createDataFrame(people(2, amount=130)), on=["id"], deletes="equality")
    assert tx.result.snapshots == 2
    middle, last = (snapshot.snapshot_id for snapshot in table.snapshots[-2:])
    table.append(people(9, amount=5))
    sql = f"SELECT sum(if(_change_type = 'INSERT', amount, -amount)) FROM {CHANGES} GROUP BY _change_ordinal"
    assert sorted(row[0] for row in spark.sql(sql).collect()) == [0, 5, 200]
    moved = [("DELETE", 1, 100), ("DELETE", 2, 100), ("INSERT", 1, 70), ("INSERT", 2, 130)]
    for number, start in enumerate((first, middle)):
        stream = read(spark, **{SNAPSHOTS: "1", FILES: "1", "start-snapshot-id": str(start)})
        batches = run(stream, tmp_path / str(number))
        assert [sorted((row[3], row[0], row[2]) for row in batch) for batch in batches] == [moved, [("INSERT", 9, 5)]]
        assert {row[-1] for row in batches[0]} == {last}
    with table.transaction() as tx:  # one snapshot, by Spark
        tx.update({"amount": "amount - 30"}, "id = 1", spark=spark)
        tx.update({"amount": "amount + 30"}, "id = 2", spark=spark)
    assert tx.result.snapshots == 1
    assert in_one(run(read(spark), tmp_path / "all")) == expected(table)
    assert {row["id"]: row["amount"] for row in table.scan().to_arrow().to_pylist()} == {1: 40, 2: 160, 9: 5}
