"""Streams that read tables: ``spark.readStream.format("icefloe")`` and ``spark.readStream.table``."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe

TABLE = "demo.db.t"
SECONDS = 60
FILES, ROWS = "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch"
_NUMBERS = itertools.count()


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [f"n{id_}" for id_ in ids]})


@pytest.fixture
def table(demo: icefloe.Catalog) -> icefloe.Table:
    return demo.create_table("db.t", schema="id bigint, note string", format_version=3)


def read(spark: SparkSession, **options: str) -> DataFrame:
    return spark.readStream.format("icefloe").options(**options).load(TABLE)


def run(frame: DataFrame, folder: Path, mode: str = "append") -> tuple[list[tuple[Any, ...]], list[int]]:
    """The rows of all batches that the checkpoint in the folder has not seen, and how many rows each batch read."""
    found: list[tuple[Any, ...]] = []

    def collect(batch: DataFrame, number: int) -> None:
        found.extend(tuple(row) for row in batch.collect())

    writer = frame.writeStream.foreachBatch(collect).outputMode(mode).option("checkpointLocation", str(folder))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS)
    if query.exception() is not None:
        raise query.exception()
    counts = [progress.numInputRows for progress in query.recentProgress]
    return sorted(found), [count for count in counts if count > 0]


def ids(frame: DataFrame, folder: Path) -> list[int]:
    return [row[0] for row in run(frame, folder)[0]]


def test_a_stream_reads_the_table_and_then_what_is_appended(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    """The first batches have the live rows of the table, at most two files in each; filters and columns are pushed."""
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    table.append(rows(4))
    table.append(rows(5))
    frame = read(spark, **{FILES: "2"}).where("id <> 5").select("id")
    assert ids(frame, tmp_path) == [1, 3, 4]
    table.append(rows(6))
    assert run(frame, tmp_path) == ([(6,)], [1])


@pytest.mark.thorough
def test_limits_divide_batches_and_progress_counts_rows(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    for n in range(0, 8, 2):
        table.append(rows(n, n + 1))
    everything = [(n, f"n{n}") for n in range(8)]
    assert run(read(spark, **{FILES: "1"}), tmp_path / "a") == (everything, [2, 2, 2, 2])
    assert run(read(spark, **{ROWS: "5"}), tmp_path / "b") == (everything, [4, 4])
    assert run(read(spark, **{ROWS: "1"}), tmp_path / "c") == (everything, [2, 2, 2, 2])
    assert run(spark.readStream.table(TABLE), tmp_path / "d") == (everything, [8])
    for options, message in (({FILES: "0"}, "at least one"), ({ROWS: "many"}, "is not a number")):
        with pytest.raises(PySparkException, match=message):
            run(read(spark, **options), tmp_path / "e")


@pytest.mark.thorough
def test_a_stream_starts_where_it_is_told(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    first = table.append(rows(1)).snapshot_id
    second = table.append(rows(2)).snapshot_id
    since = next(s.timestamp_ms for s in table.metadata.snapshots if s.snapshot_id == second)
    latest = read(spark, **{"stream-from": "latest"})
    assert ids(latest, tmp_path / "latest") == []
    assert ids(read(spark, **{"start-snapshot-id": str(first)}), tmp_path / "snapshot") == [2]
    assert ids(read(spark, **{"stream-from-timestamp": str(since)}), tmp_path / "time") in ([2], [1, 2])
    assert ids(read(spark, **{"stream-from-timestamp": "1"}), tmp_path / "early") == [1, 2]
    assert ids(read(spark, **{"stream-from": "all"}), tmp_path / "all") == [1, 2]
    table.append(rows(3))
    assert ids(latest, tmp_path / "latest") == [3]
    with pytest.raises(PySparkException, match="one start"):
        run(read(spark, **{"stream-from": "all", "start-snapshot-id": str(first)}), tmp_path / "both")
    with pytest.raises(PySparkException, match="'all' or 'latest'"):
        run(read(spark, **{"stream-from": "now"}), tmp_path / "other")


@pytest.mark.thorough
def test_an_empty_table_is_read_when_it_has_rows(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    frame = read(spark)
    assert ids(frame, tmp_path) == []
    table.append(rows(1))
    assert ids(frame, tmp_path) == [1]
    assert ids(frame, tmp_path) == []


@pytest.mark.thorough
def test_snapshots_that_are_no_appends_are_refused_or_skipped(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    first = table.append(rows(1, 2, 3)).snapshot_id
    table.update({"note": "'changed'"}, where="id = 2")
    table.append(rows(4))
    table.delete("id = 4")
    table.append(rows(5))
    table.rewrite_manifests().execute()
    assert [str(snapshot.operation) for snapshot in table.metadata.snapshots][1:] == [
        "overwrite",
        "append",
        "delete",
        "append",
        "replace",
    ]
    start = {"start-snapshot-id": str(first)}
    skip_overwrites = {"streaming-skip-overwrite-snapshots": "true"}
    skip_deletes = {"streaming-skip-delete-snapshots": "true"}
    with pytest.raises(PySparkException, match=r"operation 'overwrite'.*streaming-skip-overwrite-snapshots=true"):
        run(read(spark, **start), tmp_path / "a")
    with pytest.raises(PySparkException, match=r"operation 'delete'.*streaming-skip-delete-snapshots=true"):
        run(read(spark, **start, **skip_overwrites), tmp_path / "b")
    assert ids(read(spark, **start, **skip_overwrites, **skip_deletes), tmp_path / "c") == [4, 5]
    with pytest.raises(PySparkException, match=r"operation 'overwrite'"):
        run(read(spark, **start), tmp_path / "d")


@pytest.mark.thorough
def test_schema_changes_between_batches(spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path) -> None:
    table = demo.create_table("db.t", schema="id int, note string", format_version=3)
    table.append(pa.table({"id": pa.array([1], pa.int32()), "note": ["a"]}))
    frame = read(spark)
    assert run(frame, tmp_path)[0] == [(1, "a")]
    with table.update_schema() as schema:
        schema.add_column("more", "string")
        schema.rename_column("note", "text")
    table.append(pa.table({"id": pa.array([2], pa.int32()), "text": ["b"], "more": ["m"]}))
    assert run(frame, tmp_path)[0] == [(2, "b")]  # with the columns that it was made with
    renewed = read(spark)
    with table.update_schema() as schema:
        schema.update_column("id", type="bigint")
    table.append(pa.table({"id": [3], "text": ["c"], "more": ["n"]}))
    with pytest.raises(PySparkException, match=r"column 'id' is long now.*start it again, with the same checkpoint"):
        run(renewed, tmp_path)
    assert run(read(spark), tmp_path)[0] == [(3, "c", "n")]


@pytest.mark.thorough
def test_a_stream_aggregates_joins_and_reads_branches(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    for n in range(3):
        table.append(rows(n, n + 10))
    counted = read(spark, **{FILES: "1"}).groupBy((F.col("id") >= 10).alias("high")).count()
    last = run(counted, tmp_path / "a", "complete")[0]
    assert {(False, 3), (True, 3)} <= set(last)
    joined = read(spark).join(spark.table(TABLE).where("id < 2").select("id"), "id")
    assert ids(joined, tmp_path / "b") == [0, 1]
    table.append(rows(99), branch="audit", create_branch=True)
    assert 99 in ids(read(spark, branch="audit"), tmp_path / "c")
    with pytest.raises(PySparkException, match="nowhere"):
        run(read(spark, branch="nowhere"), tmp_path / "d")


@pytest.mark.thorough
def test_a_rollback_behind_the_stream_ends_it_by_name(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    first = table.append(rows(1)).snapshot_id
    second = table.append(rows(2)).snapshot_id
    frame = read(spark)
    assert ids(frame, tmp_path) == [1, 2]
    table.rollback(snapshot=first)
    with pytest.raises(PySparkException, match=f"does not contain snapshot {second}"):
        run(frame, tmp_path)


@pytest.mark.thorough
def test_a_stream_reads_a_table_with_equality_deletes(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    table.append(rows(1, 2, 3))
    table.upsert(pa.table({"id": [2], "note": ["new"]}), on=["id"], deletes="equality")
    assert run(read(spark), tmp_path)[0] == [(1, "n1"), (2, "new"), (3, "n3")]


@pytest.mark.thorough
def test_aggregates_keep_their_state_in_a_batch_without_files(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    """A snapshot that only rewrote files makes a batch without rows; complete mode still returns all groups."""
    table.append(rows(1, 2))
    counted = read(spark).groupBy().count()
    assert run(counted, tmp_path, "complete")[0] == [(2,)]
    table.compact(options={"rewrite-all": "true"}).execute()
    assert run(counted, tmp_path, "complete")[0] == [(2,)]
    table.append(rows(3))
    assert run(counted, tmp_path, "complete")[0] == [(3,)]


def test_a_stream_from_a_time_begins_at_that_time_whatever_has_expired(
    spark: SparkSession, table: icefloe.Table, tmp_path: Path
) -> None:
    """A time to come delivered the rows until then; a time before the oldest snapshot ended the stream."""
    table.append(rows(1))
    future = int(time.time() * 1000) + 3000
    waiting = read(spark, **{"stream-from-timestamp": str(future)})
    assert ids(waiting, tmp_path / "future") == []
    table.append(rows(2))
    assert ids(waiting, tmp_path / "future") == []
    while time.time() * 1000 < future:
        time.sleep(0.05)
    table.append(rows(3))
    assert ids(waiting, tmp_path / "future") == [3]
    table.expire(snapshots=[table.snapshots[0].snapshot_id]).execute()
    early = read(spark, **{"stream-from-timestamp": "1"})
    assert ids(early, tmp_path / "early") == [1, 2, 3]
    table.append(rows(4))
    assert ids(early, tmp_path / "early") == [4]
