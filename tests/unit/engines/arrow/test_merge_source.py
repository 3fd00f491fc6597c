"""What a merge reads of a table: filters never leave out a row that a condition is true for."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.engines.arrow.change.merge_source import MergeSource
from icefloe.engines.merge import TARGET, Action, Clause, Merge, Names, When
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Op, Predicate
from icefloe.expr.filter.row_filter import to_arrow
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
NAMES = Names(target=frozenset(field.name for field in SCHEMA.fields), source=frozenset({"id"}))
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
    value = NAMES.resolve(parse_value(text), frozenset({TARGET}))
    columns = {f"t.{name}": column for name, column in ROWS.items()}
    true = [found is True for found in evaluate_value(value, columns, 5).to_pylist()]
    numbered = pa.table({**ROWS, "row": list(range(5))})
    kept = numbered.filter(to_arrow(bind(implied_filter(value.node, SCHEMA, alias=TARGET), SCHEMA)))["row"].to_pylist()
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
    node = NAMES.resolve(parse_value(text), frozenset({TARGET})).node
    assert implied_filter(node, SCHEMA, alias=TARGET) == expected


def _source(on: str, keys: list[Any], *clauses: Clause, type_: pa.DataType | None = None) -> MergeSource:
    rows = pa.table({"id": pa.array(keys, pa.int64() if type_ is None else type_)})
    deleted = Clause(when=When.MATCHED, action=Action.DELETE)
    return MergeSource(Merge(on=parse_value(on), clauses=clauses or (deleted,)), rows, SCHEMA)


def test_keys_make_a_list_or_a_range_of_values() -> None:
    assert _source("t.id = s.id", [3, 1, None, 3]).range == Predicate(Op.IN, "id", (3, 1))
    assert str(_source("t.id = s.id", list(range(500))).range).count("Predicate") == 2
    assert _source("t.id = s.id", [None]).range == ALWAYS_FALSE
    assert _source("t.id = s.id", []).range == ALWAYS_FALSE
    assert _source("t.x = s.id", [1]).range == ALWAYS_TRUE
    assert _source("t.id + 1 = s.id", [1]).range == ALWAYS_TRUE


@pytest.mark.parametrize(
    "type_",
    [
        pa.string_view(),
        pa.large_string(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.run_end_encoded(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_texts_prune_however_they_are_laid_out(type_: pa.DataType) -> None:
    """Texts of polars are views: they could not be taken, and as keys of another type they pruned nothing."""
    keys = pa.array(["b", "a"], pa.string()) if pa.types.is_run_end_encoded(type_) else pa.array(["b", "a"], type_)
    keys = pc.run_end_encode(keys) if pa.types.is_run_end_encoded(type_) else keys
    rows = pa.table({"id": keys})
    deleted = Clause(when=When.MATCHED, action=Action.DELETE)
    for part, found in ((rows, Predicate(Op.IN, "note", ("b", "a"))), (rows.schema.empty_table(), ALWAYS_FALSE)):
        source = MergeSource(Merge(on=parse_value("t.note = s.id"), clauses=(deleted,)), part, SCHEMA)
        assert source.range == found
        assert source.columns["id"].type == pa.string()


def test_rows_that_only_the_table_has_widen_what_is_read() -> None:
    def alone(condition: str | None) -> Clause:
        value = None if condition is None else parse_value(condition)
        return Clause(when=When.NOT_MATCHED_BY_SOURCE, action=Action.DELETE, condition=value)

    assert _source("t.id = s.id", [1], alone(None)).range == ALWAYS_TRUE
    found = _source("t.id = s.id", [], alone("t.n = 5")).range
    assert found == Predicate(Op.EQ, "n", (5,))


def test_only_columns_that_matter_are_read() -> None:
    update = Clause(
        when=When.MATCHED,
        action=Action.UPDATE,
        condition=parse_value("t.n > 1"),
        assignments={"note": parse_value("upper(t.note)")},
    )
    source = _source("t.id = s.id AND t.day > '2026-01-01'", [1], update)
    assert source.read == {"id", "day", "n"}
    assert source.rewritten == {"id", "n", "x", "note", "day", "who"}


@pytest.mark.parametrize("type_", [pa.int8(), pa.int32(), pa.uint16(), pa.decimal128(5, 0), pa.float64()])
def test_keys_of_other_number_types_are_compared_as_numbers(type_: pa.DataType) -> None:
    keys = pa.array([2, 9], pa.int64()).cast(pa.decimal128(19, 0)).cast(type_) if pa.types.is_decimal(type_) else [2, 9]
    source = _source("t.id = s.id", keys if isinstance(keys, list) else keys.to_pylist(), type_=type_)
    rows = pa.record_batch({"id": ROWS["id"]})
    assert source.index.key_numbers(source.keys_of(rows), 5).tolist() == [-1, -1, -1, 0, -1]
