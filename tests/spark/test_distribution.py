"""Which tasks write which rows, and how large the files become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.write import write as write_module
from icefloe.engines.spark.write.distribution import distributed, distribution_of, rows_per_file
from icefloe.engines.spark.write.write import write
from icefloe.io.local import LocalFileIO
from icefloe.model.metadata.snapshots import Snapshot, Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import sort_order
from spark.fakes import metadata_of
from support.people import COPY, new_table

pytestmark = pytest.mark.spark

IO = LocalFileIO()
KIB = 1024
PLAIN = parse_ddl("id bigint, part string, note string")


@contextmanager
def shuffled_into(spark: SparkSession, parts: int) -> Iterator[SparkSession]:
    former = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(parts))
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", former)


@pytest.fixture
def many_partitions(spark: SparkSession) -> Iterator[SparkSession]:
    with shuffled_into(spark, 16):
        yield spark


def table(location: object, *partition_by: str, sort_by: str = "", mode: str = "", target: int = 0) -> TableMetadata:
    properties = {"write.distribution-mode": mode} if mode != "" else {}
    if target > 0:
        properties["write.target-file-size-bytes"] = str(target)
    metadata = metadata_of(location, PLAIN, *partition_by, properties=properties)
    if sort_by == "":
        return metadata
    order = sort_order([sort_by], PLAIN)
    return replace(metadata, sort_orders=(order,), default_sort_order_id=order.order_id)


def skewed(spark: SparkSession, rows: int, tasks: int) -> DataFrame:
    """Nine of ten rows are in one partition; the text of a row does not compress well."""
    sql = "id", "IF(id % 10 = 0, string(id % 70), 'large') AS part", "concat(sha(string(id)), sha(string(-id))) AS note"
    return spark.range(0, rows, 1, tasks).selectExpr(*sql)


def rows_of(entries: pa.Table) -> list[int]:
    return sorted(
        id_ for name in entries["location"].to_pylist() for id_ in pq.ParquetFile(name).read()["id"].to_pylist()
    )


def last_plan(spark: SparkSession) -> str:
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    return str(executions.apply(executions.size() - 1).physicalPlanDescription())


@pytest.mark.parametrize(("partition_by", "sort_by", "asked", "expected"), [
    ((), "", "", None),
    ((), "", "none", "none"),
    ((), "", "hash", None),
    ((), "", "range", None),
    ((), "id", "", "range"),
    ((), "id", "hash", "none"),
    (("part",), "", "", "hash"),
    (("part",), "", "NONE", "none"),
    (("part",), "", "range", "range"),
    (("part",), "id", "", "range"),
    (("part",), "id", "hash", "hash"),
    (("void(part)",), "", "", None),
])  # fmt: skip
def test_the_distribution_is_that_of_apache_iceberg(
    partition_by: tuple[str, ...], sort_by: str, asked: str, expected: str | None
) -> None:
    metadata = table("/t", *partition_by, sort_by=sort_by, mode=asked)
    assert distribution_of(metadata, metadata.sort_order) == expected


@pytest.mark.parametrize(("partition_by", "asked", "expected"), [
    ((), "", None),
    ((), "range", "range"),
    (("part",), "", "hash"),
    (("part",), "none", "none"),
    (("part",), "range", "range"),
])  # fmt: skip
def test_rewrites_of_sorted_tables_are_not_distributed_by_range_unless_asked(
    partition_by: tuple[str, ...], asked: str, expected: str | None
) -> None:
    metadata = table("/t", *partition_by, sort_by="id", mode=asked)
    assert distribution_of(metadata, metadata.sort_order, is_rewrite=True) == expected


def test_changes_of_a_sorted_table_are_written_without_a_range_shuffle(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []

    def recorded(*args: Any) -> DataFrame:
        rows = distributed(*args)
        plans.append(str(rows._jdf.queryExecution().toString()))
        return rows

    monkeypatch.setattr(write_module, "distributed", recorded)
    sorted_table = new_table(tmp_path, 3, COPY, schema="id bigint, part string", partition_by=("part",))
    sorted_table.set_sort_order("id")
    sorted_table.append(spark.range(20).selectExpr("id", "string(id % 2) AS part"))
    assert "rangepartitioning" in plans.pop()
    sorted_table.delete("id % 7 = 1", spark=spark)
    sorted_table.update({"id": "-id"}, where="id % 7 = 2", spark=spark)
    source = spark.sql("SELECT 3L AS id, '1' AS part UNION ALL SELECT 100L, '0'")
    merge = sorted_table.merge(source, on=["id"]).when_matched_update({"id": "s.id + 50"})
    merge.when_not_matched_insert_all().execute()
    assert len(plans) >= 3
    assert not any("rangepartitioning" in plan for plan in plans)
    for location in sorted_table.scan().plan().tasks["location"].to_pylist():
        ids = pq.ParquetFile(location).read()["id"].to_pylist()
        assert ids == sorted(ids)
    expected = sorted([id_ for id_ in range(20) if id_ % 7 not in (1, 2) and id_ != 3] + [-2, -9, -16, 53, 100])
    assert sorted(sorted_table.scan().to_arrow()["id"].to_pylist()) == expected


def test_a_skewed_partition_becomes_files_near_the_target(many_partitions: SparkSession, tmp_path: Path) -> None:
    target = 256 * KIB
    entries = write(skewed(many_partitions, 40_000, 16), metadata=table(tmp_path, "part", target=target), io=IO)
    sizes: dict[str, list[int]] = {}
    for row in entries.select(["lower_bound:p1000", "file_size_in_bytes"]).to_pylist():
        sizes.setdefault(row["lower_bound:p1000"], []).append(row["file_size_in_bytes"])
    assert len(sizes) == 8
    assert all(len(files) == 1 for part, files in sizes.items() if part != "large")
    large = sorted(sizes["large"])
    assert len(large) > 3
    assert large[-1] < 2 * target
    assert large[len(large) // 2] > target / 3
    assert rows_of(entries) == list(range(40_000))


def test_partitions_whose_hashes_are_alike_are_written_by_several_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """In a session with two shuffle partitions, one task wrote nearly all rows: 1.56 times Apache Iceberg's time."""
    even = spark.range(100).selectExpr("string(id) AS part").where("pmod(hash(part), 2) = 0").limit(8)
    parts = ", ".join(f"'{part}'" for (part,) in even.collect())
    rows = spark.range(0, 80_000).selectExpr(
        "id", f"array({parts})[id % 8] AS part", "concat(sha(string(id)), sha(string(-id))) AS note"
    )
    with shuffled_into(spark, 2):
        entries = write(rows, metadata=table(tmp_path, "part"), io=IO)
        assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    by_task: Counter[str] = Counter()
    for name, count in zip(entries["location"].to_pylist(), entries["record_count"].to_pylist(), strict=True):
        by_task[Path(name).name.split("-")[1]] += count
    assert len(entries) == 8
    assert max(by_task.values()) <= 60_000


