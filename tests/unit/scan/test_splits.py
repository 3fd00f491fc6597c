"""Ranges of files and their groups, beside pyiceberg's bin packing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.utils.bin_packing import PackingIterator

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.model.entries import empty
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import TASK, Plan, pack, split_tasks


def tasks(*files: dict[str, object]) -> pa.Table:
    given = [{"file_format": "parquet", "deletes": [], **file} for file in files]
    return pa.Table.from_pylist(given, schema=TASK)


def file(size: int, offsets: list[int] | None = None, **more: object) -> dict[str, object]:
    return {"file_size_in_bytes": size, "split_offsets": offsets, **more}


def ranges(table: pa.Table, **options: int) -> list[tuple[int, ...]]:
    settings = {"target_size": 100, "lookback": 10, "open_file_cost": 0, **options}
    return [tuple(row.values()) for row in split_tasks(table, empty(), **settings).to_pylist()]


def test_a_large_file_without_offsets_is_cut_at_multiples_of_the_target():
    assert ranges(tasks(file(250))) == [(0, 0, 100, 0), (0, 100, 100, 1), (0, 200, 50, 2)]


def test_a_file_is_cut_where_its_row_groups_begin_and_small_neighbours_stay_together():
    assert ranges(tasks(file(250, [4, 40, 90, 180]))) == [(0, 0, 90, 0), (0, 90, 90, 1), (0, 180, 70, 2)]


@pytest.mark.parametrize("offsets", [[4, 4], [4, 90, 30], [4, 250], [-1, 30], []])
def test_offsets_that_cannot_be_right_are_not_used(offsets):
    assert [row[1] for row in ranges(tasks(file(250, offsets)))] == [0, 100, 200]


def test_files_of_unknown_formats_are_not_cut():
    assert ranges(tasks(file(250, file_format="other"))) == [(0, 0, 250, 0)]


def test_small_files_share_a_group_until_opening_them_costs_too_much():
    small = [file(10) for _ in range(4)]
    assert [row[3] for row in ranges(tasks(*small))] == [0, 0, 0, 0]
    assert [row[3] for row in ranges(tasks(*small), open_file_cost=50)] == [0, 0, 1, 1]


def test_deletes_weigh_as_much_as_their_bytes():
    deletes = pa.Table.from_pylist([{"file_size_in_bytes": 60}], schema=empty().schema)
    with_delete = tasks(file(30, deletes=[0]), file(30), file(30, dv_location="x", dv_size_in_bytes=60))
    found = split_tasks(with_delete, deletes, target_size=100, lookback=10, open_file_cost=0)
    assert found["group"].to_pylist() == [0, 1, 2]


def test_an_empty_file_is_one_empty_range():
    assert ranges(tasks(file(0))) == [(0, 0, 0, 0)]


@pytest.mark.parametrize("name", ["target_size", "lookback", "open_file_cost"])
def test_sizes_must_be_positive(name):
    with pytest.raises(InputError, match="must be positive"):
        ranges(tasks(file(10)), **{name: -1})


def test_a_plan_takes_its_sizes_from_the_properties_of_the_table():
    plan = Plan(
        tasks=tasks(file(250)),
        schema=Schema(fields=()),
        table_schema=Schema(fields=()),
        filter=ALWAYS_TRUE,
        properties={"read.split.target-size": "200", "read.split.open-file-cost": "1"},
    )
    assert plan.splits()["length"].to_pylist() == [200, 50]
    assert plan.splits(target_size=1000)["length"].to_pylist() == [250]


sizes = st.lists(st.integers(0, 120), max_size=30)


@given(sizes, st.integers(1, 4))
def test_groups_are_those_of_pyiceberg(weights, lookback):
    found: dict[int, set[int]] = {}
    for item, group in enumerate(pack(weights, 100, lookback)):
        found.setdefault(group, set()).add(item)
    packing = PackingIterator(list(enumerate(weights)), 100, lookback, lambda item: item[1], largest_bin_first=True)
    assert sorted(map(sorted, found.values())) == sorted(sorted(item[0] for item in items) for items in packing)


@st.composite
def any_file(draw: st.DrawFn) -> dict[str, object]:
    size = draw(st.integers(0, 500))
    return file(size, draw(st.none() | st.lists(st.integers(0, 520), max_size=4).map(sorted)))


@given(st.lists(any_file(), max_size=6), st.integers(1, 300), st.integers(1, 3))
def test_ranges_cover_every_byte_of_every_file_once(files, target, lookback):
    found = ranges(tasks(*files), target_size=target, lookback=lookback)
    for number, each in enumerate(files):
        mine = sorted(row[1:3] for row in found if row[0] == number)
        end = 0
        for start, length in mine:
            assert start == end
            end = start + length
        assert end == each["file_size_in_bytes"]
