"""Filters as text: what is printed reads back as the same filter."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import Any

import pytest
from filter_cases import SCHEMA, filters
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Expr,
    Not,
    Op,
    Or,
    Predicate,
    TransformTerm,
    conjunction,
    disjunction,
    fold,
    negation,
)
from icefloe.expr.text.datetime_text import Nanos, nanos, parse_moment
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.expr.text.filter_printer import to_text
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, TIME, TIMESTAMP_NS, TIMESTAMPTZ_NS, UUID, Field, Fixed, Struct


def normal(expr: Expr) -> Expr:
    """The form that the parser gives: flat, without constants inside, NOT of a predicate as its opposite."""

    def leaf(node: Any) -> Expr:
        return node  # type: ignore[no-any-return]

    def branch(node: Any, parts: list[Expr]) -> Expr:
        if isinstance(node, Not):
            return negation(parts[0])
        return conjunction(parts) if isinstance(node, And) else disjunction(parts)

    return fold(expr, leaf, branch)


def printable(expr: Expr) -> str:
    """An expression with its types, in which NaN equals itself."""
    return repr(normal(expr))


_NAMES = st.sampled_from(
    ["id", "a.b", "Order", "select", "date", "a b", "x`y", "a.b`.c d", "é", "1a", "if", ".a", "", "a\nb"]
) | st.text(st.characters(blacklist_categories=("Cs",)), max_size=6)
_ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-5, minutes=-30))])
_SAFE = {"min_value": dt.datetime(2, 1, 1), "max_value": dt.datetime(9998, 1, 1)}
_LITERALS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**40), 10**40),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.text(st.characters(blacklist_categories=("Cs",))),
    st.text(st.sampled_from("'\"\\`\n\r\0%_-;/* néu"), max_size=6),
    st.binary(max_size=5),
    st.uuids(),
    st.dates(),
    st.times().map(lambda time: time.replace(fold=0)),
    st.datetimes().map(lambda moment: moment.replace(fold=0)),
    st.datetimes(**_SAFE, timezones=_ZONES).map(lambda moment: moment.astimezone(dt.UTC).replace(fold=0)),
    st.builds(Nanos, st.integers(-(2**63), 2**63).filter(lambda n: n % 1000 != 0), st.booleans()),
)
_TERMS = _NAMES | st.builds(
    TransformTerm, st.sampled_from(["bucket[16]", "truncate[3]", "year", "month", "day", "hour", "void"]), _NAMES
)


@st.composite
def predicates(draw: st.DrawFn) -> Expr:
    op, term = draw(st.sampled_from(sorted(Op, key=lambda op: op.name))), draw(_TERMS)
    if op in (Op.IN, Op.NOT_IN):
        return Predicate(op, term, tuple(draw(st.lists(_LITERALS, max_size=4))))
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return Predicate(op, term, (draw(st.none() | st.text(st.characters(blacklist_categories=("Cs",)))),))
    return Predicate(op, term, (draw(_LITERALS),) if op.takes_literals else ())


_FILTERS: st.SearchStrategy[Expr] = st.recursive(
    predicates() | st.sampled_from([ALWAYS_TRUE, ALWAYS_FALSE]),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


@given(_FILTERS)
def test_what_is_printed_reads_back_as_the_same_filter(expr: Expr) -> None:
    assert printable(parse_filter(to_text(expr))) == printable(expr)


@given(filters)
def test_a_bound_filter_prints_text_that_binds_to_it(expr: Expr) -> None:
    bound = bind(expr, SCHEMA)
    assert bind(parse_filter(to_text(bound)), SCHEMA) == bound


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Predicate(Op.EQ, "id", (3,)), "id = 3"),
        (Predicate(Op.NE, "a.b", ("it's",)), r"a.b != 'it\'s'"),
        (Predicate(Op.IS_NULL, "a b.c"), "`a b`.`c` IS NULL"),
        (Predicate(Op.NOT_NULL, "order"), "`order` IS NOT NULL"),
        (Predicate(Op.NOT_IN, "x", (1, decimal.Decimal("1.50"), 2.5)), "x NOT IN (1, 1.50, 2.5D)"),
        (Predicate(Op.LT, "x", (math.inf,)), "x < CAST('Infinity' AS DOUBLE)"),
        (Predicate(Op.EQ, TransformTerm("bucket[16]", "id"), (3,)), "bucket(16, id) = 3"),
        (Predicate(Op.GE, TransformTerm("day", "ts"), (dt.date(2024, 1, 1),)), "days(ts) >= DATE '2024-01-01'"),
        (Predicate(Op.EQ, TransformTerm("identity", "id"), (3,)), "id = 3"),
        (Predicate(Op.EQ, "t", (dt.datetime(2024, 1, 1, 2),)), "t = TIMESTAMP '2024-01-01 02:00:00'"),
        (
            Predicate(Op.EQ, "t", (dt.datetime(2024, 1, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),)),
            "t = TIMESTAMP '2024-01-01 00:00:00+00:00'",
        ),
        (Predicate(Op.EQ, "t", (Nanos(1, True),)), "t = TIMESTAMP '1970-01-01 00:00:00.000000001+00:00'"),
        (Predicate(Op.NOT_STARTS_WITH, "s", ("a%",)), "NOT startswith(s, 'a%')"),
        (
            Or((And((Predicate(Op.IS_NAN, "a"), Predicate(Op.NOT_NAN, "b"))), Not(Or((Predicate(Op.IS_NULL, "c"),))))),
            "(isnan(a) AND NOT isnan(b)) OR (NOT (c IS NULL))",
        ),
        (And(()), "true"),
        (Or(()), "false"),
    ],
)
def test_texts_are_short_and_plain(expr: Expr, text: str) -> None:
    assert to_text(expr) == text


@pytest.mark.slow
def test_every_word_can_name_a_column() -> None:
    words = {word for keyword in Spark.Tokenizer.KEYWORDS for word in keyword.split()}
    for word in [*sorted(words), *Spark.Parser.FUNCTIONS, *Spark.Parser.NO_PAREN_FUNCTION_PARSERS, "system", "years"]:
        for op, term in ((Op.EQ, word), (Op.EQ, f"a.{word}"), (Op.EQ, TransformTerm("year", word)), (Op.IN, word)):
            expr = Predicate(op, term, (1,))
            assert parse_filter(to_text(expr)) == expr


def test_bound_literals_print_by_their_types() -> None:
    schema = Schema(
        fields=(
            Field(1, "n", TIMESTAMP_NS),
            Field(2, "y", TIMESTAMPTZ_NS),
            Field(3, "u", UUID),
            Field(4, "f", Fixed(2)),
            Field(5, "c", TIME),
            Field(6, "a.b", Struct((Field(7, "x y", DOUBLE),))),
        )
    )
    key = uuid.UUID(int=5)
    for text in (
        "n = TIMESTAMP '1970-01-01 00:00:00.000000001'",
        "y IN (TIMESTAMP '1969-12-31 23:59:59.999999999+00:00', TIMESTAMP '1970-01-01 00:00:00.000000000+00:00')",
        f"u = CAST('{key}' AS UUID)",
        "f = X'01FF'",
        "c < TIME '12:00:00'",
        "`a.b`.`x y` > 1.5D",
        "years(n) = 5",
    ):
        bound = bind(parse_filter(text), schema)
        assert to_text(bound) == text
        assert bind(parse_filter(to_text(bound)), schema) == bound


@pytest.mark.parametrize("join", [And, Or])
def test_deep_nests_print_and_read_back(join: type[And | Or]) -> None:
    expr: Expr = Predicate(Op.EQ, "i", (0,))
    for n in range(1000):
        other = And if (join is Or) == (n % 2 == 0) else Or
        expr = other((expr, Predicate(Op.GT, "i", (n,))))
    assert parse_filter(to_text(expr)) == expr
    negated: Expr = And((Predicate(Op.IS_NULL, "a"), Predicate(Op.IS_NULL, "b")))
    for _ in range(1001):
        negated = Not(negated)
    assert parse_filter(to_text(negated)) == normal(negated)


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (Predicate(Op.EQ, TransformTerm("zorder[2]", "id"), (3,)), "transform 'zorder.2.' of column 'id'"),
        (Predicate(Op.EQ, "id", (object(),)), "literal of type object"),
        (Predicate(Op.EQ, "id", (1, 2)), "one literal is needed, not 2"),
        (Predicate(Op.EQ, "id", (10**5000,)), "cannot be written"),
        (
            Predicate(Op.EQ, "t", (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))),)),
            "years 1 to 9999",
        ),
    ],
)
def test_what_has_no_text_is_refused(expr: Expr, message: str) -> None:
    with pytest.raises(InputError, match=message):
        to_text(expr)


@given(st.datetimes(), st.integers(0, 999))
def test_moments_of_nanoseconds_read_back(moment: dt.datetime, below: int) -> None:
    found = parse_moment(str(Nanos(nanos(moment) + below, False)))
    assert found == (moment if below == 0 else Nanos(nanos(moment) + below, False))