def test_partitions_are_written_without_sorting_the_rows(many_partitions: SparkSession, tmp_path: Path) -> None:
    write(skewed(many_partitions, 1000, 4), metadata=table(tmp_path, "part"), io=IO)
    plan = last_plan(many_partitions)
    assert "Exchange" in plan
    assert "Sort" not in plan


def test_many_small_tasks_do_not_make_many_small_files(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 2000, 1, 1000).selectExpr("id", "'p' AS part", "'n' AS note")
    entries = write(frame, metadata=table(tmp_path / "plain"), io=IO)
    assert entries.num_rows <= 8
    assert rows_of(entries) == list(range(2000))
    assert "Exchange" not in last_plan(spark)


def test_the_tasks_that_the_user_chose_are_kept_without_a_distribution(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 100).selectExpr("id", "'p' AS part", "'n' AS note")
    assert write(frame.repartition(5), metadata=table(tmp_path / "a"), io=IO).num_rows == 5
    many = spark.range(0, 100, 1, 9).selectExpr("id", "'p' AS part", "'n' AS note")
    assert write(many, metadata=table(tmp_path / "b", mode="none"), io=IO).num_rows == 9


def test_more_partitions_than_open_files_are_written_as_well(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_module, "concurrent_writers", lambda *_: 2)
    frame = spark.range(0, 600, 1, 2).selectExpr("id", "string(id % 20) AS part", "'n' AS note")
    entries = write(frame, metadata=table(tmp_path, "part", mode="none"), io=IO)
    assert rows_of(entries) == list(range(600))
    files = Counter(entries["lower_bound:p1000"].to_pylist())
    assert sorted(files) == sorted(str(n) for n in range(20))
    assert max(files.values()) <= 4  # two of each task: one before the rows were sorted, and one after
    for location, part in zip(entries["location"].to_pylist(), entries["lower_bound:p1000"].to_pylist(), strict=True):
        assert set(pq.ParquetFile(location).read()["part"].to_pylist()) == {part}


