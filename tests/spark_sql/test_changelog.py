"""Changes in Spark SQL: CALL create_changelog_view and the metadata table ``changes``."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefloe


def changed(demo: icefloe.Catalog) -> list[int]:
    """A table that got rows, an update and a delete; its snapshots."""
    t = demo.create_table("db.t", schema="id bigint not null, city string")
    t.append(pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
    t.update({"city": "'Bern'"}, where="id = 2")
    t.delete("id = 1")
    return [snapshot.snapshot_id for snapshot in t.snapshots]


def found(spark: SparkSession, view: str) -> list[tuple[object, ...]]:
    text = f"SELECT id, city, _change_type, _change_ordinal FROM {view} ORDER BY _change_ordinal, id, _change_type"
    return [tuple(row) for row in spark.sql(text).collect()]


def test_a_changelog_view_has_the_changes_between_two_snapshots(spark: SparkSession, demo: icefloe.Catalog) -> None:
    first, second, third = changed(demo)
    rows = spark.sql("CALL demo.system.create_changelog_view('db.t')").collect()
    assert [tuple(row) for row in rows] == [("t_changes",)]
    assert found(spark, "t_changes") == [
        (1, "Oslo", "INSERT", 0),
        (2, "Rome", "INSERT", 0),
        (2, "Rome", "DELETE", 1),
        (2, "Bern", "INSERT", 1),
        (1, "Oslo", "DELETE", 2),
    ]
    spark.sql(
        "CALL demo.system.create_changelog_view(table => 'demo.db.t', changelog_view => 'v', options =>"
        f" map('start-snapshot-id', '{first}', 'end-snapshot-id', '{second}'), identifier_columns => array('id'))"
    )
    assert found(spark, "v") == [(2, "Bern", "UPDATE_AFTER", 0), (2, "Rome", "UPDATE_BEFORE", 0)]
    assert {row[0] for row in spark.sql("SELECT _commit_snapshot_id FROM v").collect()} == {second}
    spark.sql("CALL demo.system.create_changelog_view(table => 'db.t', changelog_view => 'v', net_changes => true)")
    assert found(spark, "v") == [(2, "Bern", "INSERT", 1)]
    assert third != second


def test_the_metadata_table_has_all_changes(spark: SparkSession, demo: icefloe.Catalog) -> None:
    first, *_ = changed(demo)
    assert spark.sql("SELECT count(*) FROM demo.db.t.changes").collect()[0][0] == 5
    rows = spark.sql("SELECT city FROM demo.db.t.changes WHERE _change_type = 'DELETE' ORDER BY city").collect()
    assert [row[0] for row in rows] == ["Oslo", "Rome"]
    assert spark.sql(f"SELECT * FROM demo.db.t.changes VERSION AS OF {first}").count() == 2


def test_an_unknown_option_and_an_unknown_snapshot_are_named(spark: SparkSession, demo: icefloe.Catalog) -> None:
    changed(demo)
    with pytest.raises(PySparkException, match="there is no option 'start'"):
        spark.sql("CALL demo.system.create_changelog_view('db.t', 'v', map('start', '1'))")
    with pytest.raises(PySparkException, match="snapshot 1"):
        spark.sql("CALL demo.system.create_changelog_view('db.t', 'v', map('start-snapshot-id', '1'))")
