"""Commits of V4 that lose a race or fail, and the files that nobody needs any more (statements 71 to 74)."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icefloe.commit.base import Base
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.rewrite import RewriteManifests
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.engines.choose import engine_for
from icefloe.errors import CommitFailed, CommitStateUnknown, ConflictError
from icefloe.maintenance.reachable import freed_files, reachable_files
from icefloe.model.entries import ContentType, Status
from icefloe.testing.check import check_table
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from support.entry_tables import World, at, audit, data, new_world, rows, short, vector

LEAVES = {"commit.root.max-data-files": "2", "commit.root.max-dvs": "2"}
ROOT = {"commit.root.max-data-files": "1000", "commit.root.max-dvs": "1000"}
HERE = engine_for(None)
NAMES = ("DATA", "DV", "EQUALITY", "DATA_MANIFEST", "DELETE_MANIFEST", "MANIFEST_DV")


def with_leaf(*names: str, **properties: str) -> World:
    """A table with these files in one leaf, whose root takes all that comes."""
    world = new_world(4, **LEAVES, **properties)
    world.commit(Append(added=rows(*(data(name) for name in names))))
    world.commit(SetProperties(updates=ROOT))
    assert described(world) == ["DATA_MANIFEST ADDED"]
    return world


def described(world: World) -> list[str]:
    """The rows of the head's root: what each is, which positions a manifest vector hides, the status."""
    base = world.base()
    root = read_root(base.store, base.metadata.current_snapshot)
    found = []
    for row in root.entries.to_pylist():
        kind, status = NAMES[row["content_type"]], Status(row["status"]).name
        name = "" if kind.endswith("MANIFEST") or row["location"] is None else f" {short(row['location'])}"
        if kind == "MANIFEST_DV":
            live = status != "DELETED"
            name = f" {sorted(root.dead[row['referenced_file']]) if live else row['record_count']}"
        found.append(f"{kind}{name} {status}")
    return found


def written(world: World) -> list[str]:
    """The names of the metadata files that were written, in order, by what comes before their ids."""
    names = [call.location.rsplit("/", 1)[-1] for call in world.io.calls if call.verb in ("write_new", "write_many")]
    return [name for name in names if name.endswith((".parquet", ".puffin"))]


def removal(world: World, *names: str) -> OverwriteFiles:
    """The removal of files that were planned, with the places where they were seen."""
    return OverwriteFiles(changes=FileChanges(added=data_of(), removed=world.tasks(*names)), read=world.head)


def data_of(*names: str) -> pa.Table:
    return rows(*(data(name) for name in names)) if len(names) > 0 else rows(data("none")).slice(0, 0)


# -- 71


def test_71_an_append_that_lost_a_race_reuses_its_leaf_and_writes_only_the_root_again():
    world = new_world(4, **LEAVES)
    world.catalog.between = [lambda: world.commit(Append(added=data_of("rival")))]
    world.io.calls.clear()
    result = world.commit(Append(added=data_of("a", "b", "c")))
    assert result.attempts == 2
    names = written(world)
    leaves = [name for name in names if not name.startswith("root-")]
    assert len(leaves) == 1
    roots = [name for name in names if name.startswith(f"root-{result.snapshot_id}-")]
    assert [name.split("-")[2] for name in roots] == ["1", "2"]
    (leaf,) = [leaf for leaf in world.leaves() if leaf.snapshot_id == result.snapshot_id]
    assert leaf.location.endswith(leaves[0])
    assert leaf.sequence_number == world.head.sequence_number == 2
    entries = world.entries()
    names, numbers = map(short, entries["location"].to_pylist()), entries["sequence_number"].to_pylist()
    assert dict(zip(names, numbers, strict=True)) == {"rival": 1, "a": 2, "b": 2, "c": 2}
    audit(world)
    assert check(world) == []


def test_71_a_leaf_of_deletion_vectors_is_reused_as_well_and_belongs_to_where_its_files_are_now():
    world = with_leaf("a", "b", "c", "d", "e")
    world.commit(removal(world, "e"))
    world.commit(SetProperties(updates=LEAVES))
    world.catalog.between = [lambda: world.commit(RewriteManifests())]
    deletes = rows(*(vector(f"v{name}", name) for name in "abc"))
    delta = RowDelta(changes=FileChanges(added=deletes, revectored=world.tasks("a", "b", "c")), read=world.head)
    world.io.calls.clear()
    result = world.commit(delta)
    assert result.attempts == 2
    stored = [call.location for call in world.io.calls if call.verb in ("write_new", "write_many")]
    mine = [leaf.location for leaf in world.leaves() if not leaf.is_data]
    assert [location for location in stored if location in mine] == mine
    assert world.deletes()["manifest"].to_pylist() == mine * 3
    plan = world.plan().tasks
    told = dict(zip(map(short, plan["location"].to_pylist()), plan["dv_location"].is_valid().to_pylist(), strict=True))
    assert told == {"a": True, "b": True, "c": True, "d": False}
    audit(world)
    assert check(world) == []


