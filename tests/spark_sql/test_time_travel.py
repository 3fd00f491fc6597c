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


def test_options_of_readers_that_contradict_each_other_or_are_not_known_are_refused(
    spark: SparkSession, demo: icefloe.Catalog
) -> None:
    """What a reader did not know was ignored, and so were options beside a name that selects a state."""
    table = demo.create_table("db.t", schema="id bigint")
    first = str(table.append(pa.table({"id": [1]})).snapshot_id)
    table.branch("audit")
    table.tag("v1")
    for name, options, message in (
        ("t", {"branch": "audit", "tag": "v1"}, "give one of the options branch, tag"),
        ("t", {"branch": "audit", "as-of-timestamp": "1"}, "give one of the options branch, as-of-timestamp"),
        ("t", {"branch": "audit", "versionAsOf": first}, "option branch: the name of the table, VERSION AS OF"),
        ("t.branch_audit", {"snapshot-id": first}, "option snapshot-id: the name of the table"),
        ("t.tag_v1", {"start-snapshot-id": first}, "option start-snapshot-id: the name of the table"),
        ("t", {"split-sise": "1"}, "option 'split-sise' is not known for a read; there are: as-of-timestamp, branch"),
        ("t", {"start-timestamp": "1"}, "option 'start-timestamp' is not known for a read"),
        ("t", {"split-size": "0"}, "option split-size='0': give a number of bytes"),
        ("t.files", {"split-size": "1000"}, "is not known for a read of the metadata table files"),
    ):
        with pytest.raises(AnalysisException, match=message):
            spark.read.options(**options).table(f"demo.db.{name}").collect()


@pytest.mark.thorough
def test_the_split_size_is_the_most_that_a_task_reads(spark: SparkSession, demo: icefloe.Catalog) -> None:
    table = demo.create_table("db.t", schema="id bigint")
    table.append(spark.range(100_000))
    sizes = {"split-size": "20000", "file-open-cost": "20000"}
    split = spark.read.options(**sizes).table("demo.db.t")
    assert split.rdd.getNumPartitions() > spark.table("demo.db.t").rdd.getNumPartitions()
    assert split.count() == 100_000
