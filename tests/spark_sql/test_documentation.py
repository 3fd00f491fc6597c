"""The statements of Apache Iceberg's documentation of Spark: SQL in the pages of ``documentation``, DataFrames here.

``format("iceberg")`` is the name of Apache Iceberg's own jar. Here it is ``format("icefloe")``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from spark_sql.documented import DOCS, HEADING, PAGES, checked_kinds, described_kinds, documents, page_kinds
from support.selection import thorough
from support.sql_pages import check_page

TABLE = "demo.db.t"
SECONDS = 60


@pytest.fixture(autouse=True)
def settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove the settings that a page made, if it failed before it could."""
    yield
    if "spark" in request.fixturenames:
        spark = request.getfixturevalue("spark")
        for name in ("spark.wap.branch", "spark.sql.sources.partitionOverwriteMode"):
            spark.conf.unset(name)


def contents(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in rows.collect())


def ids(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.collect())


def numbered(spark: SparkSession, *numbers: int) -> DataFrame:
    return spark.createDataFrame([(number, f"n{number}") for number in numbers], "id bigint, data string")


@pytest.fixture
def table(spark: SparkSession, demo: icefloe.Catalog) -> icefloe.Table:
    """A table with three snapshots, one row in each."""
    t = demo.create_table("db.t", schema="id bigint, data string")
    for number in (1, 2, 3):
        t.append(pa.table({"id": [number], "data": [f"n{number}"]}))
    return t


@pytest.mark.parametrize("page", [*map(thorough, sorted(PAGES.glob("*.sql")))], ids=lambda page: page.stem)
def test_the_statements_of_a_page_have_their_results(spark: SparkSession, demo: icefloe.Catalog, page: Path) -> None:
    check_page(spark, page)


def test_the_documentation_lists_every_kind_with_its_outcome() -> None:
    assert described_kinds(DOCS.read_text(encoding="utf-8")) == checked_kinds()


def test_kinds_are_read_from_pages_and_from_the_table() -> None:
    text = "SELECT 0;\n-- [A]\nSELECT 1;\n-- [B b]\nSELECT 2;\n--! E: no\nSELECT 3;\n-- [C]\nSELECT 4;\n--! E: no"
    assert list(page_kinds(text)) == [("A", "runs"), ("B b", "otherwise"), ("C", "missing")]
    rows = (
        "| page | a | b |",
        "|---|---|---|",
        "| x | `A`, `A 2` | run |",
        "| | `B` | `CALL b` |",
        "| y | `C` | no: c |",
    )
    table = "\n".join((HEADING, "", *rows))
    assert described_kinds(table) == {
        ("x", "A"): "runs",
        ("x", "A 2"): "runs",
        ("x", "B"): "otherwise",
        ("y", "C"): "missing",
    }
    with pytest.raises(AssertionError, match="must belong to a kind"):
        list(page_kinds("SELECT 0;\n--! Error: no\n-- [A]\nSELECT 1;\n"))


