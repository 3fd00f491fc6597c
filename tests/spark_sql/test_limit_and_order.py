"""LIMIT, and ORDER BY with LIMIT, list only the files that their rows can come from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from support.spark_plans import file_scans

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3, 4])
NEWEST = pytest.mark.parametrize("version", [4])
TABLE = "demo.db.t"
FILES, ROWS = 6, 10


@pytest.fixture
def table(demo, version):
    """Ids rise from file to file; of names only the first 16 characters are in the bounds."""
    demo.create_namespace("db")
    schema = "id bigint, name string, x double, who struct<n: int>"
    table = demo.create_table("db.t", schema=schema, format_version=version)
    for number in range(FILES):
        ids = range(number * ROWS, number * ROWS + ROWS)
        rows = {
            "id": pa.array(ids, pa.int64()),
            "name": [f"{i:04d} is the beginning of a long text" for i in ids],
            "x": [float(i) for i in ids],
            "who": pa.array([{"n": i} for i in ids], pa.struct([("n", pa.int32())])),
        }
        table.append(pa.table(rows))
    return table


def files_read(frame: Any) -> int:
    """How many files the only scan of a query has read."""
    frame.collect()
    (scan,) = file_scans(frame)
    return int(scan.metrics().apply("numFiles").value())


@VERSIONS
@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM {} LIMIT 3", 1),
        ("SELECT id + 1 FROM {} LIMIT 15", 2),
        ("SELECT id FROM {} LIMIT 5 OFFSET 12", 2),
        ("SELECT name FROM {} ORDER BY id LIMIT 10", 1),
        ("SELECT ID AS number, x FROM {} ORDER BY number DESC, x LIMIT 11", 2),
        ("SELECT * FROM {} ORDER BY name DESC NULLS LAST LIMIT 2", 1),
        ("SELECT count(*) FROM (SELECT id FROM {} ORDER BY id LIMIT 25)", 3),
        ("SELECT id FROM {} LIMIT 1000", FILES),
        ("SELECT id FROM {} ORDER BY x LIMIT 1", FILES),
        ("SELECT id FROM {} ORDER BY -id LIMIT 1", FILES),
        ("SELECT id FROM {} ORDER BY who.n LIMIT 1", FILES),
        ("SELECT id FROM {} WHERE id % 7 = 6 LIMIT 1", FILES),
        ("SELECT id FROM {} WHERE id % 7 = 6 ORDER BY id LIMIT 1", FILES),
        ("SELECT id, row_number() OVER (ORDER BY id DESC) FROM {} ORDER BY id LIMIT 1", FILES),
        ("SELECT DISTINCT name FROM {} ORDER BY name LIMIT 1", FILES),
    ],
)
def test_only_files_of_the_first_rows_are_read(spark, table, query, files):
    frame = spark.sql(query.format(TABLE))
    assert files_read(frame) == files
    if "ORDER BY" in query:
        whole = spark.sql(query.format(f"(SELECT /*+ REPARTITION(1) */ * FROM {TABLE})"))
        assert frame.collect() == whole.collect()


@VERSIONS
def test_nulls_come_first_unless_the_query_says_otherwise(spark, table):
    table.append(pa.table({"id": pa.array([None, 1000], pa.int64())}))
    assert spark.sql(f"SELECT id FROM {TABLE} ORDER BY id LIMIT 2").collect() == [(None,), (0,)]
    assert spark.sql(f"SELECT id FROM {TABLE} ORDER BY id NULLS LAST LIMIT 1").collect() == [(0,)]
    assert spark.sql(f"SELECT id FROM {TABLE} ORDER BY id DESC LIMIT 2").collect() == [(1000,), (59,)]
    assert spark.sql(f"SELECT id FROM {TABLE} ORDER BY id DESC NULLS FIRST LIMIT 1").collect() == [(None,)]


@VERSIONS
def test_deleted_rows_are_not_counted_on(spark, table):
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("id < 9 or id > 55")
    assert spark.sql(f"SELECT id FROM {TABLE} ORDER BY id LIMIT 2").collect() == [(9,), (10,)]
    assert spark.sql(f"SELECT id FROM {TABLE} ORDER BY id DESC LIMIT 1").collect() == [(55,)]
    assert len(spark.sql(f"SELECT id FROM {TABLE} LIMIT 30").collect()) == 30


@NEWEST
def test_a_plan_that_is_reused_lists_its_own_files(spark, table):
    frame = spark.table(TABLE).select("id")
    assert [frame.limit(n).count() for n in (5, 15, 60)] == [5, 15, 60]
    assert frame.orderBy("id").limit(1).union(frame.orderBy("id", ascending=False).limit(1)).collect() == [(0,), (59,)]
    assert frame.count() == FILES * ROWS
    assert len(frame.collect()) == FILES * ROWS
    assert frame.head(3) == [(0,), (1,), (2,)]
