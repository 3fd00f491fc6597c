"""Traces say why manifests and files were kept or skipped."""

from __future__ import annotations

import re

import pytest

from icefloe.errors import InputError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import ContentType
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan
from icefloe.scan.trace import TRACE, explain
from support.metadata_tree import Tree, data_file, planned_files, short, vector
from unit.scan.histories import delete_file, path, rows, table_of
from unit.scan.test_plan import LEAVES, partitioned


def traced(tree: Tree, where: str) -> Plan:
    metadata = table_of(tree)
    store = tree.fresh_store()
    return plan_scan(store, metadata, metadata.current_snapshot, filter=parse_filter(where), trace=True)


def story(plan: Plan) -> list[tuple[object, ...]]:
    """The trace without locations of manifests, which are random."""
    return sorted(
        (
            row["kind"],
            None if row["kind"] == "manifest" else short(row["location"]),
            row["decision"],
            row["reason"],
            row["conjunct"],
        )
        for row in plan.trace.to_pylist()
    )


def test_files_say_which_part_of_the_filter_ruled_them_out():
    tree = Tree(version=4)
    tree.commit(
        added=rows(
            data_file("A", lower=0, upper=4), data_file("B", lower=5, upper=9), data_file("C", lower=50, upper=90)
        )
    )
    plan = traced(tree, "id > 4 and id < 20")
    assert story(plan) == [
        ("file", "A", "skipped", "statistics", "id > 4"),
        ("file", "B", "kept", "all rows match", None),
        ("file", "C", "skipped", "statistics", "id < 20"),
    ]
    assert plan.trace.schema == TRACE


@pytest.mark.parametrize("version", [2, 3])
def test_a_partition_is_told_from_statistics(version):
    plan = traced(partitioned(version), "id >= 0 and id < 10")
    assert [row for row in story(plan) if row[0] == "file"] == [
        ("file", "A", "kept", "all rows match", None),
        ("file", "B", "skipped", "partition", "id < 10"),
    ]


def test_manifests_say_that_nothing_in_them_is_alive():
    tree = Tree(version=4, properties=LEAVES)
    tree.commit(added=rows(data_file("A")))
    tree.commit(added=rows(data_file("B", lower=50, upper=59)))
    tree.commit(removed=planned_files("A"))
    plan = traced(tree, "id > 0")
    assert story(plan) == [
        ("file", "B", "kept", "all rows match", None),
        ("manifest", None, "kept", "all rows match", None),
        ("manifest", None, "skipped", "no live rows", None),
    ]
    assert plan.manifests_skipped == 1


def test_deletes_say_what_became_of_them():
    tree = Tree(version=4, properties=LEAVES)
    tree.commit(added=rows(data_file("A", lower=0, upper=4), data_file("B", lower=5, upper=9)))
    near = delete_file(ContentType.EQUALITY_DELETES, "near", low=6, high=6)
    tree.commit(added=rows(near, delete_file(ContentType.EQUALITY_DELETES, "far", low=70, high=80), vector("V", "A")))
    assert [row for row in story(traced(tree, "id > 5")) if row[0] == "delete"] == [
        ("delete", "V", "skipped", "applies to no planned file", None),
        ("delete", "far", "skipped", "statistics", None),
        ("delete", "near", "kept", "applies to planned files", None),
    ]


def test_manifests_of_deletes_say_why_they_were_not_read():
    tree = Tree(version=4, properties=LEAVES)
    tree.commit(added=rows(data_file("A", lower=0, upper=4)))
    tree.commit(added=rows(delete_file(ContentType.EQUALITY_DELETES, "E")))
    tree.commit(added=rows(data_file("B", lower=5, upper=9)))
    told = [row[2:4] for row in story(traced(tree, "id > 6")) if row[0] == "manifest"]
    assert ("skipped", "older than every planned file") in told


def test_a_filter_that_is_false_says_so():
    tree = Tree(version=4)
    tree.commit(added=rows(data_file("A")))
    assert story(traced(tree, "false")) == [("file", "A", "skipped", "filter is false", None)]


def test_a_file_without_rows_says_so():
    tree = Tree(version=4)
    tree.commit(added=rows(data_file("A", rows=0)))
    assert story(traced(tree, "id > 3")) == [("file", "A", "skipped", "no rows", None)]


def test_every_file_and_manifest_is_in_the_trace_once():
    tree = Tree(version=4, properties=LEAVES)
    for number in range(4):
        tree.commit(added=rows(data_file(f"D{number}", lower=number, upper=number)))
    plan = traced(tree, "id = 2")
    found = plan.trace.to_pylist()
    assert len(found) == len({row["location"] for row in found}) == 5
    assert [row["location"] for row in found if row["kind"] == "file"] == [path("D2")]


def test_an_explanation_counts_and_gives_examples():
    tree = Tree(version=4)
    tree.commit(added=rows(*(data_file(f"D{number}", lower=number, upper=number) for number in range(7))))
    metadata = table_of(tree)
    plan = traced(tree, "id > 4")
    text = explain(plan, metadata.current_snapshot, parse_filter("id > 4"))
    rows_read, size = (sum(plan.tasks[name].to_pylist()) for name in ("record_count", "file_size_in_bytes"))
    assert text.splitlines() == [
        f"snapshot {metadata.current_snapshot_id} (append, 1970-01-01T00:00:00.001+00:00) of {metadata.location}",
        "filter: id > 4",
        "manifests: 0 read (0 bytes), 0 skipped (0 bytes)",
        f"data files: 2 to read ({rows_read} rows, {size} bytes), 5 skipped (500 bytes)",
        "deletes: 0 delete files and 0 deletion vectors to apply",
        "file skipped (5, 500 bytes): statistics: id > 4",
        f"  {path('D0')}",
        f"  {path('D1')}",
        f"  {path('D2')}",
        "  and 2 more",
        "file kept (2, 200 bytes): all rows match",
        f"  {path('D5')}",
        f"  {path('D6')}",
    ]


def test_a_plan_without_a_trace_cannot_be_explained():
    tree = Tree(version=4)
    tree.commit(added=rows(data_file("A")))
    metadata = table_of(tree)
    with pytest.raises(InputError, match="trace=True"):
        explain(plan_scan(tree.store, metadata, metadata.current_snapshot), metadata.current_snapshot)


def test_an_explanation_counts_skipped_manifests_and_the_deletes_to_apply():
    tree = Tree(version=4, properties=LEAVES)
    tree.commit(added=rows(data_file("A", lower=0, upper=4), data_file("B", lower=5, upper=9)))
    tree.commit(added=rows(data_file("C", lower=50, upper=90)))
    tree.commit(added=rows(delete_file(ContentType.EQUALITY_DELETES, "near", low=6, high=6), vector("V", "B")))
    metadata = table_of(tree)
    lines = explain(traced(tree, "id between 5 and 8"), metadata.current_snapshot).splitlines()
    assert lines[1] == "no filter"
    assert re.fullmatch(r"manifests: 1 read \([1-9]\d* bytes\), 1 skipped \([1-9]\d* bytes\)", lines[2]) is not None
    assert lines[3:5] == [
        "data files: 1 to read (10 rows, 100 bytes), 1 skipped (100 bytes), besides those of skipped manifests",
        "deletes: 1 delete files and 1 deletion vectors to apply",
    ]


def test_an_empty_table_is_explained_too():
    metadata = table_of(Tree(version=4))
    plan = plan_scan(Tree(version=4).store, metadata, None, trace=True)
    assert explain(plan, None).splitlines()[:2] == [f"no snapshot of {metadata.location}", "no filter"]
