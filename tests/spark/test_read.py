from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import QueryExecutionException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.read.read import FILE, POSITION, dataframe, rows_with_positions, survivors
from icefloe.engines.spark.read.source import Source
from icefloe.errors import NoSuchFile, UnsupportedError
from icefloe.expr.filter.nodes import Expr
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, Field, List, Map, Struct
from icefloe.scan.tasks import Plan
from spark.fakes import Files
from support.tables import new_catalog

pytestmark = pytest.mark.spark

ID = Schema(fields=(Field(1, "id", LONG, True), Field(2, "note", STRING)))


def ids(start: int, count: int) -> dict[str, list[object]]:
    return {"id": list(range(start, start + count)), "note": [f"n{i}" for i in range(start, start + count)]}


def three_files(files: Files) -> list[str]:
    return [files.add(f"f{i}.parquet", ids(10 * i, 10), ID) for i in range(3)]


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    former = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", former)


def test_all_rows_come_back_with_the_schema_of_the_table(spark: SparkSession, files: Files) -> None:
    three_files(files)
    frame = dataframe(spark, files.source(ID))
    assert [(f.name, f.dataType.simpleString(), f.nullable) for f in frame.schema] == [
        ("id", "bigint", False),
        ("note", "string", True),
    ]
    assert sorted(frame.collect()) == [(i, f"n{i}") for i in range(30)]


def test_a_filter_applied_later_prunes_files(spark: SparkSession, files: Files) -> None:
    locations = three_files(files)
    frame = dataframe(spark, files.source(ID))
    os.remove(locations[0])
    os.remove(locations[1])
    assert frame.where("id >= 25").count() == 5
    assert files.returned[-1] == [locations[2]]


def test_nothing_is_planned_before_an_action(spark: SparkSession, files: Files) -> None:
    three_files(files)
    dataframe(spark, files.source(ID)).where("id > 3").select("note")
    assert files.asked == []


def test_two_scans_in_one_statement_plan_separately(spark: SparkSession, files: Files) -> None:
    locations = three_files(files)
    dataframe(spark, files.source(ID)).createOrReplaceTempView("two_scans")
    os.remove(locations[1])
    query = "SELECT id FROM two_scans WHERE id = 2 {} SELECT id FROM two_scans WHERE id = 29"
    assert sorted(row.id for row in spark.sql(query.format("UNION ALL")).collect()) == [2, 29]
    assert {tuple(names) for names in files.returned} == {(locations[0],), (locations[2],)}
    assert sorted(row.id for row in spark.sql(query.format("UNION")).collect()) == [2, 29]
    assert all(locations[1] not in names for names in files.returned)


def test_a_struct_with_the_name_of_the_view_is_no_qualifier(spark: SparkSession, files: Files) -> None:
    schema = Schema(fields=(Field(1, "x", LONG), Field(2, "v", Struct((Field(3, "x", LONG),)))))
    files.add("f.parquet", {"x": [1], "v": [{"x": 100}]}, schema)
    dataframe(spark, files.source(schema)).createOrReplaceTempView("v")
    assert spark.sql("SELECT 1 FROM v WHERE v.v.x > 50 AND v.x < 5").count() == 1
    assert spark.table("v").alias("other").where("other.x = 1 AND other.v.x = 100").count() == 1


def test_a_filter_that_no_file_matches_reads_nothing(spark: SparkSession, files: Files) -> None:
    for location in three_files(files):
        os.remove(location)
    assert dataframe(spark, files.source(ID)).where("id > 1000").collect() == []


def test_a_table_without_files_is_empty(spark: SparkSession, files: Files) -> None:
    assert dataframe(spark, files.source(ID)).collect() == []


def test_columns_are_matched_by_id(spark: SparkSession, files: Files) -> None:
    old = Schema(fields=(Field(1, "a", LONG), Field(2, "b", LONG), Field(3, "gone", STRING)))
    files.add("old.parquet", {"a": [1, 2], "b": [10, 20], "gone": ["x", "y"]}, old)
    swapped = Schema(fields=(Field(4, "added", STRING), Field(2, "a", LONG), Field(1, "b", LONG)))
    files.ranges.clear()
    frame = dataframe(spark, files.source(swapped))
    assert sorted(frame.select("a", "b", "added").collect()) == [(10, 1, None), (20, 2, None)]