@pytest.mark.thorough
@documents("ddl", "CREATE TABLE ... LOCATION")
def test_a_table_is_created_in_a_folder(spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE {TABLE} (id bigint) USING iceberg LOCATION 'file://{tmp_path}/elsewhere'")
    spark.sql(f"INSERT INTO {TABLE} VALUES (1)")
    assert len(list((tmp_path / "elsewhere" / "data").rglob("*.parquet"))) == 1


@pytest.mark.thorough
@documents("ddl", "ALTER TABLE ... SET TBLPROPERTIES ('comment')")
def test_the_comment_of_a_table_is_a_property(spark: SparkSession, table: icefloe.Table) -> None:
    spark.sql(f"ALTER TABLE {TABLE} SET TBLPROPERTIES ('comment' = 'A table comment.')")
    described = {row.col_name: row.data_type for row in spark.sql(f"DESCRIBE EXTENDED {TABLE}").collect()}
    assert described["Comment"] == "A table comment."


@pytest.mark.thorough
@documents("queries", "spark.table(name)")
@documents("queries", 'spark.read.format("iceberg").load(name)', outcome="otherwise")
def test_tables_are_read_by_name_and_folder(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    assert ids(spark.table(TABLE)) == [1, 2, 3]
    with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):  # as PySpark raises it
        spark.read.format("iceberg").load(TABLE)
    for name in ("db.t", TABLE):
        assert ids(spark.read.format("icefloe").load(name)) == [1, 2, 3], name
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.read.format("icefloe").load("demo")
    spark.sql("USE demo.db")
    assert ids(spark.read.format("icefloe").load("t")) == [1, 2, 3]
    folders = icefloe.catalog("folders", uri=f"file://{tmp_path}/folders")
    other = folders.create_table("db.t", schema="id bigint")
    other.append(pa.table({"id": [7]}))
    assert ids(spark.read.format("icefloe").load(other.location)) == [7]


@pytest.mark.thorough
@documents("queries", 'option("snapshot-id")', 'option("as-of-timestamp")', 'option("branch")', 'option("tag")')
def test_reader_options_select_a_state(spark: SparkSession, table: icefloe.Table) -> None:
    second = table.snapshots[1]
    table.branch("audit-branch", snapshot=second.snapshot_id)
    table.tag("historical-snapshot", snapshot=second.snapshot_id)
    for option, value in (
        ("snapshot-id", second.snapshot_id),
        ("as-of-timestamp", str(second.timestamp_ms)),
        ("branch", "audit-branch"),
        ("tag", "historical-snapshot"),
    ):
        reader = spark.read.option(option, value)
        assert ids(reader.format("icefloe").load(TABLE)) == [1, 2], option
        assert ids(reader.table(TABLE)) == [1, 2], option


@documents("queries", 'option("start-snapshot-id")', 'option("end-snapshot-id")')
def test_appended_rows_are_read_incrementally(spark: SparkSession, table: icefloe.Table) -> None:
    """Scar: the options were ignored, and all rows came back; the test did not run with every change."""
    first, second, third = (snapshot.snapshot_id for snapshot in table.snapshots)
    table.delete("id = 3")
    reader = spark.read.format("icefloe").option("start-snapshot-id", str(first))
    assert ids(reader.option("end-snapshot-id", str(second)).load(TABLE)) == [2]
    after = spark.read.format("icefloe").option("start-snapshot-id", str(first)).load(TABLE)
    assert contents(after) == [(2, "n2"), (3, "n3")]  # the delete is no append
    assert after.where("id > 2").select("data").collect() == [("n3",)]
    assert after.count() == 2
    assert {row._pos for row in after.select("data", "_pos").collect()} == {0}
    none = spark.read.option("start-snapshot-id", str(third)).table(TABLE)
    assert (none.columns, none.collect()) == (["id", "data"], [])
    for options, message in (
        ({"end-snapshot-id": "1"}, "give the option start-snapshot-id too"),
        ({"start-snapshot-id": "1", "tag": "v1"}, "cannot be combined"),
        ({"start-snapshot-id": "first"}, "is not a number"),
        ({"start-snapshot-id": "12345"}, "12345"),
        ({"start-snapshot-id": str(second), "end-snapshot-id": str(first)}, "does not contain snapshot"),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.read.options(**options).table(TABLE).collect()


@pytest.mark.thorough
@documents("queries", 'spark.read.format("iceberg").load("table.history")', outcome="otherwise")
@documents("queries", 'spark.read.format("iceberg").load("table.files")', outcome="otherwise")
def test_metadata_tables_are_read_as_dataframes(spark: SparkSession, table: icefloe.Table) -> None:
    assert spark.read.format("icefloe").load(f"{TABLE}.history").count() == 3
    assert spark.read.format("icefloe").load("db.t.snapshots").count() == 3
    assert spark.read.format("icefloe").load(f"{TABLE}.files").count() == 3
    first = table.snapshots[0].snapshot_id
    assert spark.read.option("snapshot-id", str(first)).table(f"{TABLE}.files").count() == 1
    with pytest.raises(PySparkException, match="is not known for a read of the metadata table files"):
        spark.read.option("start-snapshot-id", str(first)).table(f"{TABLE}.files").count()


@pytest.mark.thorough
@documents("writes", "df.writeTo(table.branch_name).append()", "df.writeTo(table.branch_name).overwritePartitions()")
def test_dataframes_are_written_to_branches(spark: SparkSession, table: icefloe.Table) -> None:
    table.branch("audit")
    numbered(spark, 4).writeTo(f"{TABLE}.branch_audit").append()
    assert (ids(spark.table(f"{TABLE}.branch_audit")), ids(spark.table(TABLE))) == ([1, 2, 3, 4], [1, 2, 3])
    numbered(spark, 5).writeTo(f"{TABLE}.branch_audit").overwritePartitions()
    assert (ids(spark.table(f"{TABLE}.branch_audit")), ids(spark.table(TABLE))) == ([5], [1, 2, 3])


@pytest.mark.thorough
@documents("writes", "df.writeTo(table).append()", "df.writeTo(table).overwritePartitions()")
@documents("writes", "df.writeTo(table).overwrite(condition)", "df.write.saveAsTable(table)")
@documents("writes", "df.write.insertInto(table)")
def test_dataframes_append_and_overwrite(spark: SparkSession, demo: icefloe.Catalog) -> None:
    schema = "id bigint, level string"
    demo.create_table("db.t", schema=schema, partition_by=["level"])
    spark.createDataFrame([(1, "INFO"), (2, "WARN")], schema).writeTo(TABLE).append()
    spark.createDataFrame([(3, "INFO")], schema).writeTo(TABLE).overwritePartitions()
    assert contents(spark.table(TABLE)) == [(2, "WARN"), (3, "INFO")]
    spark.createDataFrame([(4, "INFO"), (5, "WARN")], schema).writeTo(TABLE).overwrite(F.col("level") == "INFO")
    assert contents(spark.table(TABLE)) == [(2, "WARN"), (4, "INFO"), (5, "WARN")]
    spark.createDataFrame([(6, "INFO")], schema).write.mode("append").saveAsTable(TABLE)
    spark.createDataFrame([(7, "INFO")], schema).write.insertInto(TABLE)
    assert ids(spark.table(TABLE)) == [2, 4, 5, 6, 7]


@pytest.mark.thorough
@documents("writes", "df.writeTo(table).create()", "df.writeTo(table).replace()", "df.writeTo(table).createOrReplace()")
@documents("writes", 'using("iceberg")', "tableProperty(name, value)", "partitionedBy(columns)")
@documents("writes", 'tableProperty("location", folder)')
def test_dataframes_create_and_replace_tables(spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path) -> None:
    rows = numbered(spark, 1, 2).withColumn("ts", F.lit("2026-01-02 03:04:05").cast("timestamp"))
    rows.writeTo(TABLE).using("iceberg").create()
    assert ids(spark.table(TABLE)) == [1, 2]
    rows.where("id = 1").writeTo(TABLE).replace()
    assert ids(spark.table(TABLE)) == [1]
    writer = rows.writeTo(TABLE).tableProperty("write.format.default", "orc")
    writer.partitionedBy(F.col("data"), F.partitioning.days("ts")).createOrReplace()
    table = demo.load_table("db.t")
    assert ids(spark.table(TABLE)) == [1, 2]
    assert [field.transform for field in table.spec.fields if not field.is_void] == ["identity", "day"]
    assert all(name.endswith(".orc") for name in table.scan().plan().tasks["location"].to_pylist())
    folder = f"file://{tmp_path}/elsewhere"
    rows.writeTo("demo.db.placed").tableProperty("location", folder).createOrReplace()
    assert demo.load_table("db.placed").location == folder
    assert ids(spark.table("demo.db.placed")) == [1, 2]


@pytest.mark.thorough
@documents("writes", "df.mergeInto(table, condition)")
def test_a_dataframe_is_merged(spark: SparkSession, demo: icefloe.Catalog) -> None:
    target = spark.createDataFrame([(1, "old"), (2, "old"), (3, "old"), (4, "old")], "id bigint, status string")
    target.writeTo("demo.db.target").create()
    source = spark.createDataFrame([(1, "new"), (2, "new"), (5, "new")], "id bigint, status string").alias("source")
    (
        source.mergeInto("demo.db.target", F.expr("source.id = target.id"))
        .whenMatched(F.expr("target.id = 1"))
        .updateAll()
        .whenMatched(F.expr("target.id = 2"))
        .delete()
        .whenNotMatched()
        .insertAll()
        .whenNotMatchedBySource(F.expr("target.id = 3"))
        .update({"status": F.lit("invalid")})
        .merge()
    )
    assert contents(spark.table("demo.db.target")) == [(1, "new"), (3, "invalid"), (4, "old"), (5, "new")]


@pytest.mark.thorough
@documents("writes", 'option("mergeSchema", "true")')
def test_a_write_adds_columns_and_leaves_others_out(spark: SparkSession, table: icefloe.Table) -> None:
    table.set_properties({"write.spark.accept-any-schema": "true"})
    more = spark.createDataFrame([(4, 40)], "id bigint, more int")
    more.writeTo(TABLE).option("mergeSchema", "true").append()
    assert spark.table(TABLE).columns == ["id", "data", "more"]
    assert contents(spark.table(TABLE).where("id > 2")) == [(3, "n3", None), (4, None, 40)]


@pytest.mark.thorough
@documents("writes", 'option("snapshot-property.key", value)')
def test_a_write_adds_properties_to_the_summary(spark: SparkSession, table: icefloe.Table) -> None:
    numbered(spark, 4).writeTo(TABLE).option("snapshot-property.Team", "sales").append()
    numbered(spark, 5).writeTo(TABLE).option("snapshot-property.Team", "hr").overwritePartitions()
    summaries = [snapshot.summary.get("Team") for snapshot in table.refresh().snapshots]
    assert summaries == [None, None, None, "sales", "hr"]


OF_FILES = {
    "target-file-size-bytes": "1000000",
    "check-nullability": "true",
    "check-ordering": "true",
    "fanout-enabled": "true",
    "distribution-mode": "none",
    "compression-codec": "zstd",
    "compression-level": "3",
}


@pytest.mark.thorough
@documents("writes", *(f'option("{name}")' for name in OF_FILES))
def test_options_that_say_how_files_are_written_are_accepted(spark: SparkSession, table: icefloe.Table) -> None:
    writer = numbered(spark, 4).writeTo(TABLE)
    for name, value in OF_FILES.items():
        writer = writer.option(name, value)
    writer.append()
    assert ids(spark.table(TABLE)) == [1, 2, 3, 4]


@pytest.mark.thorough
@documents("procedures", "CALL publish_changes")
def test_staged_changes_are_published_once_they_are_named_uniquely(spark: SparkSession, table: icefloe.Table) -> None:
    for number, wap_id in ((4, "wap_id_1"), (5, "wap_id_2"), (6, "wap_id_3"), (7, "wap_id_3")):
        table.append(pa.table({"id": [number], "data": ["staged"]}), wap_id=wap_id)
    assert ids(spark.table(TABLE)) == [1, 2, 3]
    spark.sql("CALL demo.system.publish_changes('db.t', 'wap_id_1')")
    spark.sql("CALL demo.system.publish_changes(wap_id => 'wap_id_2', table => 'db.t')")
    assert ids(spark.table(TABLE)) == [1, 2, 3, 4, 5]
    with pytest.raises(PySparkException, match="2 snapshots were staged with wap_id 'wap_id_3'"):
        spark.sql("CALL demo.system.publish_changes('db.t', 'wap_id_3')")


@pytest.mark.thorough
@documents("procedures", "CALL add_files from a folder", "CALL register_table")
def test_files_are_added_and_tables_registered(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    pq.write_table(pa.table({"id": [4], "data": ["old"]}), tmp_path / "old" / "a.parquet")
    spark.sql(f"CALL demo.system.add_files(table => 'db.t', source_table => '`parquet`.`file://{tmp_path}/old`')")
    assert ids(spark.table(TABLE)) == [1, 2, 3, 4]
    location = table.refresh().metadata_location
    spark.sql(f"CALL demo.system.register_table(table => 'db.tbl', metadata_file => '{location}')")
    assert ids(spark.table("demo.db.tbl")) == [1, 2, 3, 4]


@pytest.mark.thorough
@documents("procedures", "CALL ancestors_of")
def test_ancestors_are_those_of_main_or_of_a_snapshot(spark: SparkSession, table: icefloe.Table) -> None:
    first, second, third = (snapshot.snapshot_id for snapshot in table.snapshots)
    for arguments, expected in (
        ("'db.t'", [third, second, first]),
        (f"'db.t', {second}", [second, first]),
        (f"snapshot_id => {first}, table => 'db.t'", [first]),
    ):
        rows = spark.sql(f"CALL demo.system.ancestors_of({arguments})").collect()
        assert [row.snapshot_id for row in rows] == expected


def finish(query: Any) -> None:
    assert query.awaitTermination(SECONDS)
    if query.exception() is not None:
        raise query.exception()


def copy(rows: DataFrame, folder: Path, mode: str = "append", **options: str) -> None:
    """Write all rows that a stream has to the table ``demo.db.copy``."""
    writer = rows.writeStream.outputMode(mode).options(**options).option("checkpointLocation", str(folder))
    finish(writer.trigger(availableNow=True).toTable("demo.db.copy"))


@pytest.mark.thorough
@documents("streaming", 'spark.readStream.format("iceberg").load(name)', outcome="otherwise")
@documents("streaming", 'option("stream-from-timestamp")', 'option("streaming-max-files-per-micro-batch")')
@documents("streaming", 'option("streaming-max-rows-per-micro-batch")', 'option("streaming-skip-delete-snapshots")')
@documents("streaming", 'option("streaming-skip-overwrite-snapshots")')
@documents("streaming", 'option("async-micro-batch-planning-enabled")', outcome="otherwise")
def test_streams_read_appends_after_a_time(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    with pytest.raises(Py4JJavaError, match="DATA_SOURCE_NOT_FOUND"):
        spark.readStream.format("iceberg").load(TABLE)
    table.update({"data": "'changed'"}, where="id = 1")
    table.delete("id = 2")
    options = {
        "stream-from-timestamp": str(table.snapshots[1].timestamp_ms),
        "streaming-max-files-per-micro-batch": "1",
        "streaming-max-rows-per-micro-batch": "1000",
        "streaming-skip-overwrite-snapshots": "true",
        "streaming-skip-delete-snapshots": "true",
    }
    spark.sql("CREATE TABLE demo.db.copy (id bigint, data string)")
    unknown = spark.readStream.option("async-micro-batch-planning-enabled", "true").table(TABLE)
    with pytest.raises(StreamingQueryException, match="option 'async-micro-batch-planning-enabled' is not known"):
        copy(unknown, tmp_path / "unknown")
    copy(spark.readStream.format("icefloe").options(**options).load(TABLE), tmp_path / "copy")
    assert contents(spark.table("demo.db.copy")) == [(2, "n2"), (3, "n3")]
    assert spark.table("demo.db.copy.snapshots").count() == 2


@pytest.mark.thorough
@documents("streaming", 'writeStream.format("iceberg").toTable(name)', 'outputMode("append")', 'outputMode("complete")')
@documents("streaming", 'option("fanout-enabled", "true")', 'trigger(processingTime="1 minute")')
def test_streams_write_to_tables(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE demo.db.copy (id bigint, data string) PARTITIONED BY (data)")
    rows = spark.readStream.table(TABLE)
    writer = rows.writeStream.format("iceberg").outputMode("append").trigger(processingTime="1 minute")
    writer = writer.option("fanout-enabled", "true").option("checkpointLocation", str(tmp_path / "a"))
    query = writer.toTable("demo.db.copy")
    query.processAllAvailable()
    query.stop()
    assert ids(spark.table("demo.db.copy")) == [1, 2, 3]
    counts = rows.groupBy("data").count().select(F.col("count").alias("id"), "data")
    copy(counts, tmp_path / "b", "complete")
    assert contents(spark.table("demo.db.copy")) == [(1, "n1"), (1, "n2"), (1, "n3")]


@pytest.mark.thorough
@documents("streaming", 'writeStream.format("iceberg").option("path", folder).start()', outcome="otherwise")
def test_streams_write_to_folders(spark: SparkSession, table: icefloe.Table, tmp_path: Path) -> None:
    folders = icefloe.catalog("folders", uri=f"file://{tmp_path}/folders")
    other = folders.create_table("db.t", schema="id bigint, data string")
    writer = spark.readStream.table(TABLE).writeStream.format("icefloe").option("path", other.location)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    finish(writer.start())
    assert other.refresh().scan().count() == 3
