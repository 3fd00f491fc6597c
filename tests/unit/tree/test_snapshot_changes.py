"""What snapshots changed, checked against the difference of the live files before and after."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icefloe.errors import NoSuchSnapshot
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, Status
from icefloe.model.metadata.snapshots import Snapshots
from icefloe.tree.root import read_live_leaf, read_root
from icefloe.tree.snapshot_changes import changes_since, snapshot_changes
from support.metadata_tree import Tree, data_file, planned_files, rows, short, stored_leaf, vector

VERSIONS = (2, 3, 4)


def linked(tree: Tree):
    """The metadata of a tree, with its snapshots as a chain of parents."""
    parents = [None, *(snapshot.snapshot_id for snapshot in tree.snapshots)]
    chain = [replace(s, parent_id=parent) for s, parent in zip(tree.snapshots, parents, strict=False)]
    return replace(tree.metadata, snapshots=Snapshots(tuple(chain)), current_snapshot_id=chain[-1].snapshot_id)


def key(row: dict[str, object]) -> tuple[object, ...]:
    return row["location"], row["dv_offset"], row["referenced_file"]


def live_files(tree: Tree, snapshot) -> set[tuple[object, ...]]:
    store = tree.fresh_store()
    root = read_root(store, snapshot)
    found = root.rows(ContentType.DATA, *DELETES).to_pylist()
    for leaf in root.leaves(*MANIFESTS):
        found.extend(read_live_leaf(store, root, leaf).to_pylist())
    return {key(row) for row in found}


def of_status(changes: pa.Table, status: Status) -> list[tuple[object, ...]]:
    return sorted((key(row) for row in changes.to_pylist() if row["status"] == status), key=repr)


def check(tree: Tree) -> None:
    """Every snapshot's changes are what brute force finds."""
    metadata, before = linked(tree), set()
    for snapshot in metadata.snapshots:
        changes = snapshot_changes(tree.fresh_store(), metadata, snapshot)
        after = live_files(tree, snapshot)
        assert of_status(changes, Status.ADDED) == sorted(after - before, key=repr)
        assert of_status(changes, Status.DELETED) == sorted(before - after, key=repr)
        assert set(changes["snapshot_id"].to_pylist()) <= {snapshot.snapshot_id}
        before = after


def history(version: int, **properties: str) -> Tree:
    tree = Tree(version=version, properties=properties)
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    tree.commit(added=rows(data_file("D4")))
    tree.commit(removed=planned_files("D2"))
    if version > 2:
        tree.commit(added=rows(vector("V1", "D1"), data_file("D5")))
        tree.commit(revectored=planned_files("D1", vectors=["D1"]), added=rows(vector("V2", "D1", 2)))
    tree.commit(removed=planned_files("D3"), added=rows(data_file("D6"), data_file("D7")))
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("limit", ["0", "1", "2", "100"])
def test_the_changes_of_a_snapshot_are_the_difference_of_its_files_to_those_before(version, limit):
    check(history(version, **{"commit.root.max-data-files": limit, "commit.root.max-dvs": limit}))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_removed_file_says_where_it_stood_and_keeps_its_numbers(version):
    tree = history(version, **{"commit.root.max-data-files": "1"})
    metadata = linked(tree)
    removal = metadata.snapshot(3)
    (gone,) = snapshot_changes(tree.fresh_store(), metadata, removal).to_pylist()
    assert short(gone["location"]) == "D2"
    assert (gone["status"], gone["snapshot_id"], gone["sequence_number"]) == (Status.DELETED, 3, 1)
    assert gone["ordinal"] == 1
    (leaf,) = (leaf for leaf in read_root(tree.fresh_store(), removal).leaves(*MANIFESTS) if leaf.live_count != 1)
    assert gone["manifest"] == leaf.location


def test_files_in_the_root_have_no_manifest():
    tree = Tree()
    tree.commit(added=rows(data_file("D1")))
    changes = snapshot_changes(tree.store, linked(tree), tree.snapshots[0])
    assert changes["manifest"].to_pylist() == [None]


def test_a_vector_that_grows_shows_only_the_rows_it_newly_hides():
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    for name in ("D2", "D3"):
        tree.commit(removed=planned_files(name))
        changes = snapshot_changes(tree.fresh_store(), linked(tree), linked(tree).current_snapshot)
        assert [short(location) for location in changes["location"].to_pylist()] == [name]


