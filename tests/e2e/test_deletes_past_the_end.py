"""Deletes by position that name rows which their data file does not have: there is nothing to delete.

Every reader of such a table was refused. Other programs read it; a check of the table reports it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.tree.file_changes import FileChanges
from support.tables import new_catalog

pytestmark = pytest.mark.slow

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "note": [f"note {i}" for i in range(10)]})
PAST = (10, 11, 500, 2**33)
FORMATS = ("parquet", "orc", "avro")
VERSIONS = (2, 3, 4)
MODES = ("copy-on-write", "merge-on-read")


def made(folder: Path, version: int, file_format: str = "parquet", mode: str = "", *gone: int) -> Table:
    """A table of ten rows in one file; some rows are deleted, and some that the file does not have."""
    modes = {} if mode == "" else {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
    table = new_catalog(folder).create_table(
        "db.t",
        schema="id bigint, note string",
        format_version=version,
        properties={"write.format.default": file_format, **modes},
    )
    table.append(ROWS)
    tasks = table.scan().plan().tasks
    deleted = {tasks["location"][0].as_py(): BitMap64((*gone, *PAST))}
    if version == 2:
        added = write_position_deletes(
            pointer_of(table).io, tasks, deleted, data_location=table.metadata.data_location, properties={}
        )
    else:
        location = f"{table.metadata.data_location}/made-deletes.puffin"
        added = write_vectors(pointer_of(table).io, tasks, {}, deleted, location=location)
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=added), read=table.metadata.current_snapshot))
    return new_catalog(folder).load_table("db.t")


def check(folder: Path, *expected: int) -> None:
    table = new_catalog(folder).load_table("db.t")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted(expected)
    assert table.scan().count() == len(expected)
    for where, holds in FILTERS.items():
        left = [i for i in expected if holds(i)]
        assert sorted(table.scan(where).to_arrow()["id"].to_pylist()) == sorted(left), where
        assert table.scan(where).count() == len(left), where


FILTERS: dict[str, Callable[[int], bool]] = {
    "id >= 0": lambda i: i >= 0,
    "id > 4": lambda i: i > 4,
    "id = 3": lambda i: i == 3,
    "note is not null": lambda i: True,
}


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("gone", [(3, 7), ()])
def test_rows_are_read_and_counted(tmp_path, version, file_format, gone):
    made(tmp_path, version, file_format, "", *gone)
    check(tmp_path, *(i for i in range(10) if i not in gone))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_is_not_taken_for_empty_while_it_has_rows(tmp_path, version, mode):
    """More positions than rows had been deleted, so the next delete removed the file with all of its rows."""
    table = made(tmp_path, version, "parquet", mode, 1, 2, 3, 4, 5, 6)
    left = [0, 7, 8, 9]
    for gone in (8, 0, 9, 7):
        assert table.delete(f"id = {gone}").rows_deleted == 1
        left.remove(gone)
        check(tmp_path, *left)
    assert new_catalog(tmp_path).load_table("db.t").scan().plan().files == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_changed(tmp_path, version, mode):
    table = made(tmp_path, version, "parquet", mode, 3)
    assert table.update({"note": "'new'"}, where="id = 5").rows_added == 1
    check(tmp_path, *(i for i in range(10) if i != 3))
    assert table.upsert(ROWS.slice(3, 2), on=["id"]).rows_added == 2
    check(tmp_path, *range(10))
    result = table.merge(ROWS.slice(7, 1), on="t.id = s.id").when_matched_delete().execute()
    assert result.rows_deleted == 1
    check(tmp_path, *(i for i in range(10) if i != 7))
    table.delete("id >= 0")
    check(tmp_path)


@pytest.mark.parametrize("version", [3, 4])
def test_a_vector_that_is_written_again_names_only_rows_of_the_file(tmp_path, version):
    table = made(tmp_path, version, "parquet", "merge-on-read", 3)
    table.delete("id = 4")
    tasks = new_catalog(tmp_path).load_table("db.t").scan().plan()
    (positions,) = tasks.deleted_rows(pointer_of(table).io).positions(tasks.tasks["location"].to_pylist()).values()
    assert list(positions) == [3, 4]
    assert tasks.tasks["dv_cardinality"].to_pylist() == [2]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_check_reports_it(tmp_path, version):
    table = made(tmp_path, version, "parquet", "", 3)
    found = [each for each in check_table(table) if f"position {2**33} is past the 10 rows of" in each.message]
    rules = {each.rule for each in check_table(table)}
    assert len(found) == 1
    assert rules == {"position-deletes" if version == 2 else "deletion-vectors"}


def test_positions_may_lie_far_behind_the_last_row_of_a_large_file(tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, note string", format_version=3)
    many = 200_000
    table.append(pa.table({"id": np.arange(many), "note": pa.array(["x"] * many)}))
    tasks = table.scan().plan().tasks
    deleted = {tasks["location"][0].as_py(): BitMap64([0, many - 1, many, 2**40])}
    location = f"{table.metadata.data_location}/made-deletes.puffin"
    added = write_vectors(pointer_of(table).io, tasks, {}, deleted, location=location)
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=added), read=table.metadata.current_snapshot))
    table = new_catalog(tmp_path).load_table("db.t")
    assert table.scan().count() == many - 2
    assert table.scan().to_arrow()["id"].to_pylist()[-1] == many - 2
