"""Roots of V4 commits, row by row, as the proposal's examples have them; numbers are those of the V4 study."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icefloe.errors import ConflictError, FormatError
from icefloe.model.entries import ContentType, Status, put
from icefloe.tree.root import leaves_of, read_leaf, read_live_leaf
from support.metadata_tree import LOCATION, Tree, data_file, planned_files, rows, stored_leaf, vector

LEAF_AT_ONCE = {"commit.root.max-data-files": "2"}


def with_leaf(*names: str) -> Tree:
    """A tree whose first commit is one leaf of these files."""
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    tree.commit(added=rows(*(data_file(name) for name in names)))
    tree.properties = {}
    assert tree.describe() == ["DATA_MANIFEST M1 ADDED"]
    return tree


def test_an_append_leaves_old_rows_existing_and_adds_its_own():  # statement 10
    tree = with_leaf("D1", "D2", "D3")
    tree.commit(added=rows(data_file("D4")))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "DATA D4 ADDED"]
    tree.commit(added=rows(data_file("D5")))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "DATA D4 EXISTING", "DATA D5 ADDED"]


def test_a_large_append_writes_a_leaf_whose_rows_inherit():  # statements 14 and 15
    tree = with_leaf("D1", "D2", "D3")
    (row,) = tree.root().entries.to_pylist()
    assert (row["added_files_count"], row["existing_files_count"], row["deleted_files_count"]) == (3, 0, 0)
    assert row["record_count"] == 3
    assert row["sequence_number"] == row["file_sequence_number"] == 1
    (leaf,) = leaves_of(tree.root().entries)
    stored = stored_leaf(tree.fresh_store(), leaf.location)
    assert stored["sequence_number"].null_count == 3
    assert read_leaf(tree.fresh_store(), leaf)["sequence_number"].to_pylist() == [1, 1, 1]


def test_a_leafs_root_row_has_the_bounds_and_sums_of_its_files():  # statement 16
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    tree.commit(added=rows(data_file("D1", lower=5, upper=9), data_file("D2", lower=-3, upper=2)))
    (row,) = tree.root().entries.to_pylist()
    assert (row["lower_bound:1"], row["upper_bound:1"], row["value_count:1"]) == (-3, 9, 20)


def test_a_file_removed_from_the_root_is_deleted_by_this_snapshot_and_keeps_its_numbers():  # statement 18
    tree = Tree()
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(removed=planned_files("D1"))
    assert tree.describe() == ["DATA D1 DELETED", "DATA D2 EXISTING"]
    gone = tree.root().entries.slice(0, 1).to_pylist()[0]
    assert (gone["snapshot_id"], gone["sequence_number"], gone["file_sequence_number"]) == (2, 1, 1)


def test_deleted_rows_are_gone_from_the_next_root():  # statement 5
    tree = Tree()
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(removed=planned_files("D1"))
    tree.commit(added=rows(data_file("D3")))
    assert tree.describe() == ["DATA D2 EXISTING", "DATA D3 ADDED"]


def test_a_file_removed_from_a_leaf_is_hidden_by_one_vector_and_the_leaf_is_untouched():  # statements 20, 21 and 23
    tree = with_leaf("D1", "D2", "D3")
    before = tree.root().entries.to_pylist()[0]
    tree.commit(removed=planned_files("D2"))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "MANIFEST_DV M1 [1] ADDED"]
    after, hidden = tree.root().entries.to_pylist()
    assert {**before, "status": None} == {**after, "status": None}
    assert hidden["dv_inline_content"].hex() == (
        "00000022d1d339640100000000000000000000003a3000000100000000000000100000000100eebd85f4"
    )
    assert hidden["record_count"] == 1
    assert hidden["location"] is None


def test_a_second_removal_merges_the_vectors_and_keeps_the_old_one_as_deleted():  # statement 22
    tree = with_leaf("D1", "D2", "D3")
    tree.commit(removed=planned_files("D2"))
    tree.commit(removed=planned_files("D3"))
    assert tree.describe() == [
        "DATA_MANIFEST M1 EXISTING",
        "MANIFEST_DV M1 (1) DELETED",
        "MANIFEST_DV M1 [1, 2] ADDED",
    ]
    tree.commit(added=rows(data_file("D4")))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "MANIFEST_DV M1 [1, 2] EXISTING", "DATA D4 ADDED"]


def test_a_leaf_that_lost_its_last_file_is_dropped_by_the_next_commit():  # statement 25
    tree = with_leaf("D1", "D2")
    tree.commit(removed=planned_files("D1", "D2"))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "MANIFEST_DV M1 [0, 1] ADDED"]
    assert tree.root().leaves(ContentType.DATA_MANIFEST) == ()
    tree.commit(added=rows(data_file("D3")))
    assert tree.describe() == ["DATA D3 ADDED"]


@pytest.mark.parametrize("leaves", [1, 10])
def test_removing_one_file_writes_one_metadata_file_whatever_the_number_of_leaves(leaves):  # statement 26
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    for n in range(leaves):
        tree.commit(added=rows(data_file(f"A{n}"), data_file(f"B{n}")))
    before = tree.io.count("write_new")
    tree.commit(removed=planned_files("A0"))
    assert tree.io.count("write_new") - before == 1


def test_an_overwrite_at_the_root_shows_both_files():  # statement 28
    tree = Tree()
    tree.commit(added=rows(data_file("D1")))
    tree.commit(removed=planned_files("D1"), added=rows(data_file("D2")))
    assert tree.describe() == ["DATA D1 DELETED", "DATA D2 ADDED"]
    tree.commit(removed=planned_files("D2"), added=rows(data_file("D3")))
    assert tree.describe() == ["DATA D2 DELETED", "DATA D3 ADDED"]


def test_an_overwrite_in_a_leaf_is_a_vector_and_a_new_file():  # statement 29
    tree = with_leaf("D1", "D2", "D3")
    tree.commit(removed=planned_files("D2"), added=rows(data_file("D4")))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "MANIFEST_DV M1 [1] ADDED", "DATA D4 ADDED"]


def test_a_row_delta_in_the_root_has_the_vector_beside_the_file():  # statement 30
    tree = Tree()
    tree.commit(added=rows(data_file("D1")))
    tree.commit(added=rows(vector("DV1", "D1"), data_file("D2")))
    assert sorted(tree.describe()) == ["DATA D1 EXISTING", "DATA D2 ADDED", "POSITION_DELETES DV1 ADDED"]


def test_removing_a_root_file_removes_its_vector_too():  # statement 19
    tree = Tree()
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(added=rows(vector("DV1", "D1")))
    tree.commit(removed=planned_files("D1", vectors=["D1"]))
    assert tree.describe() == ["DATA D1 DELETED", "DATA D2 EXISTING", "POSITION_DELETES DV1 DELETED"]


def test_replacing_a_root_vector_shows_old_and_new():  # statement 34
    tree = Tree()
    tree.commit(added=rows(data_file("D1")))
    tree.commit(added=rows(vector("DV1", "D1")))
    tree.commit(revectored=planned_files("D1", vectors=["D1"]), added=rows(vector("DV2", "D1", 2)))
    assert tree.describe() == ["DATA D1 EXISTING", "POSITION_DELETES DV1 DELETED", "POSITION_DELETES DV2 ADDED"]


def test_removing_a_leaf_file_with_a_vector_in_a_delete_leaf_gives_two_manifest_vectors():  # statement 24
    tree = with_leaf("D1", "D2")
    tree.properties = {"commit.root.max-dvs": "1"}
    tree.commit(added=rows(vector("DV1", "D1"), vector("DV2", "D2")))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "DELETE_MANIFEST M2 ADDED"]
    tree.commit(removed=planned_files("D2", vectors=["D2"]))
    assert tree.describe() == [
        "DATA_MANIFEST M1 EXISTING",
        "DELETE_MANIFEST M2 EXISTING",
        "MANIFEST_DV M1 [1] ADDED",
        "MANIFEST_DV M2 [1] ADDED",
    ]


def test_a_root_over_its_limit_flushes_what_is_settled_and_keeps_what_is_new():  # statement 41
    tree = Tree(properties=LEAF_AT_ONCE)
    for name in ("D1", "D2", "D3"):
        tree.commit(added=rows(data_file(name)))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "DATA D3 ADDED"]
    (leaf,) = tree.root().leaves(ContentType.DATA_MANIFEST)
    inside = read_live_leaf(tree.fresh_store(), tree.root(), leaf)
    assert inside["status"].to_pylist() == [int(Status.EXISTING)] * 2
    assert inside["snapshot_id"].to_pylist() == [1, 2]


def test_vectors_are_flushed_by_their_own_limit():  # statement 42
    tree = Tree(properties={"commit.root.max-dvs": "1"})
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(added=rows(vector("DV1", "D1")))
    tree.commit(added=rows(vector("DV2", "D2")))
    kinds = [line.split()[0] for line in tree.describe()]
    assert sorted(kinds) == ["DATA", "DATA", "DELETE_MANIFEST", "POSITION_DELETES"]


def test_row_ids_survive_flush_and_removal():  # statements 43, 64 and 65
    tree = Tree(properties=LEAF_AT_ONCE)
    tree.commit(added=rows(data_file("D1", rows=10), data_file("D2", rows=5)))
    tree.commit(added=rows(data_file("D3", rows=7)))
    tree.commit(removed=planned_files("D1"))
    assert tree.next_row_id == 22
    (leaf,) = tree.root().leaves(ContentType.DATA_MANIFEST)
    inside = read_live_leaf(tree.fresh_store(), tree.root(), leaf)
    outside = tree.root().rows(ContentType.DATA)
    found = pa.concat_tables([inside, outside], promote_options="default")
    ids = dict(zip(found["location"].to_pylist(), found["first_row_id"].to_pylist(), strict=True))
    assert ids == {f"{LOCATION}/data/D2.parquet": 10, f"{LOCATION}/data/D3.parquet": 15}


def test_row_ids_inside_an_added_leaf_count_on_from_the_leafs_first():
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    tree.commit(added=rows(data_file("D1", rows=10), data_file("D2", rows=5)))
    tree.commit(added=rows(data_file("D3", rows=2), data_file("D4", rows=1)))
    starts = [
        read_leaf(tree.fresh_store(), leaf)["first_row_id"].to_pylist() for leaf in leaves_of(tree.root().entries)
    ]
    assert starts == [[0, 10], [15, 17]]
    assert tree.next_row_id == 18


def test_removing_a_file_twice_is_a_conflict():  # statement 72
    tree = with_leaf("D1", "D2", "D3")
    tree.commit(removed=planned_files("D2"))
    with pytest.raises(ConflictError, match="D2"):
        tree.commit(removed=planned_files("D2"))


def test_a_remembered_place_is_used_without_opening_the_leaf():
    tree = with_leaf("D1", "D2", "D3")
    (leaf,) = tree.root().leaves(ContentType.DATA_MANIFEST)
    tree.store = tree.fresh_store()
    tree.io.calls.clear()
    hint = put(put(planned_files("D3"), "manifest", leaf.location), "ordinal", 2)
    tree.commit(removed=hint)
    reads = [call.location for call in tree.io.calls if call.verb in ("read", "read_range")]
    assert reads == [tree.snapshots[0].root]
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "MANIFEST_DV M1 [2] ADDED"]


def test_a_remembered_place_that_another_commit_hid_is_a_conflict():
    tree = with_leaf("D1", "D2", "D3")
    (leaf,) = tree.root().leaves(ContentType.DATA_MANIFEST)
    tree.commit(removed=planned_files("D3"))
    with pytest.raises(ConflictError, match="D3"):
        tree.commit(removed=put(put(planned_files("D3"), "manifest", leaf.location), "ordinal", 2))


def test_a_vector_for_a_manifest_that_is_not_there_is_refused():  # statement 68
    tree = with_leaf("D1", "D2")
    new = tree.commit(removed=planned_files("D1"))
    wrong = put(new.rows, "referenced_file", pc.if_else(pc.is_valid(new.rows["referenced_file"]), "x", None))
    tree.store = tree.fresh_store()
    tree.store.remember_root(tree.snapshots[-1].root, wrong)
    with pytest.raises(FormatError, match="not in this root"):
        tree.commit(added=rows(data_file("D3")))
