"""Overwrites by condition, by partition and of everything, in every version and mode."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.errors import ConflictError, InputError
from icefloe.table.table import Table
from support.people import ALL_VERSIONS, COPY, EACH_MODE, MERGE, check, ids_of, new_table, people, rows_of, stored

pytestmark = pytest.mark.slow


@pytest.fixture(params=EACH_MODE)
def table(request, tmp_path) -> Table:
    version, mode = request.param
    return new_table(tmp_path, version, mode, partition_by=("city",))


def test_rows_take_the_place_of_those_that_match(table):
    table.append(people(1, 2, 3))
    table.append(people(4, 5, 6, city="Rome"))
    result = table.overwrite(people(20, 40, amount=7), where="id in (2, 4)")
    assert (result.rows_added, result.rows_deleted, result.operation) == (2, 2, "overwrite")
    assert result.rows_copied == (4 if table.properties["write.delete.mode"] == COPY else 0)
    assert ids_of(table) == [1, 3, 5, 6, 20, 40]
    assert len(table.snapshots) == 3
    check(table)


def test_rows_for_which_the_condition_is_null_stay(table):
    table.append(people(1, 2, amount=None))
    table.append(people(3, 4))
    table.overwrite(people(9, amount=None), where="amount >= 0")
    assert rows_of(table) == [(1, "Oslo", None), (2, "Oslo", None), (9, "Oslo", None)]


def test_whole_files_leave_without_being_read(table, tmp_path):
    table.append(people(1, 2))
    table.append(people(3, city="Rome"))
    for path in stored(tmp_path):
        path.write_bytes(b"not read")
    result = table.overwrite(people(9, city="Bern"), where="city = 'Oslo'")
    assert (result.files_removed, result.rows_deleted, result.rows_added, result.rows_copied) == (1, 2, 1, 0)
    result = table.overwrite(people(10), overwrite_all=True)
    assert (result.files_removed, result.rows_deleted, result.rows_added) == (2, 2, 1)
    assert ids_of(table) == [10]


def test_everything_is_replaced_only_if_that_is_said(table):
    table.append(people(1, 2))
    for wrong in ({}, {"where": "id = 1", "overwrite_all": True}):
        with pytest.raises(InputError, match=r"overwrite: say which rows to replace by where=, or all of them"):
            table.overwrite(people(3), **wrong)
    assert table.overwrite(people(3), overwrite_all=True).rows_deleted == 2
    assert ids_of(table) == [3]


def test_without_rows_it_deletes_and_without_matches_it_adds(table):
    table.append(people(1, 2))
    assert table.overwrite(people(), where="id = 2").rows_deleted == 1
    assert ids_of(table) == [1]
    added = table.overwrite(people(3), where="id = 99")
    assert (added.operation, added.rows_added, added.rows_deleted) == ("append", 1, 0)
    before = len(table.snapshots)
    assert table.overwrite(people(), where="id = 99").snapshot_id is None
    assert len(table.snapshots) == before
    emptied = table.overwrite(people(), overwrite_all=True)
    assert (emptied.operation, emptied.rows_deleted) == ("delete", 2)
    assert table.overwrite(people(), overwrite_all=True).snapshot_id is None
    assert ids_of(table) == []
    check(table)


def test_wrong_rows_and_wrong_conditions_leave_no_file_behind(table, tmp_path):
    table.append(people(1, 2))
    before = stored(tmp_path)
    with pytest.raises(InputError, match="colour"):
        table.overwrite(people(3), where="colour = 1")
    with pytest.raises(InputError, match="'id' is required and has 1 nulls"):
        table.overwrite(pa.table({"id": pa.array([None], pa.int64())}), where="id = 1")
    assert stored(tmp_path) == before
    assert ids_of(table) == [1, 2]


def test_partitions_are_replaced_whole(table):
    table.append(people(1, 2))
    table.append(people(3, 4, city="Rome"))
    table.append(people(5, city=None))
    table.delete("id = 1")
    new = pa.concat_tables([people(7, city="Rome"), people(8, city="Bern"), people(9, city=None)])
    result = table.overwrite_partitions(new)
    assert (result.rows_added, result.files_removed, result.operation) == (3, 2, "overwrite")
    assert ids_of(table) == [2, 7, 8, 9]
    assert table.metadata.current_snapshot.summary["replace-partitions"] == "true"
    check(table)


def test_no_rows_replace_no_partition(table):
    table.append(people(1, 2))
    assert table.overwrite_partitions(people()).snapshot_id is None
    assert ids_of(table) == [1, 2]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_table_without_partitions_is_replaced_as_a_whole(tmp_path, version):
    table = new_table(tmp_path, version)
    table.append(people(1, 2))
    table.append(people(3))
    assert table.overwrite_partitions(people(4)).rows_deleted == 3
    assert ids_of(table) == [4]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_partitions_of_a_transform_are_replaced(tmp_path, version):
    table = new_table(tmp_path, version, partition_by=("truncate(10, id)",))
    table.append(people(1, 2, 11, 12, 21))
    table.overwrite_partitions(people(15, 29))
    assert ids_of(table) == [1, 2, 15, 29]


def test_overwrites_of_a_branch_leave_main_alone(table):
    table.append(people(1, 2))
    table.append(people(3, city="Rome"))
    table.branch("dev")
    table.overwrite(people(10), where="id = 1", branch="dev")
    table.overwrite_partitions(people(30, city="Rome"), branch="dev")
    assert ids_of(table) == [1, 2, 3]
    assert ids_of(table, branch="dev") == [2, 10, 30]
    table.overwrite(people(99), overwrite_all=True, branch="dev")
    assert ids_of(table, branch="dev") == [99]
    assert ids_of(table) == [1, 2, 3]


def test_an_overwrite_of_whole_partitions_takes_what_came_meanwhile(table):
    """Metadata alone decides what leaves, so the outcome is that of running in the order of the commits."""
    table.append(people(1, 2))
    table.append(people(3, city="Rome"))
    late = table.transaction()
    late.overwrite(people(10), where="city = 'Oslo'")
    table.append(people(4))
    table.append(people(5, city="Rome"))
    result = late.commit()
    assert result.attempts == 2
    assert ids_of(table) == [3, 5, 10]
    check(table)


def test_an_overwrite_of_everything_takes_what_came_meanwhile(table):
    table.append(people(1, 2))
    late = table.transaction()
    late.overwrite(people(10), overwrite_all=True)
    table.append(people(4, city="Rome"))
    late.commit()
    assert ids_of(table) == [10]


def test_an_overwrite_by_rows_does_not_miss_what_came_meanwhile(table, tmp_path):
    table.append(people(1, 2))
    late = table.transaction()
    late.overwrite(people(20), where="id >= 2")
    table.append(people(3))
    before = stored(tmp_path)
    with pytest.raises(ConflictError, match="may contain rows that this operation reads"):
        late.commit()
    assert ids_of(table) == [1, 2, 3]
    assert len(stored(tmp_path)) < len(before)  # what was written for it is gone


def test_a_file_with_both_kinds_of_rows_that_came_meanwhile_is_a_conflict(table):
    table.append(people(2, 3))
    late = table.transaction()
    late.overwrite(people(20), where="id >= 2")  # all rows of all files
    table.append(people(1, 5))
    with pytest.raises(ConflictError, match="was added by another commit, and may contain both rows that match"):
        late.commit()
    assert ids_of(table) == [1, 2, 3, 5]


def test_a_partition_that_grew_meanwhile_is_replaced_too(table):
    table.append(people(1, 2))
    late = table.transaction()
    late.overwrite_partitions(people(10))
    table.append(people(3))
    late.commit()
    assert ids_of(table) == [10]


def test_rows_that_were_deleted_before_are_not_counted_again_where_partitions_leave(table):
    """Where position delete files had taken rows, the figure told them as deleted a second time."""
    table.append(people(1, 2, 3))
    table.append(people(4, 5, city="Rome"))
    table.delete("id in (1, 4)")
    result = table.overwrite_partitions(people(9))
    assert (result.rows_added, result.rows_deleted) == (1, 2)
    with table.transaction() as tx:
        tx.delete("id = 9")
        tx.overwrite_partitions(people(10, city="Rome"))
    assert (tx.result.rows_added, tx.result.rows_deleted) == (1, 2)
    assert ids_of(table) == [10]
    check(table)


def test_partitions_whose_delete_files_are_lost_can_be_replaced(tmp_path):
    """Counting the rows that were deleted before failed the very operation that puts such a table right."""
    table = new_table(tmp_path, 2, MERGE, partition_by=("city",))
    table.append(people(1, 2, 3))
    table.append(people(4, 5, city="Rome"))
    before = set(tmp_path.rglob("*.parquet"))
    table.delete("id = 1")
    (lost,) = set(tmp_path.rglob("*.parquet")) - before
    lost.unlink()
    table.overwrite_partitions(people(9))
    assert ids_of(table) == [4, 5, 9]


def test_overwrites_of_a_transaction_add_columns_and_keys_of_the_summary(table):
    table.append(people(1, 2))
    table.append(people(3, city="Rome"))
    noted = people(9).append_column("note", pa.array(["new"]))
    with table.transaction(summary={"team": "sales"}) as work:
        work.overwrite_partitions(noted, schema_mode="merge")
        work.overwrite(noted.append_column("more", pa.array([7])), where="id = 3", schema_mode="merge")
    assert ids_of(table) == [9, 9]
    assert {"note", "more"} <= set(table.schema.names.values())
    assert [snapshot.summary.get("team") for snapshot in table.snapshots] == [None, None, "sales"]
    check(table)
