"""Binding: literals meet columns of other types exactly, NOT disappears, and errors name the column."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import numpy as np
import pytest
from filter_cases import SCHEMA, float32
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind, bind_pushed, push_not
from icefloe.expr.filter.literal_conversion import After, Exact, Gap, JsonNumber, JsonText, NotANumber, position_of
from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    BoundPredicate,
    Constant,
    Expr,
    Not,
    Op,
    Or,
    Predicate,
)
from icefloe.expr.text.filter_parser import parse_filter
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
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    VARIANT,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
)
from support.row_matching import matches


def bound(text: str, schema: Schema = SCHEMA) -> Expr:
    return bind(parse_filter(text), schema)


def shape(expr: Expr) -> Any:
    """A bound expression without field ids and types."""
    if isinstance(expr, BoundPredicate):
        return (expr.name, expr.op.value, *expr.literals)
    return expr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i < 1.5", ("i", "<=", 1)),
        ("i >= 1.5", ("i", ">=", 2)),
        ("i > -1.5", ("i", ">=", -1)),
        ("i = 1.5", ALWAYS_FALSE),
        ("i != 1.5", ("i", "is not null")),
        ("i IN (1.5, 2)", ("i", "=", 2)),
        ("i = 1.0", ("i", "=", 1)),
        ("i = 1e0", ("i", "=", 1)),
        ("i < 3000000000", ("i", "is not null")),
        ("i > 3000000000", ALWAYS_FALSE),
        ("i > -3000000000", ("i", "is not null")),
        ("i <= -3000000000", ALWAYS_FALSE),
        ("i < 2147483648", ("i", "is not null")),
        ("i <= 2147483647", ("i", "<=", 2147483647)),
        ("i NOT IN (3000000000)", ("i", "is not null")),
        ("i NOT IN (1, NULL)", ALWAYS_FALSE),
        ("i = NULL", ALWAYS_FALSE),
        ("NOT (i = NULL)", ALWAYS_FALSE),
        ("i IN (1, NULL)", ("i", "=", 1)),
        ("i IN (3, 1, 2, 1)", ("i", "in", 1, 2, 3)),
        ("m < 1.005", ("m", "<=", decimal.Decimal("1.00"))),
        ("m > 99999999", ALWAYS_FALSE),
        ("m = 1", ("m", "=", decimal.Decimal("1.00"))),
        ("g = 0.1", ALWAYS_FALSE),
        ("g = 0.1F", ("g", "=", float32(0.1))),
        ("f = 0.1", ("f", "=", 0.1)),  # found nothing once: no double is exactly a tenth
        ("f = double('NaN')", ("f", "is nan")),
        ("f > double('NaN')", ALWAYS_FALSE),
        ("f <= double('NaN')", ("f", "is not null")),
        ("i = double('NaN')", ALWAYS_FALSE),
        ("i < double('NaN')", ("i", "is not null")),
        ("f = -0.0D", ("f", "=", 0.0)),
        ("isnan(i)", ALWAYS_FALSE),
        ("NOT isnan(i)", ALWAYS_TRUE),
        ("NOT isnan(f)", ("f", "is not nan")),
        ("d < TIMESTAMP '2024-03-01 12:00:00'", ("d", "<=", dt.date(2024, 3, 1))),
        ("d >= TIMESTAMP '2024-03-01 12:00:00'", ("d", ">=", dt.date(2024, 3, 2))),
        ("d = '2024-03-01'", ("d", "=", dt.date(2024, 3, 1))),
        ("t = DATE '2024-03-01'", ("t", "=", dt.datetime(2024, 3, 1))),
        ("z = '2024-03-01T12:00:00+02:00'", ("z", "=", dt.datetime(2024, 3, 1, 10, tzinfo=dt.UTC))),
        ("s LIKE '%'", ("s", "is not null")),
        ("NOT s LIKE '%'", ALWAYS_FALSE),
        ("b", ("b", "=", True)),
        ("NOT b", ("b", "!=", True)),
        ("NOT i < 3", ("i", ">=", 3)),
        ("NOT (NOT i < 3)", ("i", "<", 3)),
        ("i = 1 OR i IN (3, 2) OR i = 1", ("i", "in", 1, 2, 3)),
        ("i != 1 AND i NOT IN (2)", ("i", "not in", 1, 2)),
        ("i = 1 OR true", ALWAYS_TRUE),
        ("i = 1 AND i = 3000000000", ALWAYS_FALSE),
        ("n.k = 1", ("n.k", "=", 1)),
        ("t < TIMESTAMP '2024-03-01 00:00:00.000001500'", ("t", "<=", dt.datetime(2024, 3, 1, 0, 0, 0, 1))),
        ("t >= TIMESTAMP '2024-03-01 00:00:00.000001500'", ("t", ">", dt.datetime(2024, 3, 1, 0, 0, 0, 1))),
        ("t = '2024-03-01T00:00:00.000001500'", ALWAYS_FALSE),
        ("t != '2024-03-01T00:00:00.000001500'", ("t", "is not null")),
        ("t IN ('2024-03-01T00:00:00.000001500')", ALWAYS_FALSE),
        ("t = '2024-03-01T00:00:00.000001000'", ("t", "=", dt.datetime(2024, 3, 1, 0, 0, 0, 1))),
        ("z > '2024-03-01T02:00:00.0000015+02:00'", ("z", ">", dt.datetime(2024, 3, 1, 0, 0, 0, 1, dt.UTC))),
        ("d > TIMESTAMP '2024-03-01 00:00:00.000000001'", ("d", ">=", dt.date(2024, 3, 2))),
        ("m < 99999999", ("m", "is not null")),
        ("m >= -10000000", ("m", "is not null")),
        ("l > 9223372036854775808", ALWAYS_FALSE),
        ("l <= 9223372036854775808", ("l", "is not null")),
        ("g > 1e39", ("g", ">=", math.inf)),
        ("g < -1e39", ("g", "<=", -math.inf)),
    ],
)
def test_literals_are_placed_exactly(text: str, expected: Any) -> None:
    assert shape(bound(text)) == expected


def test_negative_zero_becomes_the_one_zero() -> None:
    found = bound("f = -0.0D")
    assert isinstance(found, BoundPredicate)
    assert math.copysign(1, found.literal) == 1  # type: ignore[arg-type]


numbers = (
    st.integers(-(2**70), 2**70)
    | st.floats()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9)
    | st.sampled_from([10**400, decimal.Decimal("1e5000"), decimal.Decimal("-1e-5000"), decimal.Decimal(0)])
)


@given(literal=numbers, type_=st.sampled_from([INT, LONG, FLOAT, DOUBLE, Decimal(9, 2), Decimal(38, 0)]))
def test_a_number_is_a_value_or_lies_between_two_neighbours(literal: Any, type_: Any) -> None:
    placed = position_of(literal, type_)
    if isinstance(literal, decimal.Decimal) and type_ in (FLOAT, DOUBLE) and math.isfinite(float(literal)):
        literal = float(literal)  # what a tenth means among numbers none of which is a tenth
    match placed:
        case Exact(value):
            assert value == literal
        case Gap(below, above):
            assert below is not None or above is not None
            if not (isinstance(literal, float) and math.isnan(literal)):
                assert below is None or below < literal  # type: ignore[operator]
                assert above is None or above > literal  # type: ignore[operator]
            if below is not None and above is not None:
                assert neighbours(below, above, type_)
        case NotANumber():
            assert type_ in (FLOAT, DOUBLE)
            assert math.isnan(literal)


def neighbours(below: Any, above: Any, type_: Any) -> bool:
    if type_ in (FLOAT, DOUBLE):
        kind = np.float32 if type_ == FLOAT else np.float64
        with np.errstate(over="ignore"):
            return float(np.nextafter(kind(below), kind(np.inf))) == above
    return bool(above - below == decimal.Decimal(1).scaleb(-(type_.scale if isinstance(type_, Decimal) else 0)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q = 1", "no column 'q'; the table has: i, l"),
        ("i = 'x'", "'i' is of type int: a number is needed"),
        ("i = true", "a number"),
        ("s = 5", "a string is needed"),
        ("s < DATE '2024-03-01'", "a string is needed"),
        ("d = 5", "a date is needed"),
        ("z < TIMESTAMP '2024-03-01 00:00:00'", "give the literal an offset"),
        ("z < DATE '2024-03-01'", "offset"),
        ("t < '2024-03-01T00:00:00Z'", "without an offset"),
        ("d = '2024-3-1'", "YYYY-MM-DD"),
        ("t = 'noon'", "YYYY-MM-DD HH:MM:SS"),
        ("u = 'x'", "UUID"),
        ("b = 1", "a boolean is needed"),
        ("i LIKE 'a%'", "only strings"),
        ("n = 1", "compare a primitive column"),
        ("d < '2024-02-30'", "day is out of range"),
        ("d < '10000-01-01'", "YYYY-MM-DD"),
        ("t < '10000-01-01 00:00:00'", "YYYY-MM-DD"),
        ("z < '0001-01-01T00:00:00+01:00'", "years 1 to 9999"),
        ("t < '2024-01-01 00:00:00.1234567891'", "nanoseconds"),
        ("x = 'ab'", "in hexadecimal digits as X'1F'"),
        ("m = '1.5'", "a number is needed"),
        ("u = X'01'", "UUID"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        bound(text)
    assert message in str(caught.value)


def test_columns_inside_lists_and_maps_are_refused() -> None:
    inner = Struct((Field(5, "x", INT),))
    schema = Schema(fields=(Field(1, "a", List(2, LONG)), Field(3, "m", Map(4, STRING, 6, inner))))
    for text in ("a.element = 1", "m.value.x = 1", "m.value IS NULL"):
        with pytest.raises(InputError, match="inside a list or map"):
            bound(text, schema)


def test_a_name_with_a_dot_is_a_top_level_column() -> None:
    schema = Schema(fields=(Field(1, "a.b", LONG),))
    found = bound("`a.b` = 1", schema)
    assert isinstance(found, BoundPredicate)
    assert found.path == ("a.b",)


def test_fixed_needs_its_length() -> None:
    schema = Schema(fields=(Field(1, "a", Fixed(2)),))
    assert shape(bound("a = X'0102'", schema)) == ("a", "=", b"\x01\x02")
    with pytest.raises(InputError, match="2 bytes"):
        bound("a = X'01'", schema)


def test_required_columns_are_never_null() -> None:
    nested = Struct((Field(3, "k", INT, required=True),))
    schema = Schema(fields=(Field(1, "a", INT, required=True), Field(2, "s", nested)))
    assert bound("a IS NULL", schema) == ALWAYS_FALSE
    assert bound("a IS NOT NULL AND a < 3000000000", schema) == ALWAYS_TRUE
    assert shape(bound("s.k IS NULL", schema)) == ("s.k", "is null")


def test_nothing_is_in_an_empty_list_not_even_null() -> None:
    empty = Predicate(Op.IN, "i", ())
    assert bind(empty, SCHEMA) == ALWAYS_FALSE
    assert bind(Not(empty), SCHEMA) == bind(Predicate(Op.NOT_IN, "i", ()), SCHEMA) == ALWAYS_TRUE
    assert shape(bind(Predicate(Op.NOT_IN, "i", (decimal.Decimal("1.5"),)), SCHEMA)) == ("i", "is not null")


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InputError, match="surrogate"):
        bind(Predicate(Op.EQ, "s", ("\ud800",)), SCHEMA)


def test_the_wrong_number_of_literals_is_refused() -> None:
    with pytest.raises(InputError, match="one literal is needed, not 2"):
        bind(Predicate(Op.EQ, "i", (1, 2)), SCHEMA)


def test_pushed_filters_drop_only_the_conjuncts_that_do_not_bind() -> None:
    expr = And((Predicate(Op.EQ, "_file", ("x",)), Predicate(Op.EQ, "i", (1,)), Predicate(Op.EQ, "s", (1,))))
    assert shape(bind_pushed(expr, SCHEMA)) == ("i", "=", 1)
    assert bind_pushed(Or((Predicate(Op.EQ, "_file", ("x",)), Predicate(Op.EQ, "i", (1,)))), SCHEMA) == ALWAYS_TRUE
    assert bind_pushed(ALWAYS_FALSE, SCHEMA) == ALWAYS_FALSE


def test_not_is_pushed_through_any_depth() -> None:
    expr: Expr = Predicate(Op.IS_NULL, "i")
    for _ in range(5001):
        expr = Not(And((expr, Not(Constant(False)))))
    assert push_not(expr) == Predicate(Op.NOT_NULL, "i")
    assert shape(bind(expr, SCHEMA)) == ("i", "is not null")


def test_a_deep_alternating_tree_binds() -> None:
    expr: Expr = Predicate(Op.EQ, "i", (0,))
    for n in range(3000):
        expr = (And if n % 2 == 0 else Or)((expr, Predicate(Op.GT, "i", (n,))))
    assert isinstance(bind(expr, SCHEMA), Or)


def test_days_after_the_last_one_of_python_still_match() -> None:
    assert position_of(dt.datetime(9999, 12, 31, 1), DATE) == After(dt.date(9999, 12, 31))
    with pytest.raises(ValueError, match="offset"):
        position_of(dt.datetime(2024, 1, 1), TIMESTAMPTZ)


NS = Schema(fields=(Field(1, "n", TIMESTAMP_NS), Field(2, "y", TIMESTAMPTZ_NS)))
SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n = '1970-01-01T00:00:01.123456789'", ("n", "=", SECOND + 123_456_789)),
        ("n = TIMESTAMP '1969-12-31 23:59:59.999999999'", ("n", "=", -1)),
        ("n = TIMESTAMP '1970-01-01 00:00:01'", ("n", "=", SECOND)),
        ("n = DATE '1970-01-02'", ("n", "=", 86_400 * SECOND)),
        ("n = 5", ("n", "=", 5)),
        ("y = '1970-01-01T01:00:00.000000001+01:00'", ("y", "=", 1)),
        ("n < '3000-01-01'", ("n", "is not null")),
        ("n > '3000-01-01'", ALWAYS_FALSE),
        ("n != '1600-01-01'", ("n", "is not null")),
        ("n IN ('1600-01-01', '1970-01-01')", ("n", "=", 0)),
    ],
)
def test_timestamps_of_nanoseconds_are_counted(text: str, expected: Any) -> None:
    assert shape(bound(text, NS)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("y = '1970-01-01T00:00:00'", "give the literal an offset"),
        ("y = TIMESTAMP '1970-01-01 00:00:00.123456789'", "give the literal an offset"),
        ("n = '1970-01-01T00:00:00Z'", "without an offset"),
        ("n = true", "a timestamp is needed"),
        ("n = 1.5", "a timestamp is needed"),
    ],
)
def test_what_is_no_timestamp_of_nanoseconds_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bound(text, NS)


class Precise(dt.datetime):
    """A datetime that counts nanoseconds, as pandas' does."""

    nanosecond = 7


