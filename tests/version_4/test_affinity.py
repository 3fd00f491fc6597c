"""Statements 44 to 48: delete leaves that belong to one data leaf, and what a plan opens."""

from __future__ import annotations

from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.rewrite import RewriteManifests
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.errors import FormatError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import ContentType, Status, entries, put
from icefloe.scan.plan import plan_scan
from icefloe.tree.delete_leaf_affinity import find_data_leaves, split_by_data_leaf
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.new_snapshot import RowIds, SnapshotIdentity
from icefloe.tree.root import Root, leaves_of, read_live_leaf, read_root
from icefloe.tree.staging import Staging
from support.entry_tables import World, at, audit, data, equality_deletes, new_world
from support.entry_tables import rows as world_rows
from support.entry_tables import vector as world_vector
from support.metadata_tree import Tree, data_file, planned_files, rows, short, stored_leaf, vector

AT_ONCE = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0"}
VECTORS_TO_LEAVES = {"commit.root.max-dvs": "0"}
NO_MERGE = {"commit.manifest-merge.enabled": "false"}
MERGE_TWO = {"commit.manifest.min-count-to-merge": "2"}


def three_leaves(**properties: str) -> Tree:
    """Data leaves of A0-A9 with ids 0-9, B0-B9 with 10-19 and C0-C9 with 20-29."""
    tree = Tree(properties={**AT_ONCE, **NO_MERGE})
    for number, letter in enumerate("ABC"):
        low = number * 10
        tree.commit(added=rows(*(data_file(f"{letter}{n}", lower=low, upper=low + 9) for n in range(10))))
    tree.properties = {**AT_ONCE, **NO_MERGE, **properties}
    return tree


def vectors(*targets: str) -> pa.Table:
    return rows(*(vector(f"V{target}", target) for target in targets))


def affinities(tree: Tree) -> list[tuple[str, list[str]]]:
    """The delete leaves of the head: the letter of the data leaf that each belongs to, and its vectors."""
    root, store = tree.root(), tree.fresh_store()
    letters: dict[str | None, str] = {None: "-"}
    for leaf in root.leaves(ContentType.DATA_MANIFEST):
        names = read_live_leaf(store, root, leaf)["location"].to_pylist()
        letters[leaf.location] = "".join(sorted({(short(name) or "?")[0] for name in names}))
    found = []
    for leaf in root.leaves(ContentType.DELETE_MANIFEST):
        inside = read_live_leaf(store, root, leaf)["location"].to_pylist()
        found.append((letters[leaf.affinity], [short(name) or "" for name in inside]))
    return found


