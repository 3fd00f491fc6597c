"""Files looked up by name: found in roots and leaves with their vectors, and little read on the way."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icefloe.model.entries import ContentType
from icefloe.scan.lookup import files_at
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import TASK
from support.metadata_tree import Tree, data_file, planned_files, vector
from unit.scan.histories import names, path, rows, table_of

LEAVES = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0", "commit.manifest-merge.enabled": "false"}
WITHOUT = ("deletes", "residual")  # a lookup does not say which delete files apply, nor what is left of a filter


def look_up(tree: Tree, *wanted: str) -> pa.Table:
    metadata = table_of(tree)
    return files_at(tree.fresh_store(), metadata, metadata.current_snapshot, pa.array(map(path, wanted), pa.string()))


def planned(tree: Tree, *wanted: str) -> pa.Table:
    metadata = table_of(tree)
    tasks = plan_scan(tree.fresh_store(), metadata, metadata.current_snapshot).tasks
    return tasks.filter(pc.is_in(tasks["location"], value_set=pa.array(map(path, wanted), pa.string())))


def by_name(tasks: pa.Table) -> list[dict[str, object]]:
    columns = [name for name in TASK.names if name not in WITHOUT]
    return tasks.select(columns).sort_by("location").to_pylist()


def grown(version: int, properties: dict[str, str]) -> Tree:
    tree = Tree(version=version, properties=properties)
    tree.commit(added=rows(data_file("A"), data_file("B")))
    tree.commit(added=rows(data_file("C"), data_file("D")))
    tree.commit(added=rows(data_file("E")))
    return tree


@pytest.mark.parametrize("properties", [{}, LEAVES])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_file_is_found_as_a_plan_shows_it(version, properties):
    tree = grown(version, properties)
    for wanted in (("A",), ("E",), ("A", "D"), ("B", "C", "E"), ("nothing", "C")):
        assert by_name(look_up(tree, *wanted)) == by_name(planned(tree, *wanted))


@pytest.mark.parametrize("leaves_of_vectors", [False, True])
@pytest.mark.parametrize("leaves_of_data", [False, True])
@pytest.mark.parametrize("version", [3, 4])
def test_a_file_is_found_with_its_vector(version, leaves_of_data, leaves_of_vectors):
    chosen = {"commit.root.max-data-files": leaves_of_data, "commit.root.max-dvs": leaves_of_vectors}
    tree = grown(version, {name: "0" for name, in_leaves in chosen.items() if in_leaves})
    tree.commit(added=rows(vector("V", "B", 3), vector("W", "D", 4)))
    found = look_up(tree, "B", "C")
    assert by_name(found) == by_name(planned(tree, "B", "C"))
    vectors = dict(zip(names(found["location"]), names(found["dv_location"]), strict=True))
    assert vectors == {"B": "V", "C": None}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_file_that_has_left_is_not_found(version):
    tree = grown(version, LEAVES)
    tree.commit(removed=planned_files("A"))
    assert names(look_up(tree, "A", "B")["location"]) == ["B"]
    assert look_up(tree, "A").num_rows == 0


@pytest.mark.parametrize("version", [2, 4])
def test_the_search_ends_when_all_are_found(version):
    tree = Tree(version=version, properties=LEAVES)
    for number in range(20):
        tree.commit(added=rows(data_file(f"F{number}")))
    order = [leaf.location for leaf in tree.root().leaves(ContentType.DATA_MANIFEST)]
    wanted = planned(tree, *(f"F{n}" for n in range(20))).filter(pc.field("manifest") == order[2])["location"]
    tree.io.reset()
    assert look_up(tree, *names(wanted)).num_rows == 1
    opened = {call.location for call in tree.io.calls if call.verb == "read"} & set(order)
    assert set(order[:3]) <= opened
    assert len(opened) <= 3 + 4  # and those that were read ahead


def test_delete_leaves_are_not_opened_in_a_version_without_vectors():
    tree = grown(2, LEAVES)
    tree.io.reset()
    look_up(tree, "E")
    opened = [call.location for call in tree.io.calls if call.verb == "read"]
    assert len(opened) == len(set(opened)) + 1  # the manifest with the file once more, to read its row


def test_a_store_that_has_decoded_the_leaves_reads_nothing():
    tree = grown(4, LEAVES)
    metadata, store = table_of(tree), tree.fresh_store()
    plan_scan(store, metadata, metadata.current_snapshot)
    tree.io.reset()
    found = files_at(store, metadata, metadata.current_snapshot, pa.array([path("D")]))
    assert names(found["location"]) == ["D"]
    assert tree.io.count("read") == 0


def test_nothing_is_found_in_a_table_without_snapshots():
    tree = Tree()
    found = files_at(tree.fresh_store(), tree.metadata, None, pa.array([path("A")]))
    assert found.num_rows == 0
    assert found.column_names[: len(TASK)] == TASK.names
