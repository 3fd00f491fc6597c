"""Conditions that Spark pushes to writes, as filters."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Op, Predicate, conjunction, disjunction, negation
from icefloe.model.text.ddl import parse_ddl
from icefloe.spark_sql.conditions import Column, Condition, LiteralValue, Node, OtherExpression, filter_of

SCHEMA = parse_ddl("Id bigint, day date, at timestamp, s struct<x: int>, flag boolean")
ID, FIVE, NULL = Column(path=("id",)), LiteralValue(type="bigint", value="5"), LiteralValue(type="bigint", value=None)


def predicate(name: str, *arguments: Node) -> Condition:
    return Condition(name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (predicate("=", ID, FIVE), Predicate(Op.EQ, "Id", (5,))),
        (predicate("<", FIVE, ID), Predicate(Op.GT, "Id", (5,))),
        (predicate("<=>", ID, NULL), Predicate(Op.IS_NULL, "Id")),
        (predicate("<=>", ID, FIVE), conjunction([Predicate(Op.NOT_NULL, "Id"), Predicate(Op.EQ, "Id", (5,))])),
        (predicate("IN", ID, FIVE), Predicate(Op.IN, "Id", (5,))),
        (predicate("IS_NOT_NULL", Column(path=("s", "X"))), Predicate(Op.NOT_NULL, "s.x")),
        (predicate("NOT", predicate("=", ID, FIVE)), negation(Predicate(Op.EQ, "Id", (5,)))),
        (
            predicate("OR", predicate("IS_NULL", ID), predicate(">=", ID, FIVE)),
            disjunction([Predicate(Op.IS_NULL, "Id"), Predicate(Op.GE, "Id", (5,))]),
        ),
        (predicate("ALWAYS_TRUE"), ALWAYS_TRUE),
        (predicate("ALWAYS_FALSE"), ALWAYS_FALSE),
        (Column(path=("flag",)), Predicate(Op.EQ, "flag", (True,))),
    ],
)
def test_a_condition_becomes_a_filter_with_the_names_of_the_table(condition: Node, expected: object) -> None:
    assert filter_of([condition], SCHEMA, case_sensitive=False) == expected


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("date", "1", date(1970, 1, 2)),
        ("timestamp", "1000001", datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC)),
        ("timestamp_ntz", "-1", datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("decimal(4,2)", "1.50", Decimal("1.50")),
        ("string", "it's", "it's"),
        ("boolean", "false", False),
        ("binary", "AQI=", b"\x01\x02"),
        ("double", "1.5", 1.5),
    ],
)
def test_literals_have_the_values_that_spark_stores(type_: str, text: str, value: object) -> None:
    condition = predicate("=", Column(path=("day",)), LiteralValue(type=type_, value=text))
    assert filter_of([condition], SCHEMA, case_sensitive=True) == Predicate(Op.EQ, "day", (value,))


@pytest.mark.parametrize(
    "condition",
    [
        OtherExpression(text="length(name)"),
        predicate("CONTAINS", ID, FIVE),
        predicate("<>", ID, NULL),
        predicate("NOT", predicate("IN", ID, FIVE, NULL)),
        predicate("=", ID, Column(path=("day",))),
        predicate("=", ID, LiteralValue(type="interval", value="1")),
    ],
)
def test_what_is_no_filter_is_refused(condition: Node) -> None:
    with pytest.raises(UnsupportedError, match="cannot be a filter"):
        filter_of([condition], SCHEMA, case_sensitive=False)


def test_names_follow_the_case_rule_of_the_session() -> None:
    with pytest.raises(InputError, match="no column 'id'"):
        filter_of([predicate("=", ID, FIVE)], SCHEMA, case_sensitive=True)
