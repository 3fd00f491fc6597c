"""States of the past by snapshot id and time, in SQL and by reader options; branches that are written by name."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import icefloe


def ids(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.collect())


def test_a_state_is_found_by_snapshot_tag_branch_and_time(spark: SparkSession, demo: icefloe.Catalog) -> None:
    table = demo.create_table("db.t", schema="id bigint")
    first = table.append(pa.table({"id": [1]})).snapshot_id
    table.tag("v1")
    at_ms = table.snapshots[0].timestamp_ms
    with table.update_schema() as edit:
        edit.add_column("note", "string")
    table.append(pa.table({"id": [2], "note": ["b"]}))
    assert spark.sql(f"SELECT * FROM demo.db.t VERSION AS OF {first}").columns == ["id"]
    time = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone().isoformat()
    for text in (
        f"VERSION AS OF {first}",
        "VERSION AS OF 'v1'",
        f"TIMESTAMP AS OF '{time}'",
        f".snapshot_id_{first}",
        ".tag_v1",
        f".at_timestamp_{at_ms}",
    ):
        name = f"demo.db.t{text}" if text.startswith(".") else f"demo.db.t {text}"
        assert ids(spark.sql(f"SELECT id FROM {name}")) == [1], text
    for option, value in (("versionAsOf", first), ("snapshot-id", first), ("tag", "v1"), ("as-of-timestamp", at_ms)):
        assert ids(spark.read.option(option, value).table("demo.db.t")) == [1], option
    assert ids(spark.table("demo.db.t")) == [1, 2]


def test_a_branch_is_written_and_read_by_its_name(spark: SparkSession, demo: icefloe.Catalog) -> None:
    table = demo.create_table("db.t", schema="id bigint")
    table.append(pa.table({"id": [1]}))
    table.branch("audit")
    table.tag("v1")
    spark.sql("INSERT INTO demo.db.t.branch_audit VALUES (2)")
    spark.range(3, 4).writeTo("demo.db.t").option("branch", "audit").append()
    assert ids(spark.table("demo.db.t.branch_audit")) == [1, 2, 3]
    assert ids(spark.table("demo.db.t")) == [1]
    with pytest.raises(AnalysisException, match="TABLE_OPERATION"):
        spark.sql("INSERT INTO demo.db.t.tag_v1 VALUES (2)")


def test_a_format_reads_and_writes_by_name_and_reads_by_location(spark: SparkSession, demo: icefloe.Catalog) -> None:
    table = demo.create_table("db.t", schema="id bigint")
    spark.range(2).write.format("icefloe").mode("append").save("demo.db.t")
    assert ids(spark.read.format("icefloe").load("demo.db.t")) == [0, 1]
    assert ids(spark.read.format("icefloe").load("db.t")) == [0, 1]
    location = table.refresh().metadata_location
    assert ids(spark.read.format("icefloe").load(location)) == [0, 1]
    spark.range(5, 6).write.format("icefloe").saveAsTable("demo.db.u")
    assert ids(spark.table("demo.db.u")) == [5]
