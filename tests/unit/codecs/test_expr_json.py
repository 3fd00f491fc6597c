"""Filters as JSON: the forms of the specification both ways, the same meaning after a trip, and hostile input."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.json.expressions import expr_from_json, expr_to_json
from icefloe.errors import FormatError, InputError, LimitError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    BoundPredicate,
    Expr,
    Not,
    Op,
    Or,
    Predicate,
    TransformTerm,
    leaves,
)
from icefloe.expr.text.datetime_text import Nanos
from icefloe.limits import Limits
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    Decimal,
    Field,
    Fixed,
    Struct,
)

BUCKET = {"type": "transform", "transform": "bucket[16]", "term": "id"}
A, B, C = (Predicate(Op.IS_NULL, name) for name in "abc")


def null(name: str) -> dict[str, str]:
    return {"type": "is-null", "term": name}


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (Predicate(Op.EQ, "id", (1,)), {"type": "eq", "term": "id", "value": 1}),
        (Predicate(Op.NE, "a.b", ("x",)), {"type": "not-eq", "term": "a.b", "value": "x"}),
        (Predicate(Op.LT, "x", (1.5,)), {"type": "lt", "term": "x", "value": 1.5}),
        (Predicate(Op.LE, "x", (True,)), {"type": "lt-eq", "term": "x", "value": True}),
        (Predicate(Op.GT, "x", (2**70,)), {"type": "gt", "term": "x", "value": 2**70}),
        (Predicate(Op.GE, "x", (None,)), {"type": "gt-eq", "term": "x", "value": None}),
        (Predicate(Op.IN, "x", (1, 2)), {"type": "in", "term": "x", "values": [1, 2]}),
        (Predicate(Op.NOT_IN, "x", ()), {"type": "not-in", "term": "x", "values": []}),
        (Predicate(Op.STARTS_WITH, "x", ("a",)), {"type": "starts-with", "term": "x", "value": "a"}),
        (Predicate(Op.NOT_STARTS_WITH, "x", ("a",)), {"type": "not-starts-with", "term": "x", "value": "a"}),
        (A, null("a")),
        (Predicate(Op.NOT_NULL, "x"), {"type": "not-null", "term": "x"}),
        (Predicate(Op.IS_NAN, "x"), {"type": "is-nan", "term": "x"}),
        (Predicate(Op.NOT_NAN, "x"), {"type": "not-nan", "term": "x"}),
        (Predicate(Op.EQ, TransformTerm("bucket[16]", "id"), (3,)), {"type": "eq", "term": BUCKET, "value": 3}),
        (And((A, B)), {"type": "and", "left": null("a"), "right": null("b")}),
        (Not(And((A, B))), {"type": "not", "child": {"type": "and", "left": null("a"), "right": null("b")}}),
        (
            Or((A, B, C)),
            {"type": "or", "left": {"type": "or", "left": null("a"), "right": null("b")}, "right": null("c")},
        ),
        (ALWAYS_TRUE, True),
        (ALWAYS_FALSE, False),
    ],
)
def test_every_node_has_its_form(expr: Expr, value: object) -> None:
    assert expr_to_json(expr) == value
    assert expr_from_json(value) == expr
    assert expr_from_json(json.loads(json.dumps(value))) == expr


def test_other_writers_spell_some_forms_differently() -> None:
    assert expr_from_json({"type": "true"}) == expr_from_json({"type": True}) == ALWAYS_TRUE
    assert expr_from_json({"type": "false"}) == ALWAYS_FALSE
    reference = {"type": "reference", "term": "id"}
    assert expr_from_json({"type": "is-null", "term": reference}) == Predicate(Op.IS_NULL, "id")
    literal = {"type": "literal", "value": 3}
    found = expr_from_json({"type": "eq", "term": BUCKET | {"term": reference}, "value": literal})
    assert found == Predicate(Op.EQ, TransformTerm("bucket[16]", "id"), (3,))


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (decimal.Decimal("14.20"), "14.20"),
        (dt.date(2017, 11, 16), "2017-11-16"),
        (dt.time(22, 31, 8, 123456), "22:31:08.123456"),
        (dt.datetime(2017, 11, 16, 22, 31, 8), "2017-11-16T22:31:08"),
        (dt.datetime(2017, 11, 16, 22, 31, 8, tzinfo=dt.timezone(dt.timedelta(hours=1))), "2017-11-16T21:31:08+00:00"),
        (Nanos(1, True), "1970-01-01T00:00:00.000000001+00:00"),
        (b"\x00\x01\x02\xff", "000102ff"),
        (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (decimal.Decimal("Infinity"), "Infinity"),
    ],
)
def test_literals_are_single_values(literal: object, value: str) -> None:
    assert expr_to_json(Predicate(Op.EQ, "x", (literal,))) == {"type": "eq", "term": "x", "value": value}


SCHEMA = Schema(
    fields=(
        Field(1, "i", INT),
        Field(2, "l", LONG),
        Field(3, "g", FLOAT),
        Field(4, "f", DOUBLE),
        Field(5, "m", Decimal(9, 2)),
        Field(6, "d", DATE),
        Field(7, "c", TIME),
        Field(8, "t", TIMESTAMP),
        Field(9, "z", TIMESTAMPTZ),
        Field(10, "n", TIMESTAMP_NS),
        Field(11, "y", TIMESTAMPTZ_NS),
        Field(12, "s", STRING),
        Field(13, "u", UUID),
        Field(14, "x", BINARY),
        Field(15, "o", Fixed(2)),
        Field(16, "b", BOOLEAN),
        Field(17, "p", Struct((Field(18, "k", LONG),))),
    )
)
_FLOATS = st.floats(width=32)
_NUMBERS = (
    st.integers(-(2**70), 2**70)
    | st.floats()
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=3)
)
_CLOCKS = st.datetimes()
_MOMENTS = st.datetimes(min_value=dt.datetime(2, 1, 1), max_value=dt.datetime(9998, 1, 1), timezones=st.just(dt.UTC))
_NANOS = st.integers(-(2**62), 2**62)
_TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=4)
_LITERALS: dict[str, st.SearchStrategy[Any]] = {
    "i": _NUMBERS,
    "l": _NUMBERS,
    "p.k": _NUMBERS,
    "g": st.integers(-(2**70), 2**70) | _FLOATS,
    "f": _NUMBERS,
    "m": _NUMBERS,
    "d": st.dates() | _CLOCKS,
    "c": st.times(),
    "t": _CLOCKS | st.dates() | st.builds(Nanos, _NANOS, st.just(False)),
    "z": _MOMENTS | st.builds(Nanos, _NANOS, st.just(True)),
    "n": _CLOCKS | st.dates() | _NANOS | st.builds(Nanos, _NANOS, st.just(False)),
    "y": _MOMENTS | _NANOS,
    "s": _TEXTS,
    "u": st.uuids() | st.binary(min_size=16, max_size=16),
    "x": st.binary(max_size=4),
    "o": st.binary(min_size=2, max_size=2),
    "b": st.booleans(),
}
_TERMS: dict[str | TransformTerm, st.SearchStrategy[Any]] = {
    **_LITERALS,
    TransformTerm("bucket[16]", "u"): _NUMBERS,
    TransformTerm("truncate[3]", "m"): _NUMBERS,
    TransformTerm("truncate[3]", "s"): _TEXTS,
    TransformTerm("day", "z"): st.dates() | st.integers(-1000, 1000),
    TransformTerm("hour", "n"): _NUMBERS,
}


@st.composite
def predicates(draw: st.DrawFn) -> Expr:
    term = draw(st.sampled_from(sorted(_TERMS, key=str)))
    op = draw(st.sampled_from(sorted(Op, key=lambda op: op.name)))
    literals = st.none() | _TERMS[term] | _TERMS[term]
    if op in (Op.IN, Op.NOT_IN):
        return Predicate(op, term, tuple(draw(st.lists(literals, max_size=4))))
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return Predicate(op, "s", (draw(_TEXTS),))
    return Predicate(op, term, (draw(literals),) if op.takes_literals else ())


_FILTERS: st.SearchStrategy[Expr] = st.recursive(
    predicates() | st.sampled_from([ALWAYS_TRUE, ALWAYS_FALSE]),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


def through_json(expr: Expr) -> Expr:
    return expr_from_json(json.loads(json.dumps(expr_to_json(expr), allow_nan=False)))


@given(_FILTERS)
def test_a_filter_means_the_same_after_a_trip_through_json(expr: Expr) -> None:
    bound = bind(expr, SCHEMA)
    assert bind(through_json(expr), SCHEMA) == bound
    assert bind(through_json(bound), SCHEMA) == bound


def test_a_float_in_json_is_the_float_nearest_to_its_digits() -> None:
    single = 0.10000000149011612
    bound = bind(Predicate(Op.EQ, "g", (single,)), SCHEMA)
    value = expr_to_json(bound)
    assert value == {"type": "eq", "term": "g", "value": 0.1}
    assert bind(expr_from_json(value), SCHEMA) == bound
    assert isinstance(bound, BoundPredicate)
    assert bound.literal == single


def test_thousands_of_terms_nest_as_deep_as_a_logarithm() -> None:
    expr = Or(tuple(Predicate(Op.EQ, f"c{n}", (n,)) for n in range(10_000)))
    text = json.dumps(expr_to_json(expr))
    assert expr_from_json(json.loads(text), limits=Limits(expression_depth=15)) == expr


@pytest.mark.slow
def test_deep_nests_are_limited_and_never_recurse() -> None:
    deep: Any = True
    for _ in range(100_000):
        deep = {"type": "not", "child": deep}
    with pytest.raises(LimitError, match="filter: filters nest deeper than 1000"):
        expr_from_json(deep)
    expr: Expr = A
    for _ in range(50_000):
        expr = Not(And((expr, B)))
    value = expr_to_json(expr)
    assert isinstance(value, dict)
    left: Any = null("a")
    for _ in range(999):
        left = {"type": "and", "left": left, "right": null("b")}
    assert len(list(leaves(expr_from_json(left)))) == 1000
    # Dictionaries this deep are taken apart by hand: freeing them at once would be deep too.
    while isinstance(value, dict) and value["type"] in ("not", "and"):
        value = value.pop("child", None) or value.pop("left")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "filter: expected a filter as an object or a boolean, got None"),
        ([], "filter: expected a filter as an object or a boolean, got a list"),
        ({}, "filter: missing type"),
        ({"type": "xor"}, "filter.type: 'xor' is not one of true, false, and, or, not, is-null"),
        ({"type": 5}, "filter.type: 5 is not one of"),
        ({"type": ["eq"]}, "filter.type: a list is not one of"),
        ({"type": "and", "left": True}, "filter: missing right"),
        ({"type": "or", "left": True, "right": {"type": "not"}}, "filter.right: missing child"),
        ({"type": "not", "child": "x"}, "filter.child: expected a filter as an object"),
        ({"type": "and", "left": null("a"), "right": {"type": "eq", "value": 1}}, "filter.right: missing term"),
        ({"type": "eq", "term": "x"}, "filter: missing value"),
        ({"type": "in", "term": "x"}, "filter: missing values"),
        ({"type": "in", "term": "x", "values": 5}, "filter.values: expected a list, got 5"),
        ({"type": "in", "term": "x", "values": [1, {}]}, "filter.values[1]: expected a string, number or boolean"),
        ({"type": "eq", "term": "x", "value": [1]}, "filter.value: expected a string, number or boolean, got a list"),
        ({"type": "eq", "term": "x", "value": {"type": "literal"}}, "filter.value: missing value"),
        ({"type": "is-null", "term": 5}, "filter.term: expected a name or an object, got 5"),
        ({"type": "is-null", "term": {}}, "filter.term: missing type"),
        ({"type": "is-null", "term": {"type": "x"}}, "filter.term.type: 'x' is not one of reference, transform"),
        ({"type": "is-null", "term": {"type": "reference", "term": 5}}, "filter.term.term: expected a string, got 5"),
        ({"type": "is-null", "term": {"type": "transform", "term": "x"}}, "filter.term: missing transform"),
        ({"type": "is-null", "term": BUCKET | {"transform": None}}, "filter.term.transform: expected a string"),
        ({"type": "is-null", "term": BUCKET | {"term": BUCKET}}, "filter.term.term: expected a string, got an object"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_path(value: object, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        expr_from_json(value)
    assert str(caught.value).startswith(message)
    with pytest.raises(FormatError, match=r"^tasks\[3\]\.residual-filter"):
        expr_from_json(value, "tasks[3].residual-filter")


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["eq", "and", "not", "in", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "left", "right", "child", "term", "value", "values"]), inner)
    ),
    max_leaves=10,
)


@given(_JSON)
def test_any_json_is_a_filter_or_a_format_error(value: Any) -> None:
    try:
        expr_from_json(value)
    except FormatError:
        return


def test_literals_without_a_json_form_are_refused() -> None:
    with pytest.raises(InputError, match="column 'x': a literal of object"):
        expr_to_json(Predicate(Op.EQ, "x", (object(),)))
    with pytest.raises(InputError, match="one literal is needed, not 2"):
        expr_to_json(Predicate(Op.EQ, "x", (1, 2)))
