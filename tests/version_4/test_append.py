"""Statements 9 to 17: appending to the root, and with a leaf of its own."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.codecs.manifest.manifests import encode_root
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import ContentType
from icefloe.scan.plan import plan_scan
from icefloe.table.held_table import pointer_of
from icefloe.tree.file_changes import PLANNED_FILE
from icefloe.tree.root import leaves_of, read_leaf, read_root
from icefloe.tree.store import ManifestCache, ManifestStore
from support.metadata_tree import LOCATION, Tree, data_file, rows
from version_4.scenes import TO_LEAVES, TO_ROOT, Stage, tens, with_leaf

LEAF_OF_3 = "DATA_MANIFEST M1 {} by 1 at 1/1: 3 rows of +3=0-0 files +30=0-0 rows since 1 ids 0.."


def new_files(stage: Stage, before: set[str]) -> list[str]:
    """What the metadata folder gained, besides table metadata: roots and others, by the first word of the name."""
    return sorted(name.split("-")[0] if name.startswith("root-") else name for name in stage.metadata_files() - before)


@pytest.mark.parametrize("leaves", [0, 1, 10])
def test_09_a_one_file_append_writes_exactly_one_metadata_file_besides_the_table_metadata(
    tmp_path: Path, leaves: int
) -> None:
    stage = Stage(tmp_path, **TO_LEAVES)
    for number in range(leaves):
        stage.append(f"D{2 * number + 1}", f"D{2 * number + 2}")
    stage.settings({**TO_ROOT, "commit.manifest-merge.enabled": "false"})  # which leaves of two files would soon see
    before = stage.metadata_files()
    result = stage.append("D90")
    assert new_files(stage, before) == ["root"]
    assert (result.metadata_files_written, result.files_added) == (1, 1)


def test_09_the_bytes_of_an_append_do_not_grow_with_the_files_in_leaves() -> None:
    sizes = []
    for files in (2, 500):
        tree = Tree(properties={"commit.root.max-data-files": "1"})
        tree.commit(added=rows(*(data_file(f"A{n}") for n in range(files))))
        tree.io.reset()
        tree.commit(added=rows(data_file("B")))
        sizes.append(tree.io.volume("write_new"))
    assert abs(sizes[1] - sizes[0]) < 32  # a few digits more


def with_many_leaves(leaves: int) -> Tree:
    """A tree with one leaf of A, B and C, whose root names many more that do not exist: who opens one fails."""
    tree = Tree(properties={"commit.root.max-data-files": "0", "commit.manifest-merge.enabled": "false"})
    tree.commit(added=rows(data_file("A"), data_file("B"), data_file("C")))
    tree.properties = {"commit.manifest-merge.enabled": "false"}
    root = tree.root().entries
    (row,) = root.to_pylist()
    others = [{**row, "location": f"{LOCATION}/metadata/{n}-m0.parquet"} for n in range(1, leaves)]
    data = encode_root(
        pa.Table.from_pylist([row, *others], schema=root.schema),
        tree.store.context,
        snapshot_id=1,
        parent_id=None,
        sequence_number=1,
    )
    place = f"{LOCATION}/metadata/root-of-many.parquet"
    tree.io.write_new(place, data)
    tree.snapshots[0] = replace(tree.snapshots[0], root=place)
    tree.store = tree.fresh_store()
    return tree


@pytest.mark.broken_tables
@pytest.mark.parametrize("leaves", [1, 10, 1000])
def test_09_an_append_and_a_removal_write_one_file_and_open_no_leaf_however_many_there_are(leaves: int) -> None:
    tree = with_many_leaves(leaves)
    first = tree.root().entries["location"][0].as_py()
    seen = [{"location": f"{LOCATION}/data/B.parquet", "manifest": first, "ordinal": 1}]  # as a plan remembers it
    for change in ({"added": rows(data_file("D"))}, {"removed": pa.Table.from_pylist(seen, schema=PLANNED_FILE)}):
        tree.io.reset()
        tree.store = tree.fresh_store()
        before = tree.snapshots[-1].root
        tree.commit(**change)
        assert [call.location for call in tree.io.calls if call.verb == "write_new"] == [tree.snapshots[-1].root]
        assert [call.location for call in tree.io.calls if call.verb == "read"] == [before]
    assert [line.split()[0] for line in tree.describe()] == ["DATA_MANIFEST"] * leaves + ["DATA", "MANIFEST_DV"]


def test_10_each_append_carries_the_old_rows_over_and_adds_its_own(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    assert stage.root() == [LEAF_OF_3.format("ADDED")]
    stage.append("D4")
    assert stage.root() == [LEAF_OF_3.format("EXISTING"), "DATA D4 ADDED by 2 at 2/2: 10 rows ids 30.."]
    stage.append("D5")
    assert stage.root() == [
        LEAF_OF_3.format("EXISTING"),
        "DATA D4 EXISTING by 2 at 2/2: 10 rows ids 30..",
        "DATA D5 ADDED by 3 at 3/3: 10 rows ids 40..",
    ]


def test_11_the_leaf_is_neither_moved_nor_written_again(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    leaf = stage.path("M1")
    content, stamp = leaf.read_bytes(), os.stat(leaf)
    stage.append("D4")
    stage.append("D5")
    after = os.stat(leaf)
    assert (after.st_mtime_ns, after.st_ino, leaf.read_bytes()) == (stamp.st_mtime_ns, stamp.st_ino, content)
    assert [row["location"] for row in stage.root_rows() if row["content_type"] == 3] == [f"metadata/{leaf.name}"]


@pytest.mark.parametrize("files", [1, 2, 7])
def test_12_an_append_of_several_files_within_the_limit_writes_one_metadata_file(tmp_path: Path, files: int) -> None:
    stage = with_leaf(tmp_path)
    stage.settings({"commit.root.max-data-files": "7"})
    before = stage.metadata_files()
    stage.append(*(f"D{n}" for n in range(10, 10 + files)))
    assert new_files(stage, before) == ["root"]
    assert [line.split(" by ")[0] for line in stage.root()] == [
        "DATA_MANIFEST M1 EXISTING",
        *(f"DATA D{n} ADDED" for n in range(10, 10 + files)),
    ]


def test_13_earlier_snapshots_stay_readable(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.append("D4")
    stage.append("D5")
    first, second, third = (snapshot.snapshot_id for snapshot in stage.snapshots)
    assert stage.ids(snapshot=first) == tens(1, 2, 3)
    assert stage.ids(snapshot=second) == tens(1, 2, 3, 4)
    assert stage.ids(snapshot=third) == stage.ids() == tens(1, 2, 3, 4, 5)
    assert stage.live(back=2) == ["D1", "D2", "D3"]


def with_two_leaves(folder: Path) -> Stage:
    stage = with_leaf(folder)
    stage.settings({"commit.root.max-data-files": "2"})
    stage.append("D4", "D5", "D6")
    stage.call("M2")
    return stage


def test_14_a_large_append_adds_a_leaf_whose_rows_inherit_their_numbers(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.settings({"commit.root.max-data-files": "2"})
    before = stage.metadata_files()
    stage.append("D4", "D5", "D6")
    stage.call("M2")
    assert new_files(stage, before) == sorted([stage.path("M2").name, "root"])
    assert stage.root() == [
        LEAF_OF_3.format("EXISTING"),
        "DATA_MANIFEST M2 ADDED by 2 at 2/2: 3 rows of +3=0-0 files +30=0-0 rows since 2 ids 30..",
    ]
    stored = stage.leaf_rows("M2")
    assert [row["version_info"]["status"] for row in stored] == [1, 1, 1]
    for name in ("sequence_number", "file_sequence_number"):
        assert [row["version_info"][name] for row in stored] == [None, None, None]
    assert [row["first_row_id"] for row in stored] == [None, None, None]
    base = pointer_of(stage.table).load()
    root = read_root(base.store, stage.snapshots[-1])
    _, leaf = leaves_of(root.rows(ContentType.DATA_MANIFEST))
    inside = read_leaf(base.store, leaf).to_pylist()
    second = stage.snapshots[1].snapshot_id
    assert [(r["snapshot_id"], r["sequence_number"], r["file_sequence_number"]) for r in inside] == [(second, 2, 2)] * 3
    assert [row["first_row_id"] for row in inside] == [30, 40, 50]


def test_15_the_root_row_of_a_new_leaf_counts_its_files(tmp_path: Path) -> None:
    stage = with_two_leaves(tmp_path)
    row = stage.row("M2")
    assert row["manifest_stats"] == {
        "added_files_count": 3,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 30,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "min_sequence_number": 2,
    }
    number = stage.snapshots[-1].sequence_number
    assert row["version_info"]["sequence_number"] == row["version_info"]["file_sequence_number"] == number == 2
    assert row["record_count"] == 3
    assert row["file_size_in_bytes"] == stage.path("M2").stat().st_size
    assert (row["file_format"], row["format_version"], row["partition_spec_id"]) == ("parquet", 4, 0)


def test_16_the_statistics_of_a_leaf_are_the_extremes_and_sums_of_its_files() -> None:
    files = [
        {**data_file("D1", rows=4, lower=5, upper=9), "null_value_count:1": 1},
        {**data_file("D2", rows=6, lower=-3, upper=2), "null_value_count:1": 2},
        {**data_file("D3", rows=1, lower=7, upper=30), "null_value_count:1": 0},
    ]
    tree = Tree(properties={"commit.root.max-data-files": "2"})
    tree.commit(added=rows(*files))
    (row,) = tree.root().entries.to_pylist()
    assert (row["lower_bound:1"], row["upper_bound:1"]) == (-3, 30)
    assert (row["value_count:1"], row["null_value_count:1"]) == (11, 3)
    assert "tight_bounds:1" not in row or row["tight_bounds:1"] is None


def test_16_a_file_of_unknown_bounds_makes_the_bounds_of_its_leaf_unknown() -> None:
    silent = {**data_file("D2"), "lower_bound:1": None, "upper_bound:1": None}
    empty = {**data_file("D3"), "lower_bound:1": None, "upper_bound:1": None, "null_value_count:1": 10}
    found = []
    for other in (silent, empty):
        tree = Tree(properties={"commit.root.max-data-files": "1"})
        tree.commit(added=rows(data_file("D1", lower=1, upper=2), other))
        (row,) = tree.root().entries.to_pylist()
        found.append((row.get("lower_bound:1"), row.get("upper_bound:1"), row["value_count:1"]))
    assert found == [(None, None, 20), (1, 2, 20)]


@pytest.mark.broken_tables
@pytest.mark.parametrize("where", ["price > 100", "price < 0", "price = 55 and id > 0"])
def test_17_a_leaf_is_pruned_on_a_column_that_is_no_partition_without_being_opened(tmp_path: Path, where: str) -> None:
    stage = Stage(tmp_path, schema="id bigint, price double", **TO_LEAVES)
    for first in (1, 60):
        prices = [float(price) for price in range(first, first + 5)]
        stage.table.append(pa.table({"id": list(range(5)), "price": prices}))
    stage.call("M1", "M2", "D1", "D2")
    stage.path("M1").unlink()  # whoever opens it fails
    stage.path("M2").unlink()
    base = pointer_of(stage.table).load()
    store = ManifestStore(base.store.io, base.store.context, ManifestCache())
    plan = plan_scan(store, base.metadata, stage.snapshots[-1], filter=parse_filter(where))
    assert (plan.tasks.num_rows, plan.manifests_read, plan.manifests_skipped) == (0, 0, 2)


def test_17_only_the_leaf_that_may_match_is_opened() -> None:
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    tree.commit(added=rows(data_file("D1", lower=0, upper=9), data_file("D2", lower=10, upper=19)))
    tree.commit(added=rows(data_file("D3", lower=20, upper=29), data_file("D4", lower=30, upper=39)))
    second = tree.root().entries["location"].to_pylist()[1]
    store = tree.fresh_store()
    tree.io.reset()
    plan = plan_scan(store, tree.metadata, tree.snapshots[-1], filter=parse_filter("id >= 35"))
    assert plan.tasks["location"].to_pylist() == [f"{LOCATION}/data/D4.parquet"]
    assert [call.location for call in tree.io.calls if call.verb == "read"] == [tree.snapshots[-1].root, second]
