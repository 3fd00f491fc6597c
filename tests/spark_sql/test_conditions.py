"""Conditions that Spark passes are filters only if they mean the same for nulls."""

from __future__ import annotations

import pytest

from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import Op, Predicate
from icefloe.model.text.ddl import parse_ddl
from icefloe.spark_sql.conditions import Column, Condition, LiteralValue, filter_of

SCHEMA = parse_ddl("n int")
N = Column(path=("N",))


def literal(value: str | None) -> LiteralValue:
    return LiteralValue(type="int", value=value)


def test_not_in_a_list_with_null_is_no_filter_because_it_is_never_true() -> None:
    contains = Condition(name="IN", arguments=(N, literal("1"), literal(None)))
    assert filter_of([contains], SCHEMA, case_sensitive=False) == Predicate(Op.IN, "n", (1,))
    with pytest.raises(UnsupportedError, match="NOT cannot be a filter"):
        filter_of([Condition(name="NOT", arguments=(contains,))], SCHEMA, case_sensitive=False)


def test_not_equal_to_null_by_the_null_safe_operator_is_a_filter() -> None:
    is_null = Condition(name="<=>", arguments=(N, literal(None)))
    not_null = Condition(name="NOT", arguments=(is_null,))
    assert filter_of([not_null], SCHEMA, case_sensitive=False) == Predicate(Op.NOT_NULL, "n")
