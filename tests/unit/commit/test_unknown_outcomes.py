"""Files of commits of unknown outcome: added once, never deleted while a snapshot may refer to them, and forgotten."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Thread

import pyarrow as pa
import pytest

from icefloe.catalogs.memory import MemoryCatalog
from icefloe.commit import loop
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.commit.table_location import read_metadata
from icefloe.env import SYSTEM
from icefloe.errors import AlreadyExists, CommitFailed, CommitStateUnknown, ConflictError
from icefloe.io.memory import MemoryFileIO
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.text.ddl import parse_ddl
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.engine_work import write_entries
from support.entry_tables import ENV, World, new_world
from support.tables import VERSIONS

FUTURE = "2100-01-01T00:00:00+00:00"

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def world(version) -> World:
    return new_world(version)


def append_of(world: World, *ids: int) -> Append:
    people = pa.table({"id": pa.array(ids, pa.int64()), "city": ["Oslo"] * len(ids)})
    return Append(added=write_entries(world.io, people, world.metadata))


def ids_of(world: World) -> list[int]:
    return sorted(world.table().scan().to_arrow()["id"].to_pylist())


def lose(world: World, operation: Append) -> None:
    """Commit with an unknown outcome; the pointer did not move."""
    world.catalog.script = ["lost"]
    with pytest.raises(CommitStateUnknown):
        world.commit(operation)


def land_unseen(world: World, operation: Append, monkeypatch) -> None:
    """Commit with an unknown outcome; the pointer did move."""
    world.catalog.script = ["landed"]
    with monkeypatch.context() as patched:
        patched.setattr(loop, "_has_landed", lambda *_: False)
        with pytest.raises(CommitStateUnknown):
            world.commit(operation)


def set_property(world: World, value: str) -> None:
    world.commit(SetProperties(updates={"x": value}))


def fail(world: World, operation: Append) -> None:
    """Repeat a commit, which loses every race."""
    world.catalog.script = ["stale"] * 4
    with pytest.raises(CommitFailed, match="as other commits were faster"):
        world.commit(operation)


@pytest.mark.parametrize("commits", [1, 3])
def test_the_files_of_a_commit_that_can_no_longer_land_are_deleted_by_a_repetition_that_fails(world, commits):
    """Another commit replaced the metadata file that it expected. Its record stayed for the life of the process."""
    operation = append_of(world, 1)
    lose(world, operation)
    for number in range(commits):
        set_property(world, str(number))
    fail(world, operation)
    assert set(operation.files).isdisjoint(world.files())


def test_a_commit_that_can_no_longer_land_is_repeated(world):
    operation = append_of(world, 1)
    lose(world, operation)
    set_property(world, "1")
    world.commit(operation)
    assert ids_of(world) == [1]


def test_the_files_of_a_commit_that_may_still_land_are_kept_by_a_repetition_that_fails(world):
    operation = append_of(world, 1)
    lose(world, operation)
    fail(world, operation)
    assert set(operation.files) <= world.files()


@pytest.mark.parametrize("times", [1, 3])
def test_a_commit_that_landed_is_never_repeated_and_its_files_are_kept(world, times, monkeypatch):
    operation = append_of(world, 1)
    land_unseen(world, operation, monkeypatch)
    for _ in range(times):
        with pytest.raises(ConflictError, match="has landed as snapshot"):
            world.commit(operation)
    assert ids_of(world) == [1]


def test_the_files_of_a_commit_that_may_still_land_are_not_deleted_as_orphans(world):
    operation = append_of(world, 1)
    lose(world, operation)
    orphan = append_of(world, 2)
    days_later = replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + 864_000_000)
    plan = Table(pointer_of(world.table()), days_later).remove_orphans(max_share=1.0)
    assert set(orphan.files) <= set(plan.files["location"].to_pylist())
    plan.execute()
    assert set(orphan.files).isdisjoint(world.files())
    assert set(operation.files) <= world.files()


def test_the_files_of_a_commit_that_landed_are_deleted_once_no_snapshot_needs_them(world, monkeypatch):
    """The process that had committed them kept them for ever."""
    operation = append_of(world, 1)
    land_unseen(world, operation, monkeypatch)
    table = world.table()
    table.append(pa.table({"id": pa.array([2], pa.int64()), "city": ["Oslo"]}))
    table.remove_files(list(operation.files))
    table.expire(older_than=FUTURE, retain_last=1).execute()
    assert ids_of(world) == [2]
    assert set(operation.files).isdisjoint(world.files())


def expire_elsewhere(world: World, monkeypatch) -> int:
    """Another process, which knows nothing of this one's commits, adds the id 2 and expires the snapshot before it."""
    landed = world.head.snapshot_id
    with monkeypatch.context() as patched:
        patched.setattr("icefloe.commit.unknown_outcomes.RECORDS", {})
        world.commit(append_of(world, 2))
        world.table().expire(snapshots=[landed], clean=False).execute()
    return landed