def test_nanoseconds_of_a_datetime_that_counts_them_are_kept() -> None:
    moment = Precise(1970, 1, 1, 0, 0, 1)
    assert position_of(moment, TIMESTAMP_NS) == Exact(SECOND + 7)
    assert position_of(moment, TIMESTAMP) == After(dt.datetime(1970, 1, 1, 0, 0, 1))


SHAPES = Schema(
    fields=(
        Field(1, "g", Geometry()),
        Field(2, "e", Geography("OGC:CRS84", "karney")),
        Field(3, "v", VARIANT),
        Field(4, "q", UNKNOWN),
    )
)


def test_shapes_are_tested_for_null_only() -> None:
    assert shape(bound("g IS NULL", SHAPES)) == ("g", "is null")
    assert shape(bound("e IS NOT NULL", SHAPES)) == ("e", "is not null")
    assert bound("isnan(g)", SHAPES) == ALWAYS_FALSE
    for text in ("g = X'01'", "e IN (X'01')", "g LIKE 'a%'", "g < X'01'"):
        with pytest.raises(InputError, match="only for null"):
            bound(text, SHAPES)
    assert shape(bound("v IS NULL", SHAPES)) == ("v", "is null")
    with pytest.raises(InputError, match="column 'v' of type variant"):
        bound("v = 1", SHAPES)


