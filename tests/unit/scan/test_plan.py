"""Plans of small trees of every version: the files, their deletes, residuals, and what was read to find them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icefloe.codecs.manifest.context import manifest_context
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.expr.text.filter_printer import to_text
from icefloe.model.entries import ContentType, Measure, column_key, entries, partition_key, stat_columns
from icefloe.model.partition.spec import PartitionField, PartitionSpec, expressions_for
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import TASK, Plan
from icefloe.tree.store import ManifestCache, ManifestStore
from support.metadata_tree import Tree, data_file, vector
from unit.scan.histories import PATH, delete_file, names, path, rows, table_of

POSITIONS, EQUALITY = ContentType.POSITION_DELETES, ContentType.EQUALITY_DELETES
LEAVES = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0"}


def plan_of(tree: Tree, where: str | None = None, **options: object) -> Plan:
    metadata = table_of(tree)
    filter_ = ALWAYS_TRUE if where is None else parse_filter(where)
    return plan_scan(tree.fresh_store(), metadata, metadata.current_snapshot, filter=filter_, **options)


def deletes_of(plan: Plan) -> dict[str, list[str]]:
    """The delete files of each task."""
    files = names(plan.deletes["location"])
    lists = [[files[n] for n in numbers] for numbers in plan.tasks["deletes"].to_pylist()]
    return dict(zip(names(plan.tasks["location"]), lists, strict=True))


@pytest.mark.parametrize("version", [2, 3])
def test_delete_files_are_attached_to_the_files_they_apply_to(version):
    tree = Tree(version=version)
    tree.commit(added=rows(data_file("A", lower=0, upper=4), data_file("B", lower=5, upper=9)))
    tree.commit(added=rows(delete_file(POSITIONS, "P", referenced_file=path("A"))))
    tree.commit(added=rows(delete_file(EQUALITY, "E", low=8, high=8), data_file("C", lower=0, upper=9)))
    plan = plan_of(tree)
    assert deletes_of(plan) == {"A": ["P"], "B": ["E"], "C": []}
    assert plan.deletes["manifest"].null_count == 0


def test_a_position_delete_file_is_narrowed_by_its_bounds_of_paths():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("A"), data_file("B"), data_file("C")))
    bounds = {f"lower_bound__{PATH}": path("B"), f"upper_bound__{PATH}": path("C")}
    tree.commit(added=rows(delete_file(POSITIONS, "P", **bounds)))
    assert deletes_of(plan_of(tree)) == {"A": [], "B": ["P"], "C": ["P"]}


def test_a_file_with_a_deletion_vector_needs_no_position_delete_file():
    tree = Tree(version=3)
    tree.commit(added=rows(data_file("A"), data_file("B")))
    tree.commit(added=rows(delete_file(POSITIONS, "P")))
    tree.commit(added=rows(vector("V", "A")))
    plan = plan_of(tree)
    assert deletes_of(plan) == {"A": [], "B": ["P"]}
    assert names(plan.tasks["dv_location"]) == ["V", None]


def test_delete_files_of_files_that_the_filter_rules_out_are_not_in_the_plan():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("A", lower=0, upper=4), data_file("B", lower=5, upper=9)))
    tree.commit(added=rows(delete_file(POSITIONS, "P", referenced_file=path("A"))))
    plan = plan_of(tree, "id > 6")
    assert (names(plan.tasks["location"]), plan.deletes.num_rows, plan.files_skipped) == (["B"], 0, 1)


def test_manifests_of_deletes_older_than_every_planned_file_are_not_read():
    tree = Tree(version=4, properties=LEAVES)
    tree.commit(added=rows(data_file("A", lower=0, upper=4)))
    tree.commit(added=rows(delete_file(EQUALITY, "E")))
    tree.commit(added=rows(data_file("B", lower=5, upper=9)))
    tree.io.calls.clear()
    assert deletes_of(plan_of(tree, "id > 6")) == {"B": []}
    assert len([call for call in tree.io.calls if call.verb == "read"]) == 2  # the root, and the leaf of B
    assert deletes_of(plan_of(tree)) == {"A": ["E"], "B": []}


def test_position_deletes_of_the_same_commit_are_read():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("A"), delete_file(POSITIONS, "P")))
    assert deletes_of(plan_of(tree)) == {"A": ["P"]}


@pytest.mark.broken_tables  # the schema has no column 2
def test_columns_that_a_delete_file_holds_but_does_not_compare_rule_nothing_out():
    tree = Tree(version=4, properties=LEAVES)
    tree.commit(added=rows(data_file("A", lower=5, upper=9)))
    tree.commit(added=rows(delete_file(EQUALITY, "E", low=0, high=3, equality_ids=[2])))
    assert deletes_of(plan_of(tree, "id > 6")) == {"A": ["E"]}


def test_a_filter_that_leaves_no_file_reads_no_manifest():
    tree = Tree(version=4, properties=LEAVES)
    tree.commit(added=rows(data_file("A"), data_file("B")))
    tree.commit(added=rows(vector("V", "A")))
    tree.io.calls.clear()
    plan = plan_of(tree, "id > 100")
    assert (plan.files, plan.manifests_read, plan.manifests_skipped) == (0, 0, 1)
    assert len([call for call in tree.io.calls if call.verb == "read"]) == 1


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_table_without_snapshots_has_an_empty_plan(version):
    tree = Tree(version=version)
    plan = plan_scan(tree.store, tree.metadata, None)
    assert (plan.files, plan.deletes.num_rows) == (0, 0)
    assert plan.tasks.schema.names == TASK.names
    assert plan.splits().num_rows == 0


def test_tasks_have_bounds_of_columns_only_on_request():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("A", lower=3, upper=4)))
    assert plan_of(tree, "id > 1").tasks.column_names == TASK.names
    bounds = plan_of(tree, bounded=(1,)).tasks.select(["lower_bound:1", "upper_bound:1"])
    assert bounds.to_pylist() == [{"lower_bound:1": 3, "upper_bound:1": 4}]


def test_every_row_matching_is_told_without_reading_files():
    tree = Tree(version=4)
    tree.commit(added=rows(data_file("A", lower=0, upper=4), data_file("B", lower=5, upper=9)))
    tasks = plan_of(tree, "id > 2").tasks
    assert dict(zip(names(tasks["location"]), tasks["match"].to_pylist(), strict=True)) == {"A": 1, "B": 2}


def partitioned(version: int) -> Tree:
    """Two files in partitions of tens, ``id`` from 0 and from 20."""
    tens = PartitionField(source_id=1, field_id=1000, name="tens", transform="truncate[10]")
    tree = Tree(version=version)
    tree.metadata = replace(
        tree.metadata,
        specs=(PartitionSpec(fields=(tens,)),),
        last_partition_id=1000,
        last_column_id=2 if version == 4 else 1,
        expressions=expressions_for([tens], last_id=1) if version == 4 else (),
    )
    tree.store = tree.fresh_store()
    files = []
    for name, value in (("A", 0), ("B", 20)):
        file = data_file(name, lower=value, upper=value + 9)
        bounds = {f"{m}:p1000": value for m in ("lower_bound", "upper_bound")}
        files.append({**file, **bounds, "value_count:p1000": 10, "null_value_count:p1000": 0})
    tree.commit(added=entries(files, {column_key(1): pa.int64(), partition_key(1000): pa.int64()}))
    return tree


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_residual_is_what_the_partition_leaves_of_the_filter(version):
    plan = plan_of(partitioned(version), "id >= 5 and id <> 25")
    rest = [to_text(plan.residuals[n]) for n in plan.tasks["residual"].to_pylist()]
    assert dict(zip(names(plan.tasks["location"]), rest, strict=True)) == {"A": "id >= 5", "B": "id != 25"}
    assert plan.tasks["lower_bound:p1000"].to_pylist() == [0, 20]


@pytest.mark.parametrize("bounded", [(), (1,)])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_tasks_have_nothing_that_is_said_of_manifests_alone(version, bounded):
    tasks = plan_of(partitioned(version), bounded=bounded).tasks
    of_manifests = (Measure.HAS_NULL, Measure.HAS_NAN)
    assert not any(column.measure in of_manifests for column in stat_columns(tasks).values())


def test_a_store_that_knows_more_statistics_gives_the_same_plan():
    tree = Tree(version=2)
    tree.commit(added=rows(data_file("A", lower=0, upper=4), data_file("B", lower=5, upper=9)))
    metadata = table_of(tree)
    store = ManifestStore(tree.io, manifest_context(metadata), ManifestCache())
    whole = plan_scan(store, metadata, metadata.current_snapshot, bounded=(1,))
    later = plan_scan(store, metadata, metadata.current_snapshot)
    assert later.tasks.equals(whole.tasks.select(TASK.names))
