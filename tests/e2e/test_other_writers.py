"""Tables whose manifests other programs wrote, each with a fault or an old habit of theirs that others read around.

Scans, or the first commit that had to write such entries again, refused the table.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icefloe.table.table import Table
from support.tables import new_catalog

Edit = Callable[[dict[str, Any], list[dict[str, Any]]], None]
pytestmark = pytest.mark.slow
MERGE = {"commit.manifest.min-count-to-merge": "2"}
DELETED = 2


def text(id_: int) -> str:
    return f"{'A' * 15}\u2022 {id_}"


def rows(*ids: int) -> pa.Table:
    numbers, parts = pa.array(ids, pa.int32()), pa.array([i % 2 for i in ids], pa.int32())
    return pa.table({"id": pa.array(ids, pa.int64()), "p": parts, "s": [text(i) for i in ids], "i": numbers})


def edit(location: str, change: Edit) -> None:
    """Write an Avro file again, with its schema and records changed."""
    path = Path(location.removeprefix("file://"))
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    records: list[Any] = list(reader)
    metadata = {key: value for key, value in reader.metadata.items() if key not in ("avro.schema", "avro.codec")}
    schema = json.loads(reader.metadata["avro.schema"])
    change(schema, records)
    changed = io.BytesIO()
    fastavro.writer(changed, schema, records, metadata=metadata, codec="deflate")
    path.write_bytes(changed.getvalue())


def theirs(folder: Path) -> Any:
    return SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}").load_table("db.t")


def old_numbers(schema: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """As Apache Iceberg before 1.1 wrote version 2: no file sequence numbers, removed entries with none at all."""
    schema["fields"] = [field for field in schema["fields"] if field["name"] != "file_sequence_number"]
    for entry in entries:
        del entry["file_sequence_number"]
        if entry["status"] == DELETED:
            entry["sequence_number"] = None


def empty_lists(schema: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """As iceberg-rust and iceberg-cpp wrote data files: empty lists for what they do not have."""
    for entry in entries:
        entry["data_file"] |= {"equality_ids": [], "split_offsets": []}


def cut_texts(schema: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """As DuckDB cut texts: in the middle of a character."""
    for entry in entries:
        for name in ("lower_bounds", "upper_bounds"):
            for bound in entry["data_file"][name]:
                if bound["key"] == 3:
                    bound["value"] = b"A" * 15 + b"\xe2"


def wide_numbers(schema: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """As ClickHouse stored numbers: all of them in 8 bytes."""
    for entry in entries:
        for name in ("lower_bounds", "upper_bounds"):
            for bound in entry["data_file"][name]:
                if bound["key"] == 4:
                    bound["value"] += bytes(4)


def too_many(schema: dict[str, Any], manifests: list[dict[str, Any]]) -> None:
    """As a writer counted that took the number of removed rows, or of all that ever left, for that of entries."""
    for manifest in manifests:
        manifest["deleted_files_count"] = 62


def too_few(schema: dict[str, Any], manifests: list[dict[str, Any]]) -> None:
    """Counts by which a manifest would seem to be empty while files of it are left."""
    for manifest in manifests:
        manifest["deleted_files_count"] = 0
        for name in ("added_files_count", "existing_files_count"):
            manifest[name] = min(manifest[name], 1)


HABITS: dict[str, tuple[Edit | None, Edit | None]] = {  # what to do to manifests, and to their list
    "old numbers": (old_numbers, None),
    "empty lists": (empty_lists, None),
    "cut texts": (cut_texts, None),
    "wide numbers": (wide_numbers, None),
    "too many entries counted": (None, too_many),
    "too few entries counted": (None, too_few),
}


@pytest.fixture(params=HABITS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table of version 2 with the rows 1 to 5, 7 and 8 that another program wrote."""
    of_manifests, of_list = HABITS[request.param]
    table = new_catalog(tmp_path).create_table(
        "db.t", schema="id bigint, p int, s string, i int", partition_by=["p"], format_version=2
    )
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    table.rewrite_manifests().execute()
    table.append(rows(6, 7))
    table.append(rows(8))
    table.delete("id = 6")
    snapshot = theirs(tmp_path).current_snapshot()
    for manifest in snapshot.manifests(theirs(tmp_path).io):
        if of_manifests is not None:
            edit(manifest.manifest_path, of_manifests)
    if of_list is not None:
        edit(snapshot.manifest_list, of_list)
    return tmp_path


def opened(folder: Path, **properties: str) -> Table:
    table = new_catalog(folder).load_table("db.t")
    if len(properties) > 0:
        table.set_properties(properties)
    return table


def check(folder: Path, *expected: int) -> None:
    """Rows as a process finds them that has seen nothing of the table yet, by every column."""
    table = opened(folder)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(expected)
    for id_ in expected:
        for filter in (f"id = {id_}", f"i = {id_}", f"s = '{text(id_)}'"):
            assert table.scan(filter).to_arrow()["id"].to_pylist() == [id_], filter
    if table.metadata.format_version < 4:
        assert sorted(theirs(folder).scan().to_arrow()["id"].to_pylist()) == list(expected)


def test_such_a_table_is_read(folder: Path) -> None:
    check(folder, 1, 2, 3, 4, 5, 7, 8)


def test_files_leave_and_come(folder: Path) -> None:
    table = opened(folder)
    assert table.delete("id = 5").rows_deleted == 1
    table.append(rows(9))
    check(folder, 1, 2, 3, 4, 7, 8, 9)


@pytest.mark.parametrize("folder", HABITS, indirect=True)
def test_manifests_are_merged(folder: Path) -> None:
    table = opened(folder, **MERGE)
    table.append(rows(9))
    assert table.delete("id = 5").rows_deleted == 1
    check(folder, 1, 2, 3, 4, 7, 8, 9)


@pytest.mark.parametrize("folder", HABITS, indirect=True)
def test_manifests_are_written_again(folder: Path) -> None:
    opened(folder).rewrite_manifests().execute()
    check(folder, 1, 2, 3, 4, 5, 7, 8)


@pytest.mark.parametrize("folder", HABITS, indirect=True)
def test_version_4_takes_the_manifests_as_they_are(folder: Path) -> None:
    table = opened(folder)
    table.upgrade(4)
    left = [1, 2, 3, 4, 5, 7, 8]
    for gone in (8, 3, 1, 2, 7, 4, 5):
        assert table.delete(f"id = {gone}").rows_deleted == 1
        left.remove(gone)
        check(folder, *left)


@pytest.mark.parametrize("folder", HABITS, indirect=True)
def test_version_4_merges_them(folder: Path) -> None:
    table = opened(folder, **MERGE)
    table.upgrade(4)
    table.append(rows(9))
    assert table.delete("id = 7").rows_deleted == 1
    table.append(rows(10))
    check(folder, 1, 2, 3, 4, 5, 8, 9, 10)
    table.rewrite_manifests().execute()
    check(folder, 1, 2, 3, 4, 5, 8, 9, 10)