def test_a_column_of_unknown_type_is_null_in_every_row() -> None:
    for text in ("q IS NULL", "NOT isnan(q)"):
        assert bound(text, SHAPES) == ALWAYS_TRUE
    for text in ("q IS NOT NULL", "isnan(q)", "q = 1", "q != 'x'", "q NOT IN (1)", "q IN (1)", "q LIKE 'x%'"):
        assert bound(text, SHAPES) == ALWAYS_FALSE
    assert bind(Predicate(Op.NOT_IN, "q"), SHAPES) == ALWAYS_TRUE


def test_strings_from_json_are_read_as_the_column_needs_them() -> None:
    assert position_of(JsonText("14.205"), Decimal(9, 2)) == Gap(decimal.Decimal("14.20"), decimal.Decimal("14.21"))
    assert position_of(JsonText("-Infinity"), DOUBLE) == Exact(-math.inf)
    assert position_of(JsonText("NaN"), DOUBLE) == NotANumber()
    assert position_of(JsonText("1f"), BINARY) == Exact(b"\x1f")
    assert position_of(JsonText("1f"), STRING) == Exact("1f")
    assert position_of(JsonText("2024-03-01T12:00:00"), DATE) == Gap(dt.date(2024, 3, 1), dt.date(2024, 3, 2))
    assert position_of(JsonNumber(0.1), FLOAT) == Exact(float32(0.1))
    assert position_of(JsonNumber(1e300), FLOAT) == Gap(float(np.finfo(np.float32).max), math.inf)
    assert position_of(JsonNumber(0.1), DOUBLE) == Exact(0.1)
    for text, type_ in (("x", INT), ("1f2", BINARY), ("1f", Fixed(2)), ("x", DATE), ("true", BOOLEAN)):
        with pytest.raises(ValueError):
            position_of(JsonText(text), type_)


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        ("FALSE OR (i IN (1, 2) AND i IN (2, 3))", {2}),
        ("TRUE AND (i != 1 OR i != 2)", {1, 2, 3}),
        ("FALSE OR (i != 1 AND i != 2)", {3}),
    ],
)
def test_conditions_are_joined_by_what_is_left_of_an_expression(text: str, matching: set[int]) -> None:
    # A disjunction of which only a conjunction was left joined its INs as if either were enough, and rows came in.
    bound = bind(parse_filter(text), SCHEMA)
    assert {i for i in (1, 2, 3) if matches(bound, {"i": i})} == matching