def test_71_row_ids_and_sequence_numbers_follow_the_commit_that_came_first():
    world = new_world(4, **LEAVES)
    world.catalog.between = [lambda: world.commit(Append(added=data_of("x", "y", "z")))]
    world.commit(Append(added=data_of("a", "b", "c")))
    entries = world.entries()
    first = dict(zip(map(short, entries["location"].to_pylist()), entries["first_row_id"].to_pylist(), strict=True))
    assert first == {"x": 0, "y": 10, "z": 20, "a": 30, "b": 40, "c": 50}
    assert (world.head.first_row_id, world.head.added_rows, world.metadata.next_row_id) == (30, 30, 60)


# -- 72


def test_72_two_removals_from_one_leaf_at_once_land_in_one_merged_vector():
    world = with_leaf("a", "b", "c")
    mine = removal(world, "a")
    world.catalog.between = [lambda: world.commit(RemoveFiles(locations=(at("b"),)))]
    assert world.commit(mine).attempts == 2
    assert described(world) == ["DATA_MANIFEST EXISTING", "MANIFEST_DV 1 DELETED", "MANIFEST_DV [0, 1] ADDED"]
    assert world.names() == ["c"]
    audit(world)
    assert check(world) == []


def test_72_removing_a_file_that_another_commit_has_removed_is_a_conflict():
    world = with_leaf("a", "b", "c")
    for mine in (removal(world, "a"), RemoveFiles(locations=(at("a"),))):
        before = world.head
        if before.parent_id is None:
            world.catalog.between = [lambda: world.commit(RemoveFiles(locations=(at("a"),)))]
        with pytest.raises(ConflictError, match=r"a\.parquet"):
            world.commit(mine)
        assert world.names() == ["b", "c"]
    assert described(world) == ["DATA_MANIFEST EXISTING", "MANIFEST_DV [0] ADDED"]
    audit(world)


def test_72_a_removal_finds_its_file_again_when_its_leaf_was_written_anew():
    world = with_leaf("a", "b", "c")
    world.commit(RemoveFiles(locations=(at("a"),)))
    mine = removal(world, "c")
    (seen,) = mine.changes.removed["manifest"].to_pylist()
    world.catalog.between = [lambda: world.commit(RewriteManifests())]
    assert world.commit(mine).attempts == 2
    (leaf,) = world.leaves()
    assert leaf.location != seen
    assert described(world) == ["DATA_MANIFEST EXISTING", "MANIFEST_DV [1] ADDED"]
    assert world.names() == ["b"]
    assert check(world) == []


# -- 73


def check(world: World) -> list:
    base = world.base()
    return check_table((base.store, base.metadata), data=False)


def needed(base: Base) -> set[str]:
    return set(reachable_files(base)["location"].to_pylist())


def expired(base: Base, *snapshot_ids: int) -> Base:
    """The table without some snapshots."""
    return replace(base, metadata=base.metadata.without_snapshots(snapshot_ids))


def test_73_a_file_hidden_by_a_manifest_deletion_vector_is_free_once_the_older_snapshot_is_gone():
    world = with_leaf("a", "b", "c")
    before = world.head
    world.commit(RemoveFiles(locations=(at("b"),)))
    base = world.base()
    assert at("b") in needed(base)  # the older snapshot shows it
    after = expired(base, before.snapshot_id)
    freed, _ = freed_files(base, after, HERE)
    assert sorted(zip(freed["location"].to_pylist(), freed["kind"].to_pylist(), strict=True)) == [
        (at("b"), "data"),
        (before.root, "manifest"),
    ]
    (leaf,) = world.leaves()
    assert leaf.location in needed(after)