def opened(tree: Tree, text: str = "true") -> list[str]:
    """The leaves that a plan opens, by the files in them."""
    tree.io.reset()
    filter = {} if text == "true" else {"filter": parse_filter(text)}
    plan_scan(tree.fresh_store(), tree.metadata, tree.head, **filter)
    reads = {call.location for call in tree.io.calls if call.verb in ("read", "read_range")}
    root, store = tree.root(), tree.fresh_store()
    leaves = root.leaves(ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
    return [
        short(read_live_leaf(store, root, leaf)["location"][0].as_py()) for leaf in leaves if leaf.location in reads
    ]


# -- what a plan opens


def test_44_a_plan_of_a_data_leaf_opens_its_delete_leaves_and_those_that_belong_to_none():
    tree = three_leaves()
    tree.commit(added=vectors(*(f"A{n}" for n in range(9))))
    tree.commit(added=vectors(*(f"B{n}" for n in range(9))))
    tree.commit(added=vectors("C0", "C1"))
    tree.commit(added=vectors("A9", "B9"))
    tree.commit(added=rows(vector("VD0", "D0"), data_file("D0", lower=90, upper=99)))
    assert affinities(tree)[2:] == [("C", ["VC0", "VC1"]), ("A", ["VA9"]), ("B", ["VB9"]), ("-", ["VD0"])]
    assert opened(tree, "id = 15") == ["B0", "VB0", "VB9", "VD0"]
    assert opened(tree, "id = 25") == ["C0", "VC0", "VD0"]
    assert opened(tree, "id = 95") == ["D0", "VD0"]
    assert sorted(opened(tree)) == ["A0", "B0", "C0", "D0", "VA0", "VA9", "VB0", "VB9", "VC0", "VD0"]


def test_45_a_data_leaf_that_is_passed_over_keeps_its_delete_leaves_closed():
    tree = three_leaves()
    tree.commit(added=vectors("A0", "A1"))
    tree.commit(added=vectors("B0", "B1"))
    assert affinities(tree) == [("A", ["VA0", "VA1"]), ("B", ["VB0", "VB1"])]
    assert opened(tree, "id = 5") == ["A0", "VA0"]
    assert opened(tree, "id = 25") == ["C0"]
    assert opened(tree, "id = 99") == []


def two_cities(**properties: str) -> World:
    """A table of one leaf for each city."""
    world = new_world(4, **{**AT_ONCE, **NO_MERGE, **properties})
    world.commit(Append(added=world_rows(data("o1", "Oslo"), data("o2", "Oslo"))))
    world.commit(Append(added=world_rows(data("r1", "Rome", 10, 19), data("r2", "Rome", 10, 19))))
    return world


def test_45_an_unaffiliated_leaf_whose_partitions_cannot_match_is_passed_over():
    world = two_cities()
    world.commit(RowDelta(changes=FileChanges(added=world_rows(equality_deletes("e1", "Oslo"))), read=world.head))
    world.commit(RowDelta(changes=FileChanges(added=world_rows(equality_deletes("e2", "Rome"))), read=world.head))
    leaves = [leaf for leaf in world.leaves() if not leaf.is_data]
    assert [leaf.affinity for leaf in leaves] == [None, None]
    world.io.reset()
    world.plan(filter=parse_filter("city = 'Rome'"))
    reads = {call.location for call in world.io.calls if call.verb == "read"}
    assert [leaf.location in reads for leaf in leaves] == [False, True]


def test_46_an_affinity_to_anything_but_a_data_leaf_of_the_root_is_refused():
    tree = three_leaves()
    tree.commit(added=vectors("A0", "A1"))
    good = tree.root().entries
    own = good.filter(pa.array([kind == ContentType.DELETE_MANIFEST for kind in good["content_type"].to_pylist()]))
    for wrong in (own["location"][0].as_py(), at("A0"), "memory://wh/t/metadata/elsewhere.parquet"):
        kept = [wrong if row["content_type"] == ContentType.DELETE_MANIFEST else None for row in good.to_pylist()]
        _replace_head(tree, put(good, "referenced_file", pa.array(kept, pa.string())))
        with pytest.raises(FormatError, match="belongs to a data manifest that is not in this root"):
            tree.commit(added=rows(data_file("X")))


def test_46_a_delete_leaf_with_two_affinities_is_refused():
    tree = three_leaves()
    tree.commit(added=vectors("A0", "A1"))
    good = tree.root().entries
    both = good.slice(good.num_rows - 1)
    assert both["content_type"].to_pylist() == [ContentType.DELETE_MANIFEST]
    other = put(both, "referenced_file", good["location"][1].as_py())
    _replace_head(tree, pa.concat_tables([good, other]))
    with pytest.raises(FormatError, match="another live row has the same location"):
        tree.commit(added=rows(data_file("X")))


def _replace_head(tree: Tree, wrong: pa.Table) -> None:
    assert tree.head is not None
    tree.store = tree.fresh_store()
    tree.store.remember_root(tree.head.root_location, wrong)


# -- where vectors go


def test_44_vectors_of_one_data_leaf_are_flushed_to_a_leaf_that_belongs_to_it():
    tree = three_leaves(**{"commit.root.max-dvs": "2", "commit.root.max-data-files": "1000"})
    tree.commit(added=vectors("B0", "B1"))
    tree.commit(added=vectors("A0"))
    assert affinities(tree) == [("B", ["VB0", "VB1"])]
    assert tree.describe()[-2:] == ["DELETE_MANIFEST M4 EXISTING", "POSITION_DELETES VA0 ADDED"]


@pytest.mark.parametrize("flushed", [False, True])
def test_44_vectors_of_few_data_leaves_get_a_leaf_for_each_and_the_rest_share_one(flushed):
    tree = three_leaves(**{"commit.root.max-data-files": "1000"})
    tree.commit(added=rows(data_file("X0")))
    many = [f"A{n}" for n in range(9)] + [f"B{n}" for n in range(9)]
    tree.properties["commit.root.max-dvs"] = "20" if flushed else "0"
    tree.commit(added=vectors("C0", *many, "X0"))  # of twenty, an eighth is three
    if flushed:
        assert affinities(tree) == []
        tree.properties["commit.root.max-dvs"] = "0"
        tree.commit()
    assert affinities(tree) == [
        ("A", [f"VA{n}" for n in range(9)]),
        ("B", [f"VB{n}" for n in range(9)]),
        ("-", ["VC0", "VX0"]),
    ]


@pytest.mark.parametrize("flushed", [False, True])
def test_44_the_rest_belongs_to_a_data_leaf_too_if_it_is_all_of_that_one(flushed):
    tree = three_leaves(**{"commit.root.max-dvs": "20" if flushed else "0"})
    tree.commit(added=vectors("C0", *(f"A{n}" for n in range(10))))
    tree.properties["commit.root.max-dvs"] = "0"
    if flushed:
        tree.commit()
    assert affinities(tree) == [("A", [f"VA{n}" for n in range(10)]), ("C", ["VC0"])]


def test_44_vectors_of_files_in_the_root_belong_to_no_leaf():
    tree = Tree()
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    tree.properties = VECTORS_TO_LEAVES
    tree.commit(added=vectors("D1", "D2"))
    assert affinities(tree) == [("-", ["VD1", "VD2"])]


def test_44_equality_deletes_are_in_leaves_that_belong_to_none():
    world = two_cities()
    added = world_rows(*(world_vector(f"V{n}", f"o{n}") for n in (1, 2)), equality_deletes("e1", "Oslo"))
    world.commit(RowDelta(changes=FileChanges(added=added), read=world.head))
    leaves = [leaf for leaf in world.leaves() if not leaf.is_data]
    kinds = {
        leaf.affinity: stored_leaf(world.base().store, leaf.location, content=ContentType.DELETE_MANIFEST)
        for leaf in leaves
    }
    oslo = world.leaves()[0].location
    assert {home: set(rows["content_type"].to_pylist()) for home, rows in kinds.items()} == {oslo: {1}, None: {2}}
    audit(world)


def test_44_leaves_that_are_too_many_to_look_through_give_no_affinity():
    tree = three_leaves(**{"commit.upkeep.max-bytes": "1"})
    tree.store = tree.fresh_store()
    tree.io.reset()
    tree.commit(added=vectors("A0", "A1"))
    assert [call.location for call in tree.io.calls if call.verb == "read"] == [tree.snapshots[-2].root]
    assert affinities(tree) == [("-", ["VA0", "VA1"])]


def test_44_only_leaves_of_the_partitions_of_the_vectors_are_looked_through():
    world = two_cities()
    oslo, rome = (leaf.location for leaf in world.leaves())
    base = world.base()
    writer = LeafWriter(
        store=base.store,
        identity=SnapshotIdentity(snapshot_id=1, sequence_number=1, first_row_id=0),
        ids=RowIds(0),
        staging=Staging("memory://wh/t/metadata", uuid4),
        properties={},
    )
    root = read_root(base.store, world.head)
    world.io.reset()
    deletes = world_rows(world_vector("V1", "r1", "Rome"), world_vector("V2", "elsewhere", "Rome"))
    assert find_data_leaves(writer, deletes, root.entries, root.dead).to_pylist() == [rome, None]
    reads = {call.location for call in world.io.calls if call.verb in ("read", "read_range")}
    assert rome in reads
    assert oslo not in reads


def test_44_the_layout_has_nine_parts_at_most_and_keeps_every_vector():
    homes = [f"leaf{n % 40}" for n in range(1000)] + [None] * 7 + ["big"] * 300
    deletes = entries([{"location": f"v{n}"} for n in range(len(homes))])
    parts = list(split_by_data_leaf(deletes, pa.array(homes, pa.string())))
    assert [home for _, home in parts] == ["big", None]
    assert sorted(name for part, _ in parts for name in part["location"].to_pylist()) == sorted(
        deletes["location"].to_pylist()
    )
    few = list(split_by_data_leaf(deletes, pa.array([f"leaf{n % 8}" for n in range(len(homes))], pa.string())))
    assert len(few) <= 9
    large = entries([{"location": f"v{n}"} for n in range(40_000)])
    codes = np.repeat([f"leaf{n:02}" for n in range(20)], 2000)
    assert len(list(split_by_data_leaf(large, pa.array(codes, pa.string())))) == 20


@pytest.mark.parametrize("version", [2, 3])
def test_44_versions_before_4_know_no_affinity(version):
    """Their lists could not store it, so what a commit remembers of its root must not have it either."""
    tree = Tree(version=version)
    tree.commit(added=rows(data_file("D1"), data_file("D2")))
    deletes = vectors("D1", "D2") if version == 3 else rows({**vector("V1", "D1"), "dv_offset": None})
    new = tree.commit(added=deletes)
    assert new.rows["referenced_file"].null_count == new.rows.num_rows == 2


# -- when data leaves move


def test_47_delete_leaves_follow_data_leaves_that_are_merged():
    tree = three_leaves()
    tree.commit(added=vectors("A0", "A1"))
    tree.commit(added=vectors("C0", "C1"))
    before = [leaf.location for leaf in tree.root().leaves(ContentType.DELETE_MANIFEST)]
    tree.properties = {"commit.manifest.min-count-to-merge": "3"}
    tree.commit(added=rows(data_file("D0")))
    assert affinities(tree) == [("ABC", ["VA0", "VA1"]), ("ABC", ["VC0", "VC1"])]
    assert [leaf.location for leaf in tree.root().leaves(ContentType.DELETE_MANIFEST)] == before
    assert tree.describe()[-2:] == ["DATA_MANIFEST M3 EXISTING", "DATA D0 ADDED"]


def test_47_delete_leaves_of_one_data_leaf_are_merged_with_each_other_and_stay_with_it():
    tree = three_leaves()
    for letter, number in ("A0", "B0", "A1", "A2", "B1"):
        tree.commit(added=vectors(f"{letter}{number}"))
    tree.properties = {**AT_ONCE, "commit.manifest.min-count-to-merge": "2"}
    tree.commit(added=rows(data_file("D0")))
    assert affinities(tree) == [("ABC", ["VA0", "VA1", "VA2"]), ("ABC", ["VB0", "VB1"])]
    tree.commit(added=rows(data_file("D1")))
    assert affinities(tree) == [("ABCD", ["VA0", "VA1", "VA2", "VB0", "VB1"])]


def test_47_delete_leaves_follow_a_data_leaf_that_is_written_again_for_its_dead_rows():
    tree = three_leaves(**{"commit.leaf.min-dead-rows": "5", "commit.root.max-data-files": "1000"})
    tree.commit(added=vectors("B0", "B1", "B9"))
    tree.commit(removed=planned_files(*(f"B{n}" for n in range(5)), vectors=["B0", "B1"]))
    assert affinities(tree) == [("B", ["VB9"])]
    (old,) = {leaf.affinity for leaf in tree.root().leaves(ContentType.DELETE_MANIFEST)}
    tree.commit(added=rows(data_file("D0")))
    assert affinities(tree) == [("B", ["VB9"])]
    (new,) = {leaf.affinity for leaf in tree.root().leaves(ContentType.DELETE_MANIFEST)}
    assert new != old


def test_47_delete_leaves_go_with_a_data_leaf_that_has_lost_all_its_files():
    tree = three_leaves()
    tree.commit(added=vectors("B0", "B1"))
    tree.commit(removed=planned_files(*(f"B{n}" for n in range(10)), vectors=["B0", "B1"]))
    assert affinities(tree) == []
    tree.commit(added=rows(data_file("D0")))
    _check_affinities(tree.root())
    assert "DELETE_MANIFEST" not in {line.split()[0] for line in tree.describe()}


@pytest.mark.broken_tables
def test_47_vectors_that_another_writer_left_behind_lose_their_affinity_with_the_leaf():
    tree = three_leaves()
    tree.commit(added=vectors("B0", "B1"))
    tree.commit(removed=planned_files(*(f"B{n}" for n in range(10))))
    tree.commit(added=rows(data_file("D0")))
    _check_affinities(tree.root())
    assert affinities(tree) == [("-", ["VB0", "VB1"])]


def test_47_rewriting_all_manifests_puts_vectors_beside_the_new_data_leaves():
    world = two_cities(**{"commit.manifest.target-size-bytes": "100"})
    world.commit(RowDelta(changes=FileChanges(added=world_rows(world_vector("V1", "r1", "Rome"))), read=world.head))
    world.commit(RowDelta(changes=FileChanges(added=world_rows(world_vector("V2", "o2", "Oslo"))), read=world.head))
    world.commit(RewriteManifests())
    base = world.base()
    leaves = world.leaves()
    files = {leaf.location: stored_leaf(base.store, leaf.location, content=leaf.content) for leaf in leaves}
    found = {}
    for leaf in leaves:
        if not leaf.is_data:
            (target,) = files[leaf.location]["referenced_file"].to_pylist()
            found[target] = leaf.affinity
            assert target in files[leaf.affinity]["location"].to_pylist()
    assert sorted(found) == [at("o2"), at("r1")]
    audit(world)


def _check_affinities(root: Root) -> None:
    there = {leaf.location for leaf in leaves_of(root.rows(ContentType.DATA_MANIFEST))}
    named = {leaf.affinity for leaf in leaves_of(root.rows(ContentType.DELETE_MANIFEST))}
    assert named - {None} <= there


def test_48_vectors_in_the_root_apply_to_files_in_leaves():
    world = two_cities(**{"commit.root.max-dvs": "1000"})
    world.commit(
        RowDelta(changes=FileChanges(added=world_rows(world_vector("V1", "r1", "Rome", rows=4))), read=world.head)
    )
    root = [row for row in world.plan().tasks.to_pylist() if row["dv_location"] is not None]
    assert [(row["location"], row["dv_cardinality"], row["dv_manifest"]) for row in root] == [(at("r1"), 4, None)]
    assert all(row["manifest"] is not None for row in root)
    world.commit(RemoveFiles(locations=(at("r1"),)))
    assert world.deletes().num_rows == 0
    audit(world)


def test_a_removal_of_a_file_finds_its_vector_in_the_leaf_that_belongs_to_its_leaf():
    world = two_cities()
    world.commit(RowDelta(changes=FileChanges(added=world_rows(world_vector("V1", "r1", "Rome"))), read=world.head))
    assert [row["status"] for row in world.deletes().to_pylist()] == [int(Status.ADDED)]
    world.commit(RemoveFiles(locations=(at("r1"),)))
    assert world.deletes().num_rows == 0
    audit(world)
