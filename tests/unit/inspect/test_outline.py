from __future__ import annotations

import re
from datetime import date

import numpy as np
import pytest

from icefloe.inspect.node import Node, listing, range_text, short_name
from icefloe.inspect.outline import outline_snapshot, picked_rows
from icefloe.model.text.figures import size_text
from support.metadata_tree import Tree, data_file, planned_files, rows, vector


def drawing(tree: Tree, shown: int = 3) -> str:
    assert tree.head is not None
    text = str(outline_snapshot(tree.io, tree.metadata, tree.head, shown=shown))
    return re.sub(r"[\d.,]+ k?B\b", "# B", text)


def test_a_v4_root_shows_its_files_and_deletion_vectors() -> None:
    tree = Tree()
    tree.commit(added=rows(data_file("a"), data_file("b", rows=20)))
    tree.commit(added=rows(vector("d", "b", count=7)))
    assert drawing(tree).splitlines() == [
        "root-2.parquet  root manifest, # B, 3 rows: 2 data files, 1 deletion vector",
        "├── a.parquet  data, EXISTING, 10 rows, # B",
        "├── b.parquet  data, EXISTING, 20 rows, # B",
        "└── d.puffin  DV, ADDED, 7 rows of b.parquet, # B",
    ]


def test_a_manifest_deletion_vector_hangs_below_its_leaf_with_what_it_hides() -> None:
    tree = Tree(properties={"commit.root.max-data-files": "2"})
    tree.commit(added=rows(data_file("a"), data_file("b"), data_file("c")))
    tree.commit(removed=planned_files("b"))
    lines = drawing(tree).splitlines()
    assert lines[0].startswith(
        "root-2.parquet  root manifest, # B, 2 rows: 1 data manifest, 1 manifest deletion vector"
    )
    assert "  manifest, EXISTING, 2 of 3 live" in lines[1]
    assert lines[2:] == [
        "    ├── manifest deletion vector  ADDED, hides 1 row: 1, # B inline",
        "    ├── a.parquet  data, ADDED, 10 rows, # B",
        "    ├── b.parquet  data, hidden, 10 rows, # B",
        "    └── c.parquet  data, ADDED, 10 rows, # B",
    ]


def test_a_replaced_manifest_deletion_vector_is_shown_as_deleted() -> None:
    tree = Tree(properties={"commit.root.max-data-files": "2"})
    tree.commit(added=rows(*(data_file(name) for name in "abcd")))
    tree.commit(removed=planned_files("b"))
    tree.commit(removed=planned_files("d"))
    vectors = [line.strip("│├└─ ") for line in drawing(tree).splitlines() if "deletion vector  " in line]
    assert sorted(vectors) == [
        "manifest deletion vector  ADDED, hides 2 rows: 1, 3, # B inline",
        "manifest deletion vector  DELETED, hides 1 row, # B inline",
    ]


def test_a_v2_manifest_list_shows_manifests_without_a_status() -> None:
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("a")))
    tree.commit(added=rows(data_file("b")))
    lines = drawing(tree).splitlines()
    assert lines[0] == "root-2.avro  manifest list, # B, 2 rows: 2 data manifests"
    manifests = [line for line in lines if ".avro  manifest," in line]
    assert len(manifests) == 2
    assert all("  manifest, 1 of 1 live, # B" in line for line in manifests)
    assert sum("data, ADDED, 10 rows" in line for line in lines) == 2


def test_long_groups_are_summed_up() -> None:
    tree = Tree()
    tree.commit(added=rows(*(data_file(f"f{i}", rows=i) for i in range(100))))
    lines = drawing(tree).splitlines()
    assert len(lines) == 5
    assert lines[-1] == "└── … 97 more data files  4,947 rows, # B"


def test_only_leaves_that_are_shown_are_read() -> None:
    tree = Tree(version=2)
    for i in range(12):
        tree.commit(added=rows(data_file(f"f{i}")))
    tree.io.calls.clear()
    drawing(tree, shown=2)
    leaves = {call.location for call in tree.io.calls if call.verb == "read" and "-m" in call.location}
    assert len(leaves) == 2


@pytest.mark.parametrize("count", range(12))
@pytest.mark.parametrize("flagged", [0, 1, 3, 12])
def test_picking_keeps_the_order_and_shows_a_chosen_row_if_there_is_one(count: int, flagged: int) -> None:
    chosen = np.arange(count) >= count - flagged
    picked = picked_rows(chosen, 3)
    assert list(picked) == sorted(set(picked))
    assert len(picked) == (count if count <= 4 else 3)
    if chosen.any():
        assert chosen[picked].any()


def test_a_drawing_connects_children_to_their_parent() -> None:
    leaf = Node(kind="file", name="x")
    tree = Node(kind="root", name="r", children=(Node(kind="manifest", name="m", children=(leaf, leaf)), leaf))
    assert str(tree).splitlines() == ["r", "├── m", "│   ├── x", "│   └── x", "└── x"]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (2 * 10**16, "20,000.0 TB"),
    ],
)
def test_sizes_are_told_in_the_unit_that_fits(size: int, text: str) -> None:
    assert size_text(size) == text


def test_names_lose_their_long_numbers_and_keep_the_rest() -> None:
    assert short_name("s3://b/t/data/day=1/part-00001.parquet") == "part-00001.parquet"
    full = "snap-5123456789012345678-1-0d3b1f4e-93f5-4a0c-8a51-6b1f70a2c9d3.avro"
    assert short_name(full) == "snap-512345…-1-0d3b1f4e….avro"


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (1, 1, "1"),
        (1, 19, "1..19"),
        ("a-1", "a-2", "a-1..a-2"),
        (date(2026, 11, 1), date(2026, 11, 1), "2026-11-01"),
        (date(2026, 11, 1), date(2026, 11, 19), "2026-11-01..19"),
        (date(2026, 11, 30), date(2026, 12, 1), "2026-11-30..12-01"),
        (date(2019, 12, 31), date(2026, 1, 1), "2019-12-31..2026-01-01"),
    ],
)
def test_a_range_says_once_what_dates_have_in_common(lower: object, upper: object, text: str) -> None:
    assert range_text(lower, upper) == text


def test_a_listing_stops_after_a_few() -> None:
    assert listing([]) == ""
    assert listing(range(5)) == "0, 1, 2, 3, 4"
    assert listing(range(6)) == "0, 1, 2, 3, 4, …"