def test_73_a_file_that_a_branch_still_shows_is_kept():
    world = with_leaf("a", "b", "c")
    before = world.head
    world.commit(RemoveFiles(locations=(at("b"),)))
    world.table().branch("side", snapshot=before.snapshot_id)
    world.commit(RemoveFiles(locations=(at("c"),)))
    middle = world.metadata.snapshot(world.head.parent_id)
    base = world.base()
    freed, _ = freed_files(base, expired(base, middle.snapshot_id), HERE)
    assert freed["location"].to_pylist() == [middle.root]


def test_73_leaves_that_were_compacted_are_found_by_reachability_not_by_deleted_rows():
    world = with_leaf("a", "b", "c")
    (old,) = world.leaves()
    before = world.head
    world.commit(RemoveFiles(locations=(at("a"),)))
    middle = world.head
    world.commit(RewriteManifests())
    (new,) = world.leaves()
    base = world.base()
    freed, _ = freed_files(base, expired(base, before.snapshot_id, middle.snapshot_id), HERE)
    assert set(freed["location"].to_pylist()) == {old.location, before.root, middle.root, at("a")}
    assert new.location in needed(base)


def test_73_no_file_is_made_of_a_null_location_and_vectors_in_files_live_as_long_as_their_snapshots():
    world = with_leaf("a", "b", "c", "d")
    world.commit(RemoveFiles(locations=(at("a"),)))
    inline = world.head
    assert None not in needed(world.base())
    world.commit(SetProperties(updates={"write.manifest-dv.inline-max-bytes": "0"}))
    files = []
    for name in "bc":
        world.commit(RemoveFiles(locations=(at(name),)))
        rows_ = read_root(world.base().store, world.head).entries
        vectors = rows_.filter(pc.equal(rows_["content_type"], int(ContentType.MANIFEST_DV)))
        files.append(vectors.filter(pc.equal(vectors["status"], int(Status.ADDED)))["location"][0].as_py())
        assert files[-1].endswith(".puffin")
    base = world.base()
    older = [s.snapshot_id for s in base.metadata.snapshots if s.snapshot_id != world.head.snapshot_id]
    assert needed(expired(base, *older)) >= set(files)  # the replaced one tells what its successor hides anew
    world.commit(Append(added=data_of("e")))
    base = world.base()
    older = [s.snapshot_id for s in base.metadata.snapshots if s.snapshot_id != world.head.snapshot_id]
    freed = set(freed_files(base, expired(base, *older), HERE)[0]["location"].to_pylist())
    assert files[0] in freed
    assert files[1] not in freed
    assert None not in freed
    assert inline.root in freed


# -- 74


def test_74_a_commit_that_failed_for_certain_leaves_no_file():
    world = with_leaf("a", "b", "c", "d", **{"write.manifest-dv.inline-max-bytes": "0"})
    world.commit(removal(world, "d"))
    world.commit(SetProperties(updates=LEAVES))
    before, shown = world.files(), described(world)
    for update in (Append(added=data_of("x", "y", "z")), removal(world, "a"), RewriteManifests()):
        world.catalog.script = ["stale"] * 4
        with pytest.raises(CommitFailed):
            world.commit(update)
        assert world.files() == before
    assert described(world) == shown
    audit(world)


def test_74_what_a_commit_of_unknown_outcome_left_is_named_by_no_snapshot_and_can_be_removed():
    world = with_leaf("a", "b", "c", **{"write.manifest-dv.inline-max-bytes": "0"})
    world.commit(SetProperties(updates=LEAVES))
    before = world.files()
    updates = (Append(added=data_of("x", "y", "z")), removal(world, "a"))
    world.catalog.script = ["lost"]
    with pytest.raises(CommitStateUnknown):
        world.commit(*updates)
    left = world.files() - before
    names = [name.rsplit("/", 1)[-1] for name in left]
    kinds = sorted({"root" if name.startswith("root-") else name.rsplit(".", 1)[-1] for name in names})
    assert kinds == ["json", "parquet", "puffin", "root"]
    assert needed(world.base()) & left == set()
    world.io.delete(sorted(left))
    assert world.names() == ["a", "b", "c"]
    assert check(world) == []
    audit(world)


def test_74_what_a_commit_of_unknown_outcome_left_is_needed_if_it_landed_after_all():
    world = with_leaf("a", "b", "c")
    world.commit(SetProperties(updates=LEAVES))
    before = world.files()
    world.catalog.script = ["landed"]
    world.commit(Append(added=data_of("x", "y", "z")))
    left = world.files() - before
    assert left <= needed(world.base())
    assert world.names() == ["a", "b", "c", "x", "y", "z"]