def test_files_of_a_range_do_not_overlap(many_partitions: SparkSession, tmp_path: Path) -> None:
    frame = skewed(many_partitions, 20_000, 4).orderBy("note")
    for partition_by, target in (((), 64 * KIB), (("part",), 64 * KIB)):
        metadata = table(tmp_path / str(len(partition_by)), *partition_by, sort_by="id desc", target=target)
        entries = write(frame, metadata=metadata, io=IO)
        assert set(entries["sort_order_id"].to_pylist()) == {metadata.sort_order.order_id}
        part = entries["lower_bound:p1000"].to_pylist() if len(partition_by) > 0 else [None] * entries.num_rows
        ranges = sorted(
            zip(part, entries["lower_bound:1"].to_pylist(), entries["upper_bound:1"].to_pylist(), strict=True)
        )
        assert len(ranges) > 4
        for (part_before, _, last), (part_after, first, _) in pairwise(ranges):
            assert part_before != part_after or last < first
        for name in entries["location"].to_pylist():
            ids = pq.ParquetFile(name).read()["id"].to_pylist()
            assert ids == sorted(ids, reverse=True)
        assert rows_of(entries) == list(range(20_000))


def test_a_large_task_is_split_by_the_size_of_rows_in_the_table(spark: SparkSession, tmp_path: Path) -> None:
    target = 256 * KIB
    summary = {"operation": "append", "total-records": "10000", "total-files-size": "500000"}
    known = Snapshot(snapshot_id=1, timestamp_ms=0, root="/m", summary=summary, sequence_number=1)
    metadata = table(tmp_path, target=target)
    grown = replace(metadata, snapshots=Snapshots((known,)), current_snapshot_id=1)
    assert rows_per_file(grown) == target * 1.5 // 50
    entries = write(skewed(spark, 30_000, 1), metadata=metadata, io=IO)
    assert entries.num_rows > 2
    assert max(entries["file_size_in_bytes"].to_pylist()) < 4 * target


def test_footers_of_many_files_are_read_by_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.range(0, 200, 1, 3).selectExpr("id", "string(id % 7) AS part", "IF(id % 3 = 0, NULL, 'n') AS note")
    metadata = table(tmp_path / "driver", "part", sort_by="id")
    by_driver = write(frame, metadata=metadata, io=IO)
    monkeypatch.setattr(write_module, "MANY_FILES", 2)
    monkeypatch.setattr(write_module, "FILES_PER_TASK", 3)
    by_tasks = write(frame, metadata=replace(metadata, location=str(tmp_path / "tasks")), io=IO)
    assert by_tasks.num_rows == by_driver.num_rows == 7
    assert by_tasks.schema == by_driver.schema
    chosen = [name for name in by_driver.column_names if name != "location"]
    keys = [("lower_bound:p1000", "ascending")]
    assert by_tasks.select(chosen).sort_by(keys).to_pylist() == by_driver.select(chosen).sort_by(keys).to_pylist()
    assert rows_of(by_tasks) == list(range(200))
