"""Incremental scans: what appends added between two snapshots."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.appends import plan_appends
from icefloe.scan.tasks import TASK, Plan
from support.metadata_tree import Tree, data_file, planned_files
from unit.scan.histories import names, rows, table_of

VERSIONS = (2, 3, 4)


def history(version: int) -> tuple[Tree, TableMetadata]:
    """Appends of A and B, then of C; D in place of A; and an append of E."""
    tree = Tree(version=version)
    tree.commit(added=rows(data_file("A"), data_file("B")))
    tree.commit(added=rows(data_file("C", lower=20, upper=29)))
    tree.commit(removed=planned_files("A"), added=rows(data_file("D")))
    tree.commit(added=rows(data_file("E", lower=30, upper=39)))
    return tree, table_of(tree, {3: Operation.OVERWRITE})


def appended(tree: Tree, metadata: TableMetadata, after: int | None, until: int, **options: object) -> Plan:
    start = None if after is None else metadata.snapshot(after)
    return plan_appends(tree.fresh_store(), metadata, after=start, until=metadata.snapshot(until), **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_appends_between_two_snapshots(version):
    tree, metadata = history(version)
    assert names(appended(tree, metadata, 1, 2).tasks["location"]) == ["C"]
    assert sorted(names(appended(tree, metadata, None, 2).tasks["location"])) == ["A", "B", "C"]
    assert names(appended(tree, metadata, 3, 4).tasks["location"]) == ["E"]


@pytest.mark.parametrize("version", VERSIONS)
def test_another_kind_of_snapshot_in_between_is_named(version):
    tree, metadata = history(version)
    with pytest.raises(InputError, match="snapshot 3 has operation 'overwrite'"):
        appended(tree, metadata, 1, 4)


@pytest.mark.parametrize("version", VERSIONS)
def test_other_kinds_are_skipped_on_request(version):
    tree, metadata = history(version)
    assert names(appended(tree, metadata, 1, 4, skip_others=True).tasks["location"]) == ["C", "E"]


def test_files_that_an_append_removed_are_not_among_those_it_added():
    tree, _ = history(2)
    assert names(appended(tree, table_of(tree), 2, 3).tasks["location"]) == ["D"]


def test_nothing_was_appended_since_the_snapshot_itself():
    tree, metadata = history(4)
    plan = appended(tree, metadata, 4, 4)
    assert (plan.files, plan.tasks.column_names, plan.filter) == (0, TASK.names, ALWAYS_TRUE)


def test_history_that_has_expired_is_named():
    tree, metadata = history(2)
    expired = replace(metadata, snapshots=metadata.snapshots.without({1, 2}))
    with pytest.raises(NoSuchSnapshot, match="snapshot 2, the parent of 3, has expired"):
        appended(tree, expired, None, 4, skip_others=True)
    assert names(appended(tree, expired, 3, 4).tasks["location"]) == ["E"]
