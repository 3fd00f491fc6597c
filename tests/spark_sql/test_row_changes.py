"""UPDATE, DELETE and MERGE of Spark SQL: versions and modes, conflicts, branches, and the same merges in Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from icefloe.engines import work
from icefloe.engines.spark.change import row_operations
from icefloe.spark_sql import row_changes

TABLE = "demo.db.t"
MODES = {
    "1": "'format-version'='1'",
    "2 copy-on-write": "'format-version'='2'",
    "2 merge-on-read": "'format-version'='2', 'write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read'",
    "3 copy-on-write": "'format-version'='3', 'write.merge.mode'='copy-on-write', 'write.update.mode'='copy-on-write'",
    "3 merge-on-read": "'format-version'='3'",
    "4": "'format-version'='4'",
}
UPSERT = """
    MERGE INTO demo.db.t t USING (SELECT 2L AS id, 'Oslo' AS city, 22 AS n UNION ALL SELECT 9L, 'Oslo', 90) s
    ON t.id = s.id AND t.city = 'Oslo' WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
INSERT_MISSING = """
    MERGE INTO demo.db.t t USING (SELECT 9L AS id, 'Oslo' AS city, 90 AS n) s
    ON t.id = s.id AND t.city = 'Oslo' WHEN NOT MATCHED THEN INSERT *"""


def rows(spark: SparkSession, columns: str = "*", table: str = TABLE) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(f"SELECT {columns} FROM {table} ORDER BY id").collect()]


def create(spark: SparkSession, properties: str = "'format-version'='3'") -> None:
    spark.sql(
        f"CREATE TABLE {TABLE} (id bigint, city string, n int) PARTITIONED BY (city) TBLPROPERTIES ({properties})"
    )
    spark.sql(f"INSERT INTO {TABLE} VALUES (1, 'Oslo', 10), (2, 'Oslo', 20), (3, 'Rome', 30), (4, NULL, 40)")


@pytest.mark.parametrize("mode", MODES)
def test_rows_change_in_every_version_and_mode(spark: SparkSession, demo: icefloe.Catalog, mode: str) -> None:
    create(spark, MODES[mode])
    spark.sql(f"UPDATE {TABLE} SET n = n + 1, city = 'Rome' WHERE id % 2 = 0")
    spark.sql(UPSERT.replace("AND t.city = 'Oslo'", ""))
    spark.sql(f"DELETE FROM {TABLE} WHERE sqrt(n) = sqrt(10)")
    assert rows(spark) == [(2, "Oslo", 22), (3, "Rome", 30), (4, "Rome", 41), (9, "Oslo", 90)]
    assert demo.load_table("db.t").scan().count() == 4


@pytest.mark.parametrize("statement", ["DELETE FROM {t}", "DELETE FROM {t} WHERE true", "TRUNCATE TABLE {t}"])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_all_rows_are_deleted_without_reading_them(
    spark: SparkSession, demo: icefloe.Catalog, version: int, statement: str
) -> None:
    """Scar: a DELETE without a condition failed with an internal error of Spark."""
    create(spark, f"'format-version'='{version}'")
    table = demo.load_table("db.t")
    table.branch("audit")
    spark.sql(f"DELETE FROM {TABLE} WHERE false")
    assert len(table.refresh().snapshots) == 1  # there was nothing to commit
    spark.sql(statement.format(t=TABLE))
    assert rows(spark) == []
    last = table.refresh().scan().snapshot
    assert last is not None
    assert last.summary["deleted-records"] == "4"
    assert last.summary["total-data-files"] == "0"
    assert len(rows(spark, table=f"{TABLE}.branch_audit")) == 4
    spark.sql(statement.format(t=f"{TABLE}.branch_audit"))
    assert rows(spark, table=f"{TABLE}.branch_audit") == []


def test_a_merge_runs_without_adaptive_plans(spark: SparkSession, demo: icefloe.Catalog) -> None:
    """Scar: a task asked a node of Spark for its metrics, which only the driver can make."""
    create(spark)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        spark.sql(UPSERT)
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert rows(spark) == [(1, "Oslo", 10), (2, "Oslo", 22), (3, "Rome", 30), (4, None, 40), (9, "Oslo", 90)]


