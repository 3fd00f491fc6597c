"""Options and settings of writes by the names of Apache Iceberg: files, conflicts, schema merge, staged snapshots."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.readwriter import DataFrameWriterV2

import icefloe
from icefloe.engines.spark.write import write

TABLE = "demo.db.t"


def rows(spark: SparkSession) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.table(TABLE).collect())


def with_note(spark: SparkSession, id_: int) -> DataFrame:
    return spark.sql(f"SELECT 'new' AS note, {id_}L AS id")


@pytest.fixture
def accepting(spark: SparkSession, demo: icefloe.Catalog) -> icefloe.Table:
    """A table that accepts rows with other columns."""
    spark.sql(f"CREATE TABLE {TABLE} (id bigint) TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    spark.sql(f"INSERT INTO {TABLE} SELECT 1L AS id")
    return demo.load_table("db.t")


@pytest.mark.parametrize("option", ["mergeSchema", "merge-schema"])
def test_an_append_that_merges_the_schema_adds_columns_in_its_commit(
    spark: SparkSession, accepting: icefloe.Table, option: str
) -> None:
    before = len(accepting.history)
    with_note(spark, 2).writeTo(TABLE).option(option, "true").append()
    assert rows(spark) == [(1, None), (2, "new")]
    assert len(accepting.refresh().history) == before + 1


@pytest.mark.thorough
def test_overwrites_merge_the_schema_too(spark: SparkSession, accepting: icefloe.Table) -> None:
    with_note(spark, 2).writeTo(TABLE).option("mergeSchema", "true").overwritePartitions()
    assert rows(spark) == [(2, "new")]
    more = spark.sql("SELECT 3L AS id, 'x' AS note, 7 AS n")
    more.writeTo(TABLE).option("mergeSchema", "true").overwrite(F.col("id") == 2)
    assert rows(spark) == [(3, "x", 7)]


@pytest.mark.thorough
def test_columns_that_the_table_lacks_are_refused_without_the_option_or_the_property(
    spark: SparkSession, accepting: icefloe.Table, demo: icefloe.Catalog
) -> None:
    with pytest.raises(PySparkException, match="note"):
        with_note(spark, 2).writeTo(TABLE).append()
    accepting.set_properties({"write.spark.accept-any-schema": "false"})
    with pytest.raises(AnalysisException, match=r"\[INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS\]"):
        with_note(spark, 2).writeTo(TABLE).option("mergeSchema", "true").append()
    assert rows(spark) == [(1,)]


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["append", "overwritePartitions"])
def test_snapshot_properties_are_in_the_summary(spark: SparkSession, demo: icefloe.Catalog, verb: str) -> None:
    spark.sql(f"CREATE TABLE {TABLE} (id bigint)")
    getattr(spark.range(2).writeTo(TABLE).option("snapshot-property.Team", "sales"), verb)()
    summary = demo.load_table("db.t").snapshots[-1].summary
    assert summary["Team"] == "sales"
    assert summary["added-records"] == "2"


@pytest.fixture
def staging(spark: SparkSession, demo: icefloe.Catalog) -> Iterator[icefloe.Table]:
    """A table that allows staged writes, in a session that stages them."""
    spark.sql(f"CREATE TABLE {TABLE} (id bigint) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.sql(f"INSERT INTO {TABLE} VALUES (1)")
    spark.conf.set("spark.wap.id", "load-7")
    yield demo.load_table("db.t")
    spark.conf.unset("spark.wap.id")
    spark.conf.unset("spark.wap.branch")


def test_an_insert_is_staged_under_the_id_of_the_session(spark: SparkSession, staging: icefloe.Table) -> None:
    spark.sql(f"INSERT INTO {TABLE} VALUES (2)")
    assert rows(spark) == [(1,)]
    assert staging.refresh().snapshots[-1].summary["wap.id"] == "load-7"
    spark.conf.unset("spark.wap.id")
    spark.sql("CALL demo.system.publish_changes('db.t', 'load-7')")
    assert rows(spark) == [(1,), (2,)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM demo.db.t WHERE id = 1",
        "UPDATE demo.db.t SET id = 5 WHERE sqrt(id) = 1",
        "INSERT OVERWRITE demo.db.t VALUES (5)",
        "INSERT INTO demo.db.t.branch_audit VALUES (5)",
        "TRUNCATE TABLE demo.db.t",
    ],
)
def test_changes_that_cannot_be_staged_are_refused(spark: SparkSession, staging: icefloe.Table, change: str) -> None:
    staging.branch("audit")
    with pytest.raises(PySparkException, match=r"stages appends without options; set spark\.wap\.branch"):
        spark.sql(change)
    assert rows(spark) == [(1,)]


@pytest.mark.thorough
def test_an_id_and_a_branch_are_refused_together(spark: SparkSession, staging: icefloe.Table) -> None:
    spark.conf.set("spark.wap.branch", "audit")
    with pytest.raises(PySparkException, match=r"spark\.wap\.id and spark\.wap\.branch are both set"):
        spark.sql(f"INSERT INTO {TABLE} VALUES (2)")


def files(spark: SparkSession, name: str = TABLE) -> list[tuple[str, int, int]]:
    """The files of the newest snapshot by location: the end of the location, the spec, the rows."""
    found = spark.sql(
        f"SELECT data_file.file_path, data_file.spec_id, data_file.record_count FROM {name}.entries"
        f" WHERE status = 1 AND snapshot_id = (SELECT max_by(snapshot_id, committed_at) FROM {name}.snapshots)"
    )
    return sorted((row.file_path, row.spec_id, row.record_count) for row in found.collect())


def codec(location: str) -> str:
    return str(pq.ParquetFile(location.removeprefix("file://")).metadata.row_group(0).column(0).compression)


def test_options_say_how_the_files_of_a_write_are_made(spark: SparkSession, demo: icefloe.Catalog) -> None:
    """These options were accepted without effect."""
    spark.sql(f"CREATE TABLE {TABLE} (id bigint, city string) PARTITIONED BY (city)")
    rows = spark.range(0, 2000, 1, 2).selectExpr("id", "if(id % 2 = 0, 'Oslo', 'Rome') AS city")
    rows.writeTo(TABLE).option("distribution-mode", "none").append()
    assert len(files(spark)) == 4  # two tasks with rows of two partitions
    rows.writeTo(TABLE).append()
    assert len(files(spark)) == 2
    rows.writeTo(TABLE).option("target-file-size-bytes", "1000").append()
    assert len(files(spark)) > 2
    rows.writeTo(TABLE).option("compression-codec", "gzip").option("compression-level", "9").append()
    assert {codec(location) for location, _, _ in files(spark)} == {"GZIP"}
    spark.sql(f"INSERT INTO {TABLE} WITH ('write-format' = 'avro', 'fanout-enabled' = 'false') VALUES (1, 'Oslo')")
    assert files(spark)[0][0].endswith(".avro")
    with demo.load_table("db.t").update_partitioning() as edit:
        edit.add("bucket(4, id)")
    rows.limit(1).writeTo(TABLE).option("output-spec-id", "0").append()
    assert [spec for _, spec, _ in files(spark)] == [0]
    rows.writeTo("demo.db.u").option("write-format", "orc").option("snapshot-property.team", "sales").create()
    assert {location[-4:] for location, _, _ in files(spark, "demo.db.u")} == {".orc"}
    assert demo.load_table("db.u").snapshots[0].summary["team"] == "sales"
    table = demo.load_table("db.t")
    assert not any(name.startswith("write.") for name in table.properties)
    assert table.verify(rows=True).ok


def test_fanout_decides_whether_a_task_keeps_a_file_open_for_each_partition(
    spark: SparkSession, demo: icefloe.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"CREATE TABLE {TABLE} (id bigint, city string) PARTITIONED BY (city)")
    open_files: list[int] = []
    decide = write.concurrent_writers

    def recorded(session: SparkSession, fanout: str = "") -> int:
        open_files.append(decide(session, fanout))
        return open_files[-1]

    monkeypatch.setattr(write, "concurrent_writers", recorded)
    for fanout in ("true", "false"):
        spark.sql(f"INSERT INTO {TABLE} WITH ('fanout-enabled' = '{fanout}') VALUES (1, 'Oslo'), (2, 'Rome')")
    assert open_files == [2**31 - 1, 0]


@pytest.mark.thorough
def test_settings_of_the_session_are_defaults_of_options(spark: SparkSession, accepting: icefloe.Table) -> None:
    settings = {"spark.sql.iceberg.compression-codec": "gzip", "spark.sql.iceberg.merge-schema": "true"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        with_note(spark, 2).writeTo(TABLE).append()
        assert codec(files(spark)[0][0]) == "GZIP"
        with_note(spark, 3).writeTo(TABLE).option("compression-codec", "snappy").append()
        assert codec(files(spark)[0][0]) == "SNAPPY"
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert rows(spark) == [(1, None), (2, "new"), (3, "new")]


def test_an_overwrite_conflicts_with_commits_after_the_snapshot_that_its_options_name(
    spark: SparkSession, demo: icefloe.Catalog
) -> None:
    """The options were ignored: rows that were committed after the snapshot were deleted."""
    spark.sql(f"CREATE TABLE {TABLE} (id bigint, city string) PARTITIONED BY (city)")
    spark.sql(f"INSERT INTO {TABLE} VALUES (1, 'Oslo'), (2, 'Rome')")
    table = demo.load_table("db.t")
    read = table.snapshots[-1].snapshot_id
    spark.sql(f"INSERT INTO {TABLE} VALUES (3, 'Oslo')")
    in_oslo, in_rome = (spark.sql(f"SELECT 9L AS id, '{city}' AS city") for city in ("Oslo", "Rome"))

    def checked(frame: DataFrame, level: str) -> DataFrameWriterV2:
        writer = frame.writeTo(TABLE).option("isolation-level", level)
        return writer.option("validate-from-snapshot-id", str(read))

    for condition in (F.col("city") == "Oslo", F.col("id") < 9):
        with pytest.raises(PySparkException, match="was added by another commit and may contain rows"):
            checked(in_oslo, "serializable").overwrite(condition)
    with pytest.raises(PySparkException, match="of a partition that this operation replaces"):
        checked(in_oslo, "serializable").overwritePartitions()
    assert rows(spark) == [(1, "Oslo"), (2, "Rome"), (3, "Oslo")]
    checked(in_rome, "serializable").overwritePartitions()
    checked(in_oslo, "snapshot").overwrite(F.col("city") == "Oslo")
    assert rows(spark) == [(9, "Oslo"), (9, "Rome")]
    with pytest.raises(PySparkException, match="had rows of a partition that this operation replaces"):
        checked(in_oslo, "snapshot").overwritePartitions()
    in_oslo.writeTo(TABLE).option("isolation-level", "serializable").overwritePartitions()
    assert rows(spark) == [(9, "Oslo"), (9, "Rome")]


def test_an_option_that_has_no_effect_on_a_write_is_refused_by_name(spark: SparkSession, demo: icefloe.Catalog) -> None:
    spark.sql(f"CREATE TABLE {TABLE} (id bigint)")
    for options, message in (
        ({"target-size": "1"}, "option 'target-size' is not known for a write; there are: branch, check-nullability"),
        ({"isolation-level": "snapshot"}, "option isolation-level: only overwrites have it"),
        ({"output-spec-id": "7"}, "option output-spec-id=7: the table has the specs 0"),
        ({"compression-codec": "lzo"}, "option compression-codec: expected brotli, gzip"),
        ({"write-format": "orc", "compression-level": "3"}, "option compression-level: orc files have none"),
        ({"check-nullability": "false"}, "required columns never get nulls"),
        ({"mergeSchema": "true", "merge-schema": "false"}, "contradict each other"),
    ):
        with pytest.raises(AnalysisException, match=message):
            spark.range(1).writeTo(TABLE).options(**options).append()
    with pytest.raises(AnalysisException, match="main"):
        spark.range(1).writeTo("demo.db.u").option("branch", "audit").create()
    spark.range(1).writeTo(TABLE).append()
    demo.load_table("db.t").branch("audit")
    with pytest.raises(AnalysisException, match="contradict each other"):
        spark.range(1).writeTo(f"{TABLE}.branch_audit").option("branch", "main").append()
    spark.range(1).writeTo(TABLE).option("check-nullability", "true").option("check-ordering", "true").append()
    assert rows(spark) == [(0,), (0,)]


@pytest.mark.thorough
def test_properties_that_show_the_state_of_a_table_are_refused(spark: SparkSession, demo: icefloe.Catalog) -> None:
    """The property sort-order was stored, or dropped without a word."""
    spark.sql(f"CREATE TABLE {TABLE} (id bigint)")
    for name, instead in (("sort-order", "write_ordered_by"), ("identifier-fields", "set_identifier_fields")):
        for text in (f"ALTER TABLE {TABLE} SET", "CREATE TABLE demo.db.u (id bigint)"):
            with pytest.raises(AnalysisException, match=f"cannot be set; use CALL system.{instead}"):
                spark.sql(f"{text} TBLPROPERTIES ('{name}' = 'id')")


@pytest.mark.thorough
def test_a_property_turns_schema_evolution_of_merge_off(spark: SparkSession, demo: icefloe.Catalog) -> None:
    off = "TBLPROPERTIES ('write.spark.auto-schema-evolution.enabled' = 'false')"
    merge = "USING (SELECT 1L AS id, 7 AS n) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    for name, text in (("db.t", off), ("db.u", "")):
        spark.sql(f"CREATE TABLE demo.{name} (id bigint) {text}")
        spark.sql(f"MERGE WITH SCHEMA EVOLUTION INTO demo.{name} t {merge}")
    assert (spark.table(TABLE).columns, spark.table("demo.db.u").columns) == (["id"], ["id", "n"])
