"""The difference between two snapshots: files, rows and bytes, and in words columns, properties and refs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.table.catalog import catalog
from icefloe.table.table import Table
from support.tables import VERSIONS

NAMES = count()
VERBS = ("append", "delete", "overwrite", "rewrite")


def new_table(version: int, **options: object) -> Table:
    lake = catalog(f"diffs{next(NAMES)}", uri="memory://")
    return lake.create_table("db.t", schema="id bigint, city string", format_version=version, **options)


def rows(*ids: int, city: str = "Oslo") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "city": [city] * len(ids)})


def files(table: Table, snapshot: int | None) -> set[str]:
    return set() if snapshot is None else set(table.at(snapshot=snapshot).scan().plan().tasks["location"].to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_default_is_the_last_snapshot_against_its_parent(version):
    table = new_table(version, partition_by=["city"])
    first = table.append(rows(1, 2)).snapshot_id
    second = table.append(rows(3, city="Rome")).snapshot_id
    diff = table.diff()
    assert (diff.before, diff.after) == (first, second)
    assert set(diff.files_added["location"].to_pylist()) == files(table, second) - files(table, first)
    assert diff.files_added["partition"].to_pylist() == [{"city": "Rome"}]
    assert (diff.rows_added, diff.rows_removed, diff.files_removed.num_rows) == (1, 0, 0)
    assert diff.bytes_added == diff.files_added["file_size_in_bytes"][0].as_py()
    back = table.diff(second, first)
    assert (back.rows_removed, back.bytes_removed, back.files_added.num_rows) == (1, diff.bytes_added, 0)
    assert table.diff(second).is_empty


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_snapshot_is_compared_with_an_empty_table(version):
    table = new_table(version)
    assert table.diff().is_empty
    table.append(rows(1, 2))
    diff = table.diff()
    assert (diff.before, diff.rows_added) == (None, 2)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_file_with_other_deletes_is_neither_added_nor_removed(version):
    table = new_table(version, properties={"write.delete.mode": "merge-on-read", "write.delete.granularity": "file"})
    first = table.append(rows(1, 2, 3, 4)).snapshot_id
    table.delete("id = 1")
    middle = table.snapshots[-1].snapshot_id
    table.delete("id = 2")
    (file,) = files(table, first)
    for before, deleted in ((first, 2), (middle, 1)):
        diff = table.diff(before)
        assert (diff.files_added.num_rows, diff.files_removed.num_rows) == (0, 0)
        (changed,) = diff.changed_deletes.to_pylist()
        assert (changed["location"], changed["rows_deleted"]) == (file, deleted)
        assert changed["deletes_added"] >= 1
        assert diff.delete_files_added.num_rows >= 1
    assert f"+{1} rows deleted" in repr(table.diff())


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_partitioning_properties_and_refs_are_compared_in_words(version):
    table = new_table(version)
    first = table.append(rows(1)).snapshot_id
    with table.update_schema() as edit:
        edit.add_column("age", "int")
        edit.rename_column("city", "town")
    with table.update_partitioning() as edit:
        edit.add("bucket(4, id)")
    table.set_properties({"owner": "me"})
    table.set_sort_order("id")
    table.tag("kept")
    table.append(pa.table({"id": [2], "age": [7]}))
    diff = table.diff(first)
    assert diff.schema == ("column 'city' renamed to 'town'", "column 'age' int added")
    assert diff.partitioning == (
        "partitioned by nothing before, by bucket[4](id) now",
        "sorted by nothing before, by identity(id) asc nulls-first now",
    )
    assert diff.properties == ("property 'owner' set to 'me'",)
    assert diff.refs == (f"tag 'kept' created at snapshot {first}",)
    assert diff.notes == ()
    back = table.diff("main", "kept")
    assert back.properties == ("property 'owner' removed, was 'me'",)
    assert back.schema == ("column 'town' renamed to 'city'", "column 'age' int dropped")
    assert back.refs == (f"tag 'kept' removed, was at snapshot {first}",)


def test_points_are_ids_tags_branches_and_times():
    table = new_table(4)
    first = table.append(rows(1)).snapshot_id
    table.tag("one")
    table.append(rows(2), branch="side", create_branch=True)
    table.append(rows(3))
    moment = datetime.fromtimestamp(table.snapshots[0].timestamp_ms / 1000, UTC) + timedelta(milliseconds=0)
    for point in (first, "one", moment, moment.isoformat()):
        assert table.diff(point, "main").rows_added == 1
    assert table.diff("side", "main").files_removed.num_rows == 1
    with pytest.raises(NoSuchSnapshot, match="nowhere"):
        table.diff("nowhere")
    with pytest.raises(NoSuchSnapshot):
        table.diff(12345)
    with pytest.raises(InputError):
        table.diff(True)
    with pytest.raises(InputError, match="time zone"):
        table.diff(datetime(2026, 1, 1))


def test_a_metadata_file_that_left_the_log_is_named_in_a_note():
    table = new_table(4, properties={"write.metadata.previous-versions-max": "1"})
    first = table.append(rows(1)).snapshot_id
    for number in range(3):
        table.append(rows(number))
    diff = table.diff(first)
    assert diff.rows_added == 3
    (note,) = diff.notes
    assert f"snapshot {first}" in note
    assert note in repr(diff)


def test_a_difference_can_be_read_and_passed_on():
    table = new_table(4)
    for number in range(13):
        table.append(rows(number))
    diff = table.diff(table.snapshots[0].snapshot_id)
    lines = repr(diff).splitlines()
    assert lines[0].startswith("diff db.t: snapshot ")
    assert len([line for line in lines if line.startswith(" + ")]) == 10
    assert " … 2 more files" in lines
    assert lines[-1].startswith(" 12 files added, 0 removed, 0 with other deletes; rows +12 -0; bytes +")
    told = diff.as_dict()
    assert len(told["files_added"]) == 12
    assert told["rows_added"] == 12


@given(
    version=st.sampled_from([2, 4]),
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "delete", "overwrite", "rewrite"]), st.integers(0, 5)), max_size=6
    ),
)
def test_the_files_of_any_two_snapshots_differ_as_their_plans_do(version, steps):
    limits = {"commit.root.max-data-files": "1", "commit.manifest.min-count-to-merge": "2"}
    table = new_table(version, properties=limits)
    table.append(rows(0, 1, 2))
    for verb, number in steps:
        match verb:
            case "append":
                table.append(rows(number, number + 1))
            case "delete":
                table.delete(f"id = {number}")
            case "overwrite":
                table.overwrite(rows(number), where=f"id <= {number}")
            case _:
                table.rewrite_manifests().execute()
    points = [snapshot.snapshot_id for snapshot in table.snapshots]
    counts = {point: table.at(snapshot=point).scan().count() for point in points}
    for before in points:
        for after in points:
            diff = table.diff(before, after)
            assert set(diff.files_added["location"].to_pylist()) == files(table, after) - files(table, before)
            assert set(diff.files_removed["location"].to_pylist()) == files(table, before) - files(table, after)
            deleted = sum(diff.changed_deletes["rows_deleted"].to_pylist())
            assert counts[before] + diff.rows_added - diff.rows_removed - deleted == counts[after]
