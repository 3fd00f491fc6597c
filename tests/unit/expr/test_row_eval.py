"""Filters evaluated batch by batch give the rows where SQL says true."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from filter_cases import NAN, SCHEMA, filters, rows, truth
from hypothesis import given

from icefloe.errors import InputError
from icefloe.expr.filter.batch_filter import evaluate_rows
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Expr, Op, Predicate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, LONG, Field, Struct
from support.row_matching import matches


def batch_of(content: list[dict[str, Any]], schema: Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(content, schema=arrow_schema(schema))


def found(bound: Any, content: list[dict[str, Any]], schema: Schema = SCHEMA) -> list[int]:
    return [i for i, match in enumerate(evaluate_rows(bound, batch_of(content, schema)).to_pylist()) if match is True]


@given(content=rows(), expr=filters)
def test_the_rows_where_sql_says_true_match(content: list[dict[str, Any]], expr: Expr) -> None:
    expected = [i for i, row in enumerate(content) if truth(expr, row) is True]
    assert found(bind(expr, SCHEMA), content) == expected


@given(content=rows(), expr=filters)
def test_slices_are_tested_like_whole_batches(content: list[dict[str, Any]], expr: Expr) -> None:
    bound, batch = bind(expr, SCHEMA), batch_of(content)
    whole = evaluate_rows(bound, batch).to_pylist()
    assert evaluate_rows(bound, batch.slice(1)).to_pylist() == whole[1:]


@pytest.mark.parametrize("text", ["bucket(4, i) = 2", "truncate(10, i) IN (0, 20)", "bucket(4, i) IS NULL"])
def test_transforms_of_columns_are_computed(text: str) -> None:
    content = [{"i": value} for value in (None, 1, 5, 22, 23, -4, 34)]
    schema = Schema(fields=(Field(1, "i", INT),))
    bound = bind(parse_filter(text), schema)
    assert found(bound, content, schema) == [i for i, row in enumerate(content) if matches(bound, row)]


def test_a_field_of_a_null_struct_is_null_whatever_lies_below() -> None:
    inner = Struct((Field(2, "b", Struct((Field(3, "c", LONG),))),))
    schema = Schema(fields=(Field(1, "a", inner),))
    below = pa.StructArray.from_arrays([pa.array([7, 7, 7])], ["c"], mask=pa.array([False, True, False]))
    column = pa.StructArray.from_arrays([below], ["b"], mask=pa.array([False, False, True]))
    rows = pa.record_batch({"a": column})
    assert evaluate_rows(bind(parse_filter("a.b.c = 7"), schema), rows).to_pylist() == [True, None, None]
    assert evaluate_rows(bind(parse_filter("a.b.c IS NULL"), schema), rows).to_pylist() == [False, True, True]


@pytest.mark.parametrize("op", [Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE, Op.IN, Op.NOT_IN])
def test_nan_is_the_largest_value_and_zeros_are_equal(op: Op) -> None:
    content = [{"f": value} for value in (NAN, None, -0.0, 0.0, 1.0)]
    schema = SCHEMA.select(("f",))
    for literal in (0.0, -0.0, 1.0):
        bound = bind(Predicate(op, "f", (literal,)), schema)
        assert found(bound, content, schema) == [i for i, row in enumerate(content) if matches(bound, row)]


def test_constants_and_unbound_filters() -> None:
    rows_ = pa.record_batch({"x": [1, 2]})
    assert evaluate_rows(ALWAYS_TRUE, rows_).to_pylist() == [True, True]
    assert evaluate_rows(ALWAYS_FALSE, rows_).to_pylist() == [False, False]
    with pytest.raises(InputError, match="bind the filter"):
        evaluate_rows(Predicate(Op.EQ, "x", (1,)), rows_)  # type: ignore[arg-type]
