"""Counts, minima and maxima of a table are answered from metadata, without a job, where its files allow it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3, 4])
NEWEST = pytest.mark.parametrize("version", [4])
TABLE = "demo.db.t"
# The same rows, of which no metadata answers.
ROWS = "(SELECT /*+ REPARTITION(1) */ * FROM {})"


@pytest.fixture
def table(demo, version):
    """Three files for each of two parts; ids rise from file to file."""
    demo.create_namespace("db")
    schema = "id bigint, part int, name string, price decimal(9, 2), day date, x double"
    table = demo.create_table("db.t", schema=schema, partition_by=["part"], format_version=version)
    for number in range(6):
        rows = {
            "id": range(number * 10, number * 10 + 10),
            "part": pa.array([number % 2] * 10, pa.int32()),
            "name": [None if i == 0 else f"name {number} {i}" for i in range(10)],
            "price": pa.array(range(10), pa.decimal128(9, 2)),
            "day": pa.array(range(10), pa.int32()).cast(pa.date32()),
            "x": [i + 0.5 for i in range(10)],
        }
        table.append(pa.table({name: pa.array(column) for name, column in rows.items()}))
    table.set_properties({"write.delete.mode": "merge-on-read"} if version > 1 else {})
    return table


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def answers(spark: Any, query: str) -> bool:
    """Whether a query, which has the same rows as without metadata, reads no file."""
    frame = spark.sql(query.format(TABLE))
    whole = spark.sql(query.format(ROWS.format(TABLE)))
    assert sorted(map(repr, frame.collect())) == sorted(map(repr, whole.collect()))
    return "FileScan" not in plan_of(frame)


@VERSIONS
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*), min(id), max(id), count(name), min(price), max(day), min(x) FROM {}",
        "SELECT part, max(id) - min(id) AS span, count(1) FROM {} GROUP BY part",
        "SELECT count(*) FROM {} GROUP BY part",
        "SELECT DISTINCT part FROM {}",
        "SELECT count(*), max(id) FROM {} WHERE part = 1 AND id >= 10",
        "SELECT count(*), max(id) FROM {} WHERE part = 7",
        "SELECT part, count(*) FROM {} WHERE part = 7 GROUP BY part",
        "SELECT max(id) FROM {} WHERE id IS NOT NULL AND NOT (part = 1)",
        "SELECT (SELECT max(id) FROM {0}) + count(*) FROM {0}",
        "SELECT max(ID) FROM (SELECT id FROM {} WHERE Part <=> 0)",
    ],
)
def test_metadata_answers_without_reading_a_file(spark, table, query):
    assert answers(spark, query)


@VERSIONS
@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(id), count(*) FROM {}",
        "SELECT count(DISTINCT part) FROM {}",
        "SELECT count(*) FILTER (WHERE id > 3) FROM {}",
        "SELECT max(id + 1) FROM {}",
        "SELECT x, count(*) FROM {} GROUP BY x",
        "SELECT id, count(*) FROM {} GROUP BY id",
        "SELECT count(*) FROM {} WHERE id % 2 = 0",
    ],
)
def test_spark_answers_what_metadata_cannot(spark, table, query):
    assert not answers(spark, query)


@NEWEST
@pytest.mark.parametrize("query", ["count(*) FROM {} WHERE _file LIKE '%parquet'", "min(_pos) + 60 FROM {}"])
def test_spark_answers_questions_about_metadata_columns(spark, table, query):
    frame = spark.sql(f"SELECT {query.format(TABLE)}")
    assert frame.collect() == [(60,)]
    assert "FileScan" in plan_of(frame)


@NEWEST
def test_a_count_is_answered_without_a_job(spark, table):
    context = spark.sparkContext
    context.setJobGroup("counted", "a count")
    try:
        assert spark.table(TABLE).count() == 60
        assert spark.sql(f"SELECT max(id) FROM {TABLE}").collect() == [(59,)]
        assert list(context.statusTracker().getJobIdsForGroup("counted")) == []
    finally:
        context._jsc.clearJobGroup()


@VERSIONS
def test_only_files_that_match_in_part_are_read(spark, table):
    frame = spark.sql(f"SELECT part, count(*), min(id), max(name) IS NULL FROM {TABLE} WHERE id > 8 GROUP BY part")
    assert "FileScan" in plan_of(frame)
    query = f"SELECT count(*), min(id), max(id), count(name) FROM {TABLE} WHERE id > 8"
    frame = spark.sql(query)
    assert frame.collect() == [(51, 9, 59, 46)]
    plan = plan_of(frame)
    assert "LocalTableScan" in plan
    assert "FileScan" in plan
    assert [path.rsplit("/", 1)[0] for path in frame.inputFiles()] == [f"file:{table.location[7:]}/data/part=0"]


@VERSIONS
def test_after_deletes_and_changed_columns_the_rows_are_the_same(spark, table, version):
    table.delete("id in (0, 33)")
    assert answers(spark, "SELECT count(*) FROM {}") == (version != 2)
    assert answers(spark, "SELECT count(*), max(id) FROM {}") == (version == 1)
    with table.update_schema() as schema:
        schema.rename_column("id", "number")
        schema.add_column("added", "int")
    with table.update_partitioning() as partitioning:
        partitioning.remove("part")
        partitioning.add("bucket(4, number)")
    table.append(pa.table({"number": pa.array([99], pa.int64()), "part": pa.array([None], pa.int32())}))
    answers(spark, "SELECT count(*), max(number), count(added), min(added) FROM {}")
    answers(spark, "SELECT part, count(*), max(number) FROM {} GROUP BY part")
    answers(spark, "SELECT count(*) FROM {} WHERE part IS NULL")


@NEWEST
def test_cut_texts_are_read_and_short_ones_are_not(spark, table):
    assert answers(spark, "SELECT min(name), max(name) FROM {}")
    table.append(pa.table({"name": ["a name longer than bounds of texts are"]}))
    frame = spark.sql(f"SELECT min(name), max(name) FROM {TABLE}")
    assert frame.collect() == [("a name longer than bounds of texts are", "name 5 9")]
    assert len(frame.inputFiles()) == 1


@NEWEST
def test_past_states_branches_and_options_have_their_own_answers(spark, table):
    first = table.history[0].snapshot_id
    table.branch("audit", snapshot=first)
    for state in (f"{TABLE} VERSION AS OF {first}", f"{TABLE}.branch_audit"):
        frame = spark.sql(f"SELECT count(*), max(id) FROM {state}")
        assert frame.collect() == [(10, 9)]
        assert "FileScan" not in plan_of(frame)
    added = spark.read.option("start-snapshot-id", first).table(TABLE)
    assert added.count() == 50
    assert spark.read.option("snapshot-id", first).table(TABLE).groupBy().max("id").collect() == [(9,)]
    assert spark.sql(f"SELECT count(*) FROM {TABLE}.snapshots").collect() == [(6,)]
    spark.sql(f"INSERT INTO {TABLE} (id) VALUES (1000)")
    assert spark.sql(f"SELECT max(id) FROM {TABLE}").collect() == [(1000,)]


@VERSIONS
def test_an_empty_table_has_no_rows(spark, demo, version):
    demo.create_namespace("db")
    demo.create_table("db.t", schema="id bigint, part int", partition_by=["part"], format_version=version)
    assert answers(spark, "SELECT count(*), count(id), min(id) FROM {}")
    assert answers(spark, "SELECT part, count(*) FROM {} GROUP BY part")


@NEWEST
def test_statements_that_write_count_the_rows_that_they_read(spark, table):
    spark.sql(f"CREATE TABLE demo.db.counts AS SELECT part, count(*) AS n FROM {TABLE} GROUP BY part")
    spark.sql(f"DELETE FROM {TABLE} WHERE id = (SELECT max(id) FROM {TABLE})")
    spark.sql(f"INSERT INTO {TABLE} (id) SELECT count(*) FROM {TABLE}")
    assert spark.sql("SELECT * FROM demo.db.counts ORDER BY part").collect() == [(0, 30), (1, 30)]
    assert spark.sql(f"SELECT count(*), max(id) FROM {TABLE}").collect() == [(60, 59)]


@pytest.fixture
def db(demo):
    demo.create_namespace("db")
    return demo


VALUES = st.one_of(st.none(), st.integers(-3, 3))
FLOATS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, float("nan"), 1.5]))
TEXTS = st.sampled_from([None, "a", "b" * 20, "b" * 20 + "c"])


@pytest.mark.parametrize("version", [2, 3, 4])
@given(
    files=st.lists(st.lists(st.tuples(VALUES, VALUES, FLOATS, TEXTS), min_size=1, max_size=3), max_size=4),
    deleted=st.sampled_from(["false", "a = 1", "p = 0"]),
    where=st.sampled_from(["", "WHERE p = 1", "WHERE a > 0", "WHERE NOT (a < 2)", "WHERE x > 0", "WHERE p IS NULL"]),
    results=st.lists(
        st.sampled_from(["count(*)", "count(a)", "min(a)", "max(a)", "min(x)", "max(x)", "min(s)", "max(s)", "max(p)"]),
        min_size=1,
        max_size=3,
    ),
    group=st.sampled_from(["", "GROUP BY p"]),
)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_aggregates_of_any_table_are_those_of_its_rows(spark, db, version, files, deleted, where, results, group):
    schema = pa.schema([("a", pa.int64()), ("p", pa.int32()), ("x", pa.float64()), ("s", pa.string())])
    properties = {"write.delete.mode": "merge-on-read"}
    table = db.create_table("db.t", schema, partition_by=["p"], format_version=version, properties=properties)
    try:
        for rows in files:
            table.append(pa.table(list(map(pa.array, zip(*rows, strict=True), schema.types)), schema=schema))
        table.delete(deleted)
        answers(spark, f"SELECT {', '.join(results)} FROM {{}} {where} {group}")
    finally:
        db.drop_table("db.t")
