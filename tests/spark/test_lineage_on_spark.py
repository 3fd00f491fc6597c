"""Row lineage on Spark: the same ids as in this process, from files that either of them wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.engine import SparkEngine
from icefloe.errors import InputError, UnsupportedError
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from icefloe.table.held_table import pointer_of
from support.engine_work import planned_for_engine
from support.tables import new_catalog, sorted_rows

pytestmark = pytest.mark.spark
BOTH = pytest.mark.parametrize("version", [3, 4])
SCHEMA = "id bigint not null, note string"
LINEAGE = ["_row_id", "_last_updated_sequence_number"]
ALL = ["id", *LINEAGE, "_pos", "_file", "_spec_id"]


def new_table(folder: Path, version: int = 4, schema: str = SCHEMA, partition_by: tuple[str, ...] = (), **properties):
    return new_catalog(folder).create_table(
        "db.t", schema=schema, partition_by=list(partition_by), format_version=version, properties=properties
    )


def notes(*ids: int, note: str = "old") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": pa.array([note] * len(ids), pa.string())})


def lineage(rows: pa.Table) -> dict[int, tuple[int | None, int | None]]:
    assert rows.num_rows == len(set(rows["id"].to_pylist()))
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows.to_pylist()}


def read_alike(spark, table, where: str | None = None) -> dict[int, tuple[int | None, int | None]]:
    """The lineage by id, the same in both engines."""
    ours = table.scan(where, columns=ALL).to_arrow()
    theirs = table.scan(where, columns=ALL).to_spark(spark).toArrow()
    assert theirs.column_names == ALL
    assert sorted_rows(theirs) == sorted_rows(ours)
    return lineage(ours)


@BOTH
def test_lineage_is_read_alike_by_both_engines_through_every_change(spark, tmp_path, version) -> None:
    table = new_table(tmp_path, version, partition_by=("bucket(2, id)",))
    table.append(spark.range(0, 20).selectExpr("id", "'old' note"))
    table.append(notes(*range(20, 40)))
    first = read_alike(spark, table)
    assert sorted(row_id for row_id, _ in first.values()) == list(range(40))
    table.delete("id in (3, 25)", spark=spark)
    table.upsert(spark.createDataFrame([(7, "new"), (30, "new"), (50, "new")], "id long, note string"), on=["id"])
    second = read_alike(spark, table)
    assert second.pop(50)[1] == 4
    kept = {key: value for key, value in first.items() if key not in (3, 25)}
    assert second == {**kept, 7: (first[7][0], 4), 30: (first[30][0], 4)}
    table.upsert(notes(7, 51, note="newest"), on=["id"])
    third = read_alike(spark, table, "id < 20 or id > 45")
    assert third[7] == (first[7][0], 5)
    assert len({row_id for row_id, _ in third.values()}) == len(third) == 21
    ids = [row_id for row_id, _ in read_alike(spark, table).values()]
    assert max(ids) < table.metadata.next_row_id


def test_positions_count_rows_that_filters_vectors_and_row_groups_leave_out(spark, tmp_path) -> None:
    table = new_table(tmp_path, **{"write.parquet.row-group-size-bytes": "8000"})
    table.append(notes(-1))
    table.append(notes(*range(10_000)))
    table.delete("id between 0 and 2 or id = 9500")
    frame = table.scan(columns=["id", "_row_id", "_pos"]).to_spark(spark)
    found = frame.where("id >= 9499 and id < 9503 or id = 5").orderBy("id").collect()
    assert [tuple(row) for row in found] == [*((5, 6, 5), (9499, 9500, 9499), (9501, 9502, 9501), (9502, 9503, 9502))]
    assert frame.where("_row_id = id + 1").count() == frame.count() == 9997
    read_alike(spark, table)


def test_a_frame_can_be_filtered_by_its_metadata_columns(spark, tmp_path) -> None:
    table = new_table(tmp_path)
    for start in (0, 10, 20):
        table.append(notes(*range(start, start + 5)))
    table.upsert(notes(11, note="new"), on=["id"])
    frame = table.scan(columns=["id", *LINEAGE, "_pos", "_file"]).to_spark(spark)

    def ids(condition: str) -> list[int]:
        return sorted(row["id"] for row in frame.where(condition).collect())

    assert ids("_row_id = 6") == [11]
    assert ids("_row_id > 11 and id < 100") == [22, 23, 24]
    assert ids("_last_updated_sequence_number = 4 or _pos = 3") == [3, 11, 13, 23]
    assert ids("_pos = 4") == [4, 14, 24]
    assert ids("_row_id is null") == []
    place = frame.where("id = 20").select("_file").first()[0]
    assert ids(f"_file = '{place}'") == [20, 21, 22, 23, 24]
    assert ids(f"_file != '{place}' and _pos = 0") == [0, 10, 11]
    assert frame.groupBy("_file").count().count() == 4
    assert sorted(row[0] for row in frame.select(F.max("_row_id")).collect()) == [14]


def test_rows_of_files_from_before_row_lineage_have_none(spark, tmp_path) -> None:
    table = new_table(tmp_path, 2)
    table.append(notes(1, 2))
    with pytest.raises(InputError, match="'_row_id' needs row lineage"):
        table.scan(columns=["_row_id"]).to_spark(spark)
    table.upgrade(4)
    assert read_alike(spark, table) == {1: (None, None), 2: (None, None)}
    table.upsert(spark.createDataFrame([(2, "new")], "id long, note string"), on=["id"])
    found = read_alike(spark, table)
    assert sorted(row_id for row_id, _ in found.values()) == [0, 2]
    assert found[2][1] == 2
    assert all("_row_id" not in names for names in stored(table))


def stored(table) -> list[list[str]]:
    """The columns of the files, each set of files once."""
    locations = table.scan().plan().tasks["location"].to_pylist()
    return [pq.read_schema(location.removeprefix("file://")).names for location in locations]


@pytest.mark.parametrize("schema", [SCHEMA, f"{SCHEMA}, tags array<string>"], ids=["native", "in tasks"])
def test_files_hold_row_ids_by_their_reserved_field_id_only_where_a_row_is_replaced(spark, tmp_path, schema) -> None:
    table = new_table(tmp_path, schema=schema)
    table.append(spark.range(0, 4).selectExpr("id", "'old' note"))
    table.upsert(spark.range(8, 10).selectExpr("id", "'new' note"), on=["id"])
    assert all("_row_id" not in names for names in stored(table))
    table.upsert(spark.range(3, 5).selectExpr("id", "'new' note"), on=["id"])
    (location,) = table.scan("id = 3", columns=["_file"]).to_arrow()["_file"].to_pylist()
    written = pq.read_schema(location.removeprefix("file://"))
    assert written.field("_row_id").metadata[b"PARQUET:field_id"] == b"2147483540"
    assert "_last_updated_sequence_number" not in written.names
    assert read_alike(spark, table)[3] == (3, 3)
    assert not any(
        str(field.id) in n for n in table.scan().plan().tasks.column_names for field in (ROW_ID, LAST_UPDATED)
    )


def test_a_row_that_replaces_several_goes_on_as_the_oldest_of_them(spark, tmp_path) -> None:
    table = new_table(tmp_path, schema="id bigint, note string")
    table.append(notes(5, 1))
    table.append(notes(1, 2))
    table.upsert(spark.createDataFrame([(1, "one"), (None, "nobody")], "id long, note string"), on=["id"])
    found = read_alike(spark, table)
    assert found.pop(None)[0] >= 4
    assert found == {5: (0, 1), 2: (3, 2), 1: (1, 3)}


def test_ids_that_a_transaction_has_not_committed_are_written_into_no_file(spark, tmp_path) -> None:
    table = new_table(tmp_path)
    table.append(notes(1, 2))
    with table.transaction() as tx:
        tx.append(notes(3, 4))
        tx.upsert(spark.createDataFrame([(2, "new"), (3, "new")], "id long, note string"), on=["id"])
        table.append(notes(10, 11, 12))
    assert tx.result.attempts == 2
    found = read_alike(spark, table)
    assert {key: found[key][0] for key in (1, 2, 10, 11, 12)} == {1: 0, 2: 1, 10: 2, 11: 3, 12: 4}
    assert len({row_id for row_id, _ in found.values()}) == 7


@BOTH
def test_rows_that_are_written_again_keep_their_ids_and_numbers(spark, tmp_path, version) -> None:
    table = new_table(tmp_path, version)
    table.append(notes(1, 2, 3))
    table.upsert(notes(2, 4, note="new"), on=["id"])
    before = read_alike(spark, table)
    plan = table.scan().plan()
    first, second = plan.tasks.sort_by("first_row_id")["location"].to_pylist()
    gone = {first: BitMap64([0]), second: BitMap64()}  # its second row had been replaced
    io = pointer_of(table).io
    entries = SparkEngine(spark).write_survivors(planned_for_engine(io, table.metadata, plan), gone)
    parts = [pq.read_table(location.removeprefix("file://")) for location in entries["location"].to_pylist()]
    written = pa.concat_tables(parts, promote_options="permissive")
    assert lineage(written) == {key: before[key] for key in (3, 2, 4)}
    for name, id_ in zip(LINEAGE, (ROW_ID.id, LAST_UPDATED.id), strict=True):
        assert parts[0].schema.field(name).metadata[b"PARQUET:field_id"] == str(id_).encode()


def test_what_cannot_be_asked_of_a_scan_is_refused_at_once(spark, tmp_path) -> None:
    table = new_table(tmp_path)
    table.append(notes(1))
    with pytest.raises(UnsupportedError, match="'_deleted' is not read on Spark yet; there are: _file, _pos, _spec_id"):
        table.scan(columns=["_deleted"]).to_spark(spark)
    with pytest.raises(InputError, match="the table has no column _row_id"):
        table.append(spark.sql("SELECT 1L id, 'x' note, 7L _row_id"))


def test_nothing_is_kept_in_memory_after_an_upsert(spark, tmp_path) -> None:
    table = new_table(tmp_path)
    table.append(notes(1, 2))
    table.upsert(spark.createDataFrame([(2, "new")], "id long, note string"), on=["id"])
    assert spark.sparkContext._jsc.sc().getPersistentRDDs().size() == 0
