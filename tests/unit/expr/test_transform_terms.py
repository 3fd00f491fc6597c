"""Transforms of columns in filters: parsed, bound to the values they can give, and evaluated for rows."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import threading
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from filter_cases import LITERALS, SCHEMA, VALUES, predicates, rows, truth
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.batch_filter import evaluate_rows, to_arrow
from icefloe.expr.filter.bind import bind, push_not
from icefloe.expr.filter.literal_conversion import After, Exact, Gap, position_among_results
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
)
from icefloe.expr.text.filter_parser import parse_filter, parse_pushed
from icefloe.expr.text.spark_sql import to_sql
from icefloe.model.arrow.conform import arrow_schema, arrow_type
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    Decimal,
    Field,
    Geometry,
)
from icefloe.transforms import Bucket, Truncate, parse_transform
from support.row_matching import matches


@pytest.mark.parametrize(
    ("text", "transform", "column", "op", "literals"),
    [
        ("bucket(16, id) = 3", "bucket[16]", "id", Op.EQ, (3,)),
        ("3 < bucket(16, id)", "bucket[16]", "id", Op.GT, (3,)),
        ("BUCKET(16, (`a.b`)) IN (1, 2)", "bucket[16]", "a.b", Op.IN, (1, 2)),
        ("truncate(4, name) = 'abcd'", "truncate[4]", "name", Op.EQ, ("abcd",)),
        ("truncate(4, name) LIKE 'ab%'", "truncate[4]", "name", Op.STARTS_WITH, ("ab",)),
        ("startswith(truncate(4, name), 'ab')", "truncate[4]", "name", Op.STARTS_WITH, ("ab",)),
        ("years(ts) != 54", "year", "ts", Op.NE, (54,)),
        ("months(a.b.c.d.e) <= 648", "month", "a.b.c.d.e", Op.LE, (648,)),
        ("days(ts) = DATE '2024-01-01'", "day", "ts", Op.EQ, (dt.date(2024, 1, 1),)),
        ("hours(ts) IS NOT NULL", "hour", "ts", Op.NOT_NULL, ()),
        ("isnull(hours(ts))", "hour", "ts", Op.IS_NULL, ()),
        ("system.bucket(16, id) NOT IN (3)", "bucket[16]", "id", Op.NOT_IN, (3,)),
        ("lake.system.truncate(4, name) > 'x'", "truncate[4]", "name", Op.GT, ("x",)),
        ("`system`.`days`(ts) = '2024-01-01'", "day", "ts", Op.EQ, ("2024-01-01",)),
        ("year(ts) = 2024", "year", "ts", Op.EQ, (54,)),
        ("2024 <= YEAR(ts)", "year", "ts", Op.GE, (54,)),
        ("year(ts) IN (1969, NULL)", "year", "ts", Op.IN, (-1, None)),
        ("year(ts) < 2024.5", "year", "ts", Op.LT, (decimal.Decimal("54.5"),)),
        ("year(ts) < 2.5e0", "year", "ts", Op.LT, (decimal.Decimal("-1967.5"),)),
        ("year(ts) IS NULL", "year", "ts", Op.IS_NULL, ()),
    ],
)
def test_functions_of_columns_are_transforms(
    text: str, transform: str, column: str, op: Op, literals: tuple[Any, ...]
) -> None:
    found = parse_filter(text)
    assert found == Predicate(op, TransformTerm(transform, column), literals)
    assert isinstance(found, Predicate)
    assert [type(literal) for literal in found.literals] == [type(literal) for literal in literals]


def test_between_and_null_safe_equality_take_transforms() -> None:
    days, month = TransformTerm("day", "ts"), TransformTerm("month", "ts")
    assert parse_filter("days(ts) BETWEEN 1 AND 2") == And((Predicate(Op.GE, days, (1,)), Predicate(Op.LE, days, (2,))))
    assert parse_filter("5 <=> months(ts)") == And((Predicate(Op.NOT_NULL, month), Predicate(Op.EQ, month, (5,))))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("month(ts) = 1", "month is a part of a date; the transform that counts from 1970 is months"),
        ("day(ts) = 1", "is days"),
        ("dayofmonth(ts) = 1", "is days"),
        ("hour(ts) = 1", "is hours"),
        ("truncate(name, 4) = 'x'", r"write truncate\(N, column\)"),
        ("truncate(4) = 'x'", r"write truncate\(N, column\)"),
        ("bucket('16', id) = 1", r"write bucket\(N, column\)"),
        ("bucket(-1, id) = 1", r"write bucket\(N, column\)"),
        ("bucket(1.5, id) = 1", r"write bucket\(N, column\)"),
        ("bucket(16, 5) = 1", "a column"),
        ("bucket(16, upper(id)) = 1", "a column"),
        ("years(a, b) = 1", r"write years\(column\)"),
        ("system.zorder(a) = 1", "system.zorder is not a transform"),
        ("zorder(3, a) = 1", "a column"),
        ("hours(ts)", "only comparisons"),
        ("year(ts) = '2024'", "a year is a number"),
        ("year(ts) LIKE '20%'", "a year is a number"),
        ("year(ts) = CAST('1e-5000' AS DECIMAL)", "too many digits"),
    ],
)
def test_what_is_no_transform_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_filter(text)


def test_spark_filters_are_read_only_where_their_functions_are_certain() -> None:
    year = Predicate(Op.EQ, TransformTerm("year", "ts"), (54,))
    assert parse_pushed(["(year(ts) = 2024)"], "UTC") == year
    assert parse_pushed(["(year(ts) = 2024)"], "Europe/Paris") == ALWAYS_TRUE
    assert parse_pushed(["(bucket(16, id) = 3)"], "UTC") == ALWAYS_TRUE
    assert parse_pushed(["(truncate(16, id) = 3)"], "UTC") == ALWAYS_TRUE
    found = parse_pushed(["(lake.system.bucket(16, id) = 3)"], "Europe/Paris")
    assert found == Predicate(Op.EQ, TransformTerm("bucket[16]", "id"), (3,))


def shape(expr: Expr) -> Any:
    """A bound predicate in short."""
    if not isinstance(expr, BoundPredicate):
        return expr
    term = expr.name if expr.source is None else f"{expr.transform}({expr.name})"
    return (term, expr.op.value, *expr.literals)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bucket(16, l) = 3", ("bucket[16](l)", "=", 3)),
        ("bucket(16, l) = 16", ALWAYS_FALSE),
        ("bucket(16, l) = -1", ALWAYS_FALSE),
        ("bucket(16, l) = 3.5", ALWAYS_FALSE),
        ("bucket(16, l) != 99", ("l", "is not null")),
        ("bucket(16, l) < 99", ("l", "is not null")),
        ("bucket(16, l) > 15", ("bucket[16](l)", ">", 15)),
        ("bucket(16, l) >= 15.5", ALWAYS_FALSE),
        ("bucket(16, l) > -0.5", ("l", "is not null")),
        ("bucket(16, l) IN (3, 99, 2)", ("bucket[16](l)", "in", 2, 3)),
        ("bucket(16, l) NOT IN (99)", ("l", "is not null")),
        ("bucket(16, l) NOT IN (1, NULL)", ALWAYS_FALSE),
        ("bucket(16, l) = NULL", ALWAYS_FALSE),
        ("bucket(16, l) IS NULL", ("l", "is null")),
        ("bucket(16, l) IS NOT NULL", ("l", "is not null")),
        ("isnan(bucket(16, l))", ALWAYS_FALSE),
        ("NOT isnan(bucket(16, l))", ALWAYS_TRUE),
        ("bucket(16, l) = 3 OR bucket(16, l) = 4", ("bucket[16](l)", "in", 3, 4)),
        ("truncate(10, i) = 20", ("truncate[10](i)", "=", 20)),
        ("truncate(10, i) = 15", ALWAYS_FALSE),
        ("truncate(10, i) < 15", ("truncate[10](i)", "<=", 10)),
        ("truncate(10, i) > -15", ("truncate[10](i)", ">=", -10)),
        ("truncate(10, i) > 2147483640", ("truncate[10](i)", ">", 2147483640)),
        ("truncate(10, i) >= 2147483641", ALWAYS_FALSE),
        ("truncate(10, i) < -2147483645", ALWAYS_FALSE),
        ("truncate(50, m) < 0.75", ("truncate[50](m)", "<=", decimal.Decimal("0.50"))),
        ("truncate(50, m) = 1.5", ("truncate[50](m)", "=", decimal.Decimal("1.50"))),
        ("truncate(2, s) = 'ab'", ("truncate[2](s)", "=", "ab")),
        ("truncate(2, s) = 'abc'", ALWAYS_FALSE),
        ("truncate(2, s) != 'abc'", ("s", "is not null")),
        ("truncate(2, s) < 'abc'", ("truncate[2](s)", "<=", "ab")),
        ("truncate(2, s) >= 'abc'", ("truncate[2](s)", ">", "ab")),
        ("truncate(2, s) = '😀é'", ("truncate[2](s)", "=", "😀é")),
        ("truncate(2, s) LIKE 'ab%'", ("s", "starts with", "ab")),
        ("truncate(2, s) LIKE 'abc%'", ALWAYS_FALSE),
        ("truncate(2, s) NOT LIKE 'abc%'", ("s", "is not null")),
        ("truncate(2, s) LIKE '%'", ("s", "is not null")),
        ("truncate(1, x) = X'01'", ("truncate[1](x)", "=", b"\x01")),
        ("truncate(1, x) > X'0102'", ("truncate[1](x)", ">", b"\x01")),
        ("days(t) = DATE '2024-01-01'", ("day(t)", "=", dt.date(2024, 1, 1))),
        ("days(t) = '2024-01-01'", ("day(t)", "=", dt.date(2024, 1, 1))),
        ("days(z) = 19723", ("day(z)", "=", dt.date(2024, 1, 1))),
        ("days(d) = DATE '2024-01-01'", ("d", "=", dt.date(2024, 1, 1))),
        ("days(d) > 19723", ("d", ">", dt.date(2024, 1, 1))),
        ("days(d) IN (19723, '2024-01-01')", ("d", "=", dt.date(2024, 1, 1))),
        ("years(t) = 54", ("year(t)", "=", 54)),
        ("year(d) >= 2024", ("year(d)", ">=", 54)),
        ("hours(z) > 5e9", ALWAYS_FALSE),
        ("hours(z) > 1.5", ("hour(z)", ">=", 2)),
    ],
)
def test_literals_are_placed_among_the_values_of_the_transform(text: str, expected: Any) -> None:
    assert shape(bind(parse_filter(text), SCHEMA)) == expected


def test_a_bound_transform_knows_its_types() -> None:
    found = bind(parse_filter("days(z) = '2024-01-01' AND bucket(4, l) = 1 AND bucket(4, l) != 2"), SCHEMA)
    assert isinstance(found, And)
    day, bucket, other = found.children
    assert isinstance(day, BoundPredicate)
    assert (day.transform, day.source, day.type, day.column_type) == (
        parse_transform("day"),
        TIMESTAMPTZ,
        DATE,
        TIMESTAMPTZ,
    )
    assert isinstance(bucket, BoundPredicate)
    assert (bucket.transform, bucket.source, bucket.type) == (Bucket(4), LONG, INT)
    assert shape(other) == ("bucket[4](l)", "!=", 2)


def test_identity_and_void_say_what_they_are() -> None:
    def bound(op: Op, transform: str, *literals: object) -> Any:
        return shape(bind(Predicate(op, TransformTerm(transform, "i"), literals), SCHEMA))

    assert bound(Op.EQ, "identity", 1) == ("i", "=", 1)
    assert bound(Op.IS_NULL, "void") == ALWAYS_TRUE
    assert bound(Op.EQ, "void", 1) == bound(Op.NOT_IN, "void", 1) == bound(Op.NOT_NULL, "void") == ALWAYS_FALSE


@pytest.mark.parametrize(
    ("term", "literal", "message"),
    [
        (TransformTerm("day", "s"), 1, "transform day does not accept column 's' of type string"),
        (TransformTerm("hour", "d"), 1, "transform hour does not accept column 'd' of type date"),
        (TransformTerm("bucket[4]", "f"), 1, "transform bucket.4. does not accept column 'f' of type double"),
        (TransformTerm("truncate[4]", "b"), True, "does not accept column 'b' of type boolean"),
        (TransformTerm("bucket[0]", "i"), 1, "number of buckets"),
        (TransformTerm("zorder[2]", "i"), 1, "not known"),
        (TransformTerm("bucket[4]", "q"), 1, "no column 'q'"),
        (TransformTerm("bucket[4]", "n"), 1, "primitive column"),
        (TransformTerm("bucket[4]", "s"), "x", "is of type int: a number is needed"),
        (TransformTerm("truncate[4]", "s"), 5, "a string is needed"),
        (TransformTerm("day", "t"), 10**9, "outside the years"),
        (TransformTerm("day", "t"), True, "a date is needed"),
        (TransformTerm("year", "t"), dt.date(2024, 1, 1), "a number is needed"),
    ],
)
def test_a_transform_that_does_not_fit_is_refused_by_name(term: TransformTerm, literal: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bind(Predicate(Op.EQ, term, (literal,)), SCHEMA)


def test_transforms_of_shapes_and_unknown_columns_are_refused() -> None:
    schema = Schema(fields=(Field(1, "g", Geometry()), Field(2, "q", UNKNOWN)))
    for name in ("g", "q"):
        with pytest.raises(InputError, match="does not accept"):
            bind(Predicate(Op.EQ, TransformTerm("bucket[4]", name), (1,)), schema)


@given(
    literal=st.integers(-60, 60) | st.decimals(-60, 60, places=2) | st.sampled_from([math.inf, -math.inf, 2**40]),
    width=st.integers(1, 50),
)
def test_a_literal_lies_between_neighbouring_multiples(literal: Any, width: int) -> None:
    match position_among_results(literal, Truncate(width), INT, INT):
        case Exact(value):
            assert value == literal
            assert literal % width == 0
        case Gap(below, above):
            assert below is None or (below < literal and below % width == 0)  # type: ignore[operator]
            assert above is None or (above > literal and above % width == 0)  # type: ignore[operator]
            assert below is None or above is None or above - below == width  # type: ignore[operator]


_TERMS: dict[TransformTerm, st.SearchStrategy[Any]] = {
    **{TransformTerm("bucket[4]", name): st.integers(-1, 5) | LITERALS["i"] for name in ("l", "s", "m", "t")},
    **{TransformTerm("day", name): VALUES["d"] | LITERALS["t"] | st.just(dt.date(1, 1, 1)) for name in "tzd"},
    **{
        TransformTerm(unit, name): st.sampled_from(values) | LITERALS["i"]
        for name in "tz"
        for unit, values in (("year", [-2, -1, 54, 55]), ("month", [-13, -1, 650]), ("hour", [-9000, -1, 1, 474_816]))
    },
    TransformTerm("month", "d"): st.sampled_from([-13, -1, 650, 0]),
    TransformTerm("truncate[4]", "i"): LITERALS["i"] | st.sampled_from([-4, 4, 2**31 - 4]),
    TransformTerm("truncate[8]", "l"): LITERALS["l"] | st.sampled_from([-8, 2**63 - 8]),
    TransformTerm("truncate[50]", "m"): LITERALS["m"] | st.integers(-6, 6).map(lambda n: decimal.Decimal(n) / 2),
    TransformTerm("truncate[2]", "s"): LITERALS["s"],
    TransformTerm("truncate[1]", "x"): LITERALS["x"],
}


@st.composite
def term_predicates(draw: st.DrawFn) -> Expr:
    term = draw(st.sampled_from(sorted(_TERMS, key=str)))
    op = draw(st.sampled_from(sorted(Op, key=lambda op: op.name)))
    literals = st.none() | _TERMS[term] | _TERMS[term] | _TERMS[term]
    if op in (Op.IN, Op.NOT_IN):
        return Predicate(op, term, tuple(draw(st.lists(literals, max_size=4))))
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return Predicate(op, TransformTerm("truncate[2]", "s"), (draw(st.none() | LITERALS["s"]),))
    return Predicate(op, term, (draw(literals),) if op.takes_literals else ())


term_filters: st.SearchStrategy[Expr] = st.recursive(
    term_predicates() | term_predicates() | predicates(),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=5,
)


def as_table(content: list[dict[str, Any]]) -> pa.Table:
    numbered = [row | {"row": i} for i, row in enumerate(content)]
    return pa.Table.from_pylist(numbered, schema=arrow_schema(SCHEMA).append(pa.field("row", pa.int64())))


@given(content=rows(), expr=term_filters)
def test_every_evaluation_of_transforms_gives_the_rows_where_sql_says_true(
    content: list[dict[str, Any]], expr: Expr
) -> None:
    bound = bind(expr, SCHEMA)
    expected = [i for i, row in enumerate(content) if truth(expr, row) is True]
    assert [i for i, row in enumerate(content) if truth(push_not(expr), row) is True] == expected
    assert [i for i, row in enumerate(content) if matches(bound, row)] == expected
    assert as_table(content).filter(to_arrow(bound))["row"].to_pylist() == expected
    for whole in as_table(content).to_batches():
        assert whole.filter(evaluate_rows(bound, whole))["row"].to_pylist() == expected


@pytest.mark.slow
def test_a_dataset_scan_computes_transforms_in_many_threads(tmp_path: Any) -> None:
    table = pa.table({"id": pa.array(range(20_000), pa.int64()), "name": pa.array([f"n{i}" for i in range(20_000)])})
    ds.write_dataset(table, tmp_path, format="parquet", max_rows_per_file=2_000, max_rows_per_group=500)
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "name", STRING)))
    bound = bind(parse_filter("bucket(7, id) = 3 AND truncate(2, name) IN ('n1', 'n7')"), schema)
    expected = [row["id"] for row in table.to_pylist() if matches(bound, row)]
    assert len(expected) > 0
    found: list[list[int]] = []

    def scan() -> None:
        rows_found = ds.dataset(tmp_path, format="parquet").scanner(filter=to_arrow(bound), use_threads=True).to_table()
        found.append(sorted(rows_found["id"].to_pylist()))

    threads = [threading.Thread(target=scan) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_columns_in_wider_arrow_types_are_transformed_too() -> None:
    table = pa.table({"s": pa.array(["abc", "b", None], pa.large_string()), "i": pa.array([1, 2, 3], pa.int8())})
    found = table.filter(to_arrow(bind(parse_filter("truncate(2, s) = 'ab' OR bucket(4, i) > 9"), SCHEMA)))
    assert found["i"].to_pylist() == [1]


def test_an_error_of_a_transform_reaches_the_caller() -> None:
    lowest = pa.table({"i": pa.array([-(2**31)], pa.int32())})
    with pytest.raises(InputError, match="below the lowest int"):
        lowest.filter(to_arrow(bind(parse_filter("truncate(10, i) = 20"), SCHEMA)))


@pytest.mark.parametrize(("type_", "zone"), [(TIMESTAMP_NS, ""), (TIMESTAMPTZ_NS, "Z")])
def test_timestamps_of_nanoseconds_filter_rows(type_: Any, zone: str) -> None:
    schema = Schema(fields=(Field(1, "n", type_),))
    values = [-1, 0, 1, 999, 1000, 3_600 * 10**9, 86_400 * 10**9, None]
    table = pa.table({"n": pa.array(values, arrow_type(type_)), "row": range(len(values))})
    for text, expected in [
        (f"n > '1970-01-01T00:00:00.000000001{zone}'", [3, 4, 5, 6]),
        (f"n IN ('1970-01-01T00:00:00.000000999{zone}', '1969-12-31T23:59:59.999999999{zone}')", [0, 3]),
        ("n != 0", [0, 2, 3, 4, 5, 6]),
        ("years(n) = -1", [0]),
        ("days(n) = DATE '1970-01-02'", [6]),
        ("hours(n) = 0", [1, 2, 3, 4]),
        ("n IS NULL", [7]),
    ]:
        bound = bind(parse_filter(text), schema)
        assert table.filter(to_arrow(bound))["row"].to_pylist() == expected, text
        assert [i for i, value in enumerate(values) if matches(bound, {"n": value})] == expected, text
    assert matches(bind(parse_filter("n = 1000"), schema), {"n": dt.datetime(1970, 1, 1, 0, 0, 0, 1)})


def test_nanoseconds_and_microseconds_share_their_buckets() -> None:
    micros, ns = (Schema(fields=(Field(1, "t", type_),)) for type_ in (TIMESTAMP, TIMESTAMP_NS))
    moment = dt.datetime(2024, 3, 1, 12, 0, 0, 123_456)
    for bucket in range(4):
        expr = Predicate(Op.EQ, TransformTerm("bucket[4]", "t"), (bucket,))
        assert matches(bind(expr, micros), {"t": moment}) == matches(bind(expr, ns), {"t": moment})


def sql(text: str, schema: Schema = SCHEMA) -> str:
    return to_sql(bind(parse_filter(text), schema))


def test_spark_computes_transforms_in_utc() -> None:
    utc_day = (
        "date_from_unix_date(CAST(((unix_micros(`z`) - pmod(unix_micros(`z`), 86400000000L)) div 86400000000L) AS INT))"
    )
    assert sql("days(z) = '2024-01-01'") == f"{utc_day} = DATE '2024-01-01'"
    assert sql("years(t) < 5") == "(year(CAST(`t` AS DATE)) - 1970) < 5"
    assert sql("months(d) = 5") == "((year(CAST(`d` AS DATE)) - 1970) * 12 + month(CAST(`d` AS DATE)) - 1) = 5"
    assert sql("hours(t) IN (1, 2)") == "(unix_date(CAST(`t` AS DATE)) * 24 + hour(`t`)) IN (1, 2)"
    assert sql("truncate(10, i) = 20") == "(`i` - pmod(`i`, 10)) = 20"
    assert sql("truncate(10, l) = 20") == "(`l` - pmod(`l`, 10L)) = 20L"
    assert sql("truncate(2, s) = 'ab'") == "substring(`s`, 1, 2) = 'ab'"
    assert sql("truncate(2, s) LIKE 'a%'") == "startswith(`s`, 'a')"
    decimals = "(`m` - pmod(`m`, CAST('0.50' AS DECIMAL(2, 2)))) = CAST('1.50' AS DECIMAL(9, 2))"
    assert sql("truncate(50, m) = 1.5") == decimals


def test_what_spark_cannot_compute_is_refused() -> None:
    wide = Schema(fields=(Field(1, "m", Decimal(38, 2)), Field(2, "n", TIMESTAMP_NS)))
    with pytest.raises(UnsupportedError, match=r"no function for bucket\[4\] of column 'l'"):
        sql("bucket(4, l) = 1")
    for text in ("truncate(50, m) = 1.5", "n = 5", "years(n) = 1"):
        with pytest.raises(UnsupportedError, match="Spark"):
            sql(text, wide)
    assert sql("n IS NULL", wide) == "`n` IS NULL"
    assert isinstance(bind(parse_filter("years(n) = 1"), wide), BoundPredicate)
    assert position_among_results("abc", Truncate(2), STRING, STRING) == After("ab")
