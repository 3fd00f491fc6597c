"""Tables of versions 1, 2 and 3 whose metadata icefloe wrote, through evolution and deletes, read by other programs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.model.entries import ContentType, Status, column_key, entries, partition_key
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH, DELETE_POS
from icefloe.table.held_table import pointer_of
from icefloe.tree.file_changes import FileChanges
from interop.test_programs_read_icefloe import PARTITIONS, SCHEMA, check, events, normal

pytestmark = pytest.mark.interop
VERSIONS = (1, 2, 3)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_read_alike_through_appends_deletes_and_merged_manifests(version, catalog, readers):
    properties = {"commit.manifest.min-count-to-merge": "3"}
    table = catalog.create_table(
        f"db.v{version}", schema=SCHEMA, partition_by=PARTITIONS, format_version=version, properties=properties
    )
    parts = [events(range(start, start + 20)) for start in range(0, 100, 20)]
    for part in parts:
        table.append(part)
    rows = pa.concat_tables(parts)
    check(table, readers, rows)
    table.delete("id >= 70 or city = 'Oslo'")
    rows = rows.filter(
        pc.invert(pc.or_(pc.greater_equal(rows["id"], 70), pc.fill_null(pc.equal(rows["city"], "Oslo"), False)))
    )
    check(table, readers, rows)
    table.rewrite_manifests().execute()
    check(table, readers, rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_read_alike_after_schema_and_partitioning_changed(version, catalog, readers):
    table = catalog.create_table(
        f"db.evolved{version}", schema=SCHEMA, partition_by=["day(ts)", "city"], format_version=version
    )
    first, second = events(range(40)), events(range(40, 80))
    table.append(first)
    with table.update_partitioning() as partitioning:
        partitioning.remove("city")
        partitioning.add("bucket(4, id)")
    with table.update_schema() as schema:
        schema.add_column("extra", "int")
        schema.rename_column("score", "points")
        schema.move_first("ok")
    table.append(second.rename_columns(["points" if name == "score" else name for name in second.column_names]))
    with table.update_schema() as schema:
        schema.drop_column("extra")
        schema.rename_column("points", "score")
    # iceberg-rust reads with the columns of the last snapshot, and these have other names.
    others = {name: read for name, read in readers.items() if name != "iceberg-rust"}
    check(table, others, pa.concat_tables([first, second]))


def test_a_table_upgraded_step_by_step_is_read_alike(catalog, readers):
    table = catalog.create_table("db.upgraded", schema=SCHEMA, partition_by=PARTITIONS, format_version=1)
    rows = events(range(20))
    table.append(rows)
    # DuckDB asks files of version 1 for sequence numbers, which they never had, until they are written again.
    strict, readers = readers, {name: read for name, read in readers.items() if name != "duckdb"}
    for version in (2, 3):
        table.upgrade(version)
        check(table, readers, rows)
        more = events(range(version * 20, version * 20 + 20))
        table.append(more)
        rows = pa.concat_tables([rows, more])
        check(table, readers, rows)
        table.delete(f"id = {version * 20}")
        rows = rows.filter(pc.not_equal(rows["id"], version * 20))
        check(table, readers, rows)
    table.rewrite_manifests().execute()
    check(table, strict, rows)


def test_branches_tags_and_rollback_are_seen_alike(catalog, spark):
    table = catalog.create_table("db.refs", schema=SCHEMA, format_version=2)
    table.append(events(range(10)))
    table.tag("first")
    table.branch("audit")
    table.append(events(range(10, 20)), branch="audit")
    read = spark.read.option("branch", "audit").table("lake.db.refs").toArrow()
    assert normal(read) == normal(events(range(20)))
    assert normal(spark.table("lake.db.refs").toArrow()) == normal(events(range(10)))
    table.publish("audit")
    assert normal(spark.table("lake.db.refs").toArrow()) == normal(events(range(20)))
    tagged = spark.read.option("versionAsOf", "first").table("lake.db.refs").toArrow()
    assert normal(tagged) == normal(events(range(10)))
    table.rollback(snapshot=table.metadata.ref("first").snapshot_id)
    assert normal(spark.table("lake.db.refs").toArrow()) == normal(events(range(10)))


@pytest.mark.parametrize("partitions", [[], ["city"]], ids=["unpartitioned", "partitioned"])
def test_position_deletes_committed_by_icefloe_are_applied_by_other_programs(partitions, catalog, readers, spark):
    name = f"db.positions_{len(partitions)}"
    table = catalog.create_table(name, schema=SCHEMA, partition_by=partitions, format_version=2)
    table.append(events(range(30)))
    plan = table.scan().plan()
    task = plan.tasks.slice(0, 1).to_pylist()[0]
    deleted = pq.read_table(task["location"].removeprefix("file://")).slice(0, 1)["id"][0].as_py()
    operation = RowDelta(
        changes=FileChanges(added=_position_deletes(table, task, [0])), read=table.metadata.current_snapshot
    )
    commit(pointer_of(table), operation)
    rows = events(range(30))
    expected = rows.filter(pc.not_equal(rows["id"], deleted))
    for reader, read in readers.items():
        assert normal(read(table)) == normal(expected), reader
    planned = table.scan().plan()
    assert planned.deletes.num_rows == 1
    summary = table.metadata.current_snapshot.summary
    assert (summary["added-position-delete-files"], summary["total-position-deletes"]) == ("1", "1")


def _position_deletes(table, task: dict[str, object], positions: list[int]) -> pa.Table:
    """A position delete file for one data file, written with pyarrow, as an entry."""
    fields = [
        pa.field("file_path", pa.string(), False, {b"PARQUET:field_id": str(DELETE_FILE_PATH.id).encode()}),
        pa.field("pos", pa.int64(), False, {b"PARQUET:field_id": str(DELETE_POS.id).encode()}),
    ]
    location = f"{table.location}/data/deletes-of-one-file.parquet"
    path = location.removeprefix("file://")
    rows = [{"file_path": task["location"], "pos": position} for position in positions]
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), path)
    partition = {key: value for key, value in task.items() if ":p" in key}
    row = {
        "content_type": int(ContentType.POSITION_DELETES),
        "location": location,
        "file_format": "parquet",
        "status": int(Status.ADDED),
        "partition_spec_id": task["partition_spec_id"],
        "record_count": len(positions),
        "file_size_in_bytes": Path(path).stat().st_size,
        f"lower_bound:{DELETE_FILE_PATH.id}": task["location"],
        f"upper_bound:{DELETE_FILE_PATH.id}": task["location"],
        **partition,
    }
    types = {column_key(DELETE_FILE_PATH.id): pa.string(), partition_key(1000): pa.string()}
    return entries([row], types)
