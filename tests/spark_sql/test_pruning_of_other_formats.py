"""Queries skip Avro and ORC files, which Spark does not read itself, by their filters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from spark_sql.test_row_changes import commit_first

ROWS = pa.table({"id": [1, 2, 3, 4], "city": ["Oslo", "Oslo", "Rome", None], "at": [10, 20, 30, 40]})
FORMATS = pytest.mark.parametrize("file_format", ["avro", "orc"])


@pytest.fixture
def places(demo, file_format):
    """A table by city whose last files are not Parquet."""
    demo.create_namespace("db")
    table = demo.create_table("db.places", ROWS.schema, partition_by=["city"])
    table.append(pa.table({"id": [5], "city": ["Rome"], "at": [50]}))
    table.set_properties({"write.format.default": file_format})
    table.append(ROWS)
    return table


def lose_files(table, city: str) -> None:
    """Delete the data files of a city that are not Parquet, so that whoever opens one fails."""
    files = Path(table.location.removeprefix("file://")).rglob(f"*city={city}/*")
    assert [path.unlink() for path in files if path.suffix in (".avro", ".orc")] == [None]


@FORMATS
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("city = 'Oslo'", [1, 2]),
        ("'Oslo' = city AND rand() >= 0", [1, 2]),
        ("city IN ('Oslo', 'Bergen') AND upper(city) = 'OSLO'", [1, 2]),
        ("city IS NULL", [4]),
        ("NOT city = 'Rome'", [1, 2]),
        ("city LIKE 'Os%' OR city < 'B'", [1, 2]),
        ("CITY = 'Oslo' AND id > 1", [2]),
        ("city = 'Oslo' AND _pos >= 0", [1, 2]),
    ],
)
def test_a_query_does_not_open_the_files_of_other_partitions(spark, places, where, ids):
    # Spark pushes no filter through Python: a query on one partition read the files of all.
    lose_files(places, "Rome")
    found = spark.sql(f"SELECT id FROM demo.db.places p WHERE {where} ORDER BY id").collect()
    assert [row.id for row in found] == ids


@FORMATS
def test_a_filter_in_a_view_or_behind_a_join_skips_files_too(spark, places):
    lose_files(places, "Rome")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW named AS SELECT id AS number, city AS town FROM demo.db.places")
    assert spark.sql("SELECT number FROM named WHERE town = 'Oslo' ORDER BY number").collect() == [(1,), (2,)]
    joined = (
        "SELECT a.id FROM demo.db.places a JOIN named b ON a.id = b.number WHERE a.city = 'Oslo' AND b.town = 'Oslo'"
    )
    assert sorted(spark.sql(joined).collect()) == [(1,), (2,)]


@FORMATS
def test_one_query_with_several_filters_on_a_table_reads_what_each_of_them_needs(spark, places):
    query = (
        "SELECT id FROM demo.db.places WHERE city = 'Oslo' UNION ALL SELECT id FROM demo.db.places WHERE city IS NULL"
        " UNION ALL SELECT count(*) FROM demo.db.places"
    )
    assert sorted(spark.sql(query).collect()) == [(1,), (2,), (4,), (5,)]
    assert spark.sql("SELECT id FROM demo.db.places WHERE city = 'Rome' ORDER BY id").collect() == [(3,), (5,)]


@FORMATS
def test_a_statement_skips_files_and_only_conflicts_with_changes_of_what_it_reads(spark, places):
    lose_files(places, "Rome")
    spark.sql("UPDATE demo.db.places SET id = id + 100 WHERE city = 'Oslo' AND at > 10")
    spark.sql("DELETE FROM demo.db.places WHERE city = 'Oslo' AND id % 2 = 1")
    spark.sql(
        "MERGE INTO demo.db.places t USING (SELECT 102 AS id) s ON t.id = s.id AND t.city = 'Oslo'"
        " WHEN MATCHED THEN UPDATE SET at = 21"
    )
    assert spark.sql("SELECT id, at FROM demo.db.places WHERE city = 'Oslo'").collect() == [(102, 21)]


@FORMATS
def test_a_statement_conflicts_with_commits_to_the_files_that_it_looked_for_and_with_no_others(
    spark, demo, places, monkeypatch
):
    def add(city: str) -> Callable[[], object]:
        return lambda: demo.load_table("db.places").append(pa.table({"id": [6], "city": [city], "at": [60]}))

    statement = "UPDATE demo.db.places SET at = 0 WHERE city = 'Oslo' AND id > 1"
    with monkeypatch.context() as patched:
        commit_first(patched, add("Oslo"))
        with pytest.raises(PySparkException, match="icefloe ConflictError"):
            spark.sql(statement)
    with monkeypatch.context() as patched:
        commit_first(patched, add("Rome"))
        spark.sql(statement)
    assert spark.sql("SELECT id FROM demo.db.places WHERE at = 0 ORDER BY id").collect() == [(2,), (6,)]
