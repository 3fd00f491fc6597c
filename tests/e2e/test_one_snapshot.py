"""Several appends of a transaction as one snapshot."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.table.table import Table
from support.tables import new_catalog

pytestmark = pytest.mark.slow
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3, 4])


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def table_of(folder: Path, version: int, **properties: str) -> Table:
    catalog = new_catalog(folder)
    return catalog.create_table("db.t", schema="id bigint", format_version=version, properties=properties)


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def metadata_files(table: Table) -> set[str]:
    folder = Path(table.location.removeprefix("file://")) / "metadata"
    return {path.name for path in folder.iterdir() if not path.name.endswith(".metadata.json")}


@VERSIONS
@pytest.mark.parametrize("properties", [{}, {"commit.root.max-data-files": "0"}])
def test_ten_appends_are_one_snapshot_with_the_figures_of_all(tmp_path: Path, version: int, properties: dict) -> None:
    table = table_of(tmp_path, version, **properties)
    table.append(numbers(0))
    before = metadata_files(table)
    with table.transaction(one_snapshot=True, summary={"job": "7"}) as tx:
        for number in range(1, 11):
            tx.append(numbers(number, number * 100))
            assert tx.scan().count() == 1 + 2 * number
    assert (tx.result.snapshots, tx.result.rows_added) == (1, 20)
    assert len(table.snapshots) == 2
    summary = table.snapshots[-1].summary
    assert (summary["operation"], summary["added-data-files"], summary["total-data-files"]) == ("append", "10", "11")
    assert (summary["added-records"], summary["total-records"], summary["job"]) == ("20", "21", "7")
    assert ids(table) == sorted([0, *(n * k for n in range(1, 11) for k in (1, 100))])
    leaf = version < 4 or "commit.root.max-data-files" in properties
    assert len(metadata_files(table) - before) == (2 if leaf else 1)  # nothing is left of the drafts


@pytest.mark.parametrize("version", [3, 4])
def test_rows_of_the_appends_have_different_ids(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version)
    table.append(numbers(1, 2))
    with table.transaction(one_snapshot=True) as tx:
        for number in range(3, 8):
            tx.append(numbers(number))
    rows = table.scan(columns=["id", "_row_id", "_last_updated_sequence_number"]).to_arrow().to_pylist()
    assert sorted(row["_row_id"] for row in rows) == list(range(7))
    assert {row["_last_updated_sequence_number"] for row in rows if row["id"] > 2} == {2}
    assert table.metadata.next_row_id == 7


@VERSIONS
def test_another_commit_in_between_is_kept(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version)
    with table.transaction(one_snapshot=True) as tx:
        tx.append(numbers(1))
        table.append(numbers(9))
        tx.append(numbers(2))
    assert ids(table) == [1, 2, 9]
    assert (tx.result.snapshots, tx.result.attempts, len(table.snapshots)) == (1, 2, 2)


@VERSIONS
def test_columns_that_appends_add_are_part_of_the_snapshot(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version)
    with table.transaction(one_snapshot=True) as tx:
        tx.append(numbers(1))
        tx.append(pa.table({"id": [2], "note": ["two"]}), schema_mode="merge")
        tx.set_properties({"owner": "me"})
        tx.append(numbers(3))
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 1, "note": None}, {"id": 2, "note": "two"}, {"id": 3, "note": None}]
    assert (len(table.snapshots), table.properties["owner"]) == (1, "me")
    assert table.snapshots[0].schema_id == table.metadata.current_schema_id


def test_without_appends_nothing_is_committed(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4)
    with table.transaction(one_snapshot=True) as tx:
        tx.append(numbers())
    assert (tx.result.snapshots, len(table.snapshots)) == (0, 0)
