"""The source of a MERGE: evaluated once, and its keys decide which files of the table are read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefloe
from icefloe.expr.filter.nodes import Expr
from icefloe.spark_sql import row_changes

TABLE = "demo.db.t"
FILES, ROWS = 4, 500  # of each file
KEPT = ["200 rows", "50 rows"]  # by their range, and by a list
UPSERT = "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT *"
CLAUSES = {
    "upsert": UPSERT,
    "update": "WHEN MATCHED THEN UPDATE SET n = s.n",
    "delete": "WHEN MATCHED AND s.n > 0 THEN DELETE",
    "insert": "WHEN NOT MATCHED THEN INSERT *",
}
KEY_TYPES = {
    "int": ("int", "CAST({} AS int)", "CAST({} AS bigint)"),
    "bigint": ("bigint", "{}", "{}"),
    "string": ("string", "format_string('%05d', {})", "format_string('%05d', {})"),
    "date": ("date", *["date_add(date '2020-01-01', CAST({} AS int))"] * 2),
    "timestamp": ("timestamp", "timestamp_micros({})", "timestamp_micros({})"),
    "timestamp_ntz": ("timestamp_ntz", *["CAST(timestamp_seconds({}) AS timestamp_ntz)"] * 2),
    "decimal": ("decimal(10, 2)", "CAST({} AS decimal(10, 2))", "CAST({} AS decimal(10, 2))"),
    "double": ("double", "CAST({} AS double)", "CAST({} AS double)"),
}


def create(spark: SparkSession, key: str = "bigint", value: str = "{}") -> None:
    """A table of files with a range of keys each, and a row without a key."""
    spark.sql(f"CREATE TABLE {TABLE} (id {key}, n int) TBLPROPERTIES ('format-version' = '3')")
    for number in range(FILES):
        first = number * ROWS
        new = f"SELECT {value.format('id')}, 0 FROM range({first}, {first + ROWS})"
        spark.sql(f"INSERT INTO {TABLE} {new}" + (" UNION ALL SELECT NULL, 0" if number == 0 else ""))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Expr]:
    """The filters by which row changes read the table."""
    filters: list[Expr] = []
    commit = row_changes.commit_found_rows

    def recorded(*arguments: Any, **options: Any) -> object:
        filters.append(options["read"].filter)
        return commit(*arguments, **options)

    monkeypatch.setattr(row_changes, "commit_found_rows", recorded)
    return filters


def result(spark: SparkSession) -> tuple[int, int, int]:
    """The number of rows, of changed rows, and of keys."""
    query = f"SELECT count(*), count_if(n > 0), count(DISTINCT id) FROM {TABLE}"
    return tuple(spark.sql(query).first())


@pytest.mark.parametrize("rows", [200, 50], ids=KEPT)
@pytest.mark.parametrize("clauses", CLAUSES)
def test_a_merge_reads_only_files_that_may_have_the_keys_of_the_source(
    spark: SparkSession, demo: icefloe.Catalog, reads: list[Expr], clauses: str, rows: int
) -> None:
    create(spark)
    before = demo.load_table("db.t")
    first = FILES * ROWS - rows // 2  # half of the keys are new
    spark.sql(f"""
        MERGE INTO {TABLE} t USING (SELECT id, 1 AS n FROM range({first}, {first + rows})) s ON s.id = t.id
        {CLAUSES[clauses]}""")
    total, half = FILES * ROWS + 1, rows // 2
    expected = {
        "upsert": (total + half, rows, total - 1 + half),
        "update": (total, half, total - 1),
        "delete": (total - half, 0, total - 1 - half),
        "insert": (total + half, half, total - 1 + half),
    }
    assert result(spark) == expected[clauses]
    (read,) = reads
    assert before.scan(read).plan().files == 1


@pytest.mark.thorough
@pytest.mark.parametrize("key", KEY_TYPES)
def test_keys_of_every_type_find_their_rows(spark: SparkSession, demo: icefloe.Catalog, key: str) -> None:
    type_, value, source = KEY_TYPES[key]
    create(spark, type_, value)
    for first, rows in ((ROWS - 5, 10), (ROWS + 100, 300)):
        spark.sql(f"""
            MERGE INTO {TABLE} t
            USING (SELECT {source.format("id")} AS id, 1 AS n FROM range({first}, {first + rows})
                   UNION ALL SELECT NULL, 2) s
            ON t.id = s.id {UPSERT}""")
    total = FILES * ROWS + 1
    assert result(spark) == (total + 2, 312, total - 1)  # keys that are null match nothing, and are inserted


@pytest.mark.thorough
def test_a_merge_by_two_keys_and_a_condition_changes_the_rows_that_have_both(
    spark: SparkSession, demo: icefloe.Catalog
) -> None:
    spark.sql(f"CREATE TABLE {TABLE} (id bigint, city string, n int)")
    spark.sql(f"INSERT INTO {TABLE} SELECT id, if(id % 2 = 0, 'Oslo', 'Rome'), 0 FROM range(1000)")
    spark.sql(f"""
        MERGE INTO {TABLE} t USING (SELECT id, 'Oslo' AS city, 1 AS n FROM range(300, 500)) s
        ON t.id = s.id AND t.city = s.city AND t.id >= 400
        WHEN MATCHED THEN UPDATE SET n = 7 WHEN NOT MATCHED THEN INSERT *""")
    query = f"SELECT n, count(*), min(id) FROM {TABLE} GROUP BY n ORDER BY n"
    assert [tuple(row) for row in spark.sql(query).collect()] == [(0, 950, 0), (1, 150, 300), (7, 50, 400)]


def test_a_source_that_differs_from_run_to_run_is_evaluated_once(spark: SparkSession, demo: icefloe.Catalog) -> None:
    create(spark)
    for _ in range(2):  # if the keys were not those of the rows, rows would be inserted
        spark.sql(f"""
            MERGE INTO {TABLE} t
            USING (SELECT r.id + CAST(floor(x * {(FILES - 1) * ROWS}) AS bigint) AS id, 1 AS n
                   FROM range(150) r CROSS JOIN (SELECT rand() AS x)) s
            ON t.id = s.id {UPSERT}""")
        assert result(spark)[::2] == (FILES * ROWS + 1, FILES * ROWS)


@pytest.mark.thorough
def test_a_source_without_keys_changes_nothing_and_inserts_its_rows(spark: SparkSession, demo: icefloe.Catalog) -> None:
    create(spark)
    no_rows = "SELECT id, 1 AS n FROM range(5) WHERE id > 5 AND rand() >= 0"
    spark.sql(f"MERGE INTO {TABLE} t USING ({no_rows}) s ON t.id = s.id {UPSERT}")
    no_keys = "SELECT nullif(id, id) AS id, 1 AS n FROM range(5)"
    spark.sql(f"MERGE INTO {TABLE} t USING ({no_keys}) s ON t.id = s.id {UPSERT}")
    assert result(spark) == (FILES * ROWS + 6, 5, FILES * ROWS)


@pytest.mark.thorough
def test_a_delete_by_the_keys_of_a_query_reads_only_their_files(
    spark: SparkSession, demo: icefloe.Catalog, reads: list[Expr]
) -> None:
    create(spark)
    before = demo.load_table("db.t")
    spark.sql(f"DELETE FROM {TABLE} WHERE id IN (SELECT id + 10 FROM range(200))")
    assert result(spark) == (FILES * ROWS + 1 - 200, 0, FILES * ROWS - 200)
    assert before.scan(reads[0]).plan().files == 1


@pytest.mark.parametrize("id_", [ROWS + 1, 3 * ROWS], ids=["in the range", "outside"])
def test_a_commit_conflicts_with_a_merge_only_in_the_range_of_its_keys(
    spark: SparkSession, demo: icefloe.Catalog, monkeypatch: pytest.MonkeyPatch, id_: int
) -> None:
    create(spark)
    commit = row_changes.commit_found_rows

    def commit_second(*arguments: Any, **options: Any) -> object:
        demo.load_table("db.t").append(pa.table({"id": [id_], "n": pa.array([5], pa.int32())}))
        return commit(*arguments, **options)

    monkeypatch.setattr(row_changes, "commit_found_rows", commit_second)
    merge = f"""
        MERGE INTO {TABLE} t USING (SELECT id, 1 AS n FROM range({ROWS}, {ROWS + 200})) s ON t.id = s.id {UPSERT}"""
    if id_ == ROWS + 1:
        with pytest.raises(PySparkException, match="icefloe ConflictError"):
            spark.sql(merge)
    else:
        spark.sql(merge)
        assert result(spark)[1] == 201


@pytest.mark.thorough
def test_nothing_stays_in_memory_after_a_merge(spark: SparkSession, demo: icefloe.Catalog) -> None:
    create(spark)
    kept = spark.sparkContext._jsc.sc().getPersistentRDDs
    before = kept().size()
    source = "SELECT id % 100 AS id, 1 AS n FROM range(200)"
    with pytest.raises(PySparkException, match="MERGE_CARDINALITY_VIOLATION"):
        spark.sql(f"MERGE INTO {TABLE} t USING ({source}) s ON t.id = s.id {UPSERT}")
    assert kept().size() == before  # rows kept by a statement that failed stayed until Java collected them
    spark.sql(f"MERGE INTO {TABLE} t USING (SELECT DISTINCT * FROM ({source})) s ON t.id = s.id {UPSERT}")
    assert kept().size() == before


@pytest.mark.thorough
def test_explaining_a_merge_runs_no_job(spark: SparkSession, demo: icefloe.Catalog) -> None:
    create(spark)
    spark.sparkContext.setJobGroup("explain", "EXPLAIN MERGE")
    try:
        source = "SELECT id, 1 AS n FROM range(200)"
        (plan,) = spark.sql(f"EXPLAIN MERGE INTO {TABLE} t USING ({source}) s ON t.id = s.id {UPSERT}").first()
        assert "Icefloe change rows" in plan
        assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("explain")) == []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