@pytest.mark.parametrize("seen", [True, False], ids=["seen before it expired", "never seen"])
def test_a_commit_that_landed_is_not_repeated_after_its_snapshot_has_expired(world, seen, monkeypatch):
    """Its rows came twice: without its snapshot, the table looked as if the commit had never landed."""
    operation = append_of(world, 1)
    land_unseen(world, operation, monkeypatch)
    if seen:
        set_property(world, "1")
    landed = expire_elsewhere(world, monkeypatch)
    with pytest.raises(ConflictError, match=f"has landed as snapshot {landed}"):
        world.commit(operation)
    assert ids_of(world) == [1, 2]


def test_a_commit_is_not_repeated_when_the_metadata_log_no_longer_shows_its_outcome(world, monkeypatch):
    world.commit(SetProperties(updates={"write.metadata.previous-versions-max": "1"}))
    operation = append_of(world, 1)
    land_unseen(world, operation, monkeypatch)
    expire_elsewhere(world, monkeypatch)
    with pytest.raises(ConflictError, match="no longer shows whether it landed"):
        world.commit(operation)
    assert ids_of(world) == [1, 2]


def test_a_commit_is_not_repeated_when_the_metadata_file_that_shows_its_outcome_is_gone(world, monkeypatch):
    operation = append_of(world, 1)
    land_unseen(world, operation, monkeypatch)
    expire_elsewhere(world, monkeypatch)
    world.io.delete([world.metadata.metadata_log[-2].metadata_file])
    with pytest.raises(ConflictError, match="no longer shows whether it landed"):
        world.commit(operation)
    assert ids_of(world) == [1, 2]


def test_a_table_with_too_many_files_on_record_takes_no_more_until_the_outcome_is_known(world, version, monkeypatch):
    """No record is dropped to make room. Tables without such commits, and commits without files, are not affected."""
    monkeypatch.setattr("icefloe.commit.unknown_outcomes.MAX_FILES", 1)
    first, second = append_of(world, 1), append_of(world, 2)
    lose(world, first)
    with pytest.raises(CommitFailed, match="commits of unknown outcome"):
        world.commit(second)
    assert set(first.files) <= world.files()
    assert set(second.files).isdisjoint(world.files())
    other = new_world(version)
    other.commit(append_of(other, 5))
    set_property(world, "1")  # by which the first commit can no longer land
    world.commit(append_of(world, 2))
    assert ids_of(world) == [2]


def test_no_record_is_left_of_commits_that_did_not_land(world, monkeypatch):
    records: dict[str, object] = {}
    monkeypatch.setattr("icefloe.commit.unknown_outcomes.RECORDS", records)
    for number in range(5):
        lose(world, append_of(world, number))
    assert len(records) == 1
    set_property(world, "1")
    set_property(world, "2")
    assert records == {}


def test_other_commits_are_remembered_while_an_outcome_is_looked_up_in_storage(world, version, monkeypatch):
    """The lock was held during the read: a slow store kept every other table of the process from committing."""
    operation, other = append_of(world, 1), new_world(version)
    land_unseen(world, operation, monkeypatch)
    expire_elsewhere(world, monkeypatch)
    remembered = []

    def read_slowly(*arguments):
        thread = Thread(target=lambda: lose(other, append_of(other, 5)), daemon=True)
        thread.start()
        thread.join(20)
        remembered.append(not thread.is_alive())
        return read_metadata(*arguments)

    monkeypatch.setattr("icefloe.commit.unknown_outcomes.read_metadata", read_slowly)
    set_property(world, "2")
    assert remembered == [True]


@dataclass
class CreatesUnseen:
    """A catalog whose create succeeds, but its answer is lost."""

    inner: MemoryCatalog

    def create(self, identifier, metadata_location):
        self.inner.create(identifier, metadata_location)
        raise CommitStateUnknown("answer lost")


def test_creating_a_table_again_keeps_the_files_of_a_creation_of_unknown_outcome(version):
    """The second creation finds that the table exists, and deleted the files that the first one had put into it."""
    io, names = MemoryFileIO(), MemoryCatalog("test", warehouse="memory://wh")
    names.create_namespace("db")
    metadata = new_metadata(
        location="memory://wh/t",
        schema=parse_ddl("id bigint"),
        spec=UNPARTITIONED,
        properties={},
        format_version=version,
    )
    step = Append(added=write_entries(io, pa.table({"id": pa.array([1, 2], pa.int64())}), metadata))
    with pytest.raises(CommitStateUnknown):
        create_table(CreatesUnseen(names), ("db", "t"), io, metadata, ENV, (step,))
    again = replace(metadata, table_uuid=str(ENV.new_uuid()))
    with pytest.raises(AlreadyExists):
        create_table(names, ("db", "t"), io, again, ENV, (step,))
    assert set(step.files) <= {info.location for info in io.list("memory://wh/t")}
