"""Tests of transforms as tests of the column: each row passes the one exactly if it passes the other."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from filter_cases import SCHEMA

from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, Bound, BoundPredicate, Op, Predicate, TransformTerm, leaves
from icefloe.expr.filter.preimage import over_columns
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import TIMESTAMP_NS, Field
from icefloe.transforms.truncate import successor
from support.row_matching import matches

OPS = (Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE)
TIMES = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 1),
    dt.datetime(2024, 2, 29, 23, 59, 59, 999_999), dt.datetime(2024, 3, 1), dt.datetime(2024, 3, 1, 0, 59),
    dt.datetime(2025, 1, 1), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
]  # fmt: skip
TEXTS = [
    "",
    "a",
    "ab",
    "ab\0",
    "abc",
    "abz",
    "ac",
    "b",
    "a\U0010ffff",
    "a\U0010ffffx",
    "\U0010ffff\U0010ffff",
    "\ud7ff",
]
CASES: list[tuple[str, str, list[Any], list[Any]]] = [
    ("t", "year", TIMES, [-1, 0, 54, 55]),
    ("t", "month", TIMES, [-1, 0, 649, 650]),
    ("t", "day", TIMES, [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]),
    ("t", "hour", TIMES, [-1, 0, 1, 474_768]),
    ("d", "month", [time.date() for time in TIMES], [-1, 0, 649, 650]),
    ("i", "truncate[10]", [-20, -11, -10, -1, 0, 9, 10, 25, 2**31 - 1], [-10, -5, 0, 5, 10, 2**31 - 8]),
    ("m", "truncate[50]", [decimal.Decimal(n).scaleb(-2) for n in (-51, -50, 0, 49, 50, 999_999_999)],
     [decimal.Decimal(n).scaleb(-2) for n in (-50, 0, 25, 50, 999_999_950)]),
    ("s", "truncate[2]", TEXTS, TEXTS),
    ("x", "truncate[1]", [b"", b"\0", b"\1\1", b"\2", b"\xff", b"\xff\xff"], [b"", b"\0", b"\1", b"\xff", b"\1\1"]),
]  # fmt: skip


def bound(op: Op, transform: str, column: str, *literals: Any) -> Bound:
    return bind(Predicate(op, TransformTerm(transform, column), literals), SCHEMA)


@pytest.mark.parametrize(("column", "transform", "values", "literals"), CASES, ids=[f"{c}-{t}" for c, t, _, _ in CASES])
def test_every_value_passes_both_or_none(column: str, transform: str, values: list[Any], literals: list[Any]) -> None:
    tests = [(op, (literal,)) for op in OPS for literal in literals]
    tests += [(op, tuple(literals[i : i + 3])) for op in (Op.IN, Op.NOT_IN) for i in range(len(literals))]
    if column == "s":
        tests += [(op, (text,)) for op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH) for text in literals]
    for op, given in tests:
        of_transform = bound(op, transform, column, *given)
        of_column = over_columns(of_transform)
        assert all(str(n.transform) == "identity" for n in leaves(of_column) if isinstance(n, BoundPredicate))
        for value in (*values, None):
            row = {column: value}
            assert matches(of_column, row) == matches(of_transform, row), (op, given, value)


def test_neighbouring_intervals_become_one() -> None:
    days = [dt.date(2024, 3, day) for day in (1, 2, 3)]
    found = over_columns(bound(Op.IN, "day", "t", *days))
    limits = [node.literal for node in leaves(found) if isinstance(node, BoundPredicate)]
    assert limits == [dt.datetime(2024, 3, 1), dt.datetime(2024, 3, 4)]


def test_a_bucket_has_no_interval() -> None:
    test = bound(Op.EQ, "bucket[4]", "l", 3)
    assert over_columns(test) == test


def test_limits_beyond_python_stay_tests_of_the_transform() -> None:
    test = bound(Op.LE, "day", "t", dt.date(9999, 12, 31))
    assert over_columns(test) == test


def test_limits_beyond_the_type_are_constants_or_tests_for_null() -> None:
    schema = Schema(fields=(Field(1, "n", TIMESTAMP_NS),))

    def over(op: Op, year: int) -> Bound:
        return over_columns(bind(Predicate(op, TransformTerm("year", "n"), (year,)), schema))

    late = over(Op.LE, 2_000)
    assert isinstance(late, BoundPredicate)
    assert late.op is Op.NOT_NULL
    assert over(Op.GT, 2_000) == ALWAYS_FALSE
    assert over(Op.EQ, -2_000) == ALWAYS_FALSE


def test_the_successor_of_a_prefix_skips_surrogates_and_full_bytes() -> None:
    assert successor("a\ud7ff") == "a\ue000"
    assert successor("a\U0010ffff") == "b"
    assert successor("\U0010ffff") is None
    assert successor(b"\1\xff") == b"\2"