def test_filters_after_a_swap_of_names_see_the_right_column(spark: SparkSession, files: Files) -> None:
    old = Schema(fields=(Field(1, "a", LONG), Field(2, "b", LONG)))
    files.add("old.parquet", {"a": [1, 2], "b": [10, 20]}, old)
    files.ranges.clear()
    swapped = Schema(fields=(Field(1, "b", LONG), Field(2, "a", LONG)))
    frame = dataframe(spark, files.source(swapped))
    assert frame.where("a = 10").collect() == [(1, 10)]
    assert frame.where("b > 1").collect() == [(2, 20)]
    assert frame.where("a is null or a < 5").collect() == []


def test_nested_columns_are_matched_by_id(spark: SparkSession, files: Files) -> None:
    def schema(x: str, y: str) -> Schema:
        inner = Struct((Field(4, x, INT), Field(5, y, STRING)))
        items = List(6, Struct((Field(7, x, INT),)))
        return Schema(fields=(Field(1, "s", inner), Field(2, "l", items), Field(3, "m", Map(8, STRING, 9, LONG))))

    rows = {"s": [{"x": 1, "y": "a"}, None], "l": [[{"x": 2}], []], "m": [[("k", 5)], None]}
    files.add("nested.parquet", rows, schema("x", "y"))
    frame = dataframe(spark, files.source(schema("u", "v")))
    got = frame.select("s.u", "s.v", "l.u", "m").collect()
    assert [tuple(row) for row in got] == [(1, "a", [2], {"k": 5}), (None, None, [], None)]


def test_promoted_columns_are_widened(spark: SparkSession, files: Files) -> None:
    files.add("old.parquet", {"n": [1, None]}, Schema(fields=(Field(1, "n", INT),)))
    files.add("new.parquet", {"n": [1 << 40]}, Schema(fields=(Field(1, "n", LONG),)))
    source = replace(files.source(Schema(fields=(Field(1, "n", LONG),))), stable_names=True)
    frame = dataframe(spark, source)
    assert sorted(row.n for row in frame.where("n > 0").collect()) == [1, 1 << 40]
    assert [row.n for row in frame.where(f"n > {1 << 35}").collect()] == [1 << 40]
    assert [row.n for row in frame.where(f"n < {1 << 35}").collect()] == [1]


def test_row_groups_are_pruned_where_names_are_stable(spark: SparkSession, files: Files) -> None:
    files.add("a.parquet", ids(0, 100_000), ID, row_group_size=1000)
    files.ranges.clear()
    source = files.source(ID)

    def rows_read(source: Source) -> int:
        frame = dataframe(spark, source).where("id = 99999")
        assert frame.count() == 1
        assert [row.id for row in frame.collect()] == [99999]
        leaf = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
        return int(leaf.metrics().apply("numOutputRows").value())

    assert rows_read(source) == 100_000
    assert rows_read(replace(source, stable_names=True)) <= 1000


def test_a_file_without_ids_is_refused_and_not_read_as_nulls(spark: SparkSession, files: Files) -> None:
    location = files.add("f.parquet", ids(0, 3), ID)
    pa.parquet.write_table(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}), location, store_schema=False)
    files.rows[0]["file_size_in_bytes"] = os.path.getsize(location)
    with pytest.raises(Exception, match=r"field [Ii]ds"):
        dataframe(spark, files.source(ID)).collect()


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_deleted_rows_are_left_out_across_row_groups(spark: SparkSession, files: Files, vectorized: str) -> None:
    first = files.add("a.parquet", ids(0, 1000), ID, row_group_size=100)
    files.add("b.parquet", ids(1000, 50), ID)
    gone = [0, 31, 32, 33, 99, 100, 101, 555, 999]
    files.delete(first, gone)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        frame = dataframe(spark, files.source(ID))
        assert frame.columns == ["id", "note"]
        assert sorted(row.id for row in frame.collect()) == [i for i in range(1050) if i not in gone]
        assert frame.where("id >= 990 and id < 1010").count() == 19
        assert frame.where("id = 555").count() == 0
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_every_row_of_a_file_may_be_deleted(spark: SparkSession, files: Files) -> None:
    location = files.add("a.parquet", ids(0, 64), ID)
    files.delete(location, list(range(64)))
    assert dataframe(spark, files.source(ID)).count() == 0


