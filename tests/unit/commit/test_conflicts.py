"""What each operation says to a commit that came between: allowed, or refused by the names of files and snapshots.

Rows of ``CASES`` are an operation that read the table, what another writer then did, and which isolation refuses it.
"""

from __future__ import annotations

import re

import pytest

from icefloe.commit.conflicts import Isolation, isolation_of
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles, OverwriteWhere, ReplacePartitions
from icefloe.commit.operations.ref_updates import SetCurrentSnapshot
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.rewrite import RewriteFiles
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.errors import ConflictError, InputError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.metadata.properties import DELETE_ISOLATION
from icefloe.model.metadata.snapshots import Operation
from icefloe.tree.file_changes import FileChanges
from support.entry_tables import at, audit, data, equality_deletes, new_world, position_deletes, rows, vector

OSLO = parse_filter("city = 'Oslo'")
SERIALIZABLE, SNAPSHOT = Isolation.SERIALIZABLE, Isolation.SNAPSHOT
BOTH, NEVER, STRICT = (SERIALIZABLE, SNAPSHOT), (), (SERIALIZABLE,)


def deletes(version: int):
    """How rows of one data file are deleted."""
    return position_deletes if version == 2 else vector


def world_of(version: int):
    world = new_world(version)
    world.commit(Append(added=rows(data("a1"), data("a2"), data("b1", "Rome"))))
    return world


# Operations that read the table, all of them about Oslo.


def append(world, version, isolation):
    return Append(added=rows(data("x")))


def copy_on_write(world, version, isolation):
    return OverwriteFiles(
        changes=FileChanges(added=rows(data("x")), removed=world.tasks("a1")),
        read=world.head,
        filter=OSLO,
        isolation=isolation,
    )


def delete_rows(world, version, isolation):
    added = rows(deletes(version)("mine", "a1"))
    return RowDelta(changes=FileChanges(added=added), read=world.head, filter=OSLO, isolation=isolation)


def update_rows(world, version, isolation):
    added = rows(deletes(version)("mine", "a1"), data("x"))
    return RowDelta(changes=FileChanges(added=added), read=world.head, filter=OSLO, isolation=isolation)


def compaction(world, version, isolation):
    removed = world.tasks("a1", "a2")
    return RewriteFiles(changes=FileChanges(added=rows(data("x")), removed=removed), read=world.head, sequence_number=1)


def compaction_with_a_new_number(world, version, isolation):
    return RewriteFiles(changes=FileChanges(added=rows(data("x")), removed=world.tasks("a1", "a2")), read=world.head)


def replace_partitions(world, version, isolation):
    return ReplacePartitions(added=rows(data("x")))


# What another writer does meanwhile.


def adds_in_oslo(world, version):
    world.commit(Append(added=rows(data("other"))))


def adds_in_rome(world, version):
    world.commit(Append(added=rows(data("other", "Rome"))))


def removes_the_file(world, version):
    world.commit(RemoveFiles(locations=(at("a1"),)))


def removes_another_file(world, version):
    world.commit(RemoveFiles(locations=(at("b1"),)))


def compacts_the_file(world, version):
    world.commit(
        RewriteFiles(
            changes=FileChanges(added=rows(data("c")), removed=world.tasks("a1")), read=world.head, sequence_number=1
        )
    )


def compacts_another_file(world, version):
    world.commit(
        RewriteFiles(
            changes=FileChanges(added=rows(data("c")), removed=world.tasks("a2")), read=world.head, sequence_number=1
        )
    )


def deletes_rows_of_the_file(world, version):
    world.commit(RowDelta(changes=FileChanges(added=rows(deletes(version)("other", "a1"))), read=world.head))


def deletes_rows_of_another_file(world, version):
    world.commit(RowDelta(changes=FileChanges(added=rows(deletes(version)("other", "a2"))), read=world.head))


def deletes_rows_in_rome(world, version):
    world.commit(RowDelta(changes=FileChanges(added=rows(deletes(version)("other", "b1", "Rome"))), read=world.head))


