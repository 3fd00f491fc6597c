"""The filter that a condition implies never excludes a row for which the condition is true."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.expr.filter.batch_filter import to_arrow
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Op, Predicate
from icefloe.expr.value.expressions import evaluate_value, parse_value
from icefloe.expr.value.implied_filter import implied_filter
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, DOUBLE, INT, LONG, STRING, Field, Struct

SCHEMA = Schema(
    fields=(
        Field(1, "id", LONG),
        Field(2, "n", INT),
        Field(3, "x", DOUBLE),
        Field(4, "note", STRING),
        Field(5, "day", DATE),
        Field(6, "who", Struct((Field(7, "age", INT),))),
    )
)
ROWS = {
    "id": pa.array([None, 0, 1, 2, 3], pa.int64()),
    "n": pa.array([3, None, 1, 2, 0], pa.int32()),
    "x": pa.array([0.1, float("nan"), None, -0.0, 2.0], pa.float64()),
    "note": pa.array(["a", "b", None, "", "a"], pa.string()),
    "day": pa.array([dt.date(2026, 1, day) for day in range(1, 5)] + [None], pa.date32()),
    "who": pa.array([{"age": 1}, {"age": None}, None, {"age": 2}, {"age": 0}], pa.struct([("age", pa.int32())])),
}
_operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
_pairs = st.sampled_from(
    [
        *(("t.id", "1"), ("t.n", "2"), ("t.n", "1.5"), ("t.x", "0.1"), ("t.x", "2"), ("t.note", "'a'")),
        *(("t.day", "'2026-01-02'"), ("t.day", "DATE '2026-01-03'"), ("t.who.age", "1"), ("t.id", "null")),
        *(("t.id", "t.n"), ("t.id + 1", "2"), ("t.day", "TIMESTAMP_NTZ '2026-01-02 00:00:00'")),
    ]
)
_tests = st.one_of(
    st.tuples(_pairs, _operators).map(lambda drawn: f"{drawn[0][0]} {drawn[1]} {drawn[0][1]}"),
    st.tuples(_pairs, _operators).map(lambda drawn: f"{drawn[0][1]} {drawn[1]} {drawn[0][0]}"),
    st.sampled_from(
        ["t.id IN (1, 2)", "t.n IN (1, null)", "t.note IS NULL", "t.who IS NOT NULL", "t.id NOT IN (1, 9)"]
    ),
    st.sampled_from(["t.n BETWEEN 1 AND 2", "t.note LIKE 'a%'", "t.x IS NOT NULL", "t.n IN (t.id, 1)", "true"]),
)
_conditions = st.recursive(
    _tests,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        inner.map(lambda p: f"NOT ({p})"),
    ),
    max_leaves=4,
)


@given(text=_conditions)
def test_a_filter_keeps_every_row_for_which_the_condition_is_true(text: str) -> None:
    value = parse_value(text)
    columns = {f"t.{name}": column for name, column in ROWS.items()}
    true = [found is True for found in evaluate_value(value, columns, 5).to_pylist()]
    numbered = pa.table({**ROWS, "row": list(range(5))})
    kept = numbered.filter(to_arrow(bind(implied_filter(value.node, SCHEMA, alias="t"), SCHEMA)))["row"].to_pylist()
    assert {row for row, is_true in enumerate(true) if is_true} <= set(kept)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t.id > 5", Predicate(Op.GT, "id", (5,))),
        ("5 > t.id", Predicate(Op.LT, "id", (5,))),
        ("5 <= t.who.age", Predicate(Op.GE, "who.age", (5,))),
        ("t.id = 1 AND t.note || 'x' = 'y'", Predicate(Op.EQ, "id", (1,))),
        ("t.id = 1 OR t.note || 'x' = 'y'", ALWAYS_TRUE),
        ("t.id = t.n", ALWAYS_TRUE),
        ("t.x > 1", ALWAYS_TRUE),
    ],
)
def test_conditions_of_one_column_and_constants_are_filters(text: str, expected: Any) -> None:
    assert implied_filter(parse_value(text).node, SCHEMA, alias="t") == expected


@pytest.mark.parametrize("text", ["array()", "s.id = 1", "id = 1", "t.id = s.id", "true"])
def test_conditions_without_a_test_of_the_table_imply_nothing(text: str) -> None:
    assert implied_filter(parse_value(text).node, SCHEMA, alias="t") == ALWAYS_TRUE
