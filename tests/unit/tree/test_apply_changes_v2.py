"""The same changes on version 2: files live in manifests, and a manifest that loses a file is written again."""

from __future__ import annotations

from icefloe.model.entries import ContentType, Status
from icefloe.tree.root import leaves_of, read_leaf, read_live_leaf
from support.metadata_tree import Tree, data_file, planned_files, rows


def test_every_append_is_a_manifest_of_its_own():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(added=rows(data_file("D3")))
    kept, added = tree.root().entries.to_pylist()
    assert [kept["snapshot_id"], added["snapshot_id"]] == [1, 2]
    assert [kept["added_files_count"], added["added_files_count"]] == [2, 1]
    assert kept["first_row_id"] is None


def test_a_manifest_that_loses_a_file_is_written_again_with_the_file_deleted():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(removed=planned_files("D1"))
    (leaf,) = leaves_of(tree.root().entries)
    inside = read_leaf(tree.fresh_store(), leaf)
    assert inside["status"].to_pylist() == [int(Status.DELETED), int(Status.EXISTING)]
    assert inside["snapshot_id"].to_pylist() == [2, 1]
    assert inside["sequence_number"].to_pylist() == [1, 1]
    assert read_live_leaf(tree.fresh_store(), tree.root(), leaf).num_rows == 1


def test_deleted_rows_do_not_survive_the_next_rewriting():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    tree.commit(removed=planned_files("D1"))
    tree.commit(removed=planned_files("D2"))
    (leaf,) = leaves_of(tree.root().entries)
    names = [x.rsplit("/", 1)[-1] for x in read_leaf(tree.fresh_store(), leaf)["location"].to_pylist()]
    assert names == ["D2.parquet", "D3.parquet"]


def test_a_manifest_without_live_files_leaves_with_the_next_commit():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("D1")))
    tree.commit(removed=planned_files("D1"))
    assert tree.root().leaves(ContentType.DATA_MANIFEST) == ()
    tree.commit(added=rows(data_file("D2")))
    assert tree.root().entries.num_rows == 1


def test_untouched_manifests_are_not_written_again():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(added=rows(data_file("D3"), data_file("D4")))
    before = [leaf.location for leaf in leaves_of(tree.root().entries)]
    tree.commit(removed=planned_files("D3"))
    after = [leaf.location for leaf in leaves_of(tree.root().entries)]
    assert before[0] == after[0]
    assert before[1] not in after