def deletes_by_value_in_oslo(world, version):
    world.commit(RowDelta(changes=FileChanges(added=rows(equality_deletes("other"))), read=world.head))


def deletes_by_value_in_rome(world, version):
    world.commit(RowDelta(changes=FileChanges(added=rows(equality_deletes("other", "Rome"))), read=world.head))


def updates_the_file(world, version):
    added = rows(deletes(version)("other", "a1"), data("new"))
    world.commit(RowDelta(changes=FileChanges(added=added), read=world.head))


CASES = [
    (append, adds_in_oslo, NEVER),
    (append, removes_the_file, NEVER),
    (append, updates_the_file, NEVER),
    (copy_on_write, adds_in_oslo, STRICT),
    (copy_on_write, adds_in_rome, NEVER),
    (copy_on_write, removes_the_file, BOTH),
    (copy_on_write, removes_another_file, NEVER),
    (copy_on_write, compacts_the_file, BOTH),
    (copy_on_write, compacts_another_file, NEVER),
    (copy_on_write, deletes_rows_of_the_file, BOTH),
    (copy_on_write, deletes_rows_of_another_file, NEVER),
    (copy_on_write, deletes_by_value_in_oslo, BOTH),
    (copy_on_write, deletes_by_value_in_rome, NEVER),
    (copy_on_write, updates_the_file, BOTH),
    (delete_rows, adds_in_oslo, STRICT),
    (delete_rows, adds_in_rome, NEVER),
    (delete_rows, removes_the_file, BOTH),
    (delete_rows, removes_another_file, NEVER),
    (delete_rows, compacts_the_file, BOTH),
    (delete_rows, compacts_another_file, NEVER),
    (delete_rows, deletes_rows_of_another_file, NEVER),
    (delete_rows, deletes_by_value_in_oslo, NEVER),
    (delete_rows, updates_the_file, BOTH),
    (update_rows, adds_in_oslo, STRICT),
    (update_rows, adds_in_rome, NEVER),
    (update_rows, removes_the_file, BOTH),
    (update_rows, compacts_the_file, BOTH),
    (update_rows, compacts_another_file, NEVER),
    (update_rows, deletes_rows_of_the_file, BOTH),
    (update_rows, deletes_by_value_in_oslo, BOTH),
    (update_rows, deletes_rows_in_rome, NEVER),
    (update_rows, updates_the_file, BOTH),
    (compaction, adds_in_oslo, NEVER),
    (compaction, removes_the_file, BOTH),
    (compaction, removes_another_file, NEVER),
    (compaction, compacts_the_file, BOTH),
    (compaction, deletes_rows_of_the_file, BOTH),
    (compaction, deletes_rows_in_rome, NEVER),
    (compaction, deletes_by_value_in_oslo, NEVER),
    (compaction, updates_the_file, BOTH),
    (compaction_with_a_new_number, deletes_by_value_in_oslo, BOTH),
    (compaction_with_a_new_number, deletes_by_value_in_rome, NEVER),
    (replace_partitions, adds_in_oslo, NEVER),
    (replace_partitions, removes_the_file, NEVER),
    (replace_partitions, updates_the_file, NEVER),
]


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.slow), 3, 4])
@pytest.mark.parametrize("isolation", BOTH)
@pytest.mark.parametrize(
    ("operation", "other", "refused"), CASES, ids=[f"{case[0].__name__}-{case[1].__name__}" for case in CASES]
)
def test_what_came_between(operation, other, refused, isolation, version):
    world = world_of(version)
    late = operation(world, version, isolation)
    other(world, version)
    before, names = world.files(), world.names()
    if isolation not in refused:
        world.commit(late)
        assert "x" in world.names() or operation is delete_rows
    else:
        with pytest.raises(ConflictError, match=r"another commit") as conflict:
            world.commit(late)
        assert conflict.value.context["snapshot_ids"] == [world.head.snapshot_id]
        assert len(conflict.value.context["files"]) > 0
        assert re.search(str(world.head.snapshot_id), str(conflict.value)) is not None
        assert world.names() == names
        assert world.files() == before
    audit(world)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_two_deletes_of_rows_of_one_file_add_up_only_as_files(version):
    """A data file has one deletion vector; delete files of version 2 may be many."""
    world = world_of(version)
    late = delete_rows(world, version, SNAPSHOT)
    deletes_rows_of_the_file(world, version)
    if version == 2:
        world.commit(late)
        assert world.deletes().num_rows == 2
    else:
        with pytest.raises(ConflictError, match="deletes rows of a file in which this operation deletes rows"):
            world.commit(late)
        assert world.deletes().num_rows == 1
    audit(world)


