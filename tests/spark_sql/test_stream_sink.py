"""Streams that are written to tables: ``df.writeStream.format("icefloe")`` and ``toTable``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe

SCHEMA = "id bigint, note string"
SECONDS = 60


def source(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows of JSON files in a folder, one file a batch."""
    (folder / "in").mkdir(exist_ok=True)
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))


def add_file(folder: Path, number: int, text: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{number}.json").write_text(text)


def run(rows: DataFrame, folder: Path, mode: str = "append", table: str = "demo.db.t", **options: str) -> None:
    """Run all batches that are there, to the end."""
    writer = rows.writeStream.format("icefloe").outputMode(mode).options(**options)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    finish(writer.trigger(availableNow=True).toTable(table))


def finish(query: Any) -> None:
    assert query.awaitTermination(SECONDS)
    if query.exception() is not None:
        raise query.exception()


def forget_last_batch(folder: Path) -> None:
    """Remove the last entry of the commit log: Spark then runs the batch again."""
    commits = folder / "checkpoint" / "commits"
    last = max(int(name) for name in os.listdir(commits) if name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def contents(table: icefloe.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist())


@pytest.fixture
def table(demo: icefloe.Catalog) -> icefloe.Table:
    return demo.create_table("db.t", schema=SCHEMA)


def test_a_batch_is_appended_once(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    add_file(tmp_path, 0, '{"id": 1, "note": "a"}')
    run(source(spark, tmp_path), tmp_path)
    add_file(tmp_path, 1, '{"id": 2, "note": "b"}')
    run(source(spark, tmp_path), tmp_path)
    forget_last_batch(tmp_path)
    run(source(spark, tmp_path), tmp_path)
    assert contents(table) == [(1, "a"), (2, "b")]
    summaries = [snapshot.summary for snapshot in table.metadata.snapshots]
    assert [summary["spark.sql.streaming.epochId"] for summary in summaries] == ["0", "1"]
    assert len({summary["spark.sql.streaming.queryId"] for summary in summaries}) == 1


@pytest.mark.thorough
def test_update_mode_replaces_rows_by_keys(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    counts = source(spark, tmp_path).groupBy("note").agg(F.count("*").alias("id")).select("id", "note")
    add_file(tmp_path, 0, '{"id": 1, "note": "a"}')
    with pytest.raises(PySparkException, match="name the key columns in the option upsert-keys"):
        run(counts, tmp_path, "update")
    run(counts, tmp_path, "update", **{"upsert-keys": "note"})
    add_file(tmp_path, 1, '{"id": 2, "note": "b"}\n{"id": 3, "note": "a"}')
    run(counts, tmp_path, "update", **{"upsert-keys": "note"})
    forget_last_batch(tmp_path)
    run(counts, tmp_path, "update", **{"upsert-keys": "note"})
    assert contents(table) == [(1, "b"), (2, "a")]
    assert len(table.metadata.snapshots) == 2


@pytest.mark.thorough
def test_complete_mode_replaces_all_rows(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    table.append(pa.table({"id": [99], "note": ["old"]}))
    counts = source(spark, tmp_path).groupBy("note").agg(F.count("*").alias("id")).select("id", "note")
    for number in range(2):
        add_file(tmp_path, number, '{"id": 1, "note": "a"}')
        run(counts, tmp_path, "complete")
    assert contents(table) == [(2, "a")]


@pytest.mark.thorough
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_partitioned_tables_of_every_version(
    spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path, version: int
) -> None:
    made = demo.create_table("db.parts", schema=SCHEMA, partition_by=["note", "bucket(2, id)"], format_version=version)
    add_file(tmp_path, 0, '{"id": 1, "note": "a"}\n{"id": 2, "note": "b"}')
    run(source(spark, tmp_path), tmp_path, table="demo.db.parts")
    assert contents(made) == [(1, "a"), (2, "b")]


@pytest.mark.thorough
def test_a_stream_starts_by_name_creates_its_table_and_writes_to_branches(
    spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path
) -> None:
    add_file(tmp_path, 0, '{"id": 1, "note": "a"}')
    run(source(spark, tmp_path), tmp_path, table="demo.db.made")
    made = demo.load_table("db.made")
    assert contents(made) == [(1, "a")]
    made.branch("audit")
    writer = source(spark, tmp_path).writeStream.format("icefloe").option("branch", "audit")
    writer = writer.option("checkpointLocation", str(tmp_path / "second"))
    finish(writer.trigger(availableNow=True).start("demo.db.made"))
    assert contents(made) == [(1, "a")]
    assert made.refresh().at(branch="audit").scan().count() == 2


@pytest.mark.thorough
def test_foreach_batch_commits_once_by_query_and_batch(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    for number in range(2):
        add_file(tmp_path, number, f'{{"id": {number}, "note": "a"}}')

    def write(rows: DataFrame, batch: int) -> None:
        table.append(rows, query="notes", batch=batch)
        table.upsert(rows.withColumn("id", F.col("id") + 100), on=["id"], query="keyed notes", batch=batch)

    for _ in range(2):
        writer = source(spark, tmp_path).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        finish(writer.trigger(availableNow=True).start())
        forget_last_batch(tmp_path)
    assert contents(table) == [(0, "a"), (1, "a"), (100, "a"), (101, "a")]


@pytest.mark.thorough
def test_stopping_a_query_in_the_middle_of_a_batch_is_no_error(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    add_file(tmp_path, 0, '{"id": 1, "note": "a"}')
    slow = source(spark, tmp_path).where("java_method('java.lang.Thread', 'sleep', id * 60000) is null or id = 1")
    writer = slow.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.toTable("demo.db.t")
    deadline = time.monotonic() + SECONDS
    while len(spark.sparkContext.statusTracker().getActiveJobsIds()) == 0 and time.monotonic() < deadline:
        assert query.isActive
        time.sleep(0.05)
    query.stop()
    assert query.exception() is None
    assert contents(table) == []
    run(source(spark, tmp_path), tmp_path)
    assert contents(table) == [(1, "a")]
