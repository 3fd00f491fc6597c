"""Laws of upkeep: whatever a history is, a tree that is kept up holds the same as one that is left alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.rewrite import RewriteFiles, RewriteManifests
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, Status, concat
from icefloe.scan.plan import plan_scan
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import Leaf, leaves_of, read_live_leaf, read_root
from icefloe.tree.snapshot_changes import snapshot_changes
from icefloe.tree.store import ManifestStore
from support.entry_tables import World, audit, data, equality_deletes, new_world, position_deletes
from support.entry_tables import rows as world_rows
from support.metadata_tree import Tree, data_file, planned_files, rows, short, stored_leaf, vector

LEFT_ALONE = {
    "commit.root.max-data-files": "1000000",
    "commit.root.max-dvs": "1000000",
    "commit.manifest-merge.enabled": "false",
    "commit.leaf.max-dead-percent": "101",
}
KEPT = ("location", "content_type", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")
KEPT += ("record_count", "referenced_file", "partition_spec_id", "lower_bound:1", "upper_bound:1")

PROPERTIES = st.fixed_dictionaries(
    {
        "commit.root.max-data-files": st.sampled_from(["0", "1", "3"]),
        "commit.root.max-dvs": st.sampled_from(["0", "1", "3"]),
        "commit.leaf.max-dead-percent": st.sampled_from(["1", "50", "99"]),
        "commit.leaf.min-dead-rows": st.sampled_from(["1", "2"]),
        "commit.manifest.min-count-to-merge": st.sampled_from(["2", "3", "100"]),
        "commit.manifest.target-size-bytes": st.sampled_from(["12000", "30000", "8388608"]),
        "commit.upkeep.max-bytes": st.sampled_from(["1", "20000", "33554432"]),
    }
)
EXAMPLES = settings().max_examples * 3 // 10  # each is two histories of commits
NUMBERS = st.lists(st.integers(0, 30), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), NUMBERS),
        st.tuples(st.just("remove"), NUMBERS),
        st.tuples(st.just("overwrite"), NUMBERS),
        st.tuples(st.just("vectors"), NUMBERS),
        st.tuples(st.just("equality"), NUMBERS),
    ),
    min_size=3,
    max_size=12,
)


@dataclass
class Pair:
    """One history on two trees."""

    kept: Tree
    alone: Tree = field(default_factory=lambda: Tree(properties=LEFT_ALONE))
    live: list[str] = field(default_factory=list)
    vectors: set[str] = field(default_factory=set)
    number: int = 0

    def step(self, kind: str, numbers: list[int]) -> None:
        chosen = list(dict.fromkeys(self.live[n % len(self.live)] for n in numbers)) if len(self.live) > 0 else []
        change: dict[str, pa.Table] = {}
        if kind in ("append", "overwrite"):
            change["added"] = rows(*(self._file() for _ in numbers))
        if kind in ("remove", "overwrite") and len(chosen) > 0:
            change["removed"] = planned_files(*chosen, vectors=self.vectors)
            self.live = [name for name in self.live if name not in chosen]
            self.vectors -= set(chosen)
        if kind == "vectors" and len(chosen) > 0:
            change["revectored"] = planned_files(*chosen, vectors=self.vectors)
            change["added"] = rows(*(vector(f"V{self._next()}", target) for target in chosen))
            self.vectors |= set(chosen)
        if kind == "equality":
            change["added"] = rows(*(equality(f"E{self._next()}") for _ in numbers))
        for tree in (self.kept, self.alone):
            tree.commit(**change)
        if kind in ("append", "overwrite"):
            self.live += [short(name) or "" for name in change["added"]["location"].to_pylist()]

    def _file(self) -> dict[str, object]:
        number = self._next()
        return data_file(f"D{number}", rows=number % 7 + 1, lower=number, upper=number + 3)

    def _next(self) -> int:
        self.number += 1
        return self.number


def equality(name: str) -> dict[str, object]:
    kind = {"content_type": int(ContentType.EQUALITY_DELETES), "equality_ids": [1]}
    return {**data_file(name, rows=1, lower=0, upper=100), **kind}


def inside(tree: Tree, store: ManifestStore) -> list[dict[str, object]]:
    """All live files, by their locations, and all that must not depend on where they are stored."""
    root = read_root(store, tree.head)
    leaves = [read_live_leaf(store, root, leaf) for leaf in root.leaves(*MANIFESTS)]
    found = concat([root.rows(ContentType.DATA, *DELETES), *leaves])
    return found.select([name for name in KEPT if name in found.column_names]).sort_by("location").to_pylist()


def planned(tree: Tree, text: str) -> list[tuple[object, ...]]:
    plan = plan_scan(tree.fresh_store(), tree.metadata, tree.head, filter=parse_filter(text))
    files = plan.deletes["location"].to_pylist()
    return sorted(
        (task["location"], task["dv_location"], tuple(sorted(files[number] for number in task["deletes"])))
        for task in plan.tasks.to_pylist()
    )


def changes(tree: Tree, store: ManifestStore) -> list[tuple[object, ...]]:
    found = snapshot_changes(store, tree.metadata, tree.snapshots[-1])
    return sorted((row["location"], row["status"], row["sequence_number"]) for row in found.to_pylist())


def check(tree: Tree, store: ManifestStore) -> None:
    """What holds of every root that upkeep leaves."""
    root, number = read_root(store, tree.head), len(tree.snapshots)
    leaves = {leaf.location: leaf for leaf in leaves_of(root.rows(*MANIFESTS))}
    statuses = dict(zip(root.entries["location"].to_pylist(), root.entries["status"].to_pylist(), strict=True))
    changed = root.entries.filter(pc.equal(root.entries["status"], int(Status.ADDED)))["referenced_file"].to_pylist()
    for location, leaf in leaves.items():
        stored = stored_leaf(store, location, content=leaf.content)
        if leaf.snapshot_id == number and statuses[location] == Status.EXISTING:
            assert set(stored["status"].to_pylist()) == {int(Status.EXISTING)}
            assert number not in stored["snapshot_id"].to_pylist()
            assert not leaf.is_data or leaf.first_row_id is not None
        live = read_live_leaf(store, root, leaf)
        assert live.num_rows > 0 or location in changed, "an empty leaf stayed"
        if leaf.affinity is not None:
            assert set(live["content_type"].to_pylist()) <= {int(ContentType.POSITION_DELETES)}
            there = read_live_leaf(store, root, _data_leaf(leaves, leaf.affinity))["location"].to_pylist()
            assert set(live["referenced_file"].to_pylist()) <= set(there)


def _data_leaf(leaves: dict[str, Leaf], location: str) -> Leaf:
    assert leaves[location].is_data
    return leaves[location]


@pytest.mark.slow
@settings(deadline=None, max_examples=EXAMPLES)
@given(properties=PROPERTIES, steps=STEPS)
def test_upkeep_changes_neither_files_nor_numbers_nor_row_ids_nor_what_a_snapshot_is_said_to_change(properties, steps):
    pair = Pair(kept=Tree(properties=properties))
    for kind, numbers in steps:
        pair.step(kind, numbers)
        fresh, known = pair.kept.fresh_store(), pair.alone.store
        assert inside(pair.kept, fresh) == inside(pair.alone, known)
        assert pair.kept.next_row_id == pair.alone.next_row_id
        assert changes(pair.kept, fresh) == changes(pair.alone, known)
        check(pair.kept, fresh)
    for text in ("true", "id = 5", "id > 12"):
        assert planned(pair.kept, text) == planned(pair.alone, text)


@settings(deadline=None, max_examples=EXAMPLES)
@given(properties=PROPERTIES, steps=STEPS)
def test_upkeep_comes_to_rest(properties, steps):
    """Commits that change nothing end in a tree that they leave as it is, root rows and all."""
    pair = Pair(kept=Tree(properties=properties))
    for kind, numbers in steps:
        pair.step(kind, numbers)
    before = None
    for _ in range(40):
        pair.kept.commit()
        now = read_root(pair.kept.store, pair.kept.head).entries["location"].to_pylist()
        if now == before:
            break
        before = now
    assert now == before
    assert inside(pair.kept, pair.kept.fresh_store()) == inside(pair.alone, pair.alone.store)


# -- how much is done at once


def many_leaves(count: int, size: int = 1) -> Tree:
    """Leaves of a few files each."""
    tree = Tree(properties={"commit.root.max-data-files": "0", "commit.manifest-merge.enabled": "false"})
    for number in range(count):
        tree.commit(added=rows(*(data_file(f"D{number}x{n}") for n in range(size))))
    return tree


def leaf_count(tree: Tree) -> int:
    return len(tree.root().leaves(ContentType.DATA_MANIFEST))


@pytest.mark.parametrize(("count", "left"), [(9, 9), (10, 1), (11, 1)])
def test_small_leaves_are_merged_once_they_are_many(count, left):
    tree = many_leaves(count)
    tree.properties = {"commit.manifest.min-count-to-merge": "10"}
    tree.commit(added=rows(data_file("X")))
    assert leaf_count(tree) == left


def test_small_leaves_stay_where_merging_is_turned_off():
    tree = many_leaves(3)
    tree.properties = {"commit.manifest.min-count-to-merge": "2", "commit.manifest-merge.enabled": "false"}
    tree.commit(added=rows(data_file("X")))
    assert leaf_count(tree) == 3


def test_small_leaves_are_merged_once_they_make_up_a_whole_one():
    tree = many_leaves(9)
    sizes = [leaf.size or 0 for leaf in tree.root().leaves(ContentType.DATA_MANIFEST)]
    tree.properties = {"commit.manifest.target-size-bytes": str(sum(sizes[:6]))}
    tree.commit(added=rows(data_file("X")))
    assert leaf_count(tree) == 4  # six became one, the others wait for more


def test_a_leaf_that_is_half_full_is_not_copied_for_the_small_ones_behind_it():
    tree = Tree(properties={"commit.root.max-data-files": "0", "commit.manifest-merge.enabled": "false"})
    names = [sha256(str(number).encode()).hexdigest() for number in range(300)]
    tree.commit(added=rows(*(data_file(name) for name in names)))
    for number in range(3):
        tree.commit(added=rows(data_file(f"D{number}")))
    large, *small = tree.root().leaves(ContentType.DATA_MANIFEST)
    target = 2 * (large.size or 0)
    assert sum(leaf.size or 0 for leaf in small) < target / 2
    tree.properties = {"commit.manifest.min-count-to-merge": "2", "commit.manifest.target-size-bytes": str(target)}
    tree.commit(added=rows(data_file("X")))
    first, merged = tree.root().leaves(ContentType.DATA_MANIFEST)
    assert (first.location, merged.record_count) == (large.location, 3)


@pytest.mark.parametrize(("count", "left"), [(9, 9), (10, 1)])
def test_delete_leaves_are_merged_like_data_leaves(count, left):
    tree = Tree()
    tree.commit(added=rows(*(data_file(f"D{number}") for number in range(count))))
    tree.properties = {"commit.root.max-dvs": "0", "commit.manifest-merge.enabled": "false"}
    for number in range(count):
        tree.commit(added=rows(vector(f"V{number}", f"D{number}")))
    tree.properties = {}
    tree.commit(added=rows(data_file("X")))
    assert len(tree.root().leaves(ContentType.DELETE_MANIFEST)) == left


def test_a_commit_reads_no_more_for_upkeep_than_it_may_but_always_does_something():
    tree = many_leaves(6, size=4)
    (size, *_) = (leaf.size or 0 for leaf in tree.root().leaves(ContentType.DATA_MANIFEST))
    tree.properties = {"commit.leaf.max-dead-percent": "100"}
    tree.commit(removed=planned_files(*(f"D{number}x{n}" for number in range(6) for n in (1, 2))))
    tree.properties = {"commit.leaf.min-dead-rows": "2", "commit.upkeep.max-bytes": str(2 * size + size // 2)}
    counts = []
    for number in range(4):
        tree.commit(added=rows(data_file(f"X{number}")))
        counts.append(sum(line.startswith("MANIFEST_DV") for line in tree.describe()))
    assert counts == [4, 2, 0, 0]
    tree.commit(removed=planned_files("D0x0", "D1x0"))
    tree.properties = {"commit.leaf.min-dead-rows": "1", "commit.upkeep.max-bytes": "1"}
    tree.commit(added=rows(data_file("Y1")))
    assert sum(line.startswith("MANIFEST_DV") for line in tree.describe()) == 1


def test_a_commit_with_nothing_to_keep_up_opens_no_leaf_and_writes_only_its_root():
    tree = many_leaves(30, size=2)
    tree.properties = {}
    tree.commit(removed=planned_files("D3x1", "D7x0"))
    tree.store = tree.fresh_store()
    tree.io.reset()
    tree.commit(added=rows(data_file("X")))
    assert [call.location for call in tree.io.calls if call.verb == "write_new"] == [tree.snapshots[-1].root]
    reads = {call.location for call in tree.io.calls if call.verb in ("read", "read_range")}
    assert reads == {tree.snapshots[-2].root}


def test_what_upkeep_writes_is_of_the_attempt_and_new_files_are_written_once_for_all():
    world = new_world(4, **{"commit.root.max-data-files": "0", "commit.manifest-merge.enabled": "false"})
    for name in ("a", "b", "c"):
        world.commit(Append(added=world_rows(data(name))))
    world.table().set_properties({"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"})
    world.catalog.between.append(lambda: world.table().set_properties({"x": "y"}))
    world.io.reset()
    result = world.commit(Append(added=world_rows(data("d"))))
    assert result.attempts == 2
    leaves = [call.location for call in world.io.calls if "-m" in call.location.rsplit("/", 1)[-1]]
    written = [c.location for c in world.io.calls if c.verb == "write_new" and c.location in leaves]
    assert len(written) == 3  # the new file's leaf once, the merged one in each attempt
    assert len(world.leaves()) == 2
    audit(world)


# -- tables that were upgraded


def upgraded(**properties: str) -> World:
    """A table of version 2 with manifests of data, of equality deletes and of position deletes, now of version 4."""
    world = new_world(2, **{"commit.manifest-merge.enabled": "false"})
    for name in ("a", "b", "c"):
        world.commit(Append(added=world_rows(data(name), data(f"{name}2")), fast=True))
    for deletes in (position_deletes("p1", "a"), position_deletes("p2", "b"), equality_deletes("e1")):
        world.commit(RowDelta(changes=FileChanges(added=world_rows(deletes)), read=world.head))
    world.table().upgrade(4)
    world.table().set_properties({"commit.manifest-merge.enabled": "true", **properties})
    return world


def shown(world: World) -> list[str]:
    """The leaves: what they hold, and in which format."""
    store = world.base().store
    found = []
    for leaf in world.leaves():
        names = stored_leaf(store, leaf.location, content=leaf.content)["location"].to_pylist()
        found.append("".join(sorted(name.rsplit("/", 1)[-1][0] for name in names)) + leaf.location[-5:])
    return sorted(found)


def test_the_first_commit_of_v4_takes_all_manifests_over_and_later_ones_merge_those_of_data():
    world = upgraded(**{"commit.manifest.min-count-to-merge": "2"})
    kept = world.plan().tasks.select(["location", "deletes"]).sort_by("location")
    before = {leaf.location for leaf in world.leaves()}
    world.commit(Append(added=world_rows(data("n1", "Rome"))))
    assert {leaf.location for leaf in world.leaves()} == before
    world.commit(Append(added=world_rows(data("n2", "Rome"))))
    assert shown(world) == ["aabbcc" + "rquet", "e.avro", "p.avro", "p.avro"]
    tasks = world.plan().tasks.select(["location", "deletes"]).sort_by("location")
    assert tasks.filter(pc.is_in(tasks["location"], value_set=kept["location"].combine_chunks())) == kept
    audit(world)


def test_rewriting_manifests_leaves_those_with_position_delete_files_as_they_are():  # statements 62 and 63
    world = upgraded()
    world.commit(Append(added=world_rows(data("n1", "Rome"))))
    kept = world.plan().tasks.select(["location", "deletes"]).sort_by("location")
    old = [leaf.location for leaf in world.leaves() if not leaf.is_data]
    world.commit(RewriteManifests())
    assert shown(world) == ["aabbcc" + "rquet", "e" + "rquet", "p.avro", "p.avro"]
    assert len({leaf.location for leaf in world.leaves()} & set(old)) == 2
    assert world.plan().tasks.select(["location", "deletes"]).sort_by("location") == kept
    assert snapshot_changes(world.base().store, world.metadata, world.head).num_rows == 0
    audit(world)


def test_a_leaf_with_position_delete_files_keeps_its_deletion_vector_when_manifests_are_rewritten():
    world = new_world(2)
    world.commit(Append(added=world_rows(data("a"), data("b"))))
    both = world_rows(position_deletes("p1", "a"), position_deletes("p2", "b"))
    world.commit(RowDelta(changes=FileChanges(added=both), read=world.head))
    world.table().upgrade(4)
    dropped = world.deletes().filter(
        pa.array([n.endswith("p1.deletes") for n in world.deletes()["location"].to_pylist()])
    )
    world.commit(RewriteFiles(changes=FileChanges(added=world_rows(), removed_deletes=dropped), read=world.head))
    names = [short(row["location"]) for row in world.deletes().to_pylist()]
    world.commit(RewriteManifests())
    assert [short(row["location"]) for row in world.deletes().to_pylist()] == names == ["p2"]
    audit(world)


def dead_share(tree: Tree) -> float:
    """The largest share of dead rows that a leaf has."""
    root = tree.root()
    shares = [root.dead.count(leaf.location) / (leaf.live_count or 1) for leaf in root.leaves(*MANIFESTS)]
    return max(shares, default=0.0)


@pytest.mark.parametrize("kind", ["data", "vectors"])
def test_a_leaf_that_every_commit_changes_is_folded(kind: str) -> None:
    properties = {
        "commit.root.max-data-files": "0" if kind == "data" else "1000",
        "commit.root.max-dvs": "0",
        "commit.leaf.min-dead-rows": "5",
        "commit.manifest-merge.enabled": "false",
    }
    tree = Tree(properties=properties)
    names = [f"D{number}" for number in range(100)]
    tree.commit(added=rows(*(data_file(name) for name in names)))
    if kind == "vectors":
        tree.commit(added=rows(*(vector(f"V{name}", name) for name in names)))
    worst, leaves = 0.0, set[str]()
    for number, name in enumerate(names[:95]):
        vectors = names if kind == "vectors" else ()
        tree.commit(removed=planned_files(name, vectors=vectors))
        worst = max(worst, dead_share(tree))
        root = tree.root()
        leaves |= {leaf.location for leaf in root.leaves(*MANIFESTS)}
        if kind == "data":
            entries = [read_live_leaf(tree.store, root, leaf) for leaf in root.leaves(ContentType.DATA_MANIFEST)]
            live = [short(location) for each in entries for location in each["location"].to_pylist()]
            assert sorted(map(str, live)) == sorted(names[number + 1 :])
        changes = snapshot_changes(tree.fresh_store(), tree.metadata, tree.snapshots[-1])
        assert changes["status"].to_pylist() == [int(Status.DELETED)] * (2 if kind == "vectors" else 1)
    assert worst <= 0.6
    assert 3 <= len(leaves) <= 12  # not one for each commit