def test_updated_rows_keep_their_ids(spark: SparkSession, demo: icefloe.Catalog) -> None:
    create(spark)
    before = dict(rows(spark, "id, _row_id"))
    spark.sql(f"UPDATE {TABLE} SET n = 0 WHERE sqrt(id) = 2")
    spark.sql(UPSERT)
    after = dict(rows(spark, "id, _row_id"))
    assert {id_: after[id_] for id_ in before} == before
    assert after[9] not in before.values()
    assert rows(spark, "id, n") == [(1, 10), (2, 22), (3, 30), (4, 0), (9, 90)]


def commit_first(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let another commit land after Spark has read the rows of the next change, and before it is committed."""
    commit = row_changes.commit_found_rows

    def commit_after(*arguments: Any, **options: Any) -> object:
        other()
        return commit(*arguments, **options)

    monkeypatch.setattr(row_changes, "commit_found_rows", commit_after)


@pytest.mark.parametrize("statement", [UPSERT, INSERT_MISSING], ids=["upsert", "insert only"])
def test_a_merge_conflicts_with_commits_of_rows_that_it_read_and_with_no_others(
    spark: SparkSession, demo: icefloe.Catalog, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    create(spark)
    table = demo.load_table("db.t")

    def add(city: str) -> Callable[[], object]:
        return lambda: table.append(pa.table({"id": [9], "city": [city], "n": pa.array([0], pa.int32())}))

    with monkeypatch.context() as patched:
        commit_first(patched, add("Oslo"))
        with pytest.raises(PySparkException, match="icefloe ConflictError"):
            spark.sql(statement)
    assert (9, "Oslo", 90) not in rows(spark)
    spark.sql(f"DELETE FROM {TABLE} WHERE id = 9")
    with monkeypatch.context() as patched:
        commit_first(patched, add("Rome"))
        spark.sql(statement)
    assert (9, "Oslo", 90) in rows(spark)


def test_a_change_plans_only_the_files_that_it_changes(
    spark: SparkSession, demo: icefloe.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(spark)
    filters: list[str] = []
    commit = row_changes.commit_found_rows

    def recorded(*arguments: Any, **options: Any) -> object:
        filters.append(str(options["read"].filter))
        return commit(*arguments, **options)

    monkeypatch.setattr(row_changes, "commit_found_rows", recorded)
    spark.sql(f"UPDATE {TABLE} SET n = 0 WHERE city = 'Oslo' AND sqrt(id) = 1")
    assert len(filters) == 1
    assert "Oslo" in filters[0]
    assert rows(spark, "id, n") == [(1, 0), (2, 20), (3, 30), (4, 40)]


@pytest.mark.parametrize("statement", [UPSERT, f"UPDATE {TABLE} SET n = 0 WHERE sqrt(id) = 1"], ids=["MERGE", "UPDATE"])
def test_a_change_plans_the_files_once(
    spark: SparkSession, demo: icefloe.Catalog, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    create(spark)
    planned: list[Any] = []
    plan = work.plan_scan

    def recorded(*arguments: Any, **options: Any) -> object:
        planned.append(options["filter"])
        return plan(*arguments, **options)

    monkeypatch.setattr(work, "plan_scan", recorded)
    spark.sql(statement)
    assert len(planned) == 1


@pytest.mark.thorough
def test_rows_of_a_branch_change(spark: SparkSession, demo: icefloe.Catalog) -> None:
    create(spark)
    demo.load_table("db.t").branch("audit")
    audit = f"{TABLE}.branch_audit"
    spark.sql(f"UPDATE {audit} SET n = 0 WHERE sqrt(id) = 1")
    spark.sql(f"DELETE FROM {audit} WHERE id = 2")
    spark.sql(UPSERT.replace(TABLE, audit))
    assert rows(spark, "id, n", audit) == [(1, 0), (2, 22), (3, 30), (4, 40), (9, 90)]
    assert rows(spark, "id, n") == [(1, 10), (2, 20), (3, 30), (4, 40)]


@pytest.mark.thorough
def test_cached_tables_show_changes(spark: SparkSession, demo: icefloe.Catalog) -> None:
    create(spark)
    spark.sql(f"CACHE TABLE {TABLE}")
    try:
        spark.sql(f"UPDATE {TABLE} SET n = 0 WHERE sqrt(id) = 1")
        assert rows(spark, "id, n")[0] == (1, 0)
    finally:
        spark.sql(f"UNCACHE TABLE IF EXISTS {TABLE}")


def test_a_cached_table_is_not_another_one_of_its_name(spark: SparkSession, demo: icefloe.Catalog) -> None:
    """Scar: after others had dropped the table and made another one, its name still gave the old rows."""
    create(spark)
    spark.sql(f"CACHE TABLE {TABLE}")
    try:
        before = rows(spark, "id")
        demo.load_table("db.t").append(pa.table({"id": [5], "city": ["Bern"], "n": pa.array([50], pa.int32())}))
        assert rows(spark, "id") == before  # as Spark caches it, until REFRESH TABLE
        demo.drop_table("db.t")
        demo.create_table("db.t", schema="id bigint").append(pa.table({"id": [7]}))
        assert rows(spark) == [(7,)]
    finally:
        spark.sql(f"UNCACHE TABLE IF EXISTS {TABLE}")


@pytest.mark.thorough
def test_values_that_differ_from_run_to_run_are_computed_once(
    spark: SparkSession, demo: icefloe.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(spark)
    kept: list[bool] = []
    keep = row_operations.keep_rows

    def recorded(frame: DataFrame, until: ExitStack, *, is_deterministic: bool) -> DataFrame:
        kept.append(is_deterministic)
        return keep(frame, until, is_deterministic=is_deterministic)

    monkeypatch.setattr(row_operations, "keep_rows", recorded)
    spark.sql(f"UPDATE {TABLE} SET n = 500 + CAST(rand() AS int) WHERE sqrt(id) = 1")
    spark.sql(f"UPDATE {TABLE} SET n = 600 WHERE sqrt(id) = 2")
    assert kept == [False, True]
    assert rows(spark, "id, n") == [(1, 500), (2, 20), (3, 30), (4, 600)]


def test_merge_into_of_dataframes_changes_rows(spark: SparkSession, demo: icefloe.Catalog) -> None:
    create(spark)
    source = spark.createDataFrame(
        [(1, "Oslo", 11, "x"), (9, "Oslo", 90, "y")], "id bigint, city string, n int, note string"
    )
    merge = source.alias("s").mergeInto(TABLE, F.expr("t.id = s.id")).whenMatched().updateAll()
    merge.whenNotMatched().insertAll().whenNotMatchedBySource(F.expr("t.n = 40")).delete().withSchemaEvolution().merge()
    assert rows(spark, "id, n, note") == [(1, 11, "x"), (2, 20, None), (3, 30, None), (9, 90, "y")]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2))
def test_random_merges_change_the_same_rows_as_in_python(spark: SparkSession, demo: icefloe.Catalog, seed: int) -> None:
    choose = random.Random(seed)
    create(spark)
    other = demo.create_table("db.o", schema="id bigint, city string, n int", partition_by=["city"])
    other.append(spark.table(TABLE))
    for _ in range(3):
        source = {
            choose.randrange(12): (choose.choice(["Oslo", "Rome", None]), choose.randrange(100)) for _ in range(5)
        }
        data = [(id_, city, n) for id_, (city, n) in source.items()]
        frame = spark.createDataFrame(data, "id bigint, city string, n int")
        frame.createOrReplaceTempView("s")
        limits = [choose.randrange(100) for _ in range(4)]
        spark.sql(f"""
            MERGE INTO {TABLE} t USING s ON t.id = s.id
            WHEN MATCHED AND s.n < {limits[0]} THEN DELETE
            WHEN MATCHED AND t.n < {limits[1]} THEN UPDATE SET n = t.n + s.n, city = s.city
            WHEN NOT MATCHED AND s.n < {limits[2]} THEN INSERT *
            WHEN NOT MATCHED BY SOURCE AND t.n < {limits[3]} THEN UPDATE SET n = t.n * 2""")
        merge = other.merge(frame, on="t.id = s.id").when_matched_delete(f"s.n < {limits[0]}")
        merge = merge.when_matched_update({"n": "t.n + s.n", "city": "s.city"}, f"t.n < {limits[1]}")
        merge = merge.when_not_matched_insert_all(f"s.n < {limits[2]}")
        merge.when_not_matched_by_source_update({"n": "t.n * 2"}, f"t.n < {limits[3]}").execute()
        assert rows(spark) == rows(spark, table="demo.db.o")