def test_deletes_work_together_with_renames(spark: SparkSession, files: Files) -> None:
    location = files.add("a.parquet", ids(0, 10), ID)
    files.delete(location, [3, 4])
    renamed = Schema(fields=(Field(2, "memo", STRING), Field(9, "new", DOUBLE), Field(1, "key", LONG)))
    rows = dataframe(spark, files.source(renamed)).collect()
    assert sorted(row.key for row in rows) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert {row.new for row in rows} == {None}
    assert {row.memo for row in rows} == {f"n{i}" for i in (0, 1, 2, 5, 6, 7, 8, 9)}


def test_positions_are_physical_and_files_keep_their_numbers(spark: SparkSession, files: Files) -> None:
    locations = three_files(files)
    files.delete(locations[2], [0, 1])
    rows = rows_with_positions(spark, files.source(ID))
    assert rows.frame.columns == ["id", "note", POSITION, FILE]
    last = rows.frame.where("id >= 21").collect()
    assert {(rows.files.location(r[FILE]), r[POSITION], r.id) for r in last} == {
        (locations[2], i - 20, i) for i in range(22, 30)
    }
    everything = rows.frame.collect()
    assert {(rows.files.location(r[FILE]), r[POSITION], r.id) for r in everything} == {
        (locations[i // 10], i % 10, i) for i in range(30) if i not in (20, 21)
    }


def test_a_filter_on_the_file_number_is_exact(spark: SparkSession, files: Files) -> None:
    locations = three_files(files)
    rows = rows_with_positions(spark, files.source(ID))
    numbers = {rows.files.location(r[FILE]): r[FILE] for r in rows.frame.select(FILE).distinct().collect()}
    only = rows.frame.where(F.col(FILE) == numbers[locations[1]])
    assert sorted(row.id for row in only.collect()) == list(range(10, 20))


def test_survivors_are_the_undeleted_rows_of_touched_files(spark: SparkSession, files: Files) -> None:
    locations = three_files(files)
    files.delete(locations[0], [0])
    deleted = {locations[0]: files.deleted[locations[0]] | type(files.deleted[locations[0]])([5])}
    deleted[locations[1]] = type(files.deleted[locations[0]])([9])
    rows = survivors(spark, files.source(ID), deleted).collect()
    assert sorted(row.id for row in rows) == [i for i in range(20) if i not in (0, 5, 19)]


def test_timestamp_filters_prune_in_the_time_zone_of_the_session(new_york: SparkSession, files: Files) -> None:
    schema = Schema(fields=(Field(1, "tz", TIMESTAMPTZ), Field(2, "ntz", TIMESTAMP)))
    locations = []
    for hour in range(6):
        moment = dt.datetime(2024, 7, 1, hour)
        row = {"tz": [moment.replace(tzinfo=dt.UTC)], "ntz": [moment]}
        locations.append(files.add(f"h{hour}.parquet", row, schema))
    frame = dataframe(new_york, files.source(schema))
    # 2024-06-30 23:00 in New York is 03:00 UTC.
    assert frame.where("tz = TIMESTAMP '2024-06-30 23:00:00'").count() == 1
    assert files.returned[-1] == [locations[3]]
    assert frame.where("ntz >= TIMESTAMP_NTZ '2024-07-01 04:00:00'").count() == 2
    assert files.returned[-1] == locations[4:]


def test_the_session_of_the_user_stays_as_it_was(spark: SparkSession, files: Files) -> None:
    location = three_files(files)[0]
    files.delete(location, [1])
    before = _settings(spark)
    frame = dataframe(spark, files.source(ID))
    frame.collect()
    assert _settings(spark) == before
    active = SparkSession.getActiveSession()
    assert active is not None
    assert active._jsparkSession.equals(spark._jsparkSession)
    assert frame.sparkSession._jsparkSession.equals(spark._jsparkSession)


def _settings(spark: SparkSession) -> dict[str, str]:
    return {row.key: row.value for row in spark.sql("SET").collect()}


def test_an_error_of_the_planner_reaches_the_user_by_its_message(spark: SparkSession, files: Files) -> None:
    def plan(filter_: Expr, bounded: tuple[int, ...] = ()) -> Plan:
        raise NoSuchFile("no file s3://bucket/root.parquet: the snapshot was expired; load the table again")

    source = files.source(ID)
    broken = Source(plan=plan, vectors=source.vectors, schema=ID, location="/t", size_bytes=1, has_deletes=False)
    with pytest.raises(QueryExecutionException, match=r"icefloe NoSuchFile: no file s3://bucket/root\.parquet"):
        dataframe(spark, broken).collect()


def test_a_fault_in_the_planner_shows_its_traceback(spark: SparkSession, files: Files) -> None:
    def plan(filter_: Expr, bounded: tuple[int, ...] = ()) -> Plan:
        raise KeyError("surprise")

    source = files.source(ID)
    broken = Source(plan=plan, vectors=source.vectors, schema=ID, location="/t", size_bytes=1, has_deletes=False)
    with pytest.raises(QueryExecutionException, match="KeyError: 'surprise'"):
        dataframe(spark, broken).count()


def test_files_of_other_formats_are_refused_by_name(spark: SparkSession, files: Files) -> None:
    location = three_files(files)[0]
    files.rows[0]["file_format"] = "orc"
    with pytest.raises(QueryExecutionException, match=f"{location}: .* it is not Parquet"):
        dataframe(spark, files.source(ID)).collect()


def test_a_filter_with_line_breaks_and_backslashes_arrives_whole(spark: SparkSession, files: Files) -> None:
    three_files(files)
    hostile = "x'\n(id = 5)\n\\n"
    assert dataframe(spark, files.source(ID)).where(F.col("note") == hostile).count() == 0
    assert dataframe(spark, files.source(ID)).where((F.col("note") == hostile) | (F.col("id") == 7)).count() == 1
    assert all("5" not in str(asked).replace(repr(hostile), "") for asked in files.asked)


def test_locations_with_special_characters_are_read(spark: SparkSession, files: Files) -> None:
    location = files.add("a b%20c#d=é/x+y{1}.parquet", ids(0, 4), ID)
    files.delete(location, [2])
    assert dataframe(spark, files.source(ID)).count() == 3


def test_a_spark_connect_session_is_refused(files: Files) -> None:
    class Connect:
        pass

    with pytest.raises(UnsupportedError, match="Spark Connect"):
        dataframe(Connect(), files.source(ID))  # type: ignore[arg-type]


def test_a_column_with_a_reserved_name_is_refused(spark: SparkSession, files: Files) -> None:
    schema = Schema(fields=(Field(1, "_Pos", LONG),))
    with pytest.raises(UnsupportedError, match="_Pos"):
        rows_with_positions(spark, files.source(schema))


def test_the_filter_of_a_scan_is_evaluated_before_the_deletion_test(spark: SparkSession, tmp_path: Path) -> None:
    made = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n int", format_version=4)
    made.append(pa.table({"id": range(20), "n": pa.array([value % 3 for value in range(20)], pa.int32())}))
    made.delete("id < 5")
    frame = made.scan("n = 1", columns=["id"]).to_spark(spark)
    assert sorted(row.id for row in frame.collect()) == [7, 10, 13, 16, 19]
    plan = str(frame._jdf.queryExecution().executedPlan())
    [condition] = [line for line in plan.splitlines() if "Filter (" in line]
    before, _, after = condition.partition("_icefloe_deleted")
    assert " = 1)" in before
    assert " = 1)" not in after
