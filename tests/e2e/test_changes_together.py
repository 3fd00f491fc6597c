"""Several changes of rows as one commit, on branches, and beside the commits of others."""

from __future__ import annotations

from importlib import import_module

import pytest

from icefloe.errors import ConflictError, InputError, StorageError
from icefloe.table.table import Table
from support.people import COPY, EACH_MODE, MERGE, check, ids_of, lineage_of, new_table, people, rows_of, stored

pytestmark = pytest.mark.slow


@pytest.fixture(params=EACH_MODE)
def table(request, tmp_path) -> Table:
    version, mode = request.param
    return new_table(tmp_path, version, mode, partition_by=("city",))


def test_each_change_sees_those_before_it_and_all_land_at_once(table):
    table.append(people(1, 2, 3))
    with table.transaction() as tx:
        tx.append(people(4, 5, city="Rome"))
        tx.update({"amount": "amount + id"}, where="id in (2, 4)")
        tx.delete("id = 1")
        tx.upsert(people(3, 6, amount=8), on=["id"])
        tx.overwrite(people(50, city="Rome"), where="id = 5")
        tx.overwrite_partitions(people(70, city="Bern"))
        seen = sorted(tx.scan().to_arrow()["id"].to_pylist())
        assert ids_of(table) == [1, 2, 3]
    assert seen == ids_of(table) == [2, 3, 4, 6, 50, 70]
    assert rows_of(table)[:2] == [(2, "Oslo", 3), (3, "Oslo", 8)]
    assert tx.result.snapshots == 1
    assert len(table.metadata.metadata_log) == 2
    check(table)


def test_figures_of_a_transaction_are_those_of_its_changes(table):
    table.append(people(*range(10)))
    table.delete("id in (0, 1)")
    with table.transaction() as tx:
        tx.delete("id = 2")
        tx.update({"amount": "5"}, where="id in (3, 4)")
        tx.upsert(people(5, 11), on=["id"])
    copies = table.properties["write.delete.mode"] == COPY
    assert (tx.result.rows_added, tx.result.rows_deleted) == (4, 4)
    assert tx.result.rows_copied == (7 + 5 + 6 if copies else 0)
    assert ids_of(table) == [3, 4, 5, 6, 7, 8, 9, 11]


def test_branches_inside_of_a_transaction(table):
    table.append(people(1, 2, 3))
    with table.transaction() as tx:
        tx.delete("id = 1", branch="dev", create_branch=True)
        tx.update({"amount": "0"}, where="id = 2", branch="dev")
        tx.append(people(4), branch="dev")
        tx.overwrite(people(30), where="id = 3")
        assert sorted(tx.scan(branch="dev").to_arrow()["id"].to_pylist()) == [2, 3, 4]
        assert sorted(tx.scan().to_arrow()["id"].to_pylist()) == [1, 2, 30]
    assert ids_of(table) == [1, 2, 30]
    assert rows_of(table, branch="dev") == [(2, "Oslo", 0), (3, "Oslo", 1), (4, "Oslo", 1)]
    check(table)


def test_changes_are_made_again_upon_the_commit_of_another(table):
    """Ids and sequence numbers that the first attempt gave must not be written down with rows that move."""
    table.append(people(1, 2, 3))
    late = table.transaction()
    late.append(people(10, 11, 12, city="Rome"))
    late.delete("id = 10")
    late.update({"amount": "7"}, where="id = 11")
    late.upsert(people(12, 13, city="Rome", amount=9), on=["id"])
    table.append(people(20, 21, city="Bern"))
    assert late.commit().attempts == 2
    expected = [(11, "Rome", 7), (12, "Rome", 9), (13, "Rome", 9), (20, "Bern", 1), (21, "Bern", 1)]
    assert rows_of(table) == sorted([*((i, "Oslo", 1) for i in (1, 2, 3)), *expected], key=repr)
    if table.format_version > 2:
        lineage = lineage_of(table)
        assert len({row_id for row_id, _ in lineage.values()}) == len(lineage)
        assert all(row_id < table.metadata.next_row_id for row_id, _ in lineage.values())
        numbers = {snapshot.sequence_number for snapshot in table.snapshots}
        assert {number for _, number in lineage.values()} <= numbers
        assert lineage[20][1] == 2
        assert all(lineage[key][1] > 2 for key in (11, 12, 13))
    check(table)


def test_a_transaction_that_is_dropped_leaves_nothing_behind(table, tmp_path):
    table.append(people(1, 2, 3))
    before = stored(tmp_path)
    tx = table.transaction()
    tx.delete("id = 1")
    tx.update({"amount": "0"}, where="id = 2")
    tx.upsert(people(3, 4), on=["id"])
    tx.overwrite(people(9), overwrite_all=True)
    assert len(stored(tmp_path)) > len(before)
    tx.drop()
    assert stored(tmp_path) == before
    assert ids_of(table) == [1, 2, 3]


