"""Scans filtered by metadata columns: file, position, partition and row lineage."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import InputError, UnsupportedError
from icefloe.table.table import Table
from support.people import check
from support.tables import new_catalog, rows_of_day, table_of_two_specs


@pytest.fixture
def wrap() -> Callable[[Any], Any]:
    """The table as the tests change it."""
    return lambda changed: changed


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return table_of_two_specs(tmp_path)


def ids(table: Table, condition: str) -> list[int]:
    scan = table.scan(condition, columns=["id"])
    found = sorted(scan.to_arrow()["id"].to_pylist())
    assert scan.count() == table.scan(condition).count() == len(found)
    assert scan.to_arrow().column_names == ["id"]
    return found


def test_rows_are_selected_by_metadata_columns(table: Table) -> None:
    everything = [0, 1, 2, 4, 5, *range(10, 16), 20, 21, 22]
    [location] = table.scan("id = 1", columns=["_file"]).to_arrow()["_file"].to_pylist()
    assert ids(table, f"_file = '{location}'") == [0, 1, 2, 4, 5]
    assert ids(table, f"_file != '{location}' and id < 12") == [10, 11]
    assert ids(table, f"_file in ('{location}', 'no such file')") == [0, 1, 2, 4, 5]
    assert ids(table, "_file is not null") == everything
    assert ids(table, "_pos = 2") == [2, 22]  # 12 was at position 2 of its former file
    assert ids(table, "_pos >= 4 and _pos < 100 and day = 2") == [14, 15]
    assert ids(table, "_spec_id = 0") == [0, 1, 2, 4, 5, 10, 11, 13, 14, 15]
    assert ids(table, "_partition.day = 1") == [0, 1, 2, 4, 5]
    assert ids(table, "_partition.tens is null") == [0, 1, 2, 4, 5, 10, 11, 13, 14, 15]
    assert ids(table, "_partition.tens = 20 or id = 4") == [4, 20, 21, 22]
    assert ids(table, "_row_id in (0, 8)") == [0, 12]
    assert ids(table, "_row_id > 8 and s.a < 15") == [13, 14]
    assert ids(table, "not (_row_id > 8) and s.b >= '2'") == [2, 4, 5]
    assert ids(table, "_last_updated_sequence_number = 4") == [12]
    assert ids(table, "_row_id is null") == []


def test_files_that_the_condition_excludes_are_not_planned(table: Table) -> None:
    [location] = table.scan("id = 1", columns=["_file"]).to_arrow()["_file"].to_pylist()
    scan = table.scan(f"_file = '{location}' and _pos < 3")
    assert scan.plan().tasks["location"].to_pylist() == [location]
    assert scan.plan().files_skipped == 3
    why = rf"file skipped \(3, \d+ bytes\): metadata columns: _file = '{location}' AND _pos < 3"
    assert re.search(why, scan.explain()) is not None
    assert table.scan("_partition.day = 2 and _spec_id = 1").plan().files == 2


def test_columns_that_only_the_condition_needs_are_not_returned(table: Table) -> None:
    found = table.scan("_row_id = 5 and (s.a = 5 or _pos = 9)", columns=["s.b", "_partition.day"]).to_arrow()
    assert found.to_pylist() == [{"s": {"b": "5"}, "_partition": {"day": 1}}]
    assert table.scan("_row_id = 5").to_arrow().column_names == ["id", "s", "day"]
    narrow = table.scan("_partition.tens = 20", columns=["_partition.day"]).to_arrow()
    assert narrow.to_pylist() == [{"_partition": {"day": 2}}] * 3


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_are_changed_by_metadata_columns(wrap: Callable[[Any], Any], table: Table, mode: str) -> None:
    table.set_properties({f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")})
    changed = wrap(table)
    assert table.delete("_file = 'no such file'").snapshot_id is None
    [location] = table.scan("id = 1", columns=["_file"]).to_arrow()["_file"].to_pylist()
    assert changed.update({"day": "7"}, where=f"_file = '{location}' and _pos < 3 and id > 0").rows_added == 2
    assert ids(table, "day = 7") == [1, 2]
    assert changed.delete("_row_id in (0, 8)").rows_deleted == 2  # id 8 is that of row 12
    assert changed.update({"day": "8"}, where="_partition.tens = 20 and _pos >= 2").rows_added == 1
    assert ids(table, "day = 8") == [22]
    assert changed.delete("_last_updated_sequence_number = 1").rows_deleted == 2
    assert ids(table, "id >= 0") == [1, 2, 10, 11, 13, 14, 15, 20, 21, 22]
    [location] = set(table.scan("id = 13", columns=["_file"]).to_arrow()["_file"].to_pylist())
    result = table.overwrite(rows_of_day(50, 51, day=9), where=f"_file = '{location}'")
    assert (result.rows_added, result.rows_deleted, result.files_removed) == (1, 5, 1)
    assert ids(table, "id >= 0") == [1, 2, 20, 21, 22, 50]
    check(table)


def test_what_no_filter_can_test_is_refused_by_name(table: Table, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="cannot be filtered by the metadata column '_deleted'; select it"):
        table.scan("_deleted")
    with pytest.raises(InputError, match="_partition"):
        table.scan("_partition.nothing = 1").plan()
    with pytest.raises(InputError, match="rows are not changed by '_deleted'"):
        table.delete("_deleted")
    with pytest.raises(InputError, match="_partition"):
        table.delete("_partition.nothing = 1")
    old = new_catalog(tmp_path).create_table("db.old", schema="id bigint", format_version=2)
    old.append(pa.table({"id": [1]}))
    with pytest.raises(InputError, match="'_row_id' needs row lineage"):
        old.scan("_row_id = 1").to_arrow()
    with pytest.raises(InputError, match="the table is not partitioned"):
        old.scan("_partition.x = 1").to_arrow()
