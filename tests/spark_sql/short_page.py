"""The essentials of Spark SQL on one Spark: statements, DataFrames, a stream, conflicts.

A program of its own, because a process has one Spark: ``python short_page.py MASTER``, such as ``local[2]`` or
``local-cluster[2,1,1024]``. It runs short_page.sql and the other parts on tables of the format versions 2 and 4, and
prints a line for each part. It stops at the first failure, with a status that is not zero. The last line is a report
as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from icefloe.spark_sql import row_changes
from support.spark_plans import file_scans, plan_nodes
from support.sql_pages import check_page

PAGE = Path(__file__).with_suffix(".sql")
FORMAT_VERSIONS = (2, 4)
SECONDS = 300
TABLE, COPY = "demo.db.t", "demo.db.copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run did."""

    spark: str
    executors: int  # none if tasks run in the driver
    statements: int
    seconds: float


def session(master: str, folder: Path) -> SparkSession:
    """A small Spark."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("icefloe short page")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def open_catalog(folder: Path) -> icefloe.Catalog:
    return icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")


def page(spark: SparkSession, version: int, folder: Path) -> int:
    """Run the statements of the page; returns how many there are."""
    spark.conf.set("page.version", str(version))
    return check_page(spark, PAGE)


def dataframes(spark: SparkSession, version: int, folder: Path) -> None:
    """The verbs of DataFrames that write, and reads of an earlier snapshot."""
    rows = spark.range(4).withColumn("note", F.lit("a"))
    new = rows.writeTo(TABLE).using("icefloe").tableProperty("format-version", str(version))
    new.partitionedBy(F.partitioning.bucket(2, "id")).create()
    rows.where("id = 0").writeTo(TABLE).append()
    expect([0, 0, 1, 2, 3], ids(spark.table(TABLE)))
    first = spark.table(f"{TABLE}.snapshots").orderBy("committed_at").first().snapshot_id
    rows.where("id = 2").writeTo(TABLE).overwrite(F.col("id") < 1)
    expect([1, 2, 2, 3], ids(spark.table(TABLE)))
    rows.where("id = 2").writeTo(TABLE).overwritePartitions()
    rows.where("id > 2").write.mode("append").saveAsTable(TABLE)
    rows.where("id = 0").write.insertInto(TABLE)
    expect([3, 3], ids(spark.table(TABLE).where("id > 2")))
    source = spark.createDataFrame([(3, "b"), (9, "b")], "id bigint, note string").alias("s")
    merge = source.mergeInto(TABLE, F.expr("t.id = s.id")).whenMatched().updateAll().whenNotMatched().insertAll()
    merge.merge()
    expect([3, 3, 9], ids(spark.table(TABLE).where("note = 'b'")))
    expect([0, 1, 2, 3], ids(spark.read.option("versionAsOf", first).table(TABLE)))
    expect([0, 1, 2, 3], ids(spark.sql(f"SELECT * FROM {TABLE} VERSION AS OF {first}")))
    expect(["t"], [table.name for table in spark.catalog.listTables("demo.db")])


def stream(spark: SparkSession, version: int, folder: Path) -> None:
    """Copy the table of the DataFrames in two runs of a stream."""
    for added in (False, True):
        if added:
            spark.sql(f"INSERT INTO {TABLE} VALUES (10, 'c')")
        writer = spark.readStream.table(TABLE).writeStream.option("checkpointLocation", f"{folder}/points-{version}")
        query = writer.trigger(availableNow=True).toTable(COPY)
        assert query.awaitTermination(SECONDS), "the stream did not end"
        expect(None, query.exception())
        expect(ids(spark.table(TABLE)), ids(spark.table(COPY)))
        expect(added, 10 in ids(spark.table(COPY)))
    spark.sql(f"DROP TABLE {TABLE}")
    spark.sql(f"DROP TABLE {COPY}")


def conflicts(spark: SparkSession, version: int, folder: Path) -> None:
    """Merges fail if another commit adds a row that they looked for, also those that only insert rows."""
    spark.sql(f"CREATE TABLE {TABLE} (id bigint, n int) TBLPROPERTIES ('format-version' = '{version}')")
    spark.sql(f"INSERT INTO {TABLE} VALUES (1, 10)")
    merge = f"MERGE INTO {TABLE} t USING (SELECT 2L AS id, 20 AS n) s ON t.id = s.id"
    update, insert = "WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"
    table = open_catalog(folder).load_table("db.t")
    commit = row_changes.commit_found_rows

    def commit_second(*arguments: Any, **options: Any) -> Any:
        table.append(pa.table({"id": [2], "n": pa.array([0], pa.int32())}))
        return commit(*arguments, **options)

    for clauses in (f"{update} {insert}", insert):
        spark.sql(f"DELETE FROM {TABLE} WHERE id = 2")
        error = None
        with patch.object(row_changes, "commit_found_rows", commit_second):
            try:
                spark.sql(f"{merge} {clauses}")
            except PySparkException as raised:
                error = raised
        assert "ConflictError" in str(error), f"no conflict of {clauses}: {error}"
        expect([1, 2], ids(spark.table(TABLE)))
    spark.sql(f"DROP TABLE {TABLE}")


def planning(spark: SparkSession, version: int, folder: Path) -> None:
    """Joins and limits read the files that they need, some joins have no shuffle, and metadata answers a count."""
    spark.sql(f"CREATE TABLE {TABLE} (id bigint, n int) TBLPROPERTIES ('format-version' = '{version}')")
    for first in range(0, 40, 10):
        spark.range(first, first + 10).selectExpr("id", "1 AS n").writeTo(TABLE).append()
    spark.sql(f"CREATE TABLE {COPY} AS SELECT id, concat('name ', id) AS name FROM {TABLE} WHERE id % 10 = 5")
    joined = spark.sql(f"SELECT t.id FROM {TABLE} t JOIN {COPY} c ON t.id = c.id WHERE c.name = 'name 25' ORDER BY t.n")
    expect([25], ids(joined))
    expect([1], [files_read(scan) for scan in file_scans(joined) if scan.metrics().contains("staticFilesNum")])
    newest = spark.sql(f"SELECT id FROM {TABLE} ORDER BY id DESC LIMIT 2")
    expect([38, 39], ids(newest))
    expect([1], list(map(files_read, file_scans(newest))))
    counted = spark.sql(f"SELECT count(*) AS id, max(id) FROM {TABLE} WHERE id < 30")
    expect([(30, 29)], counted.collect())
    expect([], file_scans(counted))
    for table in (TABLE, COPY):
        spark.sql(f"DROP TABLE {table}")
        spark.sql(
            f"CREATE TABLE {table} PARTITIONED BY (bucket(3, id)) TBLPROPERTIES ('format-version' = '{version}')"
            " AS SELECT id FROM range(9)"
        )
    buckets = spark.sql(f"SELECT /*+ MERGE(c) */ t.id FROM {TABLE} t JOIN {COPY} c ON t.id = c.id ORDER BY t.id")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    expect(list(range(9)), ids(buckets))
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    expect(1, len([node for node in plan_nodes(buckets) if node.nodeName() == "BucketedJoin"]))
    spark.sql(f"DROP TABLE {TABLE}")
    spark.sql(f"DROP TABLE {COPY}")


def files_read(scan: Any) -> int:
    return int(scan.metrics().apply("numFiles").value())


def ids(rows: Any) -> list[int]:
    return sorted(row.id for row in rows.collect())


def expect(right: object, found: object) -> None:
    assert found == right, f"{found} instead of {right}"


PARTS: tuple[Callable[[SparkSession, int, Path], int | None], ...] = (page, dataframes, stream, conflicts, planning)


def run_parts(spark: SparkSession, folder: Path) -> int:
    """Run all parts, and return how many statements they had."""
    statements = 0
    for version in FORMAT_VERSIONS:
        for part in PARTS:
            start = time.monotonic()
            number = part(spark, version, folder)
            statements += number or 0
            passed = "passed" if number is None else f"{number} statements passed"
            print(f"format version {version}: {part.__name__}: {passed} in {seconds_since(start)} s", flush=True)
    return statements


def seconds_since(start: float) -> float:
    return round(time.monotonic() - start, 1)


def main(master: str) -> None:
    start = time.monotonic()
    with TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(master, folder)
        try:
            version = spark.version
            print(f"Spark {version} on {master}", flush=True)
            icefloe.attach(spark, "demo", open_catalog(folder))
            statements = run_parts(spark, folder)
            processes = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()  # the driver is one of them
        finally:
            spark.stop()
    report = Report(spark=version, executors=processes - 1, statements=statements, seconds=seconds_since(start))
    print(json.dumps(asdict(report)))


if __name__ == "__main__":
    main(*sys.argv[1:])