def test_a_change_that_fails_leaves_the_transaction_as_it_was(table, tmp_path):
    table.append(people(1, 2, 3))
    with table.transaction() as tx:
        tx.delete("id = 1")
        before = stored(tmp_path)
        with pytest.raises(InputError, match="required"):
            tx.update({"id": "null"}, where="id = 2")
        with pytest.raises(InputError, match="more than once"):
            tx.upsert(people(7, 7), on=["id"])
        assert stored(tmp_path) == before
    assert ids_of(table) == [2, 3]
    with pytest.raises(InputError, match="this transaction has ended"):
        tx.update({"amount": "0"})


def test_changes_of_nothing_make_no_commit(table):
    table.append(people(1))
    with table.transaction() as tx:
        tx.delete("id = 9")
        tx.update({"amount": "0"}, where="id = 9")
        tx.upsert(people(), on=["id"])
        tx.overwrite(people(), where="id = 9")
        tx.overwrite_partitions(people())
    assert tx.result.snapshot_id is None
    assert len(table.snapshots) == 1


FINDING_NOTHING = {  # each reads id 2, which nobody has yet
    "delete": lambda tx, **to: tx.delete("id = 2", **to),
    "update": lambda tx, **to: tx.update({"amount": "0"}, where="id = 2", **to),
    "merge": lambda tx, **to: tx.merge(people(2), on=["id"], **to).when_matched_delete().execute(),
    "merge by source": lambda tx, **to: (
        tx.merge(people(3), on=["id"], **to).when_not_matched_by_source_delete("t.id = 2").execute()
    ),
    "overwrite": lambda tx, **to: tx.overwrite(people(), where="id = 2", **to),
}


@pytest.mark.parametrize("verb", FINDING_NOTHING)
def test_rows_that_came_meanwhile_conflict_with_a_change_that_found_none(table, verb):
    """Two loaders that each deleted the rows of an empty day and added new ones both landed: twice the rows."""
    table.append(people(1, 3))
    branch = "dev" if verb == "delete" else "main"
    table.branch("dev")
    late = table.transaction()
    FINDING_NOTHING[verb](late, branch=branch)
    late.append(people(50, city="Bern"), branch=branch)
    table.append(people(2), branch=branch)
    with pytest.raises(ConflictError, match="may contain rows that this operation reads"):
        late.commit()
    assert ids_of(table, branch=branch) == [1, 2, 3]
    check(table)


@pytest.mark.parametrize("verb", FINDING_NOTHING)
def test_a_change_that_found_nothing_is_in_the_way_of_nobody_else(tmp_path, verb):
    table = new_table(tmp_path, 4, MERGE, partition_by=("city",))
    table.append(people(1, 3))
    table.branch("dev")
    late = table.transaction()
    FINDING_NOTHING[verb](late)
    late.append(people(50, city="Bern"))
    table.append(people(4, city="Rome"))
    table.append(people(2), branch="dev")
    table.delete("id = 3")
    assert late.commit().attempts == 2
    assert ids_of(table) == [1, 4, 50]
    with table.transaction() as alone:
        FINDING_NOTHING[verb](alone)
        table.append(people(2))
    assert alone.result.snapshot_id is None


@pytest.mark.parametrize("verb", FINDING_NOTHING)
def test_under_snapshot_isolation_a_change_that_found_nothing_misses_what_came_meanwhile(tmp_path, verb):
    table = new_table(tmp_path, 4, MERGE)
    table.set_properties({f"write.{each}.isolation-level": "snapshot" for each in ("delete", "update", "merge")})
    table.append(people(1, 3))
    late = table.transaction()
    FINDING_NOTHING[verb](late)
    late.append(people(50, city="Bern"))
    table.append(people(2))
    late.commit()
    assert ids_of(table) == [1, 2, 3, 50]


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
def test_an_overwrite_of_whole_files_that_found_none_takes_along_what_came_meanwhile(table, level):
    """As one that found some does; two loaders of an empty day used to double its rows."""
    table.set_properties({"write.delete.isolation-level": level})
    table.append(people(1))
    late = table.transaction()
    late.overwrite(people(), where="city = 'Rome'")
    late.append(people(50, city="Rome"))
    table.append(people(2, city="Rome"))
    late.commit()
    assert ids_of(table) == ([1, 50] if level == "serializable" else [1, 2, 50])
    check(table)


def test_a_merge_that_added_nothing_conflicts_if_the_rows_it_found_are_gone(table):
    """They were the reason to add none; without them and without the new rows it follows on nothing."""
    table.append(people(1))
    for other, missed in (("city = 'Rome'", False), ("id in (1, 50)", True)):
        table.append(people(5, city="Rome"))
        late = table.transaction()
        late.merge(people(1, amount=9), on=["id"]).when_not_matched_insert_all().execute()
        late.append(people(50, city="Bern"))
        table.delete(other)
        if missed:
            with pytest.raises(ConflictError, match="was removed by another commit and may contain"):
                late.commit()
        else:
            late.commit()
    assert ids_of(table) == [5]


