"""Tables in S3 on a Spark with hadoop-aws: its own Parquet reader reads them, with the properties of the catalog."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icefloe
from icefloe.engines.spark.storage import hadoop_storage
from icefloe.io.select import file_io
from icefloe.table.catalog import Catalog
from icefloe.table.held_table import pointer_of
from spark.s3_changes import Layout, changed_table, check_objects, check_rows, plan_of, rows
from support.jars import s3a_classpath
from support.people import COPY, MERGE
from support.servers.s3 import S3Server

pytestmark = pytest.mark.s3a

CLUSTER = Path(__file__).parents[1] / "spark" / "cluster_faults.py"
OPERATIONS = 12
LAYOUTS = [
    Layout(version=version, mode=mode, partition_by=partition_by)
    for version in (2, 3, 4)
    for mode in (COPY, MERGE)
    for partition_by in ((), ("city",), ("bucket(2, id)",))
]


def settings_of(spark: SparkSession) -> dict[str, str]:
    """All settings of a session and of its Hadoop configuration that are about file systems."""
    hadoop = spark._jsparkSession.sessionState().newHadoopConf()
    return dict(hadoop.getPropsWithPrefix("fs."))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_spark_writes_changes_and_reads_a_table(
    spark: SparkSession, lake: Catalog, s3: S3Server, layout: Layout
) -> None:
    before = settings_of(spark)
    table = changed_table(spark, lake, "db.t", layout)
    frame = check_rows(spark, table)
    assert "FileScan parquet" in plan_of(frame)
    assert "MapInArrow" not in plan_of(frame)
    assert "secret" not in plan_of(frame)
    assert settings_of(spark) == before
    check_objects(table, s3)


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_tasks_read_and_write_other_formats(spark: SparkSession, lake: Catalog, s3: S3Server, file_format: str) -> None:
    table = changed_table(spark, lake, "db.t", Layout(version=3, mode=MERGE, file_format=file_format))
    assert "MapInArrow" in plan_of(check_rows(spark, table))
    check_objects(table, s3)


def test_equality_deletes_are_joined(spark: SparkSession, lake: Catalog, s3: S3Server) -> None:
    table = lake.create_table("db.t", schema="id bigint, city string, amount int, tags array<string>", format_version=2)
    table.append(rows(spark, "range(6)"))
    table.upsert(rows(spark, "range(2)", "int(7)"), on=["id"], deletes="equality")
    frame = table.scan().to_spark(spark)
    assert sorted((row.id, row.amount) for row in frame.collect()) == [(0, 7), (1, 7), (2, 2), (3, 3), (4, 4), (5, 5)]
    assert "LeftAnti" in plan_of(frame)
    check_objects(table, s3)


def test_two_catalogs_reach_one_bucket_each_with_its_own_properties(
    spark: SparkSession, lake: Catalog, s3: S3Server, warehouse: str, tmp_path: Path
) -> None:
    """Hadoop keeps a file system open per bucket: the second catalog must not get that of the first."""
    table = lake.create_table("db.t", schema="id bigint, city string, amount int, tags array<string>")
    table.append(rows(spark, "range(3)"))
    assert table.scan().to_spark(spark).count() == 3
    unreachable = {**s3.properties, "s3.endpoint": "http://127.0.0.1:9"}
    first = hadoop_storage(spark, file_io(warehouse, s3.properties), warehouse)
    other = hadoop_storage(spark, file_io(warehouse, unreachable), warehouse)
    assert first.scheme is not None
    assert other.scheme is not None
    assert first.scheme != other.scheme
    assert other.settings["fs.s3a.endpoint"] == "http://127.0.0.1:9"
    again = icefloe.catalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", properties=s3.properties)
    assert hadoop_storage(spark, pointer_of(again.load_table("db.t")).load().store.io, warehouse) == first


def test_tasks_that_fail_once_leave_no_objects(
    spark: SparkSession, lake: Catalog, s3: S3Server, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", schema="id bigint, city string, amount int, tags array<string>")
    marker = str(tmp_path / "failed")

    def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        if not os.path.exists(marker):
            Path(marker).touch()
            raise RuntimeError("once")

    source = rows(spark, "range(0, 40, 1, 4)")
    table.append(source.mapInArrow(fails_once, source.schema))
    assert table.scan().to_spark(spark).count() == 40
    check_objects(table, s3)

    def always_fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise RuntimeError("always")

    with pytest.raises(Exception, match="always"):
        table.append(source.mapInArrow(always_fails, source.schema))
    check_objects(table, s3)
    assert table.scan().count() == 40


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("has_s3a", [True, False])
def test_a_cluster_whose_tasks_fail_hang_and_kill_executors_leaves_no_objects(
    s3: S3Server, warehouse: str, tmp_path: Path, has_s3a: bool
) -> None:
    more = {"PYSPARK_SUBMIT_ARGS": f"--jars {s3a_classpath()} pyspark-shell"} if has_s3a else {}
    command = [sys.executable, str(CLUSTER), str(tmp_path), str(OPERATIONS), "3", warehouse, json.dumps(s3.properties)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **more})
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1])["operations"] == OPERATIONS
