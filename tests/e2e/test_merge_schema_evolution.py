"""Merges that add columns of the source to the table, in the commit that writes the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.table.table import Table
from support.people import COPY, MERGE, check, new_table
from support.selection import thorough

pytestmark = pytest.mark.slow
WHO = pa.struct([("name", pa.string())])
LONGER_WHO = pa.struct([("name", pa.string()), ("age", pa.int32())])


@pytest.fixture
def wrap() -> Callable[[Any], Any]:
    """The table as the tests change it."""
    return lambda table: table


def two_rows(tmp_path: Path, version: int, mode: str) -> Table:
    table = new_table(tmp_path, version, mode, schema="id bigint, who struct<name: string>")
    table.append(pa.table({"id": [1, 2], "who": pa.array([{"name": "a"}, {"name": "b"}], WHO)}))
    return table


def changed() -> pa.Table:
    who = pa.array([{"name": "B", "age": 7}, {"name": "c", "age": 8}], LONGER_WHO)
    return pa.table({"id": [2, 3], "who": who, "note": ["x", "y"], "size": pa.array([5, 6], pa.int32())})


@pytest.mark.parametrize(("version", "mode"), [(4, MERGE), thorough((2, COPY))])
def test_a_merge_adds_columns_and_fields_that_its_clauses_set(
    wrap: Callable[[Any], Any], tmp_path: Path, version: int, mode: str
) -> None:
    plain = two_rows(tmp_path, version, mode)
    table = wrap(plain)
    merge = table.merge(changed(), on=["id"]).with_schema_evolution()
    named = {"id": "s.id", "note": "upper(s.note)"}
    result = merge.when_matched_update_all("s.size < 0").when_matched_update({"t.note": "s.note"}).execute()
    assert (result.rows_updated, len(plain.metadata.snapshots)) == (1, 2)
    rows = plain.scan().to_arrow().sort_by("id").to_pylist()
    assert rows[1] == {"id": 2, "who": {"name": "b", "age": None}, "note": "x", "size": None}
    merge = table.merge(changed(), on=["id"]).with_schema_evolution()
    merge.when_matched_update_all().when_not_matched_insert(named).execute()
    assert plain.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "who": {"name": "a", "age": None}, "note": None, "size": None},
        {"id": 2, "who": {"name": "B", "age": 7}, "note": "x", "size": 5},
        {"id": 3, "who": None, "note": "Y", "size": None},
    ]
    check(plain)


def test_columns_are_added_only_if_asked_for_set_and_written(wrap: Callable[[Any], Any], tmp_path: Path) -> None:
    plain = two_rows(tmp_path, 4, MERGE)
    table, before = wrap(plain), plain.metadata.current_schema_id
    more = changed().drop_columns(["who"])
    table.merge(more, on=["id"]).when_not_matched_insert_all().execute()  # columns that the table lacks are left out
    merge = table.merge(more, on=["id"]).with_schema_evolution()
    assert merge.when_matched_update({"id": "s.id"}, "s.size = 5").execute().rows_updated == 1  # sets no new column
    merge = table.merge(more, on=["id"]).with_schema_evolution()
    assert merge.when_matched_update_all("s.size = 0").execute().snapshot_id is None  # writes no row
    assert plain.metadata.current_schema_id == before
    with plain.transaction() as transaction:
        merge = wrap(transaction).merge(more, on=["id"]).with_schema_evolution()
        merge.when_matched_update_all().execute()
        transaction.delete("size = 5")
    assert plain.scan(columns=["id", "note"]).to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "note": None},
        {"id": 3, "note": "y"},
    ]
    check(plain)
