"""Upserts by equality deletes: nothing is read, and every older row with one of the keys is gone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.errors import ConflictError, InputError
from icefloe.table.table import Table
from support.people import MERGE, check, delete_files, ids_of, lineage_of, new_table, people, rows_of, stored
from support.tables import stored_by_others

EQUALITY = 2

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("version", [2, 3, 4])]


@pytest.fixture
def table(version, tmp_path) -> Table:
    return new_table(tmp_path, version)


def test_older_rows_with_one_of_the_keys_are_replaced(table):
    table.append(people(1, 2, 3))
    result = table.upsert(people(2, 4, city="Rome", amount=9), on=["id"], deletes="equality")
    assert (result.operation, result.rows_added, result.delete_files_added) == ("overwrite", 2, 1)
    assert delete_files(table) == [(EQUALITY, "parquet")]
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Rome", 9), (3, "Oslo", 1), (4, "Rome", 9)]
    table.upsert(people(4, 1, amount=0), on=["id"], deletes="equality")
    assert rows_of(table) == [(1, "Oslo", 0), (2, "Rome", 9), (3, "Oslo", 1), (4, "Oslo", 0)]
    summary = table.metadata.current_snapshot.summary
    assert (summary["added-equality-delete-files"], summary["total-equality-deletes"]) == ("1", "4")
    check(table)


def test_no_data_file_is_opened(table, tmp_path):
    table.append(people(1, 2, 3))
    held = {path: path.read_bytes() for path in stored(tmp_path)}
    for path in held:
        path.write_bytes(b"not read")
    table.upsert(people(2, amount=9), on=["id"], deletes="equality")
    for path, content in held.items():
        path.write_bytes(content)
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 9), (3, "Oslo", 1)]


def test_a_table_asks_for_it_by_a_property(version, tmp_path):
    table = new_table(tmp_path, version, write_upsert_deletes="equality")
    table.append(people(1, 2))
    assert table.upsert(people(2, amount=9), on=["id"]).delete_files_added == 1
    asked = table.upsert(people(2, amount=7), on=["id"], deletes="position")
    assert (asked.rows_deleted, asked.rows_added) == (1, 1)
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 7)]


def test_an_unknown_kind_is_named(table):
    with pytest.raises(InputError, match="upsert: deletes: expected position or equality, got 'value'"):
        table.upsert(people(1), on=["id"], deletes="value")
    stored_by_others(table, {"write.upsert.deletes": "value"})
    with pytest.raises(InputError, match=r"property write\.upsert\.deletes: expected position or equality"):
        table.upsert(people(1), on=["id"])


def test_a_key_with_a_null_replaces_nothing(table):
    table.append(people(1, 2, city=None))
    table.append(people(3, city="Rome"))
    new = pa.concat_tables([people(8, city=None), people(9, city="Rome")])
    table.upsert(new, on=["city"], deletes="equality")
    assert ids_of(table) == [1, 2, 8, 9]
    only_nulls = table.upsert(people(10, city=None), on=["city"], deletes="equality")
    assert (only_nulls.rows_added, only_nulls.delete_files_added) == (1, 0)
    assert ids_of(table) == [1, 2, 8, 9, 10]


def test_keys_that_come_twice_and_keys_that_cannot_be_compared_are_refused(table, version, tmp_path):
    table.append(people(1))
    with pytest.raises(InputError, match="come more than once"):
        table.upsert(people(1, 1), on=["id"], deletes="equality")
    assert table.upsert(people(), on=["id"], deletes="equality").snapshot_id is None
    other = new_table(tmp_path / "other", version, schema="x double, n int")
    before = stored(tmp_path)
    with pytest.raises(InputError, match="'x' cannot be a delete column"):
        other.upsert(pa.table({"x": [1.0], "n": pa.array([1], pa.int32())}), on=["x"], deletes="equality")
    assert stored(tmp_path) == before


def test_keys_must_tell_the_partition(version, tmp_path):
    table = new_table(tmp_path, version, partition_by=("city",))
    table.append(people(1, 2))
    with pytest.raises(InputError, match="do not determine the partition of a row: rows are partitioned by city"):
        table.upsert(people(1), on=["id"], deletes="equality")
    table.upsert(people(1, amount=5), on=["id", "city"], deletes="equality")
    table.upsert(people(2, city="Rome", amount=6), on=["id", "city"], deletes="equality")
    assert rows_of(table) == [(1, "Oslo", 5), (2, "Oslo", 1), (2, "Rome", 6)]
    check(table)


def test_a_partition_by_the_key_has_deletes_of_its_own(version, tmp_path):
    table = new_table(tmp_path, version, partition_by=("bucket(4, id)",))
    table.append(people(*range(20)))
    result = table.upsert(people(*range(15, 25), amount=3), on=["id"], deletes="equality")
    assert result.delete_files_added == 4
    assert rows_of(table) == sorted([(i, "Oslo", 3 if i >= 15 else 1) for i in range(25)], key=repr)


def test_a_new_row_has_a_new_id(table, version):
    if version < 3:
        return
    table.append(people(1, 2))
    table.upsert(people(2), on=["id"], deletes="equality")
    assert lineage_of(table) == {1: (0, 1), 2: (2, 2)}


def test_other_changes_go_on_upon_equality_deletes(version, tmp_path):
    table = new_table(tmp_path, version, MERGE)
    table.append(people(*range(6)))
    table.upsert(people(1, 2, amount=5), on=["id"], deletes="equality")
    assert table.delete("id = 1 and amount = 1").snapshot_id is None  # that row is gone
    assert table.delete("id in (0, 1)").rows_deleted == 2
    assert table.update({"amount": "amount + 1"}, where="id in (2, 3)").rows_added == 2
    assert table.upsert(people(2, 4, amount=9), on=["id"]).rows_deleted == 2
    assert rows_of(table) == [(2, "Oslo", 9), (3, "Oslo", 2), (4, "Oslo", 9), (5, "Oslo", 1)]
    table.set_properties({"write.delete.mode": "copy-on-write"})
    assert table.delete("id = 3").rows_deleted == 1
    assert table.delete("true").rows_deleted >= 3
    assert rows_of(table) == []
    check(table)


def test_copies_leave_behind_what_equality_deletes_had_taken(version, tmp_path):
    table = new_table(tmp_path, version, "copy-on-write")
    table.append(people(*range(6)))
    table.upsert(people(1, 2, amount=5), on=["id"], deletes="equality")
    result = table.delete("id = 0")
    assert (result.rows_deleted, result.rows_copied) == (1, 3)
    assert ids_of(table) == [1, 2, 3, 4, 5]
    result = table.update({"amount": "7"}, where="id = 3")
    assert (result.rows_added, result.rows_deleted, result.rows_copied) == (1, 1, 2)
    assert [row[2] for row in rows_of(table)] == [5, 5, 7, 1, 1]


def test_a_file_with_no_living_row_left_is_taken_out(version, tmp_path):
    table = new_table(tmp_path, version, "copy-on-write")
    table.append(people(1, 2, 3))
    table.upsert(people(1, 2, amount=5), on=["id"], deletes="equality")
    result = table.delete("id = 3 and amount = 1")
    assert (result.files_removed, result.rows_copied, result.rows_deleted) == (1, 0, 1)
    assert rows_of(table) == [(1, "Oslo", 5), (2, "Oslo", 5)]


def test_it_lands_upon_whatever_others_have_done(table):
    """The deletes apply to all that is older than the snapshot, so the outcome is that of the order of the commits."""
    table.append(people(1, 2))
    late = table.transaction()
    late.upsert(people(2, 3, amount=9), on=["id"], deletes="equality")
    table.append(people(3, 4))
    table.delete("id = 1")
    table.upsert(people(2, amount=5), on=["id"])
    assert late.commit().attempts == 2
    assert rows_of(table) == [(2, "Oslo", 9), (3, "Oslo", 9), (4, "Oslo", 1)]
    check(table)


def test_another_partitioning_that_came_meanwhile_is_a_conflict(version, tmp_path):
    table = new_table(tmp_path, version, partition_by=("bucket(4, id)",))
    table.append(people(1, 2))
    late = table.transaction()
    late.upsert(people(2, amount=9), on=["id"], deletes="equality")
    with table.update_partitioning() as edit:
        edit.remove("id_bucket")
        edit.add("city")
    table.append(people(2))
    with pytest.raises(ConflictError, match="another commit changed the partitioning"):
        late.commit()
    assert ids_of(table) == [1, 2, 2]


def test_deletes_of_the_whole_table_reach_every_partitioning(table):
    table.append(people(1, 2))
    late = table.transaction()
    late.upsert(people(2, amount=9), on=["id"], deletes="equality")
    with table.update_partitioning() as edit:
        edit.add("city")
    table.append(people(2, 3))
    late.commit()
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 9), (3, "Oslo", 1)]


def test_branches_and_transactions(table):
    table.append(people(1, 2))
    table.branch("dev")
    table.upsert(people(2, amount=9), on=["id"], deletes="equality", branch="dev")
    with table.transaction() as tx:
        tx.append(people(3))
        tx.upsert(people(1, 3, amount=7), on=["id"], deletes="equality")
        tx.upsert(people(3, amount=8), on=["id"], deletes="equality")
        assert sorted(tx.scan().to_arrow()["amount"].to_pylist()) == [1, 7, 8]
    assert rows_of(table) == [(1, "Oslo", 7), (2, "Oslo", 1), (3, "Oslo", 8)]
    assert rows_of(table, branch="dev") == [(1, "Oslo", 1), (2, "Oslo", 9)]
    check(table)


def test_identifier_fields_are_the_keys_if_none_are_given(table):
    table.append(people(1, 2))
    with pytest.raises(InputError, match="upsert: give the key columns"):
        table.upsert(people(2, amount=9))
    with table.update_schema() as edit:
        edit.set_identifiers("id")
    table.upsert(people(2, amount=9))
    table.upsert(people(1, amount=8), deletes="equality")
    assert rows_of(table) == [(1, "Oslo", 8), (2, "Oslo", 9)]


def test_rows_are_read_when_another_column_has_the_name_of_one_that_equality_deletes_go_by(table):
    """After a key was dropped and came back as a new column, every scan and delete failed: two fields of one name."""
    table.append(people(1, 2, 3))
    table.upsert(people(2, 9, city="Rome", amount=9), on=["id", "city"], deletes="equality")
    table.upsert(people(4, city="Rome"), on=["city"], deletes="equality")
    with table.update_schema() as edit:
        edit.drop_column("city")
    with table.update_schema() as edit:
        edit.add_column("city", "int")
    new = pa.table({"id": [5], "city": pa.array([7], pa.int32()), "amount": pa.array([5], pa.int32())})
    table.upsert(new, on=["city"], deletes="equality")
    assert rows_of(table) == [(1, 1, None), (2, 1, None), (3, 1, None), (4, 1, None), (5, 5, 7)]
    assert table.scan("city is null").to_arrow()["id"].to_pylist() == [1, 2, 3, 4]
    table.delete("city is null and id < 3")
    assert ids_of(table) == [3, 4, 5]
    check(table)


def test_a_snapshot_is_read_with_the_names_of_its_time_after_columns_have_swapped_them(version, tmp_path):
    """The filter went by the old names and the equality deletes by the new ones, which were taken for two of one."""
    table = new_table(tmp_path, version, schema="id bigint, a int, b int")

    def rows(*each: tuple[int, int, int]) -> pa.Table:
        ids, a, b = zip(*each, strict=True)
        return pa.table({"id": ids, "a": pa.array(a, pa.int32()), "b": pa.array(b, pa.int32())})

    table.append(rows((1, 1, 10), (2, 2, 20), (3, 3, 30)))
    then = table.upsert(rows((9, 2, 90)), on=["a"], deletes="equality").snapshot_id
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        with table.update_schema() as edit:
            edit.rename_column(old, new)
    past = table.at(snapshot=then)
    assert past.scan("b > 15").to_arrow().to_pylist() == [{"id": 3, "a": 3, "b": 30}, {"id": 9, "a": 2, "b": 90}]
    assert table.scan("b < 3").to_arrow().to_pylist() == [{"id": 1, "b": 1, "a": 10}, {"id": 9, "b": 2, "a": 90}]
