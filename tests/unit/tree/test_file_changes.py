"""The value that carries the files of a change from a row operation to the tree."""

from __future__ import annotations

from icefloe.scan.tasks import TASK
from icefloe.tree.file_changes import PLANNED_FILE, FileChanges
from support.metadata_tree import data_file, planned_files, rows, short, vector


def test_the_columns_of_a_planned_file_are_columns_of_scan_tasks():
    assert all(TASK.field(field.name).equals(field) for field in PLANNED_FILE)


def test_old_vectors_are_those_of_removed_and_of_revectored_files():
    changes = FileChanges(removed=planned_files("A", "B", vectors=["B"]), revectored=planned_files("C", vectors=["C"]))
    assert [short(location) for location in changes.with_old_vectors["location"].to_pylist()] == ["B", "C"]
    assert FileChanges(added=rows(data_file("D"))).with_old_vectors.num_rows == 0


def test_combined_changes_have_the_files_of_both():
    one = FileChanges(added=rows(data_file("D")), removed=planned_files("A"), referenced=("x",))
    other = FileChanges(added=rows(vector("V", "B")), revectored=planned_files("B"), referenced=("y",))
    both = one.combined(other)
    sizes = (both.added.num_rows, both.removed.num_rows, both.revectored.num_rows, both.removed_deletes.num_rows)
    assert (sizes, both.referenced, both.merge_manifests) == ((2, 1, 1, 0), ("x", "y"), True)
    assert not both.only_adds
    assert FileChanges(added=rows(data_file("D"))).only_adds


def test_further_new_files_are_put_before_those_already_added():
    changes = FileChanges(added=rows(vector("V", "B"))).with_added(rows(data_file("D")))
    assert changes.added["content_type"].to_pylist() == [0, 1]
