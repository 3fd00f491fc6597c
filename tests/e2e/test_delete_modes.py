"""Deletes and upserts by copy-on-write and merge-on-read: the same rows, in the files that each mode leaves."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.errors import InputError
from icefloe.table.table import Table
from support.people import COPY, EACH_MODE, MERGE, check, delete_files, ids_of, lineage_of, new_table, people, rows_of
from support.tables import stored_by_others

pytestmark = pytest.mark.slow

POSITIONS = 1


@pytest.fixture(params=EACH_MODE)
def table(request, tmp_path) -> Table:
    version, mode = request.param
    return new_table(tmp_path, version, mode, partition_by=("city",))


def mode_of(table: Table) -> str:
    return table.properties["write.delete.mode"]


def test_both_modes_delete_the_same_rows(table):
    table.append(people(*range(10)))
    table.append(people(*range(10, 20), city="Rome"))
    result = table.delete("id in (0, 3, 6, 12, 15)")
    assert result.rows_deleted == 5
    assert ids_of(table) == [i for i in range(20) if i not in (0, 3, 6, 12, 15)]
    result = table.delete("id < 8")
    assert result.rows_deleted == 5
    assert ids_of(table) == [8, 9, 10, 11, 13, 14, 16, 17, 18, 19]
    check(table)


def test_a_mode_says_in_its_figures_what_it_wrote(table):
    table.append(people(*range(10)))
    result = table.delete("id < 3")
    copies = mode_of(table) == COPY
    vectors = not copies and table.format_version > 2
    assert (result.rows_deleted, result.rows_added, result.rows_copied) == (3, 0, 7 if copies else 0)
    assert (result.files_added, result.files_removed) == ((1, 1) if copies else (0, 0))
    assert (result.vectors_added, result.delete_files_added) == (int(vectors), int(not copies and not vectors))
    assert result.operation == ("overwrite" if copies else "delete")
    assert len(delete_files(table)) == result.delete_files_added


def test_an_upsert_replaces_in_both_modes(table):
    table.append(people(1, 2, 3))
    table.append(people(4, 5, city="Rome"))
    result = table.upsert(people(2, 5, 6, city="Bern", amount=9), on=["id"])
    assert (result.rows_added, result.rows_deleted) == (3, 2)
    expected = [(1, "Oslo", 1), (2, "Bern", 9), (3, "Oslo", 1), (4, "Rome", 1), (5, "Bern", 9), (6, "Bern", 9)]
    assert rows_of(table) == expected
    again = table.upsert(people(2, amount=0), on=["id"])
    assert (again.rows_added, again.rows_deleted) == (1, 1)
    assert rows_of(table) == [(2, "Oslo", 0) if row[0] == 2 else row for row in expected]
    check(table)


def test_figures_count_each_row_once_however_it_was_deleted_before(table):
    table.append(people(*range(10)))
    assert table.delete("id in (0, 1)").rows_deleted == 2
    assert table.delete("id in (1, 2)").rows_deleted == 1
    assert table.upsert(people(2, 3, 4), on=["id"]).rows_deleted == 2
    assert table.delete("city = 'Oslo'").rows_deleted == 8
    assert ids_of(table) == []
    assert table.scan().plan().files == 0


def test_rows_that_move_or_stay_keep_their_lineage(table):
    if table.format_version < 3:
        return
    table.append(people(1, 2, 3))
    table.append(people(4, 5))
    before = lineage_of(table)
    table.delete("id = 2")
    table.upsert(people(4, amount=7), on=["id"])
    after = lineage_of(table)
    assert {key: after[key] for key in (1, 3, 5)} == {key: before[key] for key in (1, 3, 5)}
    assert after[4] == (before[4][0], 4)
    check(table)


def test_a_branch_is_changed_alone(table):
    table.append(people(*range(6)))
    table.branch("dev")
    table.delete("id < 2", branch="dev")
    table.upsert(people(5, 6, amount=8), on=["id"], branch="dev")
    assert ids_of(table) == [0, 1, 2, 3, 4, 5]
    assert ids_of(table, branch="dev") == [2, 3, 4, 5, 6]
    check(table)


def test_a_branch_is_changed_in_terms_of_the_columns_of_now(table):
    table.append(people(1, 2, 3))
    table.branch("dev")
    with table.update_schema() as edit:
        edit.rename_column("amount", "price")
    table.append(people(9).rename_columns(["id", "city", "price"]))  # main has moved on with the new name
    table.delete("price = 1 and id = 2", branch="dev")
    table.upsert(pa.table({"id": [3], "city": ["Rome"], "price": pa.array([5], pa.int32())}), ["id"], branch="dev")
    assert ids_of(table, branch="dev") == [1, 3]
    assert rows_of(table, branch="dev")[1] == (3, "Rome", 5)
    assert ids_of(table) == [1, 2, 3, 9]


@pytest.mark.parametrize("verb", ["delete", "update", "merge"])
def test_an_unknown_mode_is_named(table, verb):
    table.append(people(1, 2))
    stored_by_others(table, {f"write.{verb}.mode": "copy"})
    change = {
        "delete": lambda: table.delete("id = 1"),
        "update": lambda: table.update({"amount": "2"}, "id = 1"),
        "merge": lambda: table.upsert(people(1), on=["id"]),
    }[verb]
    with pytest.raises(InputError, match=rf"property write\.{verb}\.mode: expected copy-on-write or merge-on-read"):
        change()
    assert ids_of(table) == [1, 2]


@pytest.mark.parametrize(("version", "copies"), [(1, True), (2, True), (3, False), (4, False)])
def test_without_a_mode_the_version_decides(tmp_path, version, copies):
    table = new_table(tmp_path, version)
    table.append(people(1, 2))
    assert (table.delete("id = 1").rows_copied == 1) == copies


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_delete_files_of_version_2_add_up(tmp_path, granularity):
    table = new_table(tmp_path, 2, MERGE, partition_by=("city",), write_delete_granularity=granularity)
    table.append(people(*range(10)))
    table.append(people(*range(10, 20)))
    table.append(people(*range(20, 30), city="Rome"))
    result = table.delete("id in (1, 11, 21)")
    assert result.delete_files_added == (3 if granularity == "file" else 2)
    table.delete("id in (2, 11, 12)")
    assert delete_files(table) == [(POSITIONS, "parquet")] * (5 if granularity == "file" else 3)
    assert ids_of(table) == [i for i in range(30) if i not in (1, 2, 11, 12, 21)]
    summary = table.metadata.current_snapshot.summary
    assert (summary["added-position-delete-files"], summary["total-position-deletes"]) == (
        ("2", "5") if granularity == "file" else ("1", "5")
    )
    check(table)


def test_delete_files_leave_with_the_only_file_they_are_about(tmp_path):
    table = new_table(tmp_path, 2, MERGE, write_delete_granularity="file")
    table.append(people(*range(10)))
    table.append(people(*range(10, 20)))
    table.delete("id in (1, 11)")
    table.set_properties({"write.delete.mode": COPY})
    result = table.delete("id = 2")
    assert (result.rows_deleted, result.rows_copied, result.files_removed) == (1, 8, 1)
    assert len(delete_files(table)) == 1
    assert table.delete("id >= 10").rows_deleted == 9
    assert delete_files(table) == []
    assert table.metadata.current_snapshot.summary["total-delete-files"] == "0"
    assert ids_of(table) == [0, 3, 4, 5, 6, 7, 8, 9]
    check(table)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_a_deletion_vector_takes_over_from_position_delete_files(tmp_path, version, granularity):
    table = new_table(tmp_path, 2, MERGE, write_delete_granularity=granularity)
    table.append(people(*range(10)))
    table.append(people(*range(10, 20)))
    table.delete("id in (1, 11, 12)")
    table.upgrade(version)
    result = table.delete("id = 13")
    assert (result.rows_deleted, result.vectors_added, result.delete_files_added) == (1, 1, 0)
    assert table.scan().plan().tasks["dv_cardinality"].drop_null().to_pylist() == [3]
    assert len(delete_files(table)) == 1  # that of the other file, or the one they share
    assert table.delete("id in (0, 1, 2)").rows_deleted == 2
    assert delete_files(table) == []  # a file with a vector needs no other
    left = {"file": "2", "partition": "3"}[granularity]  # the vectors, and the file that was about both
    assert table.metadata.current_snapshot.summary["total-delete-files"] == left
    assert ids_of(table) == [*range(3, 11), *range(14, 20)]
    check(table)


def test_conditions_on_deleted_values_are_not_asked(tmp_path):
    """A row that is gone stays gone, whatever it would match."""
    table = new_table(tmp_path, 2, MERGE)
    table.append(people(1, 2, 3))
    table.delete("id = 2")
    assert table.delete("id = 2").snapshot_id is None
    assert table.update({"amount": "5"}, where="id = 2").snapshot_id is None
    assert table.upsert(people(2), on=["id"]).rows_deleted == 0
    assert ids_of(table) == [1, 2, 3]
