"""Tables that go to later versions: old files stay, and later commits give them what the version asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.rewrite import RewriteManifests
from icefloe.errors import InputError
from icefloe.model.entries import MANIFESTS, Status
from icefloe.table.held_table import pointer_of
from icefloe.testing.check import check_table
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import leaves_of, read_root
from support.entry_tables import at, audit, changed, data, new_world, rows
from support.tables import new_catalog, sorted_rows

PATHS = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4), (1, 2, 3, 4)]


def grown(version: int, **properties: str):
    """A table with three files in two manifests, one file removed."""
    world = new_world(version, **properties)
    world.commit(Append(added=rows(data("a", rows=5), data("b", rows=7), data("gone", rows=11)), fast=True))
    world.commit(Append(added=rows(data("c", rows=3)), fast=True))
    world.commit(RemoveFiles(locations=(at("gone"),)))
    return world


def row_ids(world) -> dict[str, tuple[int, int]]:
    found = world.entries()
    names = [location.rsplit("/")[-1].split(".")[0] for location in found["location"].to_pylist()]
    return dict(
        zip(names, zip(found["first_row_id"].to_pylist(), found["record_count"].to_pylist(), strict=True), strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_a_table_goes_on_in_later_versions(path):
    world = grown(path[0])
    for number, version in enumerate(path[1:]):
        assert world.table().upgrade(version).snapshot_id is None
        assert world.names() == sorted(["a", "b", "c", *(f"n{n}" for n in range(number))])
        world.commit(Append(added=rows(data(f"n{number}", rows=2))))
        audit(world)
    world.commit(RemoveFiles(locations=(at("a"),)))
    world.commit(RewriteManifests())
    assert world.metadata.format_version == path[-1]
    assert "a" not in world.names()
    audit(world)


def test_a_table_does_not_go_back():
    world = grown(3)
    with pytest.raises(InputError, match="cannot go back"):
        world.table().upgrade(2)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_upgrade_to_the_version_it_has_is_no_commit(version):
    world = new_world(version)
    assert world.table().upgrade(version).attempts == 0


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("target", [3, 4])
def test_the_first_commit_with_row_lineage_numbers_the_rows_that_are_there(version, target):
    """Old manifests in the order of the list come first, then the new files; nothing is left out or given twice."""
    world = grown(version)
    world.table().upgrade(target)
    assert world.metadata.next_row_id == 0
    world.commit(Append(added=rows(data("new", rows=4))))
    ids = row_ids(world)
    assert sorted(ids.values()) == [(first, ids[name][1]) for first, name in _starts(ids)]
    assert ids["new"] == (15, 4)
    assert world.head.first_row_id == 0
    assert world.head.added_rows == world.metadata.next_row_id == 19
    audit(world)


def _starts(ids: dict[str, tuple[int, int]]) -> list[tuple[int, str]]:
    """Where each file begins if they follow each other without holes."""
    found, start = [], 0
    for name in sorted(ids, key=lambda name: ids[name][0]):
        found.append((start, name))
        start += ids[name][1]
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_a_removal_as_the_first_commit_numbers_the_manifest_that_it_writes_again(version):
    world = grown(version)
    world.table().upgrade(3)
    world.commit(RemoveFiles(locations=(at("a"),)))
    assert all(leaf.first_row_id is not None for leaf in world.leaves())
    ids = row_ids(world)
    assert sorted(ids) == ["b", "c"]
    assert all(first is not None for first, _ in ids.values())
    assert world.metadata.next_row_id == 15
    before = row_ids(world)
    world.commit(Append(added=rows(data("new", rows=4))))
    assert {name: row_ids(world)[name] for name in before} == before
    audit(world)


@pytest.mark.parametrize("merge", ["2", "100"])
def test_rows_keep_their_ids_through_merges_and_rewrites(merge):
    world = grown(2, **{"commit.manifest.min-count-to-merge": merge})
    world.table().upgrade(3)
    world.commit(Append(added=rows(data("n1", rows=4))))
    before = row_ids(world)
    world.commit(Append(added=rows(data("n2", rows=4))))
    world.commit(RewriteManifests())
    world.commit(
        OverwriteFiles(changes=FileChanges(added=rows(data("n3")), removed=world.tasks("n2")), read=world.head)
    )
    world.table().upgrade(4)
    world.commit(Append(added=rows(data("n4"))))
    after = row_ids(world)
    assert {name: after[name] for name in before} == before
    audit(world)


def test_sequence_numbers_of_version_1_are_zero_and_stay_so():
    world = grown(1)
    assert world.metadata.last_sequence_number == 0
    world.table().upgrade(2)
    world.commit(RemoveFiles(locations=(at("a"),)))
    assert world.head.sequence_number == 1
    assert set(world.entries()["sequence_number"].to_pylist()) == {0}
    assert changed(world, world.head, Status.DELETED) == ["a"]
    world.commit(Append(added=rows(data("new"))))
    assert pa.compute.max(world.entries()["sequence_number"]).as_py() == 2
    audit(world)


def test_the_manifest_list_of_version_3_says_where_its_row_ids_begin():
    world = grown(2)
    world.table().upgrade(3)
    world.commit(Append(added=rows(data("new", rows=4))))
    world.commit(Append(added=rows(data("newer", rows=4))))
    assert b"first-row-id\x0419" in world.io.read(world.head.root)


@pytest.mark.parametrize("upgrade", [lambda t: t.upgrade(2), lambda t: t.set_properties({"format-version": "4"})])
def test_snapshots_that_name_their_manifests_get_lists(tmp_path, upgrade):
    """Only version 1 can store such a snapshot, so the table could not be upgraded before it expired."""
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint", partition_by=["id"], format_version=1)
    for number in range(3):
        table.append(pa.table({"id": [number, number + 10]}))
    table.delete("id = 11")
    base = pointer_of(table).load()
    path = Path(table.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_bytes())
    for stored, snapshot in zip(document["snapshots"], base.metadata.snapshots, strict=True):
        stored["manifests"] = [leaf.location for leaf in leaves_of(read_root(base.store, snapshot).rows(*MANIFESTS))]
        Path(stored.pop("manifest-list").removeprefix("file://")).unlink()
    path.write_text(json.dumps(document))
    table = new_catalog(tmp_path).load_table("db.t")
    ids = [snapshot.snapshot_id for snapshot in table.snapshots]
    before = [sorted_rows(table.at(snapshot=id_).scan().to_arrow()) for id_ in ids]
    upgrade(table)
    table = new_catalog(tmp_path).load_table("db.t")
    assert [sorted_rows(table.at(snapshot=id_).scan().to_arrow()) for id_ in ids] == before
    assert all(snapshot.root is not None for snapshot in table.metadata.snapshots)
    table.append(pa.table({"id": [99]}))
    table.delete("id = 0")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 10, 12, 99]
    assert check_table(table) == []
