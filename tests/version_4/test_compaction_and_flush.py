"""Statements 36 to 43: leaves merged and written again, and the root emptied, inside ordinary commits."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.rewrite import RewriteManifests
from icefloe.errors import InputError
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, Status, concat
from icefloe.model.partition.spec import PartitionSpec
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.new_snapshot import RowIds, SnapshotIdentity
from icefloe.tree.root import leaves_of, read_leaf, read_live_leaf, read_root
from icefloe.tree.snapshot_changes import snapshot_changes
from icefloe.tree.staging import Staging
from support.entry_tables import audit, data, new_world
from support.entry_tables import rows as world_rows
from support.metadata_tree import LOCATION, Tree, data_file, planned_files, rows, short, stored_leaf, vector
from version_4.scenes import TO_LEAVES, TO_ROOT, Stage, tens

AT_ONCE = {"commit.root.max-data-files": "1", "commit.root.max-dvs": "0"}
MERGE_TWO = {"commit.manifest.min-count-to-merge": "2"}
IDENTITY = ("location", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id", "record_count")


def worked_example(**properties: str) -> Tree:
    """Leaves M1 of D1, D2, D3 and M2 of D4, D5, D6, which have lost D1 and D5."""
    tree = Tree(properties=AT_ONCE)
    tree.commit(added=rows(*(data_file(name) for name in ("D1", "D2", "D3"))))
    tree.commit(added=rows(*(data_file(name) for name in ("D4", "D5", "D6"))))
    tree.properties = {}
    tree.commit(removed=planned_files("D1"))
    tree.commit(removed=planned_files("D5"))
    tree.properties = dict(properties)
    assert tree.describe() == [
        "DATA_MANIFEST M1 EXISTING",
        "DATA_MANIFEST M2 EXISTING",
        "MANIFEST_DV M1 [0] EXISTING",
        "MANIFEST_DV M2 [1] ADDED",
    ]
    return tree


def files(tree: Tree, back: int = 0) -> dict[str, tuple[object, ...]]:
    """All that must survive upkeep, by file or vector: numbers, row ids and counts, but not where it is stored."""
    root, store = tree.root(back), tree.fresh_store()
    inside = [read_live_leaf(store, root, leaf) for leaf in root.leaves(*MANIFESTS)]
    found = concat([root.rows(ContentType.DATA, *DELETES), *inside]).to_pylist()
    return {short(row["location"]) or "": tuple(row[name] for name in IDENTITY) for row in found}


def inside(tree: Tree, *types: ContentType) -> list[list[str]]:
    """The live files of each leaf, in order."""
    root = tree.root()
    found = (read_live_leaf(tree.fresh_store(), root, leaf) for leaf in root.leaves(*types))
    return [[short(location) or "" for location in part["location"].to_pylist()] for part in found]


def changes(tree: Tree) -> list[str]:
    found = snapshot_changes(tree.fresh_store(), tree.metadata, tree.snapshots[-1]).to_pylist()
    return sorted(("+" if row["status"] == Status.ADDED else "-") + (short(row["location"]) or "") for row in found)


def test_36_a_compaction_beside_an_append_leaves_one_existing_leaf_and_no_trace_of_what_it_replaced():
    tree = worked_example(**MERGE_TWO)
    tree.commit(added=rows(data_file("D0")))  # the vector of M2 is of the snapshot before, M2 may be merged now
    assert tree.describe() == ["DATA_MANIFEST M3 EXISTING", "DATA D0 ADDED"]
    assert inside(tree, ContentType.DATA_MANIFEST) == [["D2", "D3", "D4", "D6"]]
    (leaf,) = tree.root().leaves(ContentType.DATA_MANIFEST)
    assert set(read_leaf(tree.fresh_store(), leaf)["status"].to_pylist()) == {int(Status.EXISTING)}
    assert changes(tree) == ["+D0"]


def test_36_a_leaf_that_the_commit_itself_takes_a_file_from_is_left_alone():
    tree = worked_example(**MERGE_TWO)
    tree.commit(removed=planned_files("D4"), added=rows(data_file("D7")))
    assert tree.describe() == [
        "DATA_MANIFEST M1 EXISTING",
        "DATA_MANIFEST M2 EXISTING",
        "MANIFEST_DV M1 [0] EXISTING",
        "MANIFEST_DV M2 (1) DELETED",
        "MANIFEST_DV M2 [0, 1] ADDED",
        "DATA D7 ADDED",
    ]
    assert changes(tree) == ["+D7", "-D4"]


def test_36_a_leaf_with_many_dead_rows_is_written_again_by_the_commit_after():
    tree = Tree(properties=AT_ONCE)
    names = [f"D{n}" for n in range(8)]
    tree.commit(added=rows(*(data_file(name) for name in names)))
    tree.properties = {"commit.leaf.min-dead-rows": "4"}
    tree.commit(removed=planned_files(*names[1:4]))
    tree.commit(removed=planned_files(names[5]))
    assert tree.describe() == [
        "DATA_MANIFEST M1 EXISTING",
        "MANIFEST_DV M1 (3) DELETED",
        "MANIFEST_DV M1 [1, 2, 3, 5] ADDED",
    ]
    before = files(tree)
    tree.commit(added=rows(data_file("D9")))
    assert tree.describe() == ["DATA_MANIFEST M2 EXISTING", "DATA D9 ADDED"]
    assert inside(tree, ContentType.DATA_MANIFEST) == [["D0", "D4", "D6", "D7"]]
    assert {name: numbers for name, numbers in files(tree).items() if name != "D9"} == before
    assert changes(tree) == ["+D9"]


@pytest.mark.parametrize(
    "properties",
    [
        {"commit.leaf.min-dead-rows": "5"},
        {"commit.leaf.min-dead-rows": "1", "commit.leaf.max-dead-percent": "51"},
    ],
    ids=["too few", "too small a share"],
)
def test_36_a_leaf_with_fewer_dead_rows_stays(properties):
    tree = Tree(properties=AT_ONCE)
    names = [f"D{n}" for n in range(8)]
    tree.commit(added=rows(*(data_file(name) for name in names)))
    tree.properties = properties
    tree.commit(removed=planned_files(*names[:4]))
    tree.commit(added=rows(data_file("D9")))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "MANIFEST_DV M1 [0, 1, 2, 3] EXISTING", "DATA D9 ADDED"]


def test_36_an_append_that_asks_for_it_leaves_all_leaves_as_they_are():
    tree = worked_example(**MERGE_TWO, **{"commit.leaf.min-dead-rows": "1", "commit.leaf.max-dead-percent": "1"})
    tree.commit(added=rows(data_file("D7")), merge_manifests=False)
    assert [line.split()[0] for line in tree.describe()] == ["DATA_MANIFEST"] * 2 + ["MANIFEST_DV"] * 2 + ["DATA"]


def test_37_files_of_a_compacted_leaf_keep_snapshot_sequence_numbers_and_row_ids():
    tree = worked_example(**MERGE_TWO)
    before = files(tree)
    tree.commit(added=rows(data_file("D7")))
    after = files(tree)
    assert after.pop("D7")[1:5] == (5, 5, 5, 60)
    assert after == before
    # Rows as stored have numbers of their own and need nothing from the root.
    (leaf,) = tree.root().leaves(ContentType.DATA_MANIFEST)
    stored = stored_leaf(tree.fresh_store(), leaf.location)
    assert stored["snapshot_id"].to_pylist() == [1, 1, 2, 2]
    assert stored["sequence_number"].to_pylist() == stored["file_sequence_number"].to_pylist() == [1, 1, 2, 2]
    assert stored["first_row_id"].to_pylist() == [10, 20, 30, 50]


def test_37_rows_and_row_ids_read_before_and_after_a_compaction_are_equal(tmp_path: Path):
    stage = Stage(tmp_path, **TO_LEAVES)
    stage.append("D1", "D2", "D3")
    stage.append("D4", "D5", "D6")
    stage.settings(TO_ROOT)
    stage.remove("D1")
    stage.remove("D5")
    before = _with_ids(stage)
    stage.settings(MERGE_TWO)
    stage.append("D7")
    assert [row["content_type"] for row in stage.root_rows()] == [3, 0]
    after = _with_ids(stage)
    assert {id_: row_id for id_, row_id in after.items() if id_ < 70} == before
    assert stage.ids() == tens(2, 3, 4, 6, 7)


def _with_ids(stage: Stage) -> dict[int, int]:
    found = stage.table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    return {row["id"]: row["_row_id"] for row in found}


def test_38_a_compacted_leaf_has_a_first_row_id_and_takes_none():
    tree = worked_example(**MERGE_TWO)
    start = tree.next_row_id
    new = tree.commit(added=rows(data_file("D7", rows=4)))
    assert new.added_rows == 4
    assert tree.head is not None
    leaf, _ = tree.fresh_store().root(tree.head.root_location).to_pylist()  # as stored: nothing is filled in
    assert leaf["first_row_id"] == start + 4
    assert (leaf["sequence_number"], leaf["file_sequence_number"], leaf["snapshot_id"]) == (5, 5, 5)
    assert leaf["min_sequence_number"] == 1
    assert (leaf["added_files_count"], leaf["existing_files_count"], leaf["deleted_files_count"]) == (0, 4, 0)
    assert tree.next_row_id == start + 4


def test_39_new_files_are_never_in_a_compacted_leaf():
    tree = worked_example(**MERGE_TWO, **{"commit.root.max-data-files": "1"})
    tree.commit(added=rows(data_file("D7"), data_file("D8")))
    assert tree.describe() == ["DATA_MANIFEST M3 EXISTING", "DATA_MANIFEST M4 ADDED"]
    assert inside(tree, ContentType.DATA_MANIFEST) == [["D2", "D3", "D4", "D6"], ["D7", "D8"]]


@pytest.mark.parametrize("status", [Status.ADDED, Status.DELETED, Status.EXISTING])
def test_39_a_file_of_this_snapshot_in_a_leaf_of_older_ones_is_refused(status):
    tree = Tree()
    identity = SnapshotIdentity(snapshot_id=7, sequence_number=7, first_row_id=0)
    staging = Staging(f"{LOCATION}/metadata", lambda: "uuid")
    writer = LeafWriter(store=tree.store, identity=identity, ids=RowIds(0), staging=staging, properties={})
    numbers = {"sequence_number": 1, "file_sequence_number": 1, "first_row_id": 0}
    old = {**data_file("D1"), **numbers, "status": 0, "snapshot_id": 1}
    new = {**data_file("D2"), **numbers, "status": int(status), "snapshot_id": 7}
    assert len(writer.write_existing(rows(old), ContentType.DATA_MANIFEST)) == 1
    with pytest.raises(InputError, match=r"D2\.parquet is changed by this snapshot"):
        writer.write_existing(rows(old, new), ContentType.DATA_MANIFEST)
    assert len(staging.written) == 1


def test_40_a_compaction_alone_is_a_replace_that_changes_nothing():
    world = new_world(4, **AT_ONCE)
    for number in range(3):
        world.commit(Append(added=world_rows(data(f"a{number}", "Oslo"), data(f"b{number}", "Rome"))))
    before = world.entries().sort_by("location").select(list(IDENTITY))
    world.commit(RewriteManifests())
    base, head = world.base(), world.head
    assert head.summary["operation"] == "replace"
    assert head.added_rows == 0
    assert snapshot_changes(base.store, base.metadata, head).num_rows == 0
    assert read_root(base.store, head).entries["status"].to_pylist() == [int(Status.EXISTING)]
    (leaf,) = world.leaves()
    stored = stored_leaf(base.store, leaf.location)
    assert set(stored["status"].to_pylist()) == {int(Status.EXISTING)}
    assert stored["lower_bound:p1000"].to_pylist() == ["Oslo"] * 3 + ["Rome"] * 3
    assert world.entries().sort_by("location").select(list(IDENTITY)) == before
    audit(world)


def test_41_a_root_with_too_many_data_files_is_emptied_of_those_that_the_commit_did_not_add():
    tree = Tree(properties={"commit.root.max-data-files": "2"})
    for name in ("D1", "D2", "D3"):
        tree.commit(added=rows(data_file(name)))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "DATA D3 ADDED"]
    assert inside(tree, ContentType.DATA_MANIFEST) == [["D1", "D2"]]
    (leaf,) = tree.root().leaves(ContentType.DATA_MANIFEST)
    assert read_leaf(tree.fresh_store(), leaf)["status"].to_pylist() == [int(Status.EXISTING)] * 2
    assert changes(tree) == ["+D3"]


def test_41_new_files_that_are_too_many_go_to_a_leaf_of_their_own_and_old_ones_to_another():
    tree = Tree(properties={"commit.root.max-data-files": "2"})
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(added=rows(*(data_file(name) for name in ("D3", "D4", "D5"))))
    assert tree.describe() == ["DATA D1 EXISTING", "DATA D2 EXISTING", "DATA_MANIFEST M1 ADDED"]
    tree.commit(added=rows(data_file("D6")))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "DATA_MANIFEST M2 EXISTING", "DATA D6 ADDED"]
    assert inside(tree, ContentType.DATA_MANIFEST) == [["D3", "D4", "D5"], ["D1", "D2"]]


def test_41_a_file_that_the_commit_removes_stays_in_the_root_to_tell_so():
    tree = Tree(properties={"commit.root.max-data-files": "2"})
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(removed=planned_files("D2"), added=rows(data_file("D3"), data_file("D4")))
    assert tree.describe() == ["DATA D2 DELETED", "DATA_MANIFEST M1 EXISTING", "DATA D3 ADDED", "DATA D4 ADDED"]
    assert changes(tree) == ["+D3", "+D4", "-D2"]


def test_41_the_limit_of_bytes_empties_a_root_whose_rows_are_few_but_wide():
    tree = Tree(properties={"commit.root.max-bytes": "2000"})
    for number in range(60):
        tree.commit(added=rows(data_file(f"D{number}")))
    kinds = [line.split()[0] for line in tree.describe()]
    assert 1 <= kinds.count("DATA_MANIFEST") <= 4
    assert kinds.count("DATA") < 60
    assert len(files(tree)) == 60
    tree.properties = {"commit.root.max-bytes": "1"}
    tree.commit(added=rows(data_file("D60"), data_file("D61")))
    kind, _, status = tree.describe()[-1].split()
    assert (kind, status) == ("DATA_MANIFEST", "ADDED")


def test_42_vectors_have_a_limit_of_their_own():
    tree = Tree(properties={"commit.root.max-dvs": "1"})
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(added=rows(vector("V1", "D1")))
    assert tree.describe() == ["DATA D1 EXISTING", "DATA D2 EXISTING", "POSITION_DELETES V1 ADDED"]
    tree.commit(added=rows(vector("V2", "D2")))
    assert tree.describe() == [
        "DATA D1 EXISTING",
        "DATA D2 EXISTING",
        "DELETE_MANIFEST M1 EXISTING",
        "POSITION_DELETES V2 ADDED",
    ]
    assert changes(tree) == ["+V2"]


def test_42_the_limit_of_data_files_does_not_move_vectors():
    tree = Tree(properties={"commit.root.max-data-files": "2"})
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.commit(added=rows(vector("V1", "D1"), vector("V2", "D2")))
    tree.commit(added=rows(data_file("D3")))
    assert tree.describe() == [
        "POSITION_DELETES V1 EXISTING",
        "POSITION_DELETES V2 EXISTING",
        "DATA_MANIFEST M1 EXISTING",
        "DATA D3 ADDED",
    ]


def test_43_files_numbers_and_row_ids_are_the_same_before_and_after_a_flush():
    tree = Tree()
    tree.commit(added=rows(data_file("D1", rows=3), data_file("D2", rows=4)))
    tree.commit(added=rows(vector("V1", "D1"), data_file("D3", rows=5)))
    before = files(tree)
    tree.properties = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0"}
    tree.commit()
    assert [line.split()[0] for line in tree.describe()] == ["DATA_MANIFEST", "DELETE_MANIFEST"]
    assert files(tree) == before
    assert tree.next_row_id == 12
    assert changes(tree) == []


def test_43_rows_and_row_ids_read_before_and_after_a_flush_are_equal(tmp_path: Path):
    stage = Stage(tmp_path)
    stage.append("D1", "D2")
    stage.upsert(15, 23)
    before = _with_ids(stage)
    stage.settings({"commit.root.max-data-files": "1", "commit.root.max-dvs": "1"})
    stage.append("D3")
    assert [row["content_type"] for row in stage.root_rows()] == [3, 4, 0]
    after = _with_ids(stage)
    assert {id_: row_id for id_, row_id in after.items() if id_ < 30} == before
    assert len(after) == len(before) + 10


def test_63_rewriting_manifests_makes_leaves_of_v4_of_all_but_those_with_position_delete_files():
    """The rest of statement 62 and 63, on leaves of several kinds, is with the upgrades."""
    world = new_world(2)
    world.commit(Append(added=world_rows(data("a"), data("b")), fast=True))
    world.commit(Append(added=world_rows(data("c")), fast=True))
    world.table().upgrade(4)
    world.commit(Append(added=world_rows(data("d"))))
    before = world.entries().sort_by("location").select(list(IDENTITY))
    world.commit(RewriteManifests())
    assert [leaf.location.rsplit(".")[-1] for leaf in world.leaves()] == ["parquet"]
    assert world.entries().sort_by("location").select(list(IDENTITY)) == before
    audit(world)


def test_the_leaves_of_a_large_append_are_near_the_size_that_the_table_asks_for():
    target = 60_000
    tree = Tree(properties={"commit.root.max-data-files": "10", "commit.manifest.target-size-bytes": str(target)})
    names = [sha256(str(n).encode()).hexdigest() for n in range(5000)]
    many = [data_file(f"D{name}", lower=int(name[:6], 16), upper=int(name[:8], 16)) for name in names]
    tree.commit(added=rows(*many))
    sizes = [leaf.size for leaf in leaves_of(tree.root().entries)]
    assert len(sizes) > 2
    assert all(target / 2 < size < target * 3 / 2 for size in sizes)
    assert len(files(tree)) == 5000
    assert {line.split()[-1] for line in tree.describe()} == {"ADDED"}


def two_specs(**properties: str) -> Tree:
    """A tree whose table has two specs, neither of which partitions."""
    tree = Tree(properties=dict(properties))
    tree.metadata = replace(tree.metadata, specs=(PartitionSpec(), PartitionSpec(spec_id=1)))
    tree.store = tree.fresh_store()
    return tree


def test_files_of_two_partition_specs_are_in_different_leaves_however_they_got_there():
    tree = two_specs(**AT_ONCE, **MERGE_TWO)
    first, second = data_file("D1"), {**data_file("D2"), "partition_spec_id": 1}
    tree.commit(added=rows(first, second))
    assert inside(tree, ContentType.DATA_MANIFEST) == [["D1"], ["D2"]]
    before = tree.root().entries["location"].to_pylist()
    tree.commit()
    assert tree.root().entries["location"].to_pylist() == before  # one of each, so there is nothing to merge
    tree.commit(added=rows(data_file("D3"), {**data_file("D4"), "partition_spec_id": 1}))
    tree.commit(added=rows(data_file("D5")))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "DATA_MANIFEST M2 EXISTING", "DATA D5 ADDED"]
    assert inside(tree, ContentType.DATA_MANIFEST) == [["D1", "D3"], ["D2", "D4"]]
    tree = two_specs(**{"commit.root.max-data-files": "2"})
    tree.commit(added=rows(first, second))
    tree.commit(added=rows(data_file("D3")))
    assert inside(tree, ContentType.DATA_MANIFEST) == [["D1"], ["D2"]]
