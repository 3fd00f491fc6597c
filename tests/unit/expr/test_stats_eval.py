"""Statistics evaluation: its promises hold for random tables, and it does make them where it can."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest
from filter_cases import NAN, PARTITIONS, SCHEMA, files, filters, result_type, truth
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Expr, Op, Predicate
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import ContentType, column_key, entries, partition_key
from icefloe.model.partition.spec import PartitionField

NONE, SOME, ALL = Match.NONE, Match.SOME, Match.ALL


@given(made=files(), expr=filters)
def test_none_and_all_are_promises_about_every_row(
    made: tuple[list[list[dict[str, Any]]], pa.Table], expr: Expr
) -> None:
    contents, table = made
    answers = evaluate(bind(expr, SCHEMA), table, PARTITIONS).to_pylist()
    for content, answer in zip(contents, answers, strict=True):
        matching = sum(truth(expr, row) is True for row in content)
        assert matching == 0 or answer != NONE
        assert matching == len(content) or answer != ALL


@given(made=files(), names=st.sets(st.sampled_from(["lower", "upper", "null", "nan", "value"])), expr=filters)
def test_the_promises_hold_whatever_statistics_are_missing(
    made: tuple[list[list[dict[str, Any]]], pa.Table], names: set[str], expr: Expr
) -> None:
    contents, table = made
    kept = table.drop_columns([c for c in table.column_names if ":" in c and c.split("_")[0] in names])
    less = evaluate(bind(expr, SCHEMA), kept, PARTITIONS).to_pylist()
    for content, answer in zip(contents, less, strict=True):
        matching = sum(truth(expr, row) is True for row in content)
        assert matching == 0 or answer != NONE
        assert matching == len(content) or answer != ALL


def judge(text: str, *partitions: PartitionField, **statistics: Any) -> Match:
    """The answer for one file of 10 rows; ``lower_bound__s=...`` is a statistic of column s."""
    row: dict[str, Any] = {"content_type": int(ContentType.DATA), "record_count": 10}
    types = {column_key(field.id): arrow_type(field.type) for field in SCHEMA.measured.values()}
    for name, value in statistics.items():
        measure, key = name.split("__")
        row[f"{measure}:{key if key[0] == 'p' and key[1:].isdecimal() else SCHEMA.field(key).id}"] = value
    types |= {partition_key(f.field_id): result_type(f) for f in partitions}
    return Match(evaluate(bind(parse_filter(text), SCHEMA), entries([row], types), partitions)[0].as_py())


KNOWN = {"value_count__i": 10, "null_value_count__i": 0, "lower_bound__i": 3, "upper_bound__i": 7}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i < 3", NONE), ("i < 4", SOME), ("i < 7", SOME), ("i < 8", ALL),
        ("i <= 2", NONE), ("i <= 3", SOME), ("i <= 6", SOME), ("i <= 7", ALL),
        ("i > 7", NONE), ("i > 6", SOME), ("i > 3", SOME), ("i > 2", ALL),
        ("i >= 8", NONE), ("i >= 7", SOME), ("i >= 4", SOME), ("i >= 3", ALL),
        ("i = 2", NONE), ("i = 3", SOME), ("i = 7", SOME), ("i = 8", NONE),
        ("i != 2", ALL), ("i != 3", SOME), ("i != 8", ALL),
        ("i IN (1, 2, 8)", NONE), ("i IN (2, 5, 8)", SOME), ("i IN (1, 2)", NONE), ("i IN (8, 9)", NONE),
        ("i NOT IN (1, 2, 8)", ALL), ("i NOT IN (1, 3)", SOME),
        ("i IS NULL", NONE), ("i IS NOT NULL", ALL),
        ("i < 3 OR i > 2", ALL), ("i < 3 AND i > 2", NONE), ("i > 2 AND i > 5", SOME), ("NOT i < 3", ALL),
        ("i > 2 OR l = 1", ALL), ("i < 3 AND l = 1", NONE), ("l = 1", SOME),
    ],
)  # fmt: skip
def test_known_integer_statistics_decide(text: str, expected: Match) -> None:
    assert judge(text, **KNOWN) == expected


def test_an_empty_file_has_no_matching_row() -> None:
    table = entries([{"record_count": 0}, {"record_count": 1}])
    assert evaluate(ALWAYS_TRUE, table).to_pylist() == [NONE, ALL]
    assert evaluate(ALWAYS_FALSE, table).to_pylist() == [NONE, NONE]
    assert evaluate(ALWAYS_TRUE, table.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(
    "text", ["i < 0", "i = 1", "i IN (1, 2)", "i IS NULL", "i IS NOT NULL", "isnan(f)", "s LIKE 'a%'"]
)
def test_missing_and_null_statistics_never_decide(text: str) -> None:
    assert judge(text) == SOME
    nulls = dict.fromkeys(f"{measure}__{c}" for measure in ("lower_bound", "upper_bound", "value_count") for c in "ifs")
    assert judge(text, **nulls) == SOME


def test_possible_nulls_forbid_all_but_not_none() -> None:
    bounds = {"lower_bound__i": 3, "upper_bound__i": 7}
    assert judge("i > 2", **bounds) == SOME
    assert judge("i > 2", **bounds, null_value_count__i=1, value_count__i=10) == SOME
    assert judge("i > 9", **bounds) == NONE


def test_fewer_values_than_rows_mean_nulls_in_a_parent() -> None:
    bounds = {"lower_bound__n.k": 3, "upper_bound__n.k": 7, "null_value_count__n.k": 0}
    assert judge("n.k > 2", **bounds, **{"value_count__n.k": 9}) == SOME
    assert judge("n.k > 2", **bounds, **{"value_count__n.k": 10}) == ALL
    assert judge("n.k IS NULL", **bounds, **{"value_count__n.k": 9}) == SOME


def test_only_nulls_match_no_comparison() -> None:
    counts = {"value_count__i": 10, "null_value_count__i": 10}
    assert judge("i != 5", **counts) == NONE
    assert judge("i NOT IN (5, 6)", **counts) == NONE
    assert judge("i IS NULL", **counts) == ALL


def test_unknown_nan_counts_mean_that_nan_may_be_there() -> None:
    bounds = {"lower_bound__f": 0.5, "upper_bound__f": 1.0, "value_count__f": 10, "null_value_count__f": 0}
    assert judge("f <= 1.0", **bounds) == SOME
    assert judge("f > 1.0", **bounds) == SOME
    assert judge("f <= 1.0", **bounds, nan_value_count__f=0) == ALL
    assert judge("f > 1.0", **bounds, nan_value_count__f=0) == NONE
    assert judge("f > 0.25", **bounds, nan_value_count__f=3) == ALL
    assert judge("f < 0.5", **bounds) == NONE


def test_a_file_of_nan_only() -> None:
    counts = {"value_count__f": 10, "null_value_count__f": 0, "nan_value_count__f": 10}
    assert judge("f < 5", **counts) == NONE
    assert judge("f > 5", **counts) == ALL
    assert judge("isnan(f)", **counts) == ALL
    assert judge("NOT isnan(f)", **counts) == NONE


def test_a_nan_bound_bounds_nothing() -> None:
    counts = {"value_count__f": 10, "null_value_count__f": 0, "nan_value_count__f": 0}
    assert judge("f > 5", lower_bound__f=NAN, upper_bound__f=NAN, **counts) == SOME


def test_the_two_zeros_are_equal() -> None:
    counts = {"value_count__f": 10, "null_value_count__f": 0, "nan_value_count__f": 0}
    for zero in ("0.0", "-0.0D"):
        assert judge(f"f = {zero}", lower_bound__f=-0.0, upper_bound__f=0.0, **counts) == ALL
        assert judge(f"f IN ({zero}, 9)", lower_bound__f=0.0, upper_bound__f=-0.0, **counts) == ALL
        assert judge(f"f < {zero}", lower_bound__f=-0.0, upper_bound__f=1.0) == NONE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s LIKE 'b%'", ALL), ("s LIKE 'bc%'", ALL), ("s LIKE 'bcd%'", SOME), ("s LIKE 'bce%'", SOME),
        ("s LIKE 'a%'", NONE), ("s LIKE 'c%'", NONE), ("s LIKE 'bb%'", NONE), ("s LIKE 'bcf%'", NONE),
        ("s NOT LIKE 'a%'", ALL), ("s NOT LIKE 'b%'", NONE), ("s NOT LIKE 'bcd%'", SOME), ("s LIKE 'bcdef%'", SOME),
        ("s LIKE '%'", ALL), ("s = 'bcd'", SOME), ("s = 'bce1'", NONE), ("s > 'bcc'", ALL),
    ],
)  # fmt: skip
def test_prefixes_are_compared_with_bounds(text: str, expected: Match) -> None:
    counts = {"value_count__s": 10, "null_value_count__s": 0}
    assert judge(text, lower_bound__s="bcd", upper_bound__s="bce", **counts) == expected


DAY = PartitionField(source_id=7, field_id=1000, name="t_day", transform="day")
BUCKET = PartitionField(source_id=2, field_id=1001, name="l_bucket", transform="bucket[16]")


def day(date: dt.date) -> dict[str, Any]:
    return {
        "lower_bound__p1000": date,
        "upper_bound__p1000": date,
        "value_count__p1000": 10,
        "null_value_count__p1000": 0,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t < '2024-03-02T00:00:00'", ALL), ("t < '2024-03-01T00:00:00'", NONE), ("t <= '2024-03-01T00:00:00'", SOME),
        ("t >= '2024-03-01'", ALL), ("t > '2024-03-01'", SOME), ("t >= '2024-03-02'", NONE),
        ("t > '2024-03-01T23:59:59.999999'", NONE), ("t >= '2024-03-01T23:59:59.999999'", SOME),
        ("t = '2024-03-01T12:00:00'", SOME), ("t = '2024-03-02T00:00:00'", NONE),
        ("t IN ('2024-02-29T00:00:00', '2024-03-02T00:00:00')", NONE), ("t != '2024-03-02T00:00:00'", ALL),
        ("t IS NULL", NONE), ("t IS NOT NULL", ALL),
    ],
)  # fmt: skip
def test_a_day_bounds_its_timestamps(text: str, expected: Match) -> None:
    assert judge(text, DAY, **day(dt.date(2024, 3, 1))) == expected


def test_a_day_before_1970_may_hold_the_end_of_the_day_before() -> None:
    # Old writers rounded towards zero: 1969-12-30 23:00 went into 1969-12-31.
    assert judge("t = '1969-12-30T23:00:00'", DAY, **day(dt.date(1969, 12, 31))) == SOME
    assert judge("t = '1969-12-29T23:00:00'", DAY, **day(dt.date(1969, 12, 31))) == NONE
    assert judge("t = '1969-12-31T23:00:00'", DAY, **day(dt.date(1970, 1, 1))) == SOME
    assert judge("t = '1970-01-01T23:00:00'", DAY, **day(dt.date(1970, 1, 2))) == NONE


def test_a_day_outside_the_range_of_timestamps_is_unknown() -> None:
    row = {"record_count": 1, "lower_bound:p1000": 2**31 - 1, "upper_bound:p1000": 2**31 - 1}
    bound = bind(Predicate(Op.LT, "t", ("2024-03-01T00:00:00",)), SCHEMA)
    assert evaluate(bound, entries([row], {partition_key(1000): pa.date32()}), (DAY,)).to_pylist() == [SOME]


def test_a_bucket_is_evidence_for_equality_only() -> None:
    for low, high, expected in ((3, 3, SOME), (4, 4, NONE), (2, 4, SOME), (4, 15, NONE)):  # 34 is in bucket 3
        bounds = {"lower_bound__p1001": low, "upper_bound__p1001": high}
        assert judge("l = 34", BUCKET, **bounds) == expected
        assert judge("l IN (34, 34L)", BUCKET, **bounds) == expected
        assert judge("l > 34", BUCKET, **bounds) == SOME
        assert judge("l != 34", BUCKET, **bounds) != NONE


def test_a_bucket_knows_about_nulls() -> None:
    counts = {"value_count__p1001": 10, "null_value_count__p1001": 10}
    assert judge("l IS NULL", BUCKET, **counts) == ALL
    assert judge("l > 1", BUCKET, **counts) == NONE


def test_unknown_and_void_transforms_are_no_evidence() -> None:
    for transform in ("void", "week", "zorder[2]"):
        field = PartitionField(source_id=7, field_id=1000, name="t_x", transform=transform)
        assert judge("t < '2024-03-01T00:00:00'", field, **day(dt.datetime(2024, 3, 1))) == SOME


def test_bounds_of_an_unexpected_type_are_unknown() -> None:
    table = entries([{"record_count": 1, "lower_bound:1": "x"}], {column_key(1): pa.string()})
    assert evaluate(bind(parse_filter("i < 3"), SCHEMA), table).to_pylist() == [SOME]


def test_a_manifest_counts_the_rows_of_its_live_files() -> None:
    row = {
        "content_type": int(ContentType.DATA_MANIFEST), "record_count": 2, "added_rows_count": 5,
        "existing_rows_count": 5, "lower_bound:1": 3, "upper_bound:1": 7, "null_value_count:1": 0,
    }  # fmt: skip
    rows = [row | {"value_count:1": count} for count in (10, 9, 2, None)]
    table = entries(rows, {column_key(1): pa.int32()})
    assert evaluate(bind(parse_filter("i > 2"), SCHEMA), table).to_pylist() == [ALL, SOME, SOME, SOME]
    nulls = entries([row | {"value_count:1": 10, "null_value_count:1": 2}], {column_key(1): pa.int32()})
    assert evaluate(bind(parse_filter("i IS NULL"), SCHEMA), nulls).to_pylist() == [SOME]


def test_a_partition_summary_without_counts_still_prunes() -> None:
    row = {"content_type": int(ContentType.DATA_MANIFEST), "record_count": 2, "lower_bound:p1000": dt.date(2024, 3, 1),
           "upper_bound:p1000": dt.date(2024, 3, 5), "null_value_count:p1000": 0}  # fmt: skip
    table = entries([row], {partition_key(1000): pa.date32()})
    answers = {
        text: evaluate(bind(parse_filter(text), SCHEMA), table, (DAY,))[0].as_py()
        for text in ("t > '2024-03-06'", "t > '2024-03-03'", "t IS NULL", "t >= '2024-03-01'")
    }
    assert list(answers.values()) == [NONE, SOME, NONE, ALL]


def test_thousands_of_literals_are_judged_against_many_files_at_once() -> None:
    size = 200_000
    low = pa.array(range(0, size * 10, 10), pa.int64())
    texts = pa.array([f"{i:07d}" for i in range(0, size * 10, 10)])
    bounds = {"lower_bound:2": low, "upper_bound:2": low, "lower_bound:5": texts, "upper_bound:5": texts}
    table = pa.table({"record_count": pa.repeat(1, size), **bounds})
    some = [*range(0, 100_000, 10), *range(5, 100, 10)]
    text = "l IN (" + ",".join(map(str, some)) + ")"
    answers = evaluate(bind(parse_filter(text), SCHEMA), table).to_numpy()
    assert (answers[:10_000] == SOME).all()
    assert (answers[10_000:] == NONE).all()
    by_text = bind(Predicate(Op.IN, "s", tuple(f"{i:07d}" for i in some)), SCHEMA)
    assert (evaluate(by_text, table).to_numpy() == answers).all()


def test_a_disjunction_of_thousands_of_terms_is_flat_and_one_test() -> None:
    text = " OR ".join(f"l = {i}" for i in range(2000))
    bound = bind(parse_filter(text), SCHEMA)
    assert bound == bind(Predicate(Op.IN, "l", tuple(range(2000))), SCHEMA)
    mixed = bind(parse_filter(" OR ".join(f"(l = {i} AND i > {i})" for i in range(500))), SCHEMA)
    table = entries([{"record_count": 1, "lower_bound:2": 7, "upper_bound:2": 7}], {column_key(2): pa.int64()})
    assert evaluate(mixed, table).to_pylist() == [SOME]


def test_an_unbound_filter_is_refused() -> None:
    with pytest.raises(InputError, match="bind"):
        evaluate(Predicate(Op.IS_NULL, "i"), entries([{"record_count": 1}]))  # type: ignore[arg-type]


def test_infinite_bounds_are_ordinary_bounds() -> None:
    counts = {"value_count__f": 10, "null_value_count__f": 0, "nan_value_count__f": 0}
    assert judge("f > 5", lower_bound__f=math.inf, upper_bound__f=math.inf, **counts) == ALL
