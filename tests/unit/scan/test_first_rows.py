"""The files of the first rows have these rows, and files that cannot have one of them are left out."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icefloe
from icefloe.scan.first_rows import FirstRows, files_of_first_rows
from icefloe.table.scan import request_of

NAMES = count()
VALUES = st.one_of(st.none(), st.integers(-5, 5))


def table_of(version: int, files: list[list[int | None]], **properties: str) -> icefloe.Table:
    catalog = icefloe.catalog("first", uri="memory://first")
    table = catalog.create_table(
        f"db.t{next(NAMES)}", pa.schema([("v", pa.int64())]), format_version=version, properties=properties
    )
    for values in files:
        table.append(pa.table({"v": pa.array(values, pa.int64())}))
    return table


def first(table: icefloe.Table, wanted: FirstRows) -> pa.Table:
    column = table.schema.by_name["v"]
    plan = request_of(table.scan()).plan(bounded=(column.id,))
    return files_of_first_rows(plan.tasks, wanted, None if wanted.column is None else column)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@given(
    files=st.lists(st.lists(VALUES, min_size=1, max_size=4), max_size=5),
    deleted=st.integers(-6, 6),
    rows=st.integers(1, 6),
    descending=st.booleans(),
    nulls_first=st.booleans(),
)
def test_the_first_rows_are_those_of_all_files(version, files, deleted, rows, descending, nulls_first):
    table = table_of(version, files, **({"write.delete.mode": "merge-on-read"} if version > 1 else {}))
    table.delete(f"v = {deleted}")
    wanted = FirstRows(rows=rows, column="v", descending=descending, nulls_first=nulls_first)

    def ordered(values: list[int | None]) -> list[int | None]:
        known = sorted((v for v in values if v is not None), reverse=descending)
        nulls = [None] * values.count(None)
        return (nulls + known if nulls_first else known + nulls)[:rows]

    of_files: list[int | None] = []
    for location in first(table, wanted)["location"].to_pylist():
        of_files += table.scan(f"_file = '{location}'").to_arrow()["v"].to_pylist()
    everything = table.scan().to_arrow()["v"].to_pylist()
    assert ordered(of_files) == ordered(everything)
    any_of_files = pc.sum(first(table, FirstRows(rows=rows))["record_count"]).as_py() or 0
    assert any_of_files >= min(rows, len(everything))


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_files_that_cannot_have_one_of_the_first_rows_are_left_out(version):
    table = table_of(version, [[1, 2], [3, 4], [None, 5], [None]])

    def files(rows: int, order: str | None = None) -> int:
        if order is None:
            return first(table, FirstRows(rows=rows)).num_rows
        descending, nulls_first = order.startswith("desc"), order.endswith("first")
        return first(table, FirstRows(rows=rows, column="v", descending=descending, nulls_first=nulls_first)).num_rows

    assert [files(n) for n in (1, 2, 3, 6, 100)] == [1, 1, 2, 3, 4]
    assert [files(n, "asc last") for n in (1, 2, 3, 5, 6)] == [1, 1, 2, 3, 4]
    assert [files(n, "desc last") for n in (1, 2, 3)] == [1, 2, 2]
    assert files(1, "asc first") == 3  # those with nulls, and one


def test_files_without_bounds_are_kept_and_not_counted_on():
    table = table_of(4, [[1, 2]])
    table.set_properties({"write.metadata.metrics.default": "counts"})
    table.append(pa.table({"v": pa.array([0, 9], pa.int64())}))
    assert first(table, FirstRows(rows=1, column="v")).num_rows == 2
    assert first(table, FirstRows(rows=3, column="v")).num_rows == 2
