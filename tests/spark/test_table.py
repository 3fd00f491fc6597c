"""A table through the public surface on Spark, in every version that can be written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from icefloe.errors import InputError
from support.tables import VERSIONS, new_catalog

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("version", VERSIONS)]
SCHEMA = "id bigint not null, ts timestamp, city string, amount double"


def orders(spark, start: int, stop: int, city: str = "Oslo"):
    return spark.range(start, stop).select(
        "id",
        F.timestamp_seconds(F.col("id") * 3600).alias("ts"),
        F.lit(city).alias("city"),
        (F.col("id") / 2).alias("amount"),
    )


@pytest.fixture
def table(version, tmp_path):
    return new_catalog(tmp_path).create_table(
        "db.orders", schema=SCHEMA, partition_by=["day(ts)"], format_version=version
    )


def ids(frame) -> list[int]:
    return sorted(frame.select("id").toArrow()["id"].to_pylist())


def test_both_engines_read_what_either_wrote(spark, table):
    table.append(orders(spark, 0, 50))
    table.append(orders(spark, 50, 60).toArrow())
    assert ids(table.scan().to_spark(spark)) == list(range(60))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(60))
    assert table.scan().count() == 60


def test_a_later_filter_on_another_column_opens_only_the_files_that_can_match(spark, table):
    """The DataFrame is made before the filter is known; every other data file is gone when the query runs."""
    for n in range(6):
        table.append(orders(spark, 100 * n, 100 * n + 20))
    frame = table.scan().to_spark(spark)
    plan = table.scan("amount >= 205.0 and amount < 208.0").plan()
    assert plan.files == 1
    wanted = set(plan.tasks["location"].to_pylist())
    for location in table.scan().plan().tasks["location"].to_pylist():
        if location not in wanted:
            Path(location.removeprefix("file://")).unlink()
    later = frame.where("amount >= 205.0 AND amount < 208.0")
    assert ids(later) == [410, 411, 412, 413, 414, 415]
    opened = {row[0] for row in later.select(F.input_file_name()).distinct().collect()}
    assert {Path(name.removeprefix("file://")) for name in opened} == {
        Path(name.removeprefix("file://")) for name in wanted
    }


def test_a_delete_on_spark_removes_rows_in_one_snapshot(spark, table):
    table.append(orders(spark, 0, 100))
    result = table.delete("amount >= 10 and amount < 20", spark=spark)
    assert result.rows_deleted == 20
    assert len(table.snapshots) == 2
    expected = [i for i in range(100) if not 10 <= i / 2 < 20]
    assert ids(table.scan().to_spark(spark)) == expected
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected


def test_deletes_add_up(spark, table):
    table.append(orders(spark, 0, 30))
    table.delete("id = 3", spark=spark)
    table.delete("id = 4 or id = 3", spark=spark)
    table.delete("id = 5")
    expected = [i for i in range(30) if i not in (3, 4, 5)]
    assert ids(table.scan().to_spark(spark)) == expected
    assert table.scan().count() == 27


def test_an_upsert_replaces_and_adds_in_one_snapshot(spark, table):
    table.append(orders(spark, 0, 50))
    result = table.upsert(orders(spark, 40, 60, city="Rome"), on=["id"])
    assert (result.rows_added, result.rows_deleted) == (20, 10)
    assert len(table.snapshots) == 2
    rows = table.scan().to_spark(spark)
    assert ids(rows) == list(range(60))
    assert ids(rows.where("city = 'Rome'")) == list(range(40, 60))
    assert sorted(table.scan("city = 'Oslo'").to_arrow()["id"].to_pylist()) == list(range(40))


def test_an_upsert_into_an_empty_table_is_an_append(spark, table):
    result = table.upsert(orders(spark, 0, 5), on=["id"])
    assert (result.operation, result.rows_added) == ("append", 5)
    assert ids(table.scan().to_spark(spark)) == list(range(5))


def test_an_upsert_with_a_key_twice_changes_nothing(spark, table):
    table.append(orders(spark, 0, 5))
    with pytest.raises(InputError, match="key"):
        table.upsert(orders(spark, 0, 3).union(orders(spark, 2, 4)), on=["id"])
    assert len(table.snapshots) == 1
    assert ids(table.scan().to_spark(spark)) == list(range(5))


def test_an_upsert_on_arrow_does_the_same(spark, table):
    table.append(orders(spark, 0, 50))
    result = table.upsert(orders(spark, 40, 60, city="Rome").toArrow(), on=["id", "ts"])
    assert (result.rows_added, result.rows_deleted) == (20, 10)
    assert ids(table.scan("city = 'Rome'").to_spark(spark)) == list(range(40, 60))


def test_the_past_is_read_on_spark(spark, table):
    first = table.append(orders(spark, 0, 10)).snapshot_id
    table.delete("id < 5", spark=spark)
    assert ids(table.at(snapshot=first).scan().to_spark(spark)) == list(range(10))
    assert ids(table.scan("id > 7", columns=["id"]).to_spark(spark)) == [8, 9]


def test_rows_that_break_the_schema_are_refused_by_name(spark, table):
    with pytest.raises(InputError, match="colour"):
        table.append(orders(spark, 0, 1).withColumn("colour", F.lit("red")))
    with pytest.raises(InputError, match="id"):
        table.append(orders(spark, 0, 1).withColumn("id", F.lit(None).cast("bigint")))
    assert table.snapshots == ()


def test_lists_and_maps_are_written_by_tasks_and_read_by_both(spark, version, tmp_path):
    schema = "id bigint, tags array<string>, scores map<string, int>"
    nested = new_catalog(tmp_path).create_table("db.nested", schema=schema, format_version=version)
    frame = spark.range(4).selectExpr(
        "id", "array(cast(id as string), null) as tags", "map('a', cast(id as int)) as scores"
    )
    nested.append(frame)
    expected = [{"id": i, "tags": [str(i), None], "scores": [("a", i)]} for i in range(4)]
    assert sorted(nested.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    rows = sorted(nested.scan().to_spark(spark).collect(), key=lambda row: row.id)
    assert [row.tags for row in rows] == [[str(i), None] for i in range(4)]
    assert isinstance(nested.scan().to_arrow(), pa.Table)


def test_a_nan_is_found_by_a_filter_that_its_files_bounds_would_rule_out(spark, version, tmp_path):
    """Spark holds NaN to be greater than any number, and a footer's bounds are trusted only if they show it."""
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, x double, y float", format_version=version)
    table.append(
        spark.sql("SELECT 1L id, 1.0D x, float(1) y UNION ALL SELECT 2L, double('NaN'), float('NaN')").coalesce(1)
    )
    table.append(spark.sql("SELECT 3L id, 2.0D x, float(2) y UNION ALL SELECT 4L, NULL, NULL").coalesce(1))
    for column in ("x", "y"):
        assert table.scan(f"{column} > 5").plan().files == 1
        assert ids(table.scan(f"{column} > 5").to_spark(spark)) == [2]
        assert table.scan(f"{column} > 5").to_arrow()["id"].to_pylist() == [2]


def test_a_nan_that_arrow_wrote_is_found_on_spark(spark, version, tmp_path):
    """Arrow leaves NaN out of a row group's bounds, by which Spark would skip the row group."""
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, x double", format_version=version)
    table.append(pa.table({"id": [1, 2], "x": [0.1, float("nan")]}))
    assert ids(table.scan().to_spark(spark).where("x > 1D")) == [2]
