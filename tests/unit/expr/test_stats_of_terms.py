"""Statistics evaluation of transforms, of types without order, and of bounds stored in another type."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from filter_cases import SCHEMA

from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Bound, BoundPredicate, Op, Predicate, TransformTerm
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import StatKey, column_key, entries, partition_key
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import TIMESTAMP_NS, TIMESTAMPTZ_NS, Field, Geometry

NONE, SOME, ALL = Match.NONE, Match.SOME, Match.ALL


def term(op: Op, transform: str, column: str, *literals: Any, schema: Schema = SCHEMA) -> Bound:
    return bind(Predicate(op, TransformTerm(transform, column), literals), schema)


def judge(bound: Bound, key: StatKey, type_: pa.DataType, lower: Any, upper: Any, *fields: PartitionField) -> Match:
    """The answer for one file of 10 rows without nulls, of which one range is known."""
    row = {
        "record_count": 10, f"lower_bound:{key}": lower, f"upper_bound:{key}": upper, f"value_count:{key}": 10,
        f"null_value_count:{key}": 0,
    }  # fmt: skip
    return Match(evaluate(bound, entries([row], {key: type_}), fields)[0].as_py())


@pytest.mark.parametrize(
    ("op", "literal", "expected"),
    [
        (Op.EQ, 3, ALL), (Op.EQ, 4, NONE), (Op.NE, 4, ALL), (Op.NE, 3, NONE), (Op.LT, 4, ALL), (Op.LT, 3, NONE),
        (Op.GE, 3, ALL), (Op.GT, 3, NONE),
    ],
)  # fmt: skip
def test_a_bucket_decides_tests_of_the_same_bucket(op: Op, literal: int, expected: Match) -> None:
    field = PartitionField(source_id=2, field_id=1000, name="b", transform="bucket[16]")
    assert judge(term(op, "bucket[16]", "l", literal), partition_key(1000), pa.int32(), 3, 3, field) == expected
    other = PartitionField(source_id=2, field_id=1000, name="b", transform="bucket[8]")
    assert judge(term(op, "bucket[16]", "l", literal), partition_key(1000), pa.int32(), 3, 3, other) == SOME


def test_bounds_of_a_column_say_nothing_about_its_buckets_but_nulls_do() -> None:
    assert judge(term(Op.EQ, "bucket[16]", "l", 3), column_key(2), pa.int64(), 34, 34) == SOME
    nulls = {"record_count": 10, "value_count:2": 10, "null_value_count:2": 10}
    assert evaluate(term(Op.EQ, "bucket[16]", "l", 3), entries([nulls])).to_pylist() == [NONE]


@pytest.mark.parametrize(
    ("op", "transform", "literal", "expected"),
    [
        (Op.EQ, "day", dt.date(2024, 3, 1), ALL), (Op.EQ, "day", dt.date(2024, 3, 2), NONE),
        (Op.EQ, "month", 650, ALL), (Op.LT, "month", 650, NONE), (Op.GE, "year", 54, ALL), (Op.GT, "year", 54, NONE),
        (Op.EQ, "hour", 474_800, SOME), (Op.LT, "hour", 474_792, NONE),
    ],
)  # fmt: skip
def test_bounds_of_a_column_bound_its_units_of_time(op: Op, transform: str, literal: Any, expected: Match) -> None:
    low, high = dt.datetime(2024, 3, 1), dt.datetime(2024, 3, 1, 23)
    assert judge(term(op, transform, "t", literal), column_key(7), pa.timestamp("us"), low, high) == expected


def test_bounds_of_texts_and_numbers_bound_their_cuts() -> None:
    assert judge(term(Op.EQ, "truncate[2]", "s", "ab"), column_key(5), pa.string(), "aba", "abz") == ALL
    assert judge(term(Op.EQ, "truncate[2]", "s", "ac"), column_key(5), pa.string(), "aba", "abz") == NONE
    assert judge(term(Op.EQ, "truncate[10]", "i", 20), column_key(1), pa.int32(), 20, 29) == ALL
    assert judge(term(Op.EQ, "truncate[10]", "i", 20), column_key(1), pa.int32(), 20, 30) == SOME


@pytest.mark.parametrize("type_", [TIMESTAMP_NS, TIMESTAMPTZ_NS])
def test_nanoseconds_are_compared_as_counts(type_: Any) -> None:
    schema = Schema(fields=(Field(1, "t", type_),))
    arrow = pa.timestamp("ns", tz="UTC" if type_ == TIMESTAMPTZ_NS else None)
    for value, expected in ((99, ALL), (100, SOME), (200, NONE)):
        assert judge(bind(Predicate(Op.GT, "t", (value,)), schema), column_key(1), arrow, 100, 200) == expected
    field = PartitionField(source_id=1, field_id=1000, name="t_day", transform="day")
    day = 86_400 * 10**9
    late = [
        judge(bind(Predicate(Op.GE, "t", (n,)), schema), partition_key(1000), pa.date32(), 1, 1, field)
        for n in (day, 2 * day)
    ]
    assert late == [ALL, NONE]
    far = judge(
        bind(Predicate(Op.GE, "t", (0,)), schema), partition_key(1000), pa.date32(), 2**31 - 1, 2**31 - 1, field
    )
    assert far == SOME


def test_a_geometry_has_no_bounds_but_nulls() -> None:
    bounds = {"record_count": 10, "lower_bound:1": b"\xff", "upper_bound:1": b"", "value_count:1": 10}
    table = entries([bounds | {"null_value_count:1": n} for n in (0, 1, 10)], {column_key(1): pa.binary()})
    schema = Schema(fields=(Field(1, "g", Geometry()),))
    assert evaluate(bind(Predicate(Op.IS_NULL, "g"), schema), table).to_pylist() == [NONE, SOME, ALL]
    compared = BoundPredicate(Op.EQ, 1, ("g",), Geometry(), (b"\0",))
    assert evaluate(compared, table).to_pylist() == [SOME, SOME, NONE]


@pytest.mark.parametrize(
    ("text", "key", "stored", "lower", "upper", "expected"),
    [
        ("l > 5", column_key(2), pa.int32(), 6, 7, ALL),
        ("l > 5", column_key(2), pa.string(), "6", "7", SOME),
        ("i > 5", column_key(1), pa.int64(), 6, 7, ALL),
        ("i < 100", column_key(1), pa.int64(), 6, 2**40, SOME),
        ("f <= 1", column_key(3), pa.float32(), 0.75, 1.0, SOME),  # NaN may be there
        ("f > 0.5", column_key(3), pa.float32(), 0.75, 1.0, ALL),
        ("f < 0.5", column_key(3), pa.float32(), 0.75, 1.0, NONE),
        ("g < 0.1", column_key(4), pa.float64(), 0.1, 0.1, SOME),  # rounding a double to a float moves it
        ("m > 1", column_key(9), pa.decimal128(5, 2), 2, 3, ALL),
        ("t > '2024-01-01'", column_key(7), pa.date32(), dt.date(2024, 1, 2), dt.date(2024, 1, 3), ALL),
        ("d > '2024-01-01'", column_key(6), pa.timestamp("us"), dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 3), SOME),
        ("s > 'a'", column_key(5), pa.large_string(), "b", "c", ALL),
        ("s > 'a'", column_key(5), pa.int64(), 5, 6, SOME),
    ],
)
def test_bounds_of_before_a_promotion_count_and_others_do_not(
    text: str, key: str, stored: pa.DataType, lower: Any, upper: Any, expected: Match
) -> None:
    assert judge(bind(parse_filter(text), SCHEMA), key, stored, lower, upper) == expected


def test_chunks_and_batches_make_no_difference() -> None:
    size = 150_000  # more than two batches
    low = np.arange(size, dtype=np.int64)
    table = pa.table({"record_count": np.ones(size, np.int64), "lower_bound:2": low, "upper_bound:2": low})
    pieces = pa.concat_tables([table.slice(start, 7_001) for start in range(0, size, 7_001)])
    bound = bind(parse_filter("l >= 65530 AND l < 131080"), SCHEMA)
    answers = evaluate(bound, table)
    assert answers == evaluate(bound, pieces)
    assert np.flatnonzero(answers.to_numpy() != NONE).tolist() == list(range(65_530, 131_080))


@pytest.mark.parametrize(("month", "expected"), [(0, SOME), (2, ALL)])
def test_a_month_until_1970_may_hold_the_one_before_also_in_lists_beyond_the_calendar(month: int, expected: Match):
    # Old writers rounded towards 1970. Month 96,359 has no dates, so the list is not rewritten as one of dates.
    part = PartitionField(source_id=6, field_id=1000, name="d_month", transform="month")
    bound = term(Op.NOT_IN, "month", "d", -1, 1, 96_359)
    assert judge(bound, partition_key(1000), pa.int32(), month, month, part) == expected
