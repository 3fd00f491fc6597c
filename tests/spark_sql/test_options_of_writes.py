"""Options and settings of writes by the names of Apache Iceberg: schema merge, summaries, staged snapshots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe

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
