"""Filter texts: what users write, and what Spark pushes down."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, And, Expr, Not, Op, Or, Predicate
from icefloe.expr.text.filter_parser import parse_filter, parse_pushed


def test_nothing_means_every_row_and_expressions_pass_through() -> None:
    assert parse_filter(None) == ALWAYS_TRUE
    assert parse_filter("TRUE") == ALWAYS_TRUE
    assert parse_filter("NOT true") == ALWAYS_FALSE
    expr = Predicate(Op.IS_NULL, "a")
    assert parse_filter(expr) is expr
    with pytest.raises(InputError, match="not int"):
        parse_filter(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "op", "literals"),
    [
        ("a < 5", Op.LT, (5,)),
        ("a <= 5L", Op.LE, (5,)),
        ("a > 5S", Op.GT, (5,)),
        ("a >= 5Y", Op.GE, (5,)),
        ("a = 1.5", Op.EQ, (decimal.Decimal("1.5"),)),
        ("a == 1.5D", Op.EQ, (1.5,)),
        ("a <> 2BD", Op.NE, (decimal.Decimal(2),)),
        ("a != 1.5F", Op.NE, (1.5,)),
        ("5 < a", Op.GT, (5,)),
        ("5 >= a", Op.LE, (5,)),
        ("(a) = (5)", Op.EQ, (5,)),
        ("((a = 5))", Op.EQ, (5,)),
        ("a = -5", Op.EQ, (-5,)),
        ("a = -9223372036854775808L", Op.EQ, (-(2**63),)),
        ("a = 1.0E10D", Op.EQ, (1e10,)),
        ("a = 1e3", Op.EQ, (1000.0,)),
        ("a = CAST('-Infinity' AS DOUBLE)", Op.EQ, (-math.inf,)),
        ("a = 'x'", Op.EQ, ("x",)),
        ('a = "x"', Op.EQ, ("x",)),
        ("a = 'it''s'", Op.EQ, ("it's",)),
        ("a = ''''", Op.EQ, ("'",)),
        (r"a = 'it\'s'", Op.EQ, ("it's",)),
        (r"a = 'x\\ny'", Op.EQ, ("x\\ny",)),
        ("a = ''", Op.EQ, ("",)),
        ("a = 'x' 'y'", Op.EQ, ("xy",)),
        ("a = 'AND (OR'", Op.EQ, ("AND (OR",)),
        (r"a = r'x\d'", Op.EQ, (r"x\d",)),
        ("a = true", Op.EQ, (True,)),
        ("a", Op.EQ, (True,)),
        ("NOT a", Op.NE, (True,)),
        ("a = X'1F'", Op.EQ, (b"\x1f",)),
        ("a = DATE '2024-03-01'", Op.EQ, (dt.date(2024, 3, 1),)),
        ("a = date('2024-03-01')", Op.EQ, (dt.date(2024, 3, 1),)),
        ("a = TIMESTAMP '2024-03-01 01:02:03.5'", Op.EQ, (dt.datetime(2024, 3, 1, 1, 2, 3, 500_000),)),
        ("a = TIMESTAMP '2024-03-01T00:00:00Z'", Op.EQ, (dt.datetime(2024, 3, 1, tzinfo=dt.UTC),)),
        ("a = TIMESTAMP_NTZ '2024-03-01 01:02:03'", Op.EQ, (dt.datetime(2024, 3, 1, 1, 2, 3),)),
        ("a = timestamp_micros(-1)", Op.EQ, (dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),)),
        ("a = TIME '01:02:03'", Op.EQ, (dt.time(1, 2, 3),)),
        ("a = CAST('5' AS INT)", Op.EQ, (5,)),
        ("a = NULL", Op.EQ, (None,)),
        ("a = CAST('1.5' AS DECIMAL(9, 2))", Op.EQ, (decimal.Decimal("1.5"),)),
        ("a IN (1, 'x', NULL)", Op.IN, (1, "x", None)),
        ("a NOT IN (1)", Op.NOT_IN, (1,)),
        ("NOT a IN (1)", Op.NOT_IN, (1,)),
        ("a IS NULL", Op.IS_NULL, ()),
        ("a IS NOT NULL", Op.NOT_NULL, ()),
        ("isnull(a)", Op.IS_NULL, ()),
        ("isnotnull(a)", Op.NOT_NULL, ()),
        ("isnan(a)", Op.IS_NAN, ()),
        ("NOT isnan(a)", Op.NOT_NAN, ()),
        ("a LIKE 'x%'", Op.STARTS_WITH, ("x",)),
        ("a LIKE 'x%%'", Op.STARTS_WITH, ("x",)),
        ("a LIKE 'x'", Op.EQ, ("x",)),
        (r"a LIKE 'x\%\_\\\\%'", Op.STARTS_WITH, ("x%_\\",)),
        (r"a LIKE 'x\\%'", Op.EQ, ("x%",)),
        ("a NOT LIKE 'x%'", Op.NOT_STARTS_WITH, ("x",)),
        ("startswith(a, 'x')", Op.STARTS_WITH, ("x",)),
        ("StartsWith(a, 'x')", Op.STARTS_WITH, ("x",)),
        ("a <=> NULL", Op.IS_NULL, ()),
        ("NOT (a <=> NULL)", Op.NOT_NULL, ()),
    ],
)
def test_a_condition_is_a_predicate(text: str, op: Op, literals: tuple[Any, ...]) -> None:
    found = parse_filter(text)
    assert found == Predicate(op, "a", literals)
    assert isinstance(found, Predicate)
    assert [type(literal) for literal in found.literals] == [type(literal) for literal in literals]


def test_names_are_kept_as_written() -> None:
    for text, term in [
        ("a.b.c.d.e = 1", "a.b.c.d.e"),
        ("`a b`.`c``d` = 1", "a b.c`d"),
        ("`and` = 1", "and"),
        ("date = 1", "date"),
        ("Xy = 1", "Xy"),
    ]:
        assert parse_filter(text) == Predicate(Op.EQ, term, (1,))


A, B, C = (Predicate(Op.EQ, name, (1,)) for name in "abc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1 OR b = 1 AND c = 1", Or((A, And((B, C))))),
        ("(a = 1 OR b = 1) AND c = 1", And((Or((A, B)), C))),
        ("a = 1 AND b = 1 AND c = 1", And((A, B, C))),
        ("((a = 1) AND (b = 1)) AND (c = 1)", And((A, B, C))),
        ("NOT (a = 1 AND b = 1) OR c = 1", Or((Not(And((A, B))), C))),
        ("NOT NOT a = 1", A),
        ("NOT a = 1 AND b = 1", And((Predicate(Op.NE, "a", (1,)), B))),
        ("a BETWEEN 1 AND 2 AND b = 1", And((Predicate(Op.GE, "a", (1,)), Predicate(Op.LE, "a", (2,)), B))),
        ("a <=> 1", And((Predicate(Op.NOT_NULL, "a"), A))),
        ("a = 1 -- and more\n OR b = 1", Or((A, B))),
    ],
)
def test_logic_follows_precedence(text: str, expected: Expr) -> None:
    assert parse_filter(text) == expected


def test_not_between_is_the_negation_of_both_sides() -> None:
    both = And((Predicate(Op.GE, "a", (1,)), Predicate(Op.LE, "a", (2,))))
    assert parse_filter("a NOT BETWEEN 1 AND 2") == Not(both)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "ends where"),
        ("a = 1 AND", "ends where"),
        ("AND a = 1", "missing before 'AND'"),
        ("a = 1 OR OR b = 1", "missing before"),
        ("(a = 1", "not closed"),
        ("a = 1)", "no '('"),
        ("()", "missing before"),
        ("a = 1; b = 2", "without ';'"),
        ("b = 1 AND a = b", "'a = b'"),
        ("f(a) = 1", "'f(a) = 1'"),
        ("a + 1 = 2", "'a + 1 = 2'"),
        ("a IN (SELECT 1)", "SELECT"),
        ("a IN tags", "'a IN tags'"),
        ("a NOT IN tags", "NOT IN tags"),
        ("a BETWEEN SYMMETRIC 5 AND 1", "SYMMETRIC"),
        ("a LIKE '%x'", "% at the end"),
        ("a LIKE 'x_'", "not with _"),
        (r"a LIKE '\\x'", "backslash"),
        ("a LIKE 'x' ESCAPE '/'", "ESCAPE"),
        ("a RLIKE 'x'", "RLIKE"),
        ("a = DATE '2024-3-1'", "YYYY-MM-DD"),
        ("a = TIMESTAMP 'now'", "YYYY-MM-DD HH:MM:SS"),
        ("a = TIMESTAMP '2024-03-01 00:00:00.1234567891'", "nanoseconds"),
        ("a = TIME '00:00:00.1234567'", "microseconds"),
        ("a = CAST('x' AS UUID)", "UUID"),
        ("a = CAST(1.5 AS INT)", "not an integer"),
        ("a = 300Y", "8 bits"),
        ("a = CAST('x' AS INT)", "not a number"),
        ("a = CAST(5 AS DATE)", "cast to DATE"),
        ("a = TIMESTAMP_NTZ '2024-03-01T00:00:00Z'", "no offset"),
        ("a = 'x", "cannot parse"),
        ("SELECT 1", "SELECT 1"),
        ("NULL", "only comparisons"),
        ("a = INTERVAL '1' DAY", "INTERVAL"),
        ("a[0] = 1", "a[0]"),
        ("5 = 5", "column"),
        ("a = TIMESTAMP '2024-03-01 00:00:00+19:00'", "not an offset"),
        ("a = TIMESTAMP '0001-01-01 00:00:00+01:00'", "years 1 to 9999"),
        ("a = CAST('1.234' AS DECIMAL(3, 2))", "does not fit"),
        ("a IS 5", "IS"),
    ],
)
def test_what_is_not_a_filter_is_refused_and_quoted(text: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_filter(text)
    assert part in str(caught.value)


def test_hundreds_of_parentheses_and_thousands_of_terms_parse() -> None:
    terms = 2000
    nested = "(" * terms + "id = 0" + "".join(f") OR (id = {i})" for i in range(1, terms + 1))
    found = parse_filter(nested)
    assert isinstance(found, Or)
    assert found.children == tuple(Predicate(Op.EQ, "id", (i,)) for i in range(terms + 1))
    assert parse_filter("NOT (" * 1001 + "a = 1" + ")" * 1001) == Predicate(Op.NE, "a", (1,))
    many = parse_filter("id IN (" + ", ".join(map(str, range(10_000))) + ")")
    assert many == Predicate(Op.IN, "id", tuple(range(10_000)))


def test_an_atom_nested_too_deeply_is_refused_and_not_a_crash() -> None:
    with pytest.raises(InputError):
        parse_filter("a = " + "(" * 3000 + "1" + ")" * 3000)


PIECES = [
    *"ab01.'\"`()=<>!- ",
    "AND ",
    "OR ",
    "NOT ",
    " IN ",
    "NULL",
    " BETWEEN ",
    " IS ",
    "DATE '",
    "CAST(",
    " AS INT)",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_a_filter_or_an_input_error(text: str) -> None:
    try:
        parse_filter(text)
    except InputError:
        return


def test_pushed_filters_that_are_not_understood_are_left_to_the_engine() -> None:
    texts = [
        "(id >= 4000000L)",
        "(rlike(s, 'x'))",
        "(id IS NOT NULL)",
        "((a = 1) OR (upper(b) = 'X'))",
        "garbage ((",
        "null",
    ]
    expected = And((Predicate(Op.GE, "id", (4000000,)), Predicate(Op.NOT_NULL, "id")))
    assert parse_pushed(texts, "UTC") == expected
    assert parse_pushed([], "UTC") == ALWAYS_TRUE


def pushed_timestamp(text: str, zone: str) -> Any:
    found = parse_pushed([f"(ts >= TIMESTAMP '{text}')"], zone)
    return found.literals[0] if isinstance(found, Predicate) else found


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2024-03-01 12:00:00", "UTC", "2024-03-01T12:00:00+00:00"),
        ("2024-03-01 12:00:00", "Europe/Paris", "2024-03-01T11:00:00+00:00"),
        ("2024-07-01 12:00:00", "Europe/Paris", "2024-07-01T10:00:00+00:00"),
        ("2024-03-01 12:00:00", "+05:30", "2024-03-01T06:30:00+00:00"),
        ("2024-03-01 12:00:00", "GMT-08:00", "2024-03-01T20:00:00+00:00"),
        ("1960-03-01 12:00:00", "UTC", "1960-03-01T12:00:00+00:00"),
    ],
)
def test_pushed_timestamps_are_local_times_of_the_session(text: str, zone: str, expected: str) -> None:
    assert pushed_timestamp(text, zone).isoformat() == expected


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("2024-10-27 02:30:00", "Europe/Paris"),  # occurs twice
        ("2024-03-31 02:30:00", "Europe/Paris"),  # occurs never
        ("1930-01-01 00:00:00", "Europe/Amsterdam"),  # vendors disagree
        ("2024-03-01 12:00:00", "Mars/Olympus"),
        ("2024-03-01 12:00:00", "+99:00"),
        ("2024-03-01 12:00:00", "../etc/passwd"),
        ("+12024-03-01 12:00:00", "UTC"),
    ],
)
def test_pushed_timestamps_that_are_not_certain_do_not_filter(text: str, zone: str) -> None:
    assert pushed_timestamp(text, zone) == ALWAYS_TRUE


def test_an_uncertain_timestamp_removes_its_whole_conjunct() -> None:
    either = "((a = 1) OR (ts >= TIMESTAMP '2024-10-27 02:30:00'))"
    assert parse_pushed([either, "(b = 1)"], "Europe/Paris") == B


def test_pushed_timestamps_without_zone_stay_without_zone() -> None:
    found = parse_pushed(["(ts >= TIMESTAMP_NTZ '2024-10-27 02:30:00')"], "Europe/Paris")
    assert found == Predicate(Op.GE, "ts", (dt.datetime(2024, 10, 27, 2, 30),))