@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.slow), 3, 4])
@pytest.mark.parametrize("isolation", BOTH)
def test_a_file_that_leaves_whole_meets_a_vector_that_came_meanwhile(isolation, version):
    """The vector stayed live and in the totals when its file had left: other programs found it about nothing."""
    world = world_of(version)
    late = RowDelta(
        changes=FileChanges(added=rows(), removed=world.tasks("a1")), read=world.head, filter=OSLO, isolation=isolation
    )
    deletes_rows_of_the_file(world, version)
    if version == 2:  # whose delete files may be about files that are gone
        world.commit(late)
        assert world.names() == ["a2", "b1"]
    else:
        with pytest.raises(ConflictError, match="deletes rows of a file in which this operation deletes rows"):
            world.commit(late)
        assert world.names() == ["a1", "a2", "b1"]
    audit(world)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_filters_decide_anew_on_the_newest_base(version):
    world = world_of(version)
    world.catalog.between = [lambda: adds_in_oslo(world, version)]
    assert world.commit(OverwriteWhere(filter=OSLO, operation=Operation.DELETE)).attempts == 2
    assert world.names() == ["b1"]
    audit(world)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_snapshot_that_was_rolled_back_since_it_was_read_is_a_conflict(version):
    world = world_of(version)
    first = world.head
    world.commit(Append(added=rows(data("a3"))))
    late = OverwriteFiles(
        changes=FileChanges(added=rows(data("x")), removed=world.tasks("a1")), read=world.head, filter=OSLO
    )
    world.commit(SetCurrentSnapshot(snapshot_id=first.snapshot_id, rollback=True))
    with pytest.raises(ConflictError, match=r"rolled back.*read the table again"):
        world.commit(late)
    audit(world)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_history_that_expired_since_it_was_read_is_a_conflict(version):
    world = world_of(version)
    late = OverwriteFiles(
        changes=FileChanges(added=rows(data("x")), removed=world.tasks("a1")), read=world.head, filter=OSLO
    )
    read = world.head
    adds_in_rome(world, version)
    middle = world.head
    adds_in_rome_again = Append(added=rows(data("another", "Rome")))
    world.commit(adds_in_rome_again)
    world.table().expire(snapshots=[read.snapshot_id, middle.snapshot_id], clean=False).execute()
    with pytest.raises(ConflictError, match="expired"):
        world.commit(late)


def test_a_filter_means_the_columns_that_were_read_whatever_they_are_called_now():
    world = world_of(3)
    table = world.table()
    prepared_by = world.plan(filter=OSLO).filter
    late = OverwriteFiles(
        changes=FileChanges(added=rows(data("x")), removed=world.tasks("a1")), read=world.head, filter=prepared_by
    )
    with table.update_schema() as edit:
        edit.rename_column("city", "town")
    adds_in_oslo(world, 3)
    with pytest.raises(ConflictError, match="other"):
        world.commit(late)


def test_the_isolation_is_a_property_of_the_table():
    assert isolation_of(DELETE_ISOLATION, {}) is SERIALIZABLE
    assert isolation_of(DELETE_ISOLATION, {"write.delete.isolation-level": "snapshot"}) is SNAPSHOT
    with pytest.raises(InputError, match=r"write\.delete\.isolation-level: expected serializable or snapshot"):
        isolation_of(DELETE_ISOLATION, {"write.delete.isolation-level": "none"})
