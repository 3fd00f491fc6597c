"""Data files whose record count is -1, as old imports of Avro files left them: the number of rows is not known.

Filters lost the rows of such files, because no count of nulls is below -1, and ``count()`` answered -1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from e2e.test_other_writers import edit
from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.env import SYSTEM
from icefloe.inspect.outline import outline
from icefloe.model.entries import MANIFESTS
from icefloe.rows.convert_deletes import convert_deletes
from icefloe.rows.target import Target
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import leaves_of, read_root
from support.tables import new_catalog, sorted_rows

pytestmark = pytest.mark.slow

FORMATS = ("avro", "parquet", "orc")
SCHEMA = "id int, p int, s string, d double"
FILTERS = (
    "id = 3",
    "id > 2",
    "id <= 4",
    "id is null",
    "id is not null",
    "p = 1",
    "p is null",
    "p is not null",
    "p = 1 and id > 3",
    "s = 's5'",
    "s is null",
    "s in ('s1', 's7')",
    "d = 2.0",
    "isnan(d)",
    "not (id = 3)",
    "id > 99",
)


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "p": pa.array([None if i % 3 == 2 else i % 3 for i in ids], pa.int32()),
            "s": [None if i % 4 == 0 else f"s{i}" for i in ids],
            "d": pa.array([float("nan") if i % 5 == 0 else float(i) for i in ids]),
        }
    )


def forget(schema: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        entry["data_file"]["record_count"] = -1


def forget_in_list(schema: dict[str, Any], manifests: list[dict[str, Any]]) -> None:
    """Rows as a writer counted them that took -1 for a number; the last manifest has a file with a count as well."""
    for number, manifest in enumerate(manifests):
        for kind in ("added", "existing", "deleted"):
            files = manifest[f"{kind}_files_count"]
            manifest[f"{kind}_rows_count"] = 0 if number % 2 == 1 else -files


@pytest.fixture(params=FORMATS)
def file_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(folder: Path, file_format: str, version: int = 2, **properties: str) -> Table:
    """A table with the rows 1 to 9 whose files have no record counts, in two manifests, and 10 to 12 with counts."""
    table = new_catalog(folder).create_table(
        "db.t",
        schema=SCHEMA,
        partition_by=["p"],
        format_version=version,
        properties={"write.format.default": file_format, **properties},
    )
    table.append(rows(1, 2, 3, 4, 5))
    table.append(rows(6, 7, 8, 9))
    base = pointer_of(table).load()
    root = read_root(base.store, base.metadata.current_snapshot)
    for leaf in leaves_of(root.rows(*MANIFESTS)):
        edit(leaf.location, forget)
    edit(str(base.metadata.current_snapshot.root), forget_in_list)
    table = new_catalog(folder).load_table("db.t")
    table.append(rows(10, 11, 12))
    return table


def check(folder: Path, *ids: int) -> None:
    """The rows as a process finds them that has seen nothing of the table yet, by every filter."""
    table = new_catalog(folder).load_table("db.t")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted(ids)
    assert table.scan().count() == len(ids)
    plain = new_catalog(folder / "plain").create_table("db.t", schema=SCHEMA)
    plain.append(rows(*ids))
    for where in FILTERS:
        expected = sorted(plain.scan(where).to_arrow()["id"].to_pylist())
        assert sorted(table.scan(where).to_arrow()["id"].to_pylist()) == expected, where
        assert table.scan(where).count() == len(expected), where
    pointer_of(plain).catalog.drop(pointer_of(plain).identifier)


ALL = range(1, 13)


@pytest.mark.parametrize("version", [1, 2])
def test_no_filter_loses_rows_and_rows_are_counted(tmp_path, file_format, version):
    made(tmp_path, file_format, version)
    check(tmp_path, *ALL)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_are_changed(tmp_path, file_format, mode):
    modes = {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
    table = made(tmp_path, file_format, **modes)

    assert table.delete("id = 3").rows_deleted == 1
    check(tmp_path, *(i for i in ALL if i != 3))
    assert table.delete("p is null").rows_deleted == 4  # whole files
    assert table.update({"s": "'new'"}, where="id = 4").rows_added == 1
    assert table.upsert(rows(6, 13), on=["id"]).rows_added == 2
    assert table.merge(rows(7), on="t.id = s.id").when_matched_delete().execute().rows_deleted == 1
    found = new_catalog(tmp_path).load_table("db.t").scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == [1, 4, 6, 9, 10, 12, 13]
    assert table.overwrite(rows(14), overwrite_all=True).rows_added == 1
    check(tmp_path, 14)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_file_leaves_with_its_last_row_and_not_before(tmp_path, file_format, mode):
    table = made(tmp_path, file_format, **{"write.delete.mode": mode})
    left = list(ALL)
    for gone in (1, 4, 7, 2, 5, 8, 11, 3):
        assert table.delete(f"id = {gone}").rows_deleted == 1
        left.remove(gone)
        check(tmp_path, *left)
    locations = set(table.scan().plan().tasks["location"].to_pylist())
    assert len(locations) == 3  # of 6 and 9, of 10, and of 12


def test_deletes_by_value_apply_and_become_deletes_by_position(tmp_path, file_format):
    table = made(tmp_path, file_format)
    keys = pa.table({"id": pa.array([2, 6, 10], pa.int32())})
    partitions = pa.table({"id": keys["id"], "p": rows(2, 6, 10)["p"]})
    entries = write_equality_deletes(pointer_of(table).io, partitions, table.schema.fields[:2], metadata=table.metadata)
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=entries), read=table.metadata.current_snapshot))
    left = [i for i in ALL if i not in (2, 6, 10)]
    check(tmp_path, *left)
    now = new_catalog(tmp_path).load_table("db.t")
    commit(pointer_of(now), convert_deletes(Target(base=pointer_of(now).load(), env=SYSTEM), ArrowEngine()))
    check(tmp_path, *left)


def test_manifests_are_merged_and_written_again(tmp_path, file_format):
    table = made(tmp_path, file_format, **{"commit.manifest.min-count-to-merge": "2"})
    table.append(rows(13))
    check(tmp_path, *ALL, 13)
    table.rewrite_manifests().execute()
    check(tmp_path, *ALL, 13)


@pytest.mark.parametrize("first", ["append", "delete", "rewrite_manifests"])
@pytest.mark.parametrize("version", [3, 4])
def test_row_ids_do_not_overlap_after_an_upgrade(tmp_path, file_format, version, first):
    table = made(tmp_path, file_format)
    table.upgrade(version)
    left = list(ALL)
    if first == "append":
        table.append(rows(13))
        left.append(13)
    elif first == "delete":
        assert table.delete("id = 4").rows_deleted == 1
        left.remove(4)
    else:
        table.rewrite_manifests().execute()
    check(tmp_path, *left)
    found = new_catalog(tmp_path).load_table("db.t").scan(columns=["id", "_row_id"]).to_arrow()
    assert found["_row_id"].null_count == 0
    assert len(set(found["_row_id"].to_pylist())) == len(left)
    for _ in range(3):
        table.append(rows(20))
    table.delete("id = 20")
    table.rewrite_manifests().execute()
    check(tmp_path, *left)
    again = new_catalog(tmp_path).load_table("db.t").scan(columns=["id", "_row_id"]).to_arrow()
    assert sorted_rows(again) == sorted_rows(found)
    told = [finding for finding in check_table(table) if finding.rule == "row-ids"]
    assert told == []


def test_a_check_names_the_files_without_a_count(tmp_path):
    table = made(tmp_path, "avro")
    found = check_table(table)
    unknown = {(each.location, each.row) for each in found if "record_count is negative" in each.message}
    assert len(unknown) == 6


def test_an_outline_says_that_the_number_is_unknown(tmp_path):
    assert "unknown number of rows" in str(outline(made(tmp_path, "avro").metadata_location))


def test_the_count_of_a_filter_that_all_rows_match_reads_only_what_it_must(tmp_path):
    table = made(tmp_path, "parquet")
    plan = table.scan("p = 1").plan()
    assert sorted(plan.tasks["record_count"].to_pylist(), key=repr) == [1, None, None]
    assert table.scan("p = 1").count() == 4
