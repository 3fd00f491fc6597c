"""Projections onto partition values: what they say, for every transform and operator, and how sharp they are."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from filter_cases import SCHEMA

from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, And, BoundPredicate, Constant, Expr, Op, Or, Predicate
from icefloe.expr.filter.nodes import TransformTerm as Term
from icefloe.expr.prune.partition_filter import project_inclusive, project_strict
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, INT, TIMESTAMP_NS, Decimal, Field


def part(column: str, transform: str, field_id: int = 1000) -> PartitionField:
    return PartitionField(source_id=SCHEMA.field(column).id, field_id=field_id, name="p", transform=transform)


def shown(expr: Expr) -> str:
    """A projection in short; all fields are named p."""
    match expr:
        case Constant(value):
            return str(value).lower()
        case And(children):
            return " and ".join(shown(child) for child in children)
        case Or(children):
            return "(" + " or ".join(shown(child) for child in children) + ")"
        case BoundPredicate(op=op, literals=literals):
            texts = [str(value) for value in literals]
            return " ".join(["p", op.value, *([", ".join(texts)] if len(texts) > 0 else [])])
    raise AssertionError(expr)


def projections(text: str | Predicate, *fields: PartitionField, schema: Schema = SCHEMA) -> tuple[str, str]:
    bound = bind(parse_filter(text) if isinstance(text, str) else text, schema)
    return shown(project_inclusive(bound, fields, schema)), shown(project_strict(bound, fields, schema))


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=", "!="])
def test_identity_says_the_same_of_the_partition(op: str) -> None:
    assert projections(f"i {op} 5", part("i", "identity")) == (f"p {op} 5", f"p {op} 5")
    assert projections("isnan(f)", part("f", "identity")) == ("p is nan", "p is nan")


@pytest.mark.parametrize("transform", ["identity", "bucket[4]", "truncate[10]"])
def test_null_rows_have_null_partition_values(transform: str) -> None:
    assert projections("i IS NULL", part("i", transform)) == ("p is null", "p is null")
    assert projections("i IS NOT NULL", part("i", transform)) == ("p is not null", "p is not null")


WRAPPED = 2**32 - 2147483650  # what Java makes of the lowest ints


@pytest.mark.parametrize(
    ("text", "inclusive", "strict"),
    [
        ("i < 20", f"(p < 20 or p = {WRAPPED})", "p < 20"),
        ("i < 25", f"(p <= 20 or p = {WRAPPED})", "p < 20"),
        ("i <= 25", f"(p <= 20 or p = {WRAPPED})", "p < 20"),
        ("i <= 29", f"(p <= 20 or p = {WRAPPED})", "p <= 20"),
        ("i > 25", "p >= 20", f"p > 20 and p != {WRAPPED}"),
        ("i > 29", "p > 20", f"p > 20 and p != {WRAPPED}"),
        ("i >= 20", "p >= 20", f"p >= 20 and p != {WRAPPED}"),
        ("i = 25", "p = 20", "false"),
        ("i != 25", "p is not null", "p != 20"),
        ("i IN (1, 25, 28)", "p in 0, 20", "false"),
        ("i NOT IN (1, 25)", "p is not null", "p not in 0, 20"),
        ("i = -2147483648", f"p = {WRAPPED}", "false"),
        ("i > -2147483648", "p is not null", f"p > -2147483640 and p != {WRAPPED}"),
    ],
)
def test_cut_integers_bound_what_they_were_cut_from(text: str, inclusive: str, strict: str) -> None:
    found = projections(text, part("i", "truncate[10]"))
    assert found[0] == inclusive
    if text != "i > -2147483648":  # the strict side of the lowest number is whatever is true
        assert found[1] == strict


def test_a_cut_of_width_one_is_the_number_itself() -> None:
    for op in ("<", "<=", ">", ">=", "=", "!="):
        assert projections(f"i {op} 5", part("i", "truncate[1]")) == (f"p {op} 5", f"p {op} 5")


@pytest.mark.parametrize(
    ("text", "inclusive", "strict"),
    [
        ("s < 'abc'", "p <= ab", "p < ab"),
        ("s < 'ab'", "p < ab", "p < ab"),
        ("s <= 'a'", "p <= a", "p <= a"),
        ("s > 'a'", "p > a", "p > a"),
        ("s > 'ab'", "p >= ab", "p > ab"),
        ("s >= 'abc'", "p >= ab", "p > ab"),
        ("s = 'abc'", "p = ab", "false"),
        ("s = 'a'", "p = a", "p = a"),
        ("s != 'a'", "p != a", "p != a"),
        ("s != 'abc'", "p is not null", "p != ab"),
        ("s IN ('a', 'abc', 'abd')", "p in a, ab", "p = a"),
        ("s LIKE 'ab%'", "p starts with ab", "p starts with ab"),
        ("s NOT LIKE 'ab%'", "p not starts with ab", "p not starts with ab"),
        ("s LIKE 'abc%'", "p = ab", "false"),
        ("s NOT LIKE 'abc%'", "p is not null", "p != ab"),
    ],
)
def test_cut_texts_bound_what_they_were_cut_from(text: str, inclusive: str, strict: str) -> None:
    assert projections(text, part("s", "truncate[2]")) == (inclusive, strict)


@pytest.mark.parametrize(
    ("text", "inclusive", "strict"),
    [
        ("t < '2024-03-01T00:00:00'", "p < 2024-03-01", "p < 2024-03-01"),
        ("t < '2024-03-01T00:00:01'", "p <= 2024-03-01", "p < 2024-03-01"),
        ("t <= '2024-02-29T23:59:59.999999'", "p <= 2024-02-29", "p <= 2024-02-29"),
        ("t > '2024-02-29T23:59:59.999999'", "p > 2024-02-29", "p > 2024-02-29"),
        ("t >= '2024-03-01T00:00:00'", "p >= 2024-03-01", "p >= 2024-03-01"),
        ("t = '2024-03-01T12:00:00'", "p = 2024-03-01", "false"),
        ("t != '2024-03-01T12:00:00'", "p is not null", "p != 2024-03-01"),
        ("t < '1969-12-31T00:00:00'", "p <= 1969-12-31", "p < 1969-12-31"),
        ("t = '1969-12-30T12:00:00'", "p in 1969-12-30, 1969-12-31", "false"),
        ("t >= '1969-12-31T00:00:00'", "p >= 1969-12-31", "p > 1969-12-31"),
        ("t < '1970-01-01T00:00:00'", "p <= 1970-01-01", "p < 1970-01-01"),
        ("t < '1970-01-02T00:00:00'", "p < 1970-01-02", "p < 1970-01-02"),
        ("t < '0001-01-01T00:00:00'", "p <= 0001-01-01", "p < 0001-01-01"),
        ("t >= '9999-12-31T23:59:59.999999'", "p >= 9999-12-31", "p > 9999-12-31"),
    ],
)
def test_days_of_timestamps_with_room_for_old_writers_before_1970(text: str, inclusive: str, strict: str) -> None:
    assert projections(text, part("t", "day")) == (inclusive, strict)


def test_the_day_of_a_date_is_the_date_also_before_1970() -> None:
    for op in ("<", "<=", ">", ">=", "=", "!="):
        expected = f"p {op} 1969-12-30"
        assert projections(f"d {op} '1969-12-30'", part("d", "day")) == (expected, expected)


def test_months_years_and_hours_count_from_1970() -> None:
    assert projections("d >= '2024-03-15'", part("d", "month")) == ("p >= 650", "p > 650")
    assert projections("t < '2025-01-01T00:00:00'", part("t", "year")) == ("p < 55", "p < 55")
    assert projections("z = '1970-01-01T05:30:00Z'", part("z", "hour")) == ("p = 5", "false")


def test_nanoseconds_have_days_too() -> None:
    schema = Schema(fields=(Field(7, "t", TIMESTAMP_NS),))
    day = 19_783 * 86_400 * 10**9
    after = projections(Predicate(Op.LT, "t", (day,)), part("t", "day"), schema=schema)
    assert after == ("p < 2024-03-01", "p < 2024-03-01")
    last = projections(Predicate(Op.LE, "t", (2**63 - 1,)), part("t", "hour"), schema=schema)
    assert last == ("p <= 2562047", "p < 2562047")


def test_a_bucket_decides_equality_only() -> None:
    bucket = part("l", "bucket[16]")
    assert projections("l = 34", bucket) == ("p = 3", "false")
    assert projections("l != 34", bucket) == ("p is not null", "p != 3")
    assert projections("l > 34", bucket) == ("p is not null", "false")


@pytest.mark.parametrize("transform", ["void", "zorder[2]", "month"])
def test_void_unknown_and_illegal_transforms_say_nothing(transform: str) -> None:
    assert projections("l = 34", part("l", transform)) == ("true", "false")
    assert projections("l IS NULL", part("l", transform)) == ("true", "false")


def test_a_transform_of_several_columns_says_nothing() -> None:
    field = PartitionField(source_id=2, field_id=1000, name="p", transform="bucket[4]", other_source_ids=(1,))
    assert projections("l = 34", field) == ("true", "false")


def test_several_fields_of_one_column_all_allow_and_any_is_enough() -> None:
    fields = part("t", "year", 1000), part("t", "day", 1001)
    inclusive, strict = projections("t >= '2024-03-01T12:00:00'", *fields)
    assert (inclusive, strict) == ("p >= 54 and p >= 2024-03-01", "(p > 54 or p > 2024-03-01)")
    assert projections("i = 1", *fields) == ("true", "false")


def test_and_and_or_are_projected_part_by_part() -> None:
    field = part("i", "identity")
    assert projections("i = 1 AND l = 2", field) == ("p = 1", "false")
    assert projections("i = 1 OR l = 2", field) == ("true", "p = 1")
    assert project_inclusive(ALWAYS_TRUE, (field,), SCHEMA) == project_strict(ALWAYS_TRUE, (field,), SCHEMA)
    assert project_strict(ALWAYS_FALSE, (field,), SCHEMA) == ALWAYS_FALSE


@pytest.mark.parametrize(
    ("op", "column", "term", "literal", "field", "expected"),
    [
        (Op.EQ, "l", "bucket[16]", 3, "bucket[16]", ("p = 3", "p = 3")),
        (Op.LT, "l", "bucket[16]", 3, "bucket[16]", ("p < 3", "p < 3")),
        (Op.EQ, "l", "bucket[16]", 3, "bucket[8]", ("true", "false")),
        (Op.EQ, "l", "bucket[16]", 3, "identity", ("p = 3", "p = 3")),
        (Op.EQ, "t", "day", dt.date(2024, 3, 1), "day",
         ("p >= 2024-03-01 and p < 2024-03-02", "p >= 2024-03-01 and p < 2024-03-02")),
        (Op.GE, "t", "day", dt.date(2024, 3, 1), "month", ("p >= 650", "p >= 650")),
        (Op.GT, "t", "day", dt.date(2024, 3, 1), "month", ("p >= 650", "p > 650")),
        (Op.LT, "t", "year", 54, "day", ("p < 2024-01-01", "p < 2024-01-01")),
        (Op.LE, "t", "day", dt.date(2024, 12, 31), "year", ("p < 55", "p < 55")),
        (Op.EQ, "s", "truncate[2]", "ab", "truncate[2]", ("p >= ab and p < ac", "p >= ab and p < ac")),
        (Op.STARTS_WITH, "s", "truncate[2]", "a", "truncate[1]", ("p starts with a", "p starts with a")),
    ],
)  # fmt: skip
def test_tests_of_transforms_reach_fields_of_other_transforms(
    op: Op, column: str, term: str, literal: Any, field: str, expected: tuple[str, str]
) -> None:
    assert projections(Predicate(op, Term(term, column), (literal,)), part(column, field)) == expected


def test_a_bucket_of_an_identity_value_is_still_a_bucket() -> None:
    bound = bind(Predicate(Op.EQ, Term("bucket[16]", "l"), (3,)), SCHEMA)
    found = project_inclusive(bound, (part("l", "identity"),), SCHEMA)
    assert isinstance(found, BoundPredicate)
    assert (str(found.transform), found.field_id) == ("bucket[16]", 1000)


def test_projected_predicates_are_of_the_partition_field_and_its_type() -> None:
    found = project_inclusive(bind(parse_filter("t = '2024-03-01T12:00:00'"), SCHEMA), (part("t", "day"),), SCHEMA)
    assert found == BoundPredicate(Op.EQ, 1000, ("p",), DATE, (dt.date(2024, 3, 1),))
    found = project_inclusive(bind(parse_filter("t = '2024-03-01T12:00:00'"), SCHEMA), (part("t", "year"),), SCHEMA)
    assert found == BoundPredicate(Op.EQ, 1000, ("p",), INT, (54,))


def test_decimals_below_the_lowest_may_be_stored_all_the_same() -> None:
    lowest = decimal.Decimal("-9999999.99")
    expected = BoundPredicate(Op.LE, 1000, ("p",), Decimal(9, 2), (lowest,))
    bound = bind(Predicate(Op.EQ, "m", (lowest,)), SCHEMA)
    assert project_inclusive(bound, (part("m", "truncate[50]"),), SCHEMA) == expected
    above = bind(Predicate(Op.GT, "m", (lowest,)), SCHEMA)
    assert shown(project_strict(above, (part("m", "truncate[50]"),), SCHEMA)) == "p > -9999999.99"


def test_a_cut_too_wide_for_the_arithmetic_of_ints_says_nothing() -> None:
    assert projections("i = 5", part("i", f"truncate[{2**30 + 1}]")) == ("true", "false")
    assert projections("i = 5", part("i", f"truncate[{2**30}]")) == ("p = 0", "false")


def test_what_every_number_passes_is_passed_by_no_null() -> None:
    assert projections("i >= -2147483648", part("i", "truncate[10]"))[1] == "p is not null"
