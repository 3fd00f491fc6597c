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


def test_options_select_the_changes_of_a_range_and_rows_have_files_and_positions(
    spark: SparkSession, demo: icefloe.Catalog
) -> None:
    """Times were ignored, and start-snapshot-id, _file and _pos refused."""
    first, second, third = changed(demo)
    table = demo.load_table("db.t")
    times = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in table.snapshots}

    def ids(**options: int) -> list[tuple[int, int]]:
        named = {name.replace("_", "-"): str(value) for name, value in options.items()}
        rows = spark.read.options(**named).table("demo.db.t.changes").select("id", "_commit_snapshot_id").collect()
        return sorted(tuple(row) for row in rows)

    assert ids(start_snapshot_id=second) == ids(start_timestamp=times[second]) == [(1, third)]
    assert ids(end_snapshot_id=first) == ids(end_timestamp=times[first]) == [(1, first), (2, first)]
    assert ids(start_snapshot_id=first, end_timestamp=times[second]) == [(2, second), (2, second)]
    assert ids(start_timestamp=1, snapshot_id=first) == [(1, first), (2, first)]
    rows = spark.sql("SELECT id, _change_type, _pos, _file FROM demo.db.t.changes WHERE id = 1").collect()
    assert {(row[1], row[2]) for row in rows} == {("INSERT", 0), ("DELETE", 0)}
    written = table.at(snapshot=first).scan(columns=["_file"]).to_arrow()["_file"][0].as_py()
    assert [row[3] for row in rows if row[1] == "INSERT"] == [written]
    for options, message in (
        ({"start-snapshot-id": "1", "start-timestamp": "1"}, "give one of the options start-snapshot-id"),
        ({"start-timestamp": "soon"}, "option start-timestamp='soon' is not a number"),
        ({"end-timestamp": "1", "branch": "main"}, "option branch selects the end of the changes"),
        ({"end-snapshot": "1"}, "option 'end-snapshot' is not known for a read of changes"),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.read.options(**options).table("demo.db.t.changes").collect()
