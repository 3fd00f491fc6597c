"""Several updates as one commit, and what becomes of them when others come first, clocks go back or steps fail."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.cherry_pick import CherryPick
from icefloe.commit.operations.overwrite import OverwriteFiles, OverwriteWhere
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.commit.operations.ref_updates import SetCurrentSnapshot
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.errors import CommitStateUnknown, ConflictError, InputError, NoSuchTable, StorageError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import Status
from icefloe.model.metadata.snapshots import Operation
from icefloe.table.table import Table
from icefloe.table.transaction import Transaction
from icefloe.tree.file_changes import FileChanges
from support.entry_tables import ENV, at, audit, changed, data, new_world, rows
from support.tables import VERSIONS

pytestmark = pytest.mark.parametrize("version", VERSIONS)
LEAVES = {"commit.root.max-data-files": "0"}


@pytest.fixture
def world(version):
    world = new_world(version, **LEAVES)
    world.commit(Append(added=rows(data("a1"), data("b1", "Rome"))))
    return world


def people(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "city": ["Oslo"] * len(ids)})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def test_several_updates_land_as_one_commit_of_several_snapshots(world):
    before = world.metadata
    result = world.commit(
        Append(added=rows(data("a2"))), SetProperties(updates={"x": "1"}), Append(added=rows(data("a3")))
    )
    after = world.metadata
    assert (result.snapshots, result.files_added, result.operation) == (2, 2, "append, set properties")
    assert len(after.metadata_log) == len(before.metadata_log) + 1
    assert world.names() == ["a1", "a2", "a3", "b1"]
    audit(world)


def test_the_log_has_only_the_snapshot_that_readers_saw(world):
    """Time travel must not find a state that never was current for anybody."""
    before = [entry.snapshot_id for entry in world.metadata.snapshot_log]
    result = world.commit(Append(added=rows(data("a2"))), RemoveFiles(locations=(at("a2"),)))
    assert [entry.snapshot_id for entry in world.metadata.snapshot_log] == [*before, result.snapshot_id]
    assert len(world.metadata.snapshots) == 3
    audit(world)


def test_a_lost_race_applies_all_updates_again_with_the_leaves_they_have(world):
    world.catalog.between = [lambda: world.commit(Append(added=rows(data("other"))))]
    world.io.reset()
    result = world.commit(Append(added=rows(data("a2"))), Append(added=rows(data("a3"))))
    assert result.attempts == 2
    assert world.names() == ["a1", "a2", "a3", "b1", "other"]
    written = [call.location for call in world.io.calls if call.verb == "write_new" and "-m" in call.location]
    assert len(written) == 3  # one of the other writer
    for snapshot, name in zip(list(world.metadata.snapshots)[-2:], ("a2", "a3"), strict=True):
        assert changed(world, snapshot, Status.ADDED) == [name]
    audit(world)


def test_an_update_that_has_nothing_to_do_on_another_base_does_not_lend_its_leaves(world, version):
    """Leaves belong to the update that wrote them, not to the n-th snapshot of a commit."""
    first = world.head
    staged = world.commit(Append(added=rows(data("staged")), staged=True)).snapshot_id
    world.commit(Append(added=rows(data("a2"))))
    back = SetCurrentSnapshot(snapshot_id=first.snapshot_id)
    world.catalog.between = [lambda: world.commit(back)]
    result = world.commit(CherryPick(snapshot_id=staged), Append(added=rows(data("a3"))))
    assert (result.attempts, result.snapshots) == (2, 1)
    assert world.names() == ["a1", "a3", "b1", "staged"]
    audit(world)


def test_a_snapshot_not_made_in_the_last_attempt_is_not_missed_when_the_outcome_is_unknown(world):
    remove = OverwriteWhere(filter=parse_filter("city = 'Rome'"), operation=Operation.DELETE)
    world.catalog.between = [lambda: world.commit(remove)]
    world.catalog.script = ["swap", "stale", "landed"]
    result = world.commit(remove, Append(added=rows(data("a2"))))
    assert (result.attempts, result.snapshots) == (2, 1)
    assert world.names() == ["a1", "a2"]


def test_a_metadata_update_of_unknown_outcome_is_known_by_its_file(world):
    world.catalog.script = ["landed"]
    assert world.commit(SetProperties(updates={"x": "1"})).attempts == 1
    assert world.metadata.properties["x"] == "1"
    world.catalog.script = ["lost"]
    with pytest.raises(CommitStateUnknown, match="may or may not"):
        world.commit(SetProperties(updates={"x": "2"}))
    assert world.io.count("delete") == 0


def test_an_update_that_changes_nothing_is_no_commit(world):
    before = world.base().pointer
    assert world.commit(SetProperties(updates={}), SetProperties(removals=("absent",))).attempts == 0
    assert world.commit(SetCurrentSnapshot(snapshot_id=world.head.snapshot_id)).attempts == 0
    assert world.base().pointer == before
    audit(world)


def test_a_clock_that_goes_back_inside_a_commit_does_not_reorder_it(world):
    start = world.metadata.last_updated_ms
    ticks = iter([start + 9000, start + 5000, start + 1000, start + 500, start + 400, start + 300])
    clock = replace(ENV, now_ms=lambda: next(ticks))
    commit(world.pointer(), [Append(added=rows(data("a2"))), Append(added=rows(data("a3")))], clock)
    first, second = list(world.metadata.snapshots)[-2:]
    assert first.timestamp_ms <= second.timestamp_ms <= world.metadata.last_updated_ms
    commit(world.pointer(), [SetCurrentSnapshot(snapshot_id=first.snapshot_id)], clock)
    audit(world)


def test_a_table_that_is_gone_before_the_commit_begins_leaves_no_data_file(world):
    late = Append(added=rows(data("late")))
    world.io.inner.write_new(at("late"), b"rows")
    world.catalog.inner.drop(("db", "t"))
    with pytest.raises(NoSuchTable):
        world.commit(late)
    assert at("late") not in world.files()


def test_a_table_that_is_dropped_between_two_attempts_leaves_no_file(world):
    before = world.files()
    world.catalog.script = ["stale"]
    world.catalog.between = [lambda: world.catalog.inner.drop(("db", "t"))]
    with pytest.raises(NoSuchTable):
        world.commit(Append(added=rows(data("late"))))
    assert world.files() == before


def test_files_that_cannot_be_deleted_do_not_change_the_outcome(world, monkeypatch):
    def broken(locations):
        raise StorageError("no right to delete")

    monkeypatch.setattr(world.io, "delete", broken)
    world.catalog.script = ["stale"]
    assert world.commit(Append(added=rows(data("a2")))).attempts == 2
    assert world.names() == ["a1", "a2", "b1"]
    audit(world, folder=False)


def test_a_leaf_written_before_the_table_went_to_another_version_is_written_anew(version):
    if version == 4:
        return
    world = new_world(version, **LEAVES)
    world.commit(Append(added=rows(data("a1"))))
    world.catalog.between = [lambda: world.table().upgrade(4)]
    assert world.commit(Append(added=rows(data("a2")))).attempts == 2
    formats = {leaf.location.rsplit(".")[-1] for leaf in world.leaves() if leaf.snapshot_id == world.head.snapshot_id}
    assert formats == {"parquet"}
    audit(world)


@pytest.fixture
def empty(version):
    return new_world(version, **LEAVES)


def test_a_transaction_sees_its_own_changes_and_others_see_them_at_the_end(empty):
    table = empty.table()
    with table.transaction() as tx:
        tx.append(people(1, 2, 3))
        tx.delete("id = 2")
        tx.upsert(people(3, 4), on=["id"])
        assert sorted(tx.scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]
        assert ids_of(table) == []
    assert (tx.result.snapshots, tx.result.attempts) == (1, 1)
    assert ids_of(table) == [1, 3, 4]
    audit(empty)


def test_a_transaction_is_applied_again_when_another_commit_lands_between(empty):
    table = empty.table()
    table.append(people(100))
    with table.transaction() as tx:
        tx.append(people(1, 2, 3))
        tx.delete("id = 2")
        empty.table().append(pa.table({"id": [50], "city": ["Rome"]}))
        tx.upsert(people(3, 4), on=["id"])
    assert tx.result.attempts == 2
    assert ids_of(table) == [1, 3, 4, 50, 100]
    audit(empty)


def test_a_transaction_conflicts_with_rows_that_came_between_and_leaves_no_file(empty):
    table = empty.table()
    table.append(people(100))
    tx = table.transaction()
    tx.append(people(1, 2, 3))
    tx.delete("id = 2")
    empty.table().append(people(1, 3))
    with pytest.raises(ConflictError, match="may contain rows that this operation reads"):
        tx.commit()
    assert ids_of(table) == [1, 3, 100]
    live = set(table.scan().plan().tasks["location"].to_pylist())
    assert {file for file in empty.files() if "/data/" in file} == live
    audit(empty)


def failing(block) -> None:
    """Do two steps in a block that ends with an error."""
    with block as tx:
        if isinstance(tx, Transaction):
            tx.append(people(1, 2, 3))
            tx.delete("id = 2")
        else:
            tx.add_column("x", "int")
        raise RuntimeError


def test_a_transaction_that_ends_with_an_error_leaves_the_table_and_its_folder_as_they_were(empty):
    table = empty.table()
    table.append(people(100))
    before = empty.files()
    tx = table.transaction()
    with pytest.raises(RuntimeError):
        failing(tx)
    assert empty.files() == before
    with pytest.raises(InputError, match="has ended"):
        tx.append(people(5))
    assert empty.files() == before


def test_a_transaction_goes_on_without_a_step_that_failed(empty, monkeypatch):
    """What a failed step has staged must not show up in the step after it."""
    table = empty.table()
    with table.transaction() as tx:
        tx.append(people(1))
        monkeypatch.setattr(tx._work, "write_roots", lambda store: (_ for _ in ()).throw(StorageError("disk full")))
        with pytest.raises(StorageError):
            tx.append(people(2))
        monkeypatch.undo()
        tx.append(people(3))
    assert ids_of(table) == [1, 3]
    audit(empty)


def test_a_transaction_without_steps_is_no_commit(world):
    before = world.base().pointer
    with world.table().transaction() as tx:
        pass
    assert (tx.result.attempts, world.base().pointer) == (0, before)


def test_schema_and_rows_change_together(empty):
    table = empty.table()
    table.append(people(1))
    with table.transaction() as tx:
        with tx.update_schema() as edit:
            edit.add_column("age", "int")
        tx.append(people(2).append_column("age", pa.array([7], pa.int32())))
    assert sorted(table.scan().to_arrow()["age"].to_pylist(), key=str) == [7, None]
    audit(empty)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["schema", "partitioning"])
def test_rows_before_and_after_another_schema_survive_a_lost_race(empty, change):
    """The next step read the root of the one before in other terms from storage, where it was not yet: NoSuchFile."""
    table = empty.table()
    table.append(people(100))
    tx = table.transaction()
    tx.append(people(1))
    if change == "schema":
        tx.append(people(2).append_column("age", pa.array([7], pa.int32())), schema_mode="merge")
    else:
        with tx.update_partitioning() as edit:
            edit.add("bucket(2, id)")
        tx.append(people(2))
    tx.delete("id = 1")
    empty.table().append(pa.table({"id": [50], "city": ["Rome"]}))
    assert tx.commit().attempts == 2
    assert ids_of(table) == [2, 50, 100]
    audit(empty)


def test_an_edit_commits_once_and_not_after_an_error(empty):
    table = empty.table()
    with pytest.raises(RuntimeError):
        failing(table.update_schema())
    assert "x" not in table.schema.by_name
    with table.update_schema() as edit:
        edit.add_column("y", "int")
        edit.commit()
    assert "y" in table.schema.by_name
    assert len(table.metadata.schemas) == 2


def test_a_conflict_of_overwritten_files_in_a_retry_removes_what_was_written(world):
    late = OverwriteFiles(changes=FileChanges(added=rows(data("x")), removed=world.tasks("a1")), read=world.head)
    world.catalog.between = [lambda: world.commit(RemoveFiles(locations=(at("a1"),)))]
    with pytest.raises(ConflictError, match=r"a1\.parquet was removed by another commit"):
        world.commit(late)
    audit(world)