def test_a_branch_that_another_commit_made_first_has_not_what_a_transaction_did_before_it(table):
    """A vector about a file of main came to a branch that never had the file."""
    table.append(people(1, 2))
    for other in (lambda: table.branch("dev"), lambda: table.append(people(100), branch="dev", create_branch=True)):
        late = table.transaction()
        late.append(people(3, 4))
        late.append(people(5, 6), branch="dev", create_branch=True)
        late.append(people(7), branch="dev")
        late.delete("id in (3, 5)", branch="dev")
        other()
        with pytest.raises(ConflictError, match="has created branch 'dev' without snapshot"):
            late.commit()
        before = ids_of(table, branch="dev")
        table.remove_ref("dev")
    assert before == [1, 2, 100]
    check(table)


def test_a_branch_that_another_commit_made_first_takes_what_read_only_the_branch(table):
    table.append(people(1, 2))
    late = table.transaction()
    late.append(people(5, 6, city="Rome"), branch="dev", create_branch=True)
    late.delete("id = 5 and city = 'Rome'", branch="dev")
    table.branch("dev")
    table.append(people(100), branch="dev")
    assert late.commit().attempts == 2
    assert ids_of(table, branch="dev") == [1, 2, 6, 100]
    check(table)


def test_deletes_of_one_file_at_the_same_time(table):
    """Position delete files add up. A file has one deletion vector, and a copy must be of the file as it is."""
    table.append(people(1, 2, 3))
    late = table.transaction()
    late.delete("id = 1")
    table.delete("id = 2")
    if (table.format_version, table.properties["write.delete.mode"]) == (2, MERGE):
        late.commit()
        assert ids_of(table) == [3]
    else:
        with pytest.raises(ConflictError):
            late.commit()
        assert ids_of(table) == [1, 3]
    check(table)


def test_a_delete_does_not_bring_back_what_another_deleted(table):
    table.append(people(1, 2, 3))
    table.append(people(4, 5, city="Rome"))
    late = table.transaction()
    late.delete("id = 1 and city = 'Oslo'")
    table.delete("id = 4 and city = 'Rome'")
    late.commit()
    assert ids_of(table) == [2, 3, 5]
    check(table)


def test_a_file_that_was_replaced_meanwhile_is_a_conflict(table):
    table.append(people(1, 2, 3))
    late = table.transaction()
    late.delete("id = 1")
    table.overwrite(people(1, 5), overwrite_all=True)
    with pytest.raises(ConflictError):
        late.commit()
    assert ids_of(table) == [1, 5]


def test_position_deletes_of_version_2_are_not_committed_to_a_later_version(tmp_path):
    table = new_table(tmp_path, 2, MERGE)
    table.append(people(1, 2, 3))
    late = table.transaction()
    late.delete("id = 1")
    table.upgrade(3)
    with pytest.raises(ConflictError, match="deletes rows by deletion vectors"):
        late.commit()
    table.delete("id = 1")
    assert ids_of(table) == [2, 3]


def test_a_delete_file_about_several_files_conflicts_if_one_of_them_left(tmp_path):
    table = new_table(tmp_path, 2, MERGE)
    table.append(people(1, 2, 3))
    table.append(people(4, 5, 6))
    late = table.transaction()
    late.delete("id in (1, 4)")
    table.overwrite(people(40, 50), where="id >= 4")
    with pytest.raises(ConflictError, match="was removed by another commit"):
        late.commit()
    assert ids_of(table) == [1, 2, 3, 40, 50]


@pytest.mark.parametrize("verb", ["upsert", "overwrite", "update"])
def test_new_files_are_deleted_when_the_rest_of_a_change_fails(tmp_path, monkeypatch, verb):
    table = new_table(tmp_path, 4, MERGE)
    table.append(people(1, 2, 3))
    before = stored(tmp_path)

    def fails(*_: object) -> None:
        assert len(stored(tmp_path)) == len(before) + 1
        raise StorageError("the disk is full")

    module = import_module(f"icefloe.rows.{'delete' if verb == 'overwrite' else verb}")
    monkeypatch.setattr(module, "remove_rows", fails)
    change = {
        "upsert": lambda: table.upsert(people(2), on=["id"]),
        "overwrite": lambda: table.overwrite(people(9), where="id = 2"),
        "update": lambda: table.update({"amount": "0"}, where="id = 2"),
    }[verb]
    with pytest.raises(StorageError, match="the disk is full"):
        change()
    assert stored(tmp_path) == before