def test_without_the_former_vector_beside_it_the_parents_root_tells_what_was_hidden():
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    tree.commit(removed=planned_files("D2"))
    new = tree.commit(removed=planned_files("D3"))
    metadata = linked(tree)
    store = tree.fresh_store()
    silent = new.rows.filter(pa.array([status != Status.DELETED for status in new.rows["status"].to_pylist()]))
    store.remember_root(tree.snapshots[-1].root, silent)
    changes = snapshot_changes(store, metadata, metadata.current_snapshot)
    assert [short(location) for location in changes["location"].to_pylist()] == ["D3"]


def with_roots(tree: Tree, store, changed: pa.Table) -> pa.Table:
    """The changes of the head when its root had these rows."""
    store.remember_root(tree.snapshots[-1].root, changed)
    metadata = linked(tree)
    return snapshot_changes(store, metadata, metadata.current_snapshot)


def test_a_leaf_that_was_removed_as_a_whole_removed_its_live_rows():
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    tree.commit(removed=planned_files("D2"))
    new = tree.commit(added=rows(data_file("D4")))
    listed = new.rows.to_pylist()
    for row in listed:
        if row["content_type"] in (ContentType.DATA_MANIFEST, ContentType.MANIFEST_DV):
            row["status"], row["snapshot_id"] = int(Status.DELETED), 3
    changes = with_roots(tree, tree.fresh_store(), pa.Table.from_pylist(listed, schema=new.rows.schema))
    assert sorted((short(row["location"]), row["status"]) for row in changes.to_pylist()) == [
        ("D1", Status.DELETED),
        ("D3", Status.DELETED),
        ("D4", Status.ADDED),
    ]


def test_a_leaf_whose_rows_moved_to_a_new_leaf_removed_nothing():
    tree = Tree(properties={"commit.root.max-data-files": "2"})
    for name in ("D1", "D2", "D3"):
        tree.commit(added=rows(data_file(name)))
    root = tree.root()
    moved = root.entries.to_pylist()
    (leaf,) = (row for row in moved if row["content_type"] == ContentType.DATA_MANIFEST)
    old = {**leaf, "location": "memory://wh/t/metadata/old.parquet", "status": int(Status.DELETED)}
    store = tree.fresh_store()
    store.remember_leaf(
        old["location"],
        stored_leaf(store, leaf["location"]),
        content=ContentType.DATA_MANIFEST,
        spec_id=0,
    )
    changes = with_roots(tree, store, pa.Table.from_pylist([*moved, old], schema=root.entries.schema))
    assert [(short(row["location"]), row["status"]) for row in changes.to_pylist()] == [("D3", Status.ADDED)]


@pytest.mark.parametrize("version", VERSIONS)
def test_changes_of_several_snapshots_come_oldest_first_with_the_snapshot_that_made_them(version):
    tree = history(version)
    metadata = linked(tree)
    changes = changes_since(tree.fresh_store(), metadata, after=metadata.snapshot(1), until=metadata.snapshot(3))
    found = [(r["changed_by"], short(r["location"]), r["status"]) for r in changes.to_pylist()]
    assert found == [(2, "D4", Status.ADDED), (3, "D2", Status.DELETED)]
    whole = changes_since(tree.fresh_store(), metadata, after=None, until=metadata.snapshot(1))
    assert sorted(short(location) for location in whole["location"].to_pylist()) == ["D1", "D2", "D3"]


def test_nothing_changed_since_the_snapshot_itself():
    tree = history(4)
    metadata = linked(tree)
    changes = changes_since(tree.store, metadata, after=metadata.current_snapshot, until=metadata.current_snapshot)
    assert changes.num_rows == 0
    assert {"changed_by", "manifest", "location"} <= set(changes.column_names)


def test_an_expired_snapshot_in_between_is_named():
    tree = history(2)
    metadata = linked(tree)
    first, last = metadata.snapshot(1), metadata.current_snapshot
    expired = replace(metadata, snapshots=metadata.snapshots.without({2}))
    with pytest.raises(NoSuchSnapshot, match=r"snapshot 2, the parent of 3, has expired"):
        changes_since(tree.store, expired, after=first, until=last)
    with pytest.raises(NoSuchSnapshot, match="snapshot 2"):
        changes_since(tree.store, expired, after=None, until=last)


def test_a_snapshot_that_is_no_ancestor_is_named():
    tree = history(2)
    metadata = linked(tree)
    with pytest.raises(NoSuchSnapshot, match=f"does not contain snapshot {metadata.current_snapshot_id}"):
        changes_since(tree.store, metadata, after=metadata.current_snapshot, until=metadata.snapshot(1))
