"""Updated rows against brute force: with and without the other rows of their files, deleted ones left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.engines.arrow.change.update import column_at, is_in, set_columns, write_updated
from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.engines.arrow.read.plan_reader import read_plan
from icefloe.engines.work import FinalLineage
from icefloe.errors import InputError
from icefloe.expr.value.expressions import parse_value
from icefloe.expr.value.struct_fields import path_of
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.text.ddl import parse_ddl
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.engine_work import planned_for_engine
from support.selection import examples
from support.tables import new_catalog

VALUES = {"n": parse_value("n + id"), "note": parse_value("CASE WHEN id % 2 = 0 THEN NULL ELSE note || '!' END")}


def new_table(folder: Path, version: int = 3) -> Table:
    catalog = new_catalog(folder, "update")
    if catalog.table_exists("db.t"):
        catalog.drop_table("db.t", purge=True)
    return catalog.create_table("db.t", schema="id bigint, n int, note string", format_version=version)


def changed(row: dict[str, Any]) -> dict[str, Any]:
    n = None if row["n"] is None else row["n"] + row["id"]
    note = None if row["id"] % 2 == 0 or row["note"] is None else row["note"] + "!"
    return {**row, "n": n, "note": note}


_ROW = st.tuples(st.none() | st.integers(-3, 3), st.none() | st.sampled_from(["", "a"]))


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(st.lists(_ROW, min_size=1, max_size=5), min_size=1, max_size=3),
    found=st.sets(st.integers(0, 14)),
    gone=st.sets(st.integers(0, 14)),
    others=st.booleans(),
)
def test_rows_are_updated_as_by_hand(
    tmp_path: Path, files: list[list[tuple[int | None, str | None]]], found: set[int], gone: set[int], others: bool
) -> None:
    table = new_table(tmp_path)
    number = 0
    for file in files:
        rows = [{"id": number + i, "n": n, "note": note} for i, (n, note) in enumerate(file)]
        table.append(pa.Table.from_pylist(rows, arrow_schema(table.schema)))
        number += len(file)
    if len(gone & set(range(number))) > 0:
        table.delete(f"id in ({', '.join(map(str, gone))})")
    live = table.scan().to_arrow().to_pylist()
    wanted = {row["id"] for row in live if row["id"] in found}
    plan = table.scan().plan()
    places = table.scan(columns=["id", "_file", "_pos"]).to_arrow().to_pylist()
    positions: dict[str, BitMap64] = {}
    for place in places:
        if place["id"] in wanted:
            positions.setdefault(place["_file"], BitMap64()).add(place["_pos"])
    entries = write_updated(
        planned_for_engine(pointer_of(table).io, table.metadata, plan), positions, VALUES, copy_others=others
    )
    touched = {place["id"] for place in places if place["_file"] in positions}
    expected = [changed(row) if row["id"] in wanted else row for row in live if row["id"] in touched]
    if not others:
        expected = [row for row in expected if row["id"] in wanted]
    locations = entries["location"].to_pylist()
    written = [row for location in locations for row in pq.read_table(location.removeprefix("file://")).to_pylist()]
    assert sorted(({k: row[k] for k in ("id", "n", "note")} for row in written), key=repr) == sorted(expected, key=repr)
    assert {row["id"]: row["_row_id"] for row in written} == {
        row["id"]: row["_row_id"]
        for row in table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
        if row["id"] in {each["id"] for each in expected}
    }
    assert all((row["_last_updated_sequence_number"] is None) == (row["id"] in wanted) for row in written)


def test_lineage_that_is_not_final_is_left_out(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for start in (0, 10, 20):
        table.append(pa.table({"id": [start, start + 1]}))
    plan = table.scan().plan()
    io = pointer_of(table).io
    found = {location: BitMap64([0]) for location in plan.tasks["location"].to_pylist()}
    final = FinalLineage(next_row_id=3, last_sequence_number=1)
    values = {"note": parse_value("'x'")}
    files = planned_for_engine(io, table.metadata, plan, final=final)
    entries = write_updated(files, found, values, copy_others=True)
    (location,) = entries["location"].to_pylist()
    rows = pq.read_table(location.removeprefix("file://")).to_pylist()
    assert {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows} == {
        0: (0, None),
        1: (1, 1),
        10: (2, None),
        11: (None, None),
        20: (None, None),
        21: (None, None),
    }
    moved = ArrowEngine().write_survivors(files, found)
    rows = pq.read_table(moved["location"][0].as_py().removeprefix("file://")).to_pylist()
    assert [(row["id"], row["_row_id"], row["_last_updated_sequence_number"]) for row in rows] == [
        (1, 1, 1),
        (11, None, None),
        (21, None, None),
    ]
    assert read_plan(io, plan).read_all().num_rows == 6


@given(st.sets(st.integers(0, 70_000), min_size=1, max_size=20), st.sets(st.integers(0, 70_000), max_size=20))
def test_positions_are_told_from_the_others(positions: set[int], wanted: set[int]) -> None:
    found = is_in(np.array(sorted(positions), np.int64), BitMap64(wanted))
    assert found.tolist() == [position in wanted for position in sorted(positions)]
    assert is_in(np.zeros(0, np.int64), BitMap64(wanted)).tolist() == []


def test_a_name_may_lead_into_structs_and_have_dots_of_its_own() -> None:
    schema = parse_ddl("a struct<b: struct<c: int>, `x.y`: int>, `a.q` struct<d: int>, l array<struct<e: int>>")
    fields = schema.fields
    assert path_of("a.b.c", fields) == (0, 0, 0)
    assert path_of("a.x.y", fields) == (0, 1)
    assert path_of("a.q.d", fields) == (1, 0)
    assert path_of("a.b", fields) == (0, 0)
    assert [path_of(name, fields) for name in ("b", "a.z", "l.element.e", "a.b.c.d", "")] == [None] * 5
    inner = pa.array(
        [{"b": {"c": 1}, "x.y": 2}, {"b": None, "x.y": 3}, None],
        pa.struct([("b", pa.struct([("c", pa.int32())])), ("x.y", pa.int32())]),
    )
    rows = pa.record_batch({"a": inner})
    assert column_at(rows, (0, 0, 0)).to_pylist() == [1, None, None]
    assert column_at(rows, (0, 1)).to_pylist() == [2, 3, None]


def test_new_values_see_the_old_row_and_fit_their_columns() -> None:
    schema = parse_ddl("a int, b int, c decimal(5, 1)")
    rows = pa.record_batch(
        [pa.array([1, 2], pa.int32()), pa.array([10, 20], pa.int32()), pa.nulls(2, pa.decimal128(5, 1))],
        schema=arrow_schema(schema),
    )
    swapped = set_columns(rows, {"a": parse_value("b"), "b": parse_value("a"), "c": parse_value("7")}, schema)
    assert swapped.to_pylist() == [{"a": 10, "b": 1, "c": 7}, {"a": 20, "b": 2, "c": 7}]
    assert swapped.schema.equals(arrow_schema(schema), check_metadata=True)
    with pytest.raises(InputError, match="column 'a' is int"):
        set_columns(rows, {"a": parse_value("a * 0.5")}, schema)
