"""The commit loop against catalogs that lose races, fail, and lie about what happened."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icefloe.commit import loop
from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.errors import CommitFailed, CommitStateUnknown, ConflictError, NoSuchTable
from icefloe.io.memory import MemoryFileIO
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.text.ddl import parse_ddl
from icefloe.scan.plan import plan_scan
from icefloe.table.table import Table
from icefloe.testing.counting_io import CountingFileIO
from icefloe.tree.file_changes import FileChanges
from support.engine_work import write_entries
from support.entry_tables import ENV, NAME, Scripted
from support.tables import VERSIONS

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@dataclass
class World:
    catalog: Scripted
    io: CountingFileIO

    def pointer(self) -> TablePointer:
        return TablePointer(self.catalog, NAME, self.io)

    def table(self) -> Table:
        return Table(self.pointer(), ENV)

    def ids(self) -> list[int]:
        return sorted(self.table().scan().to_arrow()["id"].to_pylist())

    def files(self) -> set[str]:
        return {info.location for info in self.io.inner.list("memory://wh/t")}


@pytest.fixture
def world(version) -> World:
    catalog, io = Scripted(), CountingFileIO(MemoryFileIO())
    metadata = new_metadata(
        location="memory://wh/t",
        schema=parse_ddl("id bigint"),
        spec=UNPARTITIONED,
        properties={"commit.retry.num-retries": "3", "commit.root.max-data-files": "2"},
        format_version=version,
    )
    catalog.inner.create_namespace("db")
    create_table(catalog.inner, NAME, io, metadata)
    return World(catalog, io)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def append_of(world: World, *ids: int) -> Append:
    metadata = world.pointer().load().metadata
    return Append(added=write_entries(world.io, rows(*ids), metadata))


def test_a_lost_race_is_run_again_on_the_new_base_and_keeps_the_other_writers_rows(world):
    """iceberg-go #976: a retry must rebuild the root on the new parent."""
    late = append_of(world, 1)
    world.table().append(rows(2))
    world.catalog.script = ["stale"]
    result = commit(world.pointer(), late, ENV)
    assert result.attempts == 2
    assert world.ids() == [1, 2]


def test_a_lost_race_leaves_no_file_behind(world):
    world.catalog.script = ["stale", "stale"]
    world.table().append(rows(1))
    before_failure = world.files()
    world.catalog.script = ["stale"] * 4
    with pytest.raises(CommitFailed, match="4 attempts"):
        world.table().append(rows(2))
    assert world.files() == before_failure
    assert world.ids() == [1]


def test_a_table_that_was_dropped_meanwhile_is_told_and_nothing_is_left_behind(world):
    world.table().append(rows(1))
    before = world.files()
    world.catalog.script = ["gone"]
    with pytest.raises(NoSuchTable, match="dropped"):
        world.table().append(rows(2))
    assert world.files() == before


@pytest.mark.parametrize("moment", ["apply_updates", "finish"])
@pytest.mark.parametrize("lost", [0, 2])
def test_an_error_that_nobody_foresaw_leaves_no_file_behind(world, monkeypatch, moment, lost):
    """An error of Arrow in the middle of a commit left data files that no snapshot names and no error mentions."""
    world.table().append(rows(1))
    before, working = world.files(), getattr(loop, moment)

    def broken(*arguments: object) -> object:
        if world.catalog.swaps > lost:
            raise pa.ArrowTypeError("unable to merge")
        return working(*arguments)

    monkeypatch.setattr(loop, moment, broken)
    world.catalog.script = ["stale"] * lost
    with pytest.raises(pa.ArrowTypeError):
        world.table().append(rows(2))
    assert world.catalog.swaps == 1 + lost
    assert world.files() == before
    assert world.ids() == [1]


def test_an_error_of_a_catalog_that_nobody_foresaw_proves_nothing(world):
    """Only errors of the library prove that a pointer did not move; after any other the files may be referenced."""
    operation = append_of(world, 1)
    world.catalog.script = ["broken"]
    with pytest.raises(CommitStateUnknown, match="may or may not") as told:
        commit(world.pointer(), operation, ENV)
    assert isinstance(told.value.__cause__, OSError)
    assert world.io.count("delete") == 0
    world.catalog.script = ["moved and broken"]
    commit(world.pointer(), operation, ENV)
    assert world.io.count("delete") == 0
    assert world.ids() == [1]


def test_an_unknown_outcome_that_landed_is_success_and_nothing_is_deleted(world):
    world.catalog.script = ["landed"]
    result = world.table().append(rows(1))
    assert result.attempts == 1
    assert world.catalog.swaps == 1
    assert world.io.count("delete") == 0
    assert world.ids() == [1]


@pytest.mark.parametrize("retries", [0, 3])
def test_a_commit_that_landed_is_acknowledged_once_although_the_catalog_calls_it_stale(world, retries):
    """A proxy that repeats requests answers the second one; the next attempt committed the same snapshot again."""
    world.table().set_properties({"commit.retry.num-retries": str(retries)})
    world.catalog.script = ["moved and stale"]
    result = world.table().append(rows(1))
    assert result.snapshot_id in [snapshot.snapshot_id for snapshot in world.table().snapshots]
    world.catalog.script = ["moved and stale"]
    world.table().set_properties({"a": "b"})
    assert world.table().properties["a"] == "b"
    assert world.ids() == [1]


def test_an_unknown_outcome_that_cannot_be_settled_is_an_error_and_nothing_is_deleted(world):
    """Iceberg #2317, #3717: not seeing the commit yet does not prove that it will not land."""
    world.catalog.script = ["lost"]
    with pytest.raises(CommitStateUnknown, match="may or may not"):
        world.table().append(rows(1))
    assert world.catalog.swaps == 1
    assert world.io.count("delete") == 0


