"""CALL demo.system.*: actions on tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefloe
from icefloe.engines.choose import engine_for
from icefloe.engines.engine import Engine
from icefloe.spark_sql.procedures.calls import PROCEDURES
from icefloe.table import maintained_table


def call(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(f"CALL demo.system.{text}").collect()]


def table(demo: icefloe.Catalog) -> tuple[icefloe.Table, int, int]:
    """A table with two snapshots, and their ids."""
    t = demo.create_table("db.t", schema="id bigint not null, city string")
    ids = [t.append(pa.table({"id": [number], "city": ["Oslo"]})).snapshot_id for number in (1, 2)]
    first, second = ids
    assert first is not None
    assert second is not None
    return t, first, second


def test_procedures_move_main_to_other_snapshots(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t, first, second = table(demo)
    assert call(spark, f"rollback_to_snapshot('db.t', {first})") == [(second, first)]
    assert call(spark, f"set_current_snapshot(table => 'demo.db.t', snapshot_id => {second})") == [(first, second)]
    assert [row[0] for row in call(spark, "ancestors_of('db.t')")] == [second, first]
    assert call(spark, f"create_tag('db.t', 'v1', {first})") == [("v1", first)]
    assert call(spark, "set_current_snapshot(table => 'db.t', ref => 'v1')") == [(second, first)]
    assert call(spark, "drop_tag('db.t', 'v1')") == [("v1", first)]
    time = t.refresh().snapshots[0].timestamp_ms
    assert call(spark, f"rollback_to_timestamp('db.t', timestamp_millis({time}))") == [(first, first)]
    assert spark.table("demo.db.t").count() == 1


def test_procedures_publish_branches_and_staged_snapshots(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t, _, second = table(demo)
    assert call(spark, "create_branch('db.t', 'audit')") == [("audit", second)]
    spark.sql("INSERT INTO demo.db.t.branch_audit VALUES (3, 'Rome')")
    head = t.refresh().refs["audit"].snapshot_id
    assert call(spark, "fast_forward('db.t', 'main', 'audit')") == [("main", second, head)]
    assert call(spark, "drop_branch('db.t', 'audit')") == [("audit", head)]
    staged = t.append(pa.table({"id": [4], "city": ["Rome"]}), wap_id="load-7").snapshot_id
    assert call(spark, "publish_changes('db.t', 'load-7')")[0][0] == staged
    other = t.append(pa.table({"id": [5], "city": ["Rome"]}), wap_id="load-8").snapshot_id
    assert call(spark, f"cherrypick_snapshot('db.t', {other})")[0][0] == other
    assert spark.table("demo.db.t").count() == 5
    with pytest.raises(PySparkException, match="no snapshot was staged with wap_id 'none'"):
        call(spark, "publish_changes('db.t', 'none')")


def test_snapshots_expire_and_orphan_files_are_removed(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t, first, second = table(demo)
    spark.sql("INSERT OVERWRITE demo.db.t VALUES (3, 'Rome')")
    expiring = f"expire_snapshots(table => 'db.t', snapshot_ids => array({first})"
    dry = call(spark, f"{expiring}, dry_run => true)")
    assert len(t.refresh().snapshots) == 3
    assert call(spark, f"{expiring})") == dry == [(0, 0, 0, 0, 1, 0)]
    (counts,) = call(spark, "expire_snapshots('db.t', TIMESTAMP '2100-01-01 00:00:00', 1)")
    assert (counts[0], counts[4]) == (2, 1)
    assert second not in {snapshot.snapshot_id for snapshot in t.refresh().snapshots}
    columns = spark.sql("CALL demo.system.expire_snapshots('db.t')").columns
    assert columns[:2] == ["deleted_data_files_count", "deleted_position_delete_files_count"]
    orphan = Path(f"{t.location.removeprefix('file://')}/data/orphan.parquet")
    orphan.write_bytes(b"x")
    assert call(spark, "remove_orphan_files('db.t')") == []
    os.utime(orphan, (1_000_000, 1_000_000))
    found = [(f"{t.location}/data/orphan.parquet",)]
    assert call(spark, "remove_orphan_files(table => 'db.t', dry_run => true, max_share => 1.0)") == found
    assert orphan.exists()
    assert call(spark, "remove_orphan_files(table => 'db.t', max_share => 1.0)") == found
    assert not orphan.exists()
    with pytest.raises(PySparkException, match="less than 24 hours ago"):
        call(spark, "remove_orphan_files('db.t', TIMESTAMP '2100-01-01 00:00:00')")
    with pytest.raises(PySparkException, match="is needed: branch main"):
        call(spark, f"expire_snapshots(table => 'db.t', snapshot_ids => array({t.snapshots[-1].snapshot_id}))")
    assert [row[0] for row in spark.table("demo.db.t").collect()] == [3]


def test_cleanup_procedures_find_the_files_on_spark(
    spark: SparkSession, demo: icefloe.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # They read all manifests of large tables in the driver, while rewrite_data_files ran on Spark.
    _, first, _ = table(demo)
    sessions: list[object] = []

    def seen(session: Any) -> Engine:
        sessions.append(session)
        return engine_for(session)

    monkeypatch.setattr(maintained_table, "engine_for", seen)
    assert call(spark, f"expire_snapshots(table => 'db.t', snapshot_ids => array({first}))")[0][4] == 1
    assert call(spark, "remove_orphan_files('db.t')") == []
    assert [isinstance(session, SparkSession) for session in sessions] == [True, True]


@pytest.mark.thorough
def test_procedures_change_the_layout_of_tables(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t, _, _ = table(demo)
    assert call(spark, "add_partition_field('db.t', 'bucket(4, id)', 'shard')") == [("shard", "bucket[4]")]
    assert call(spark, "replace_partition_field('db.t', 'shard', 'city')") == [("city", "identity")]
    assert call(spark, "drop_partition_field('db.t', 'city')") == []
    assert call(spark, "write_ordered_by('db.t', array('city desc', 'id'))") == [(1,)]
    assert call(spark, "set_identifier_fields('db.t', array('id'))") == [("id",)]
    before = t.refresh().format_version
    assert call(spark, "upgrade('db.t', 4)") == [(before, 4)]


@pytest.mark.thorough
def test_manifests_are_rewritten_unless_there_is_one_only(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t, _, second = table(demo)
    assert call(spark, "rewrite_manifests('db.t')") == [(2, 1)]
    assert t.refresh().snapshots[-1].parent_id == second
    rewritten = t.metadata.current_snapshot_id
    assert call(spark, "rewrite_manifests('db.t')") == [(0, 0)]
    assert t.refresh().metadata.current_snapshot_id == rewritten
    t.set_properties({"commit.manifest.target-size-bytes": "1"})
    assert call(spark, "rewrite_manifests('db.t')") == [(1, 2)]  # a large one is split
    demo.create_table("db.empty", schema="id bigint")
    assert call(spark, "rewrite_manifests('db.empty')") == [(0, 0)]
    columns = spark.sql("CALL demo.system.rewrite_manifests('db.empty')").columns
    assert columns == ["rewritten_manifests_count", "added_manifests_count"]


@pytest.mark.thorough
def test_procedures_add_files_and_register_tables(spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path) -> None:
    t, _, _ = table(demo)
    pq.write_table(pa.table({"id": [7], "city": ["Bern"]}), tmp_path / "old.parquet")
    assert call(spark, f"add_files('db.t', 'parquet.`file://{tmp_path}/old.parquet`')") == [(1, 1)]
    t.refresh()
    rows = call(spark, f"register_table('db.copy', '{t.metadata_location}')")
    assert rows == [(t.metadata.current_snapshot_id, 3, 3)]
    assert spark.table("demo.db.copy").count() == 3


def test_procedures_are_listed_and_unknown_ones_refused(spark: SparkSession, demo: icefloe.Catalog) -> None:
    names = [row[-1] for row in spark.sql("SHOW PROCEDURES IN demo.system").collect()]
    assert names == sorted(PROCEDURES)
    with pytest.raises(PySparkException, match=r"no procedure system\.fly; the namespace system has: add_files"):
        call(spark, "fly('db.t')")
    with pytest.raises(PySparkException, match="REQUIRED_PARAMETER_NOT_FOUND"):
        call(spark, "rollback_to_snapshot('db.t')")


def test_data_files_are_rewritten(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t = demo.create_table("db.t", schema="id bigint not null, city string", partition_by=["city"], format_version=4)
    for number in range(6):
        t.append(pa.table({"id": [number, 20 - number], "city": ["Oslo", "Rome"]}))
    rows = sorted(tuple(row) for row in spark.table("demo.db.t").collect())
    frame = spark.sql("CALL demo.system.rewrite_data_files(table => 'db.t', where => 'city = \"Oslo\"')")
    assert frame.columns == [
        "rewritten_data_files_count",
        "added_data_files_count",
        "rewritten_bytes_count",
        "failed_data_files_count",
        "removed_delete_files_count",
    ]
    (found,) = frame.collect()
    assert (found[0], found[1], found[3], found[4]) == (6, 1, 0, 0)
    order = "sort_order => 'id DESC NULLS LAST, city', options => map('rewrite-all', 'true')"
    (found,) = call(spark, f"rewrite_data_files(table => 'db.t', strategy => 'sort', {order})")
    assert found[:2] == (7, 2)
    ids = t.refresh().scan("city = 'Rome'").to_arrow()["id"].to_pylist()
    assert ids == sorted(ids, reverse=True)
    zorder = "sort_order => 'zorder(id, city)', options => map('rewrite-all', 'true')"
    assert call(spark, f"rewrite_data_files(table => 'db.t', strategy => 'sort', {zorder})")[0][:2] == (2, 2)
    assert sorted(tuple(row) for row in spark.table("demo.db.t").collect()) == rows
    with pytest.raises(PySparkException, match="nearest name is 'min-input-files'"):
        call(spark, "rewrite_data_files(table => 'db.t', options => map('min-input', '2'))")


def test_delete_files_are_rewritten(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t = demo.create_table("db.t", schema="id bigint not null, city string", format_version=3)
    t.append(pa.table({"id": [1, 2, 3], "city": ["Oslo"] * 3}))
    t.upsert(pa.table({"id": [2], "city": ["Rome"]}), on=["id"], deletes="equality")
    frame = spark.sql("CALL demo.system.rewrite_position_delete_files('db.t')")
    assert frame.columns == [
        "rewritten_delete_files_count",
        "added_delete_files_count",
        "rewritten_bytes_count",
        "added_bytes_count",
    ]
    assert tuple(frame.collect()[0])[:2] == (1, 1)
    assert sorted(row[0] for row in spark.table("demo.db.t").collect()) == [1, 2, 3]
    assert call(spark, "rewrite_position_delete_files('db.t')")[0] == (0, 0, 0, 0)


@pytest.mark.thorough
def test_manifests_are_sorted_by_a_partition_field(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t = demo.create_table("db.t", schema="id bigint, city string", partition_by=["city"])
    for number in (1, 2):
        t.append(pa.table({"id": [number], "city": ["Oslo"]}))
    assert call(spark, "rewrite_manifests(table => 'db.t', sort_by => array('city'))") == [(2, 1)]


def test_procedures_compute_statistics(spark: SparkSession, demo: icefloe.Catalog) -> None:
    t, first, second = table(demo)
    empty = demo.create_table("db.empty", schema="id bigint, city string", partition_by=["city"])
    ((file,),) = call(spark, "compute_table_stats('db.t')")
    ((old,),) = call(spark, f"compute_table_stats(table => 'db.t', snapshot_id => {first}, columns => array('city'))")
    stored = {entry.snapshot_id: entry for entry in t.refresh().metadata.statistics}
    assert (stored[second].statistics_path, stored[first].statistics_path) == (file, old)
    assert [blob.properties["ndv"] for blob in stored[second].blob_metadata] == ["2", "1"]
    assert [blob.fields for blob in stored[first].blob_metadata] == [(2,)]
    assert call(spark, "compute_table_stats('db.empty')") == call(spark, "compute_partition_stats('db.empty')") == []
    empty.append(pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
    ((file,),) = call(spark, "compute_partition_stats('db.empty')")
    (entry,) = empty.refresh().metadata.partition_statistics
    assert (entry.statistics_path, entry.snapshot_id) == (file, empty.metadata.current_snapshot_id)
    with pytest.raises(PySparkException, match="the table has no partitions"):
        call(spark, "compute_partition_stats('db.t')")


def test_names_in_calls_are_those_of_the_session(spark: SparkSession, demo: icefloe.Catalog) -> None:
    # Backticks were parts of names, and columns were found in their own case only.
    t = demo.create_table("db.t", schema="id bigint not null, City string", sort_by=["id"])
    for number in range(6):
        t.append(pa.table({"id": [number, 20 - number], "City": ["Oslo", "Rome"]}))
    assert len(call(spark, "ancestors_of('`demo`.`db`.`t`')")) == 6
    rewrite = "rewrite_data_files(table => '`db`.t', options => map('rewrite-all', 'true')"
    assert call(spark, f"{rewrite}, where => 'city = \"Bern\"')")[0][:2] == (0, 0)
    assert call(spark, f"{rewrite}, where => '1=1', sort_order => 'CITY desc, ID')")[0][:2] == (6, 1)
    assert t.refresh().scan().to_arrow()["City"].to_pylist() == ["Rome"] * 6 + ["Oslo"] * 6
    assert call(spark, f"{rewrite}, where => 'ID > 100')")[0][:2] == (0, 0)
    assert call(spark, f"{rewrite}, strategy => 'sort', sort_order => 'zorder(ID, CITY)')")[0][:2] == (1, 1)
    assert call(spark, "rewrite_position_delete_files('db.t', map('rewrite-all', 'true'), 'ID >= 0')")[0][:2] == (0, 0)
    assert call(spark, "write_ordered_by('db.t', array('bucket(4, ID)', 'CITY desc'))") == [(2,)]
    assert call(spark, "set_identifier_fields('db.t', array('ID'))") == [("id",)]
    assert len(call(spark, "compute_table_stats(table => 'db.t', columns => array('CITY'))")) == 1
    assert call(spark, "add_partition_field('db.t', 'truncate(CITY, 2)')")[0][1] == "truncate[2]"
    assert call(spark, "replace_partition_field('db.t', 'truncate(City, 2)', 'bucket(ID, 4)')")[0][1] == "bucket[4]"
    assert call(spark, "drop_partition_field('db.t', 'bucket(4, ID)')") == []
    with pytest.raises(PySparkException, match=r"where => 'length\(city\) > 1' cannot choose files"):
        call(spark, "rewrite_data_files(table => 'db.t', where => 'length(city) > 1')")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(PySparkException, match="no column 'ID'"):
            call(spark, "write_ordered_by('db.t', array('ID'))")
        with pytest.raises(PySparkException, match="Spark cannot evaluate 'ID = 1'"):
            call(spark, f"{rewrite}, where => 'ID = 1')")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
