"""Statements 76 to 78: what the proposal implies for readers that come back, for several delete leaves, and for ids."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from partitioned import new_table

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.model.entries import ContentType
from icefloe.scan.plan import plan_scan
from icefloe.tree.root import read_live_leaf
from support.conformance import check_v4
from support.entry_tables import data, new_world
from support.entry_tables import rows as entries
from support.metadata_documents import metadata_json
from support.metadata_tree import Tree, data_file, rows, short, vector
from support.tables import new_catalog

TO_LEAVES = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0", "commit.manifest-merge.enabled": "false"}
TO_ROOT = {"commit.root.max-data-files": "1000"}


@pytest.mark.parametrize("leaves", [1, 10, 40])
def test_76_a_reader_that_comes_back_reads_in_proportion_to_what_was_appended(leaves: int) -> None:
    """The metadata file, the new root and the new data file, however many leaves the table has."""
    world = new_world(4, partition_by=(), **TO_LEAVES)
    for number in range(leaves):
        world.commit(Append(added=entries(data(f"old{number}", low=0, high=9))))
    world.commit(SetProperties(updates=TO_ROOT))
    reader = world.table()
    assert reader.scan().plan().tasks.num_rows == leaves  # which reads every leaf, once
    world.table().append(pa.table({"id": pa.array([100], pa.int64()), "city": ["Rome"]}))
    new = world.plan().tasks["location"].to_pylist()

    world.io.reset()
    assert reader.refresh().scan("id >= 100").to_arrow().num_rows == 1
    read = {call.location for call in world.io.calls}
    (file,) = (location for location in new if "old" not in location)
    assert read == {reader.metadata_location, reader.metadata.current_snapshot.root, file}

    world.io.reset()
    assert reader.scan().plan().tasks.num_rows == leaves + 1
    assert world.io.calls == []


def test_77_several_delete_leaves_belong_to_one_data_leaf_and_are_all_read_with_it() -> None:
    tree = Tree(properties=TO_LEAVES)
    for letter, low in (("A", 0), ("B", 10)):
        tree.commit(added=rows(*(data_file(f"{letter}{n}", lower=low, upper=low + 9) for n in range(3))))
    for names in (("A0",), ("A1",), ("A2",)):
        tree.commit(added=rows(*(vector(f"V{name}", name) for name in names)))
    root, store = tree.root(), tree.fresh_store()
    first, second = root.leaves(ContentType.DATA_MANIFEST)
    deletes = root.leaves(ContentType.DELETE_MANIFEST)
    inside = [[short(name) for name in read_live_leaf(store, root, leaf)["location"].to_pylist()] for leaf in deletes]
    assert inside == [["VA0"], ["VA1"], ["VA2"]]
    assert [leaf.affinity for leaf in deletes] == [first.location] * 3
    assert second.location not in {leaf.affinity for leaf in deletes}
    tasks = plan_scan(tree.fresh_store(), tree.metadata, tree.head).tasks.to_pylist()
    found = {short(task["location"]): short(task["dv_location"]) for task in tasks}
    assert found == {"A0": "VA0", "A1": "VA1", "A2": "VA2", "B0": None, "B1": None, "B2": None}


@pytest.mark.broken_tables
def test_78_ids_of_expressions_count_even_if_last_column_id_is_below_them(tmp_path: Path) -> None:
    """A new column with the id of an expression would have the statistics of its partition values."""
    table = new_table(tmp_path, "id bigint, city string", ["bucket(16, id)", "truncate(3, city)"])
    path = Path(table.metadata_location.removeprefix("file://"))
    document = metadata_json(path)
    assert document["last-column-id"] == max(each["expr-id"] for each in document["expressions"]) == 4
    path.write_text(json.dumps({**document, "last-column-id": 2}))
    assert {finding.rule for finding in check_v4.check(path)[0]} == {"last-column-id"}
    again = new_catalog(tmp_path).load_table("db.t")
    with again.update_schema() as change:
        change.add_column("later", "int")
    assert again.schema.field("later").id == 5
    path = Path(again.metadata_location.removeprefix("file://"))
    assert metadata_json(path)["last-column-id"] == 5
    assert check_v4.check(path)[0] == []
