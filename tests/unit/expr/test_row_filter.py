"""Row filters: Arrow and the plain evaluation agree with SQL's definition, and SQL text keeps its meaning."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from filter_cases import NAN, SCHEMA, filters, rows, truth
from hypothesis import given

from icefloe.errors import InputError
from icefloe.expr.filter.batch_filter import to_arrow
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, And, Expr, Op, Or, Predicate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.expr.text.spark_sql import to_sql
from icefloe.model.arrow.conform import arrow_schema
from support.row_matching import matches


def as_table(content: list[dict[str, Any]]) -> pa.Table:
    numbered = [row | {"row": i} for i, row in enumerate(content)]
    return pa.Table.from_pylist(numbered, schema=arrow_schema(SCHEMA).append(pa.field("row", pa.int64())))


@given(content=rows(), expr=filters)
def test_every_evaluation_of_rows_gives_the_rows_where_sql_says_true(content: list[dict[str, Any]], expr: Expr) -> None:
    bound = bind(expr, SCHEMA)
    expected = [i for i, row in enumerate(content) if truth(expr, row) is True]
    assert [i for i, row in enumerate(content) if matches(bound, row)] == expected
    assert as_table(content).filter(to_arrow(bound))["row"].to_pylist() == expected


@given(content=rows(), expr=filters)
def test_sql_text_parses_back_to_the_same_filter(content: list[dict[str, Any]], expr: Expr) -> None:
    bound = bind(expr, SCHEMA)
    again = bind(parse_filter(to_sql(bound)), SCHEMA)
    assert [matches(again, row) for row in content] == [matches(bound, row) for row in content]
    assert to_sql(again) == to_sql(bound)


def sql(op: Op, name: str, *literals: object) -> str:
    return to_sql(bind(Predicate(op, name, literals), SCHEMA))


def test_sql_literals_carry_their_types() -> None:
    assert sql(Op.EQ, "i", 5) == "`i` = 5"
    assert sql(Op.EQ, "l", -(2**63)) == "`l` = -9223372036854775808L"
    assert sql(Op.LT, "f", math.inf) == "`f` < CAST('Infinity' AS DOUBLE)"
    assert sql(Op.IN, "g", 0, 1) == "`g` IN (CAST('0.0' AS FLOAT), CAST('1.0' AS FLOAT), CAST('-0.0' AS FLOAT))"
    assert sql(Op.EQ, "s", "it's \\n") == r"`s` = 'it\'s \\n'"
    assert sql(Op.EQ, "d", dt.date(2024, 3, 1)) == "`d` = DATE '2024-03-01'"
    assert sql(Op.EQ, "t", dt.datetime(2024, 3, 1, 1)) == "`t` = TIMESTAMP_NTZ '2024-03-01 01:00:00'"
    assert sql(Op.EQ, "z", dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)) == "`z` = timestamp_micros(1000000L)"
    assert sql(Op.EQ, "m", decimal.Decimal("1.5")) == "`m` = CAST('1.50' AS DECIMAL(9, 2))"
    assert sql(Op.EQ, "b", True) == "`b` = true"
    assert sql(Op.EQ, "x", b"\x1f") == "`x` = X'1F'"
    assert sql(Op.EQ, "u", uuid.UUID(int=1)) == "`u` = X'" + "0" * 31 + "1'"
    assert sql(Op.IS_NULL, "n.k") == "`n`.`k` IS NULL"
    assert sql(Op.NOT_STARTS_WITH, "s", "a") == "(NOT startswith(`s`, 'a'))"
    assert to_sql(ALWAYS_FALSE) == "false"


@pytest.mark.parametrize(
    "text", ["f < 9", "f = 5", "f != 5", "f IN (4, 5)", "f NOT IN (4, 5)", "f > 9", "f >= 5", "f <= 5"]
)
def test_bounds_that_leave_nan_out_do_not_mislead_arrow(text: str, tmp_path: Any) -> None:
    table = pa.table({"f": pa.array([5.0, NAN, 4.0]), "row": [0, 1, 2]})
    pq.write_table(table, tmp_path / "f.parquet")
    bound = bind(parse_filter(text), SCHEMA)
    read = pq.read_table(tmp_path / "f.parquet", filters=to_arrow(bound))
    assert read["row"].to_pylist() == [i for i, v in enumerate((5.0, NAN, 4.0)) if matches(bound, {"f": v})]


@pytest.mark.parametrize("join", [And, Or])
def test_thousands_of_terms_do_not_nest(join: type[And | Or]) -> None:
    bound = bind(join(tuple(Predicate(Op.GT, "i", (n,)) for n in range(-1000, 1000))), SCHEMA)
    table = pa.table({"i": pa.array([-5, 999, 1000, None], pa.int32())})
    expected = [1000] if join is And else [-5, 999, 1000]
    assert table.filter(to_arrow(bound))["i"].to_pylist() == expected
    assert len(to_sql(bound)) > 20_000


def test_an_unbound_filter_is_refused() -> None:
    for evaluation in (to_arrow, to_sql, lambda expr: matches(expr, {"i": 1})):
        with pytest.raises(InputError, match="bind the filter"):
            evaluation(Predicate(Op.IS_NULL, "i"))