def test_an_operation_that_landed_after_all_is_not_done_a_second_time(world):
    """Not known to have landed, the same files are committed again: they must come once, and must not be deleted."""
    operation = append_of(world, 1)
    world.catalog.script = ["landed"]
    world.catalog.blind = True  # so that the commit cannot look whether it landed
    with pytest.raises(CommitStateUnknown):
        commit(world.pointer(), operation, ENV)
    world.catalog.blind = False
    with pytest.raises(ConflictError, match="has landed as snapshot"):
        commit(world.pointer(), operation, ENV)
    assert world.ids() == [1]


def test_the_files_of_an_unknown_outcome_outlive_a_repetition_that_fails(world):
    operation = append_of(world, 1)
    world.catalog.script = ["lost"]
    with pytest.raises(CommitStateUnknown):
        commit(world.pointer(), operation, ENV)
    world.catalog.script = ["stale"] * 4
    with pytest.raises(CommitFailed):
        commit(world.pointer(), operation, ENV)
    assert set(operation.files) <= world.files()


def test_an_operation_that_did_not_land_can_be_repeated(world):
    operation = append_of(world, 1)
    world.catalog.script = ["lost"]
    with pytest.raises(CommitStateUnknown):
        commit(world.pointer(), operation, ENV)
    commit(world.pointer(), operation, ENV)
    assert world.ids() == [1]


def test_an_interrupt_during_the_swap_stays_an_interrupt(world):
    world.catalog.script = ["interrupt"]
    with pytest.raises(KeyboardInterrupt):
        world.table().append(rows(1))
    assert world.io.count("delete") == 0


def test_a_leaf_of_new_files_is_written_once_through_all_attempts(world):  # V4 statement 71
    operation = Append(added=pa.concat_tables([append_of(world, n).added for n in range(3)]))
    world.io.reset()
    world.catalog.script = ["stale", "stale"]
    result = commit(world.pointer(), operation, ENV)
    names = [call.location.rsplit("/", 1)[-1] for call in world.io.calls if call.verb == "write_new"]
    assert len([name for name in names if "-m" in name]) == 1
    assert len([name for name in names if name.startswith(("root-", "snap-"))]) == 3
    assert (result.attempts, result.metadata_files_written) == (3, 2)
    assert world.ids() == [0, 1, 2]


def test_a_conflict_is_final_and_removes_what_was_written_for_it(world):
    world.table().append(rows(1, 2, 3))
    stale = world.pointer().load()
    plan = plan_scan(stale.store, stale.metadata, stale.metadata.current_snapshot)
    added = write_entries(world.io, rows(9), stale.metadata)
    operation = RowDelta(changes=FileChanges(added=added, removed=plan.tasks), read=stale.metadata.current_snapshot)
    world.table().append(rows(4))
    before = world.files() - set(added["location"].to_pylist())
    with pytest.raises(ConflictError, match="added by another commit"):
        commit(world.pointer(), operation, ENV)
    assert world.files() == before
    assert world.ids() == [1, 2, 3, 4]


def test_a_row_delta_lands_beside_a_commit_that_it_did_not_read(world):
    world.table().append(rows(1, 2, 3))
    stale = world.pointer().load()
    plan = world.table().scan("id < 10").plan()
    operation = RowDelta(
        changes=FileChanges(added=write_entries(world.io, rows(5), stale.metadata), removed=plan.tasks),
        read=stale.metadata.current_snapshot,
        filter=plan.filter,
    )
    world.table().append(rows(100))
    commit(world.pointer(), operation, ENV)
    assert world.ids() == [5, 100]


def test_rows_deleted_meanwhile_are_a_conflict_for_a_rewrite_of_their_file(world):
    """Writing the file again from the old reading would bring the deleted row back."""
    world.table().append(rows(1, 2, 3))
    base = world.pointer().load()
    plan = plan_scan(base.store, base.metadata, base.metadata.current_snapshot)
    added = write_entries(world.io, rows(1, 2, 3, 4), base.metadata)
    operation = RowDelta(changes=FileChanges(added=added, removed=plan.tasks), read=base.metadata.current_snapshot)
    world.table().delete("id = 2")
    with pytest.raises(ConflictError):
        commit(world.pointer(), operation, ENV)
    assert world.ids() == [1, 3]


def test_snapshots_never_go_back_in_time(world):
    """Time travel reads the log in order, so a clock that jumps back must not reorder it."""
    ticks = iter([5_000_000_000_000, 1000, 2000])
    clock = replace(ENV, now_ms=lambda: next(ticks))
    for n in range(3):
        Table(world.pointer(), clock).append(rows(n))
    times = [s.timestamp_ms for s in world.table().snapshots]
    assert times == sorted(times)


def test_every_snapshot_has_the_next_sequence_number_and_its_parent(world, version):
    for n in range(3):
        world.table().append(rows(n))
    snapshots = world.table().snapshots
    assert [s.sequence_number for s in snapshots] == ([0, 0, 0] if version == 1 else [1, 2, 3])
    assert [s.parent_id for s in snapshots] == [None, snapshots[0].snapshot_id, snapshots[1].snapshot_id]


def test_the_metadata_log_names_former_files_that_exist(world):
    for n in range(3):
        world.table().append(rows(n))
    log = world.table().metadata.metadata_log
    assert len(log) == 3
    assert {entry.metadata_file for entry in log} <= world.files()


def test_a_swap_is_only_tried_with_files_that_are_there(world):
    """The pointer must never outlive what it points to: everything is written before the swap."""
    world.table().append(rows(1))
    snapshot = world.table().metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.root in world.files()
    tasks = world.table().scan().plan().tasks
    assert pc.all(pc.is_in(tasks["location"], value_set=pa.array(list(world.files())))).as_py()
