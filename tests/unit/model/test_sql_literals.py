"""Column defaults as SQL literals, there and back, and what is no constant refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError, UnsupportedError
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
    UNKNOWN,
    UUID,
    VARIANT,
    Decimal,
    Fixed,
    Geometry,
    List,
    Struct,
)
from icefloe.model.text.sql_literals import parse_literal, sql_literal
from icefloe.model.text.sql_tokens import quoted_text

ID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
SPELLED = [
    (BOOLEAN, True, "true"),
    (INT, -5, "-5"),
    (LONG, 2**40, "1099511627776"),
    (FLOAT, 0.1, "0.1F"),
    (DOUBLE, -1e300, "-1e+300D"),
    (Decimal(9, 2), "14.20", "14.20BD"),
    (Decimal(5, 0), "-3", "-3BD"),
    (DATE, "2017-11-16", "DATE '2017-11-16'"),
    (TIME, "22:31:08.123456", "TIME '22:31:08.123456'"),
    (TIMESTAMP, "2017-11-16T22:31:08.123456", "TIMESTAMP_NTZ '2017-11-16T22:31:08.123456'"),
    (TIMESTAMPTZ, "2017-11-16T22:31:08.123456+00:00", "TIMESTAMP '2017-11-16T22:31:08.123456+00:00'"),
    (TIMESTAMP_NS, "2017-11-16T22:31:08.123456789", "TIMESTAMP_NS '2017-11-16T22:31:08.123456789'"),
    (TIMESTAMPTZ_NS, "2017-11-16T22:31:08.123456789+00:00", "TIMESTAMPTZ_NS '2017-11-16T22:31:08.123456789+00:00'"),
    (STRING, "it's \\ a\nline", r"'it\'s \\ a\nline'"),
    (STRING, "", "''"),
    (UUID, ID, f"UUID '{ID}'"),
    (Fixed(2), "00ff", "X'00ff'"),
    (BINARY, "", "X''"),
    (BINARY, None, "NULL"),
    (VARIANT, None, "NULL"),
]


@pytest.mark.parametrize(("type_", "value", "text"), SPELLED, ids=[text for _, _, text in SPELLED])
def test_a_default_is_spelled_and_read_back(type_, value, text):
    assert sql_literal(value, type_, "c") == text
    assert parse_literal(text, type_, "c") == value


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (INT, "+7", 7),
        (INT, "7S", 7),
        (LONG, "7L", 7),
        (INT, "CAST(7 AS SMALLINT)", 7),
        (FLOAT, "CAST('1.5' AS FLOAT)", 1.5),
        (DOUBLE, "2", 2.0),
        (DOUBLE, ".5", 0.5),
        (Decimal(9, 2), "5", "5.00"),
        (Decimal(9, 2), "CAST(5.1 AS DECIMAL(9, 2))", "5.10"),
        (BOOLEAN, "TRUE", True),
        (BOOLEAN, "null", None),
        (STRING, '"a""b"', 'a"b'),
        (STRING, r"'5\% \_ \q'", r"5\% \_ q"),
        (DATE, "'2026-01-01'", "2026-01-01"),
        (DATE, "date'2026-01-01'", "2026-01-01"),
        (TIMESTAMPTZ, "TIMESTAMP '2026-01-01 00:00:00Z'", "2026-01-01T00:00:00.000000+00:00"),
        (TIMESTAMPTZ, "TIMESTAMP_LTZ '2026-01-01T00:00:00+00:00'", "2026-01-01T00:00:00.000000+00:00"),
        (UUID, f"'{ID.upper()}'", ID),
        (BINARY, "x'00FF'", "00ff"),
    ],
)
def test_other_spellings_are_read(type_, text, expected):
    assert parse_literal(text, type_, "c") == expected


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (DATE, "current_date()"),
        (INT, "1 + 1"),
        (INT, "-'5'"),
        (INT, "-"),
        (INT, ""),
        (INT, "1.5"),
        (INT, "2147483648"),
        (INT, "9" * 5_000),
        (INT, "true"),
        (INT, "x"),
        (INT, "CAST(5 AS"),
        (INT, "CAST(5 AS INT"),
        (Decimal(9, 2), "CAST(5 AS DECIMAL(9, 2)"),
        (INT, "CAST(" * 5_000),
        (INT, "DATE '2026-01-01'"),
        (FLOAT, "1e300"),
        (DOUBLE, "'nan'"),
        (Decimal(9, 2), "1.234"),
        (Decimal(9, 2), "'text'"),
        (BOOLEAN, "'true'"),
        (STRING, "5"),
        (STRING, "DATE '2026-01-01'"),
        (STRING, "'open"),
        (DATE, "DATE '2026-02-30'"),
        (DATE, "TIMESTAMP '2026-02-03'"),
        (TIMESTAMP, "TIMESTAMP '2026-01-01T00:00:00'"),
        (TIMESTAMPTZ, "TIMESTAMP '2026-01-01 00:00:00'"),
        (BINARY, "'00'"),
        (Fixed(2), "X'00'"),
        (Fixed(2), "X'0x00'"),
        (UNKNOWN, "1"),
        (VARIANT, "1"),
        (Geometry(), "X'00'"),
        (List(1, INT), "5"),
    ],
)
def test_what_is_no_default_of_the_type_is_refused_by_the_columns_name(type_, text):
    with pytest.raises(InputError, match="column 'c'"):
        parse_literal(text, type_, "c")


@pytest.mark.parametrize("type_", [Struct(()), List(1, INT)], ids=str)
def test_nested_defaults_have_no_spelling(type_):
    with pytest.raises(UnsupportedError, match="column 'c'"):
        sql_literal({}, type_, "c")


@given(st.text())
def test_any_string_is_quoted_and_read_back(text):
    assert parse_literal(quoted_text(text), STRING, "c") == text


@given(st.text("ab'\"`\\%_nu0Z\n", max_size=8))
def test_odd_strings_are_quoted_and_read_back(text):
    assert parse_literal(quoted_text(text), STRING, "c") == text
