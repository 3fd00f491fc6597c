"""Counts, minima and maxima from the metadata of files agree with the rows of these files."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from itertools import count, groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icefloe
from icefloe.engines.choose import engine_for
from icefloe.scan.aggregates import Aggregate, FileAggregates, aggregate_files, can_answer
from icefloe.table.scan import request_of

NAMES = count()
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3, 4])
TYPES = {"n": pa.int64(), "x": pa.float64(), "text": pa.string(), "part": pa.int32()}
NUMBERS = st.one_of(st.none(), st.integers(-3, 3))
FLOATS = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, -2.5, math.nan, math.inf]))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "a text longer than bounds of texts are", "z" * 16]))
ROWS = st.lists(st.tuples(NUMBERS, FLOATS, TEXTS, st.one_of(st.none(), st.integers(0, 2))), max_size=4)
CALLS = [("count", None), *((f, name) for f in ("count", "min", "max") for name in ("n", "x", "text", "part"))]


def table_of(version: int, files: list[list[tuple[Any, ...]]], *, by: list[str]) -> icefloe.Table:
    catalog = icefloe.catalog("aggregates", uri="memory://aggregates")
    schema, name = pa.schema(list(TYPES.items())), f"db.t{next(NAMES)}"
    table = catalog.create_table(name, schema, partition_by=by, format_version=version)
    for rows in files:
        columns = zip(*rows, strict=True) if len(rows) > 0 else [()] * len(TYPES)
        table.append(pa.table([pa.array(c, t) for c, t in zip(columns, TYPES.values(), strict=True)], names=[*TYPES]))
    return table


def answered(
    table: icefloe.Table, filter_: str, groups: list[str], calls: list[tuple[str, str | None]]
) -> tuple[FileAggregates, list[dict[str, Any]]]:
    """What metadata answers, and the rows of the files that answer."""
    schema = table.schema.by_name
    by = [schema[name] for name in groups]
    aggregates = [Aggregate(function=f, column=None if name is None else schema[name]) for f, name in calls]
    request = request_of(table.scan(filter_))
    plan = request.plan(bounded=tuple(schema[name].id for name in {*groups, *(n for _, n in calls if n is not None)}))
    known = aggregate_files(request.io, table.metadata, plan, by, aggregates)
    answering = plan.tasks["location"].filter(pc.invert(pc.is_in(plan.tasks["location"], value_set=known.to_read)))
    rows = engine_for(None).read(replace(request, files=answering.combine_chunks())).read_all()
    return known, rows.to_pylist()


def brute(rows: list[dict[str, Any]], groups: list[str], calls: list[tuple[str, str | None]]) -> list[tuple[Any, ...]]:
    """The aggregates of rows as Spark computes them: NaN is the greatest number."""

    def of(part: list[dict[str, Any]], function: str, name: str | None) -> Any:
        values = [row[name] for row in part if row[name] is not None] if name is not None else part
        if function == "count":
            return len(values)
        choose = min if function == "min" else max
        return choose(values, key=lambda v: (isinstance(v, float) and math.isnan(v), v), default=None)

    def key(row: dict[str, Any]) -> list[Any]:
        return [(row[name] is not None, row[name] or 0) for name in groups]

    parts = [list(part) for _, part in groupby(sorted(rows, key=key), key)] if len(groups) > 0 else [rows]
    return [(*(part[0][name] for name in groups), *(of(part, *call) for call in calls)) for part in parts]


def shown(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


@VERSIONS
@given(
    files=st.lists(ROWS, max_size=4),
    by=st.sampled_from([[], ["part"], ["part", "truncate(2, text)"]]),
    filter_=st.sampled_from(["true", "n >= 0", "part = 1", "part is null or n < 2", "text > 'a'", "x is not null"]),
    deleted=st.sampled_from(["false", "n = 1", "part = 0", "text = 'b'"]),
    calls=st.lists(st.sampled_from(CALLS), max_size=3),
    grouped=st.booleans(),
)
def test_what_metadata_answers_is_what_the_rows_say(version, files, by, filter_, deleted, calls, grouped):
    table = table_of(version, files, by=by)
    table.set_properties({"write.delete.mode": "merge-on-read"} if version > 1 else {})
    table.delete(deleted)
    groups = ["part"] if grouped or len(calls) == 0 else []
    known, rows = answered(table, filter_, groups, calls)
    found = list(zip(*(column.to_pylist() for column in known.groups.columns), strict=True))
    assert shown(found) == shown(brute(rows, groups, calls))
    assert 0 <= known.share_to_read <= 1


@VERSIONS
def test_all_files_of_plain_values_answer(version):
    types = {
        "n": pa.int32(), "price": pa.decimal128(9, 2), "day": pa.date32(), "at": pa.timestamp("us"),
        "zoned": pa.timestamp("us", tz="UTC"), "flag": pa.bool_(), "x": pa.float32(), "empty": pa.int64(),
    }  # fmt: skip
    at = dt.datetime(2026, 5, 1, 12)
    zoned = at.replace(tzinfo=dt.UTC)
    rows = [
        [1, Decimal("2.50"), at.date(), at, zoned, False, 1.5, None],
        [5, Decimal("-7.00"), None, at + dt.timedelta(1), zoned, True, -2.5, None],
    ]
    catalog = icefloe.catalog("aggregates", uri="memory://aggregates")
    table = catalog.create_table(f"db.t{next(NAMES)}", pa.schema(list(types.items())), format_version=version)
    for row in rows:
        table.append(pa.table([pa.array([v], t) for v, t in zip(row, types.values(), strict=True)], names=[*types]))
    calls = [(function, name) for function in ("min", "max", "count") for name in types]
    known, read = answered(table, "true", [], calls)
    assert known.to_read.to_pylist() == []
    found = list(zip(*(column.to_pylist() for column in known.groups.columns), strict=True))
    assert found == brute(read, [], calls)


@pytest.mark.parametrize(
    ("rows", "calls", "answers"),
    [
        ([(1, 1.0, "a", 1)], [("min", "x")], True),
        ([(1, 0.0, "a", 1), (1, -0.0, "a", 1)], [("min", "x")], False),
        ([(1, math.nan, "a", 1), (1, 1.0, "a", 1)], [("max", "x")], False),
        ([(1, None, "a", 1)], [("max", "x")], True),
        ([(1, 1.0, "a", 1), (1, 1.0, "b", 1)], [("max", "text")], True),
        ([(1, 1.0, "a text longer than bounds of texts are", 1)], [("min", "text")], False),
        ([(1, 1.0, "a text longer than bounds of texts are", 1)], [("count", "text")], True),
    ],
    ids=["plain", "both zeros", "NaN", "nulls", "short texts", "cut texts", "count of cut texts"],
)
def test_files_answer_only_by_exact_values(rows, calls, answers):
    known, _ = answered(table_of(4, [rows], by=[]), "true", [], calls)
    assert (len(known.to_read) == 0) == answers


def test_the_types_of_columns_and_the_specs_decide_whether_files_can_answer():
    older, newer = (table_of(version, [], by=["part", "truncate(2, text)"]) for version in (3, 4))
    columns = older.schema.by_name

    def least(name: str) -> list[Aggregate]:
        return [Aggregate(function="min", column=columns[name])]

    assert not can_answer(older.metadata, [], least("text"))  # whose bounds may be truncated
    assert can_answer(newer.metadata, [], least("text"))
    assert can_answer(older.metadata, [], [Aggregate(function="count", column=columns["text"])])
    assert can_answer(older.metadata, [columns["part"]], least("n"))
    assert not can_answer(newer.metadata, [columns["text"]], [])
    assert not can_answer(newer.metadata, [columns["x"]], [])


@pytest.mark.parametrize("version", [3, 4])
def test_files_with_deleted_rows_are_counted_and_their_values_are_read(version):
    table = table_of(version, [[(1, 1.0, "a", 1), (2, 1.0, "a", 1)], [(3, 1.0, "a", 1)]], by=[])
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("n = 2")
    counts, _ = answered(table, "true", [], [("count", None)])
    assert (counts.groups.to_pylist(), len(counts.to_read)) == ([{"0": 2}], 0)
    maxima, _ = answered(table, "true", [], [("max", "n")])
    assert (maxima.groups.to_pylist(), len(maxima.to_read)) == ([{"0": 3}], 1)
    assert maxima.share_to_read == pytest.approx(2 / 3)
