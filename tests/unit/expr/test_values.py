"""SQL values: the same answers as DuckDB where the dialects agree, Spark's where they differ, and clear refusals."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects import Spark

from icefloe.env import Env
from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.expr.value.expressions import columns_of, evaluate_value, parse_value

D = decimal.Decimal
ROWS = pa.table(
    {
        "i": pa.array([1, -7, None, 0, 100, 2**31 - 1], pa.int32()),
        "k": pa.array([3, 2, 5, None, -4, 2], pa.int64()),
        "x": pa.array([1.5, -2.5, None, 0.0, 2.675, math.nan], pa.float64()),
        "f": pa.array([1.5, -2.5, None, 0.0, 2.25, 1.0], pa.float32()),
        "d": pa.array([D("1.25"), D("-7.50"), None, D("0.00"), D("9999.99"), D("2.05")], pa.decimal128(8, 2)),
        "s": pa.array(["Hello", "  wörld ", None, "", "a%b_c", "Zed"]),
        "u": pa.array(["l", "x", "y", "", None, "Zed"]),
        "b": pa.array([True, False, None, True, False, None]),
        "dt": pa.array(
            [
                *(dt.date(2026, 2, 28), dt.date(1969, 12, 31), None),
                *(dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(1, 1, 1)),
            ]
        ),
        "ts": pa.array(
            [
                *(dt.datetime(2026, 2, 28, 23, 59, 59, 123456), dt.datetime(1969, 12, 31, 1, 2, 3), None),
                *(dt.datetime(1970, 1, 1), dt.datetime(2000, 2, 29, 12, 30, 0, 500000), dt.datetime(1, 1, 1)),
            ],
            pa.timestamp("us"),
        ),
    }
)
ALIKE = [
    *("k + 1", "i * k", "i - k", "k / 2", "i / 2.0", "x * 2", "f + 1", "d + 1", "d * 1.5", "d - d", "d * d", "i + d"),
    *(
        "-i",
        "-d",
        "abs(i)",
        "abs(d)",
        "abs(x)",
        "mod(i, 3)",
        "i % 3",
        "k % -3",
        "d % 2",
        "x % 2",
        "d / 3",
        "d % nullif(i, 0)",
    ),
    *("i = 1", "i <> 1", "i < k", "i >= k", "x > 1", "x = x", "x < 5", "x >= f", "x <> f", "x <= 1", "d > 1"),
    *("d = 1.25", "i < 2.5", "s = 'Zed'", "s < u", "s <> u", "b", "not b", "b and i > 0", "b or i > 0"),
    *("b and b is null", "i is null", "i is not null", "b is true", "b is not true", "b is false", "b = false"),
    *("i in (1, 100)", "i not in (1, 100)", "i in (1, null)", "i not in (1, null)", "s in ('Zed','x')", "i in (k, 1)"),
    *("x in (0, 1.5)", "x in (-0.0)", "i between 0 and 5", "i not between 0 and 5", "k between i and 100"),
    *("s like '%l%'", "s not like 'H_llo'", "s like '_ed'", "s ilike 'h%'", "s like ''", "s like 'a!%b!_c' escape '!'"),
    "case when i > 0 then 'p' when i < 0 then 'n' else 'z' end",
    "case i when 1 then 'one' when 0 then 'zero' end",
    *("case when b then i else d end", "if(b, i, k)", "coalesce(i, k)", "coalesce(i, k, 7)", "coalesce(null, i)"),
    *("nullif(i, 1)", "nullif(s, u)", "nullif(i, k)", "s || u", "s || '-' || u", "upper(s)", "lower(s)", "trim(s)"),
    *("ltrim(s)", "rtrim(s)", "length(s)", "substring(s, 2)", "substring(s, 2, 3)", "substring(s, -3, 2)"),
    *("substring(s,-3)", "substring(s, 3, 0)", "replace(s, 'l', 'LL')", "trim(both 'H' from s)"),
    *("round(x, 1)", "round(d, 1)", "round(d)", "round(i)", "round(x)", "round(k, -1)", "ceil(d)", "floor(d)"),
    *("floor(f)", "ceil(f)", "power(i, 2)", "power(f, 2)", "sqrt(abs(i))", "greatest(i, k)", "least(i, k)"),
    *("greatest(x, f)", "least(x, f)", "greatest(s, u)", "least(d, i)", "greatest(i, k, 2)"),
    *("date_trunc('month', ts)", "date_trunc('year', dt)", "date_trunc('week', ts)", "date_trunc('quarter', dt)"),
    *("date_trunc('hour', ts)", "date_trunc('minute', ts)", "year(dt)", "month(dt)", "day(ts)", "hour(ts)"),
    *("minute(ts)", "quarter(dt)", "year(ts)", "cast(i as bigint)", "cast(i as double)", "cast(d as double)"),
    *("cast(i as varchar)", "cast(d as varchar)", "cast(dt as varchar)", "cast(b as int)", "cast(i as boolean)"),
    *("cast(ts as date)", "cast('12' as int)", "cast(' 12.5 ' as double)", "cast(i as decimal(12,1))"),
    *("cast(d as decimal(10,1))", "cast(ts as varchar)", "cast(x as varchar)", "cast(b as varchar)"),
    *("cast('2026-01-02' as date)", "cast(s is null as varchar)", "cast('2026-01-02 03:04:05' as timestamp_ntz)"),
    *("dt > '2000-01-01'", "dt = date '1970-01-01'", "ts >= '1970-01-01 00:00:00'", "dt < ts", "i = '100'"),
    *("ts is not distinct from ts", "i is distinct from k", "i is not distinct from null", "null = i", "null and b"),
    *("true or b", "1 + 1", "'a' || 'b'", "null", "i + null", "1 in (1, 2)", "2 * (k + 1) - i % 4"),
    *("case when k <> 0 then i / k end", "case when i = 0 then null else 10 / i end", "x is null or x > 100"),
    *("coalesce(i, 10 / k)", "k <> 0 and 10 / nullif(k, 0) > 0", "contains(s, 'l')", "case when b then 'x' end"),
]


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    connection.register("rows", ROWS)
    yield connection
    connection.close()


def evaluated(text: str, **columns: Any) -> list[Any]:
    given_columns = columns if len(columns) > 0 else {name: ROWS[name].combine_chunks() for name in ROWS.column_names}
    rows = next(len(column) for column in given_columns.values() if not isinstance(column, pa.Scalar))
    found: list[Any] = evaluate_value(parse_value(text), given_columns, rows).to_pylist()
    return found


def plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, (D, float)):
        return round(float(value), 6)
    return dt.datetime(value.year, value.month, value.day) if type(value) is dt.date else value


@pytest.mark.parametrize("text", ALIKE)
def test_a_value_is_what_duckdb_makes_of_it(text: str, duck: duckdb.DuckDBPyConnection) -> None:
    text_there = text.replace("timestamp_ntz", "timestamp")
    expected = [row[0] for row in duck.execute(f"SELECT ({text_there}) FROM rows").fetchall()]
    assert list(map(plain, evaluated(text))) == list(map(plain, expected))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + 1", [2, -6, None, 1, 101, 2**31]),  # whole numbers are longs on the way
        ("concat(s, '!')", ["Hello!", "  wörld !", None, "!", "a%b_c!", "Zed!"]),
        ("concat('n', i)", ["n1", "n-7", None, "n0", "n100", "n2147483647"]),
        ("cast(x as int)", [1, -2, None, 0, 2, None]),
        ("cast(d as int)", [1, -7, None, 0, 9999, 2]),
        ("isnan(x)", [False, False, False, False, False, True]),
        ("isnull(i) or isnotnull(k)", [True, True, True, False, True, True]),
        ("k div 2", [1, 1, 2, None, -2, 1]),
        ("substring(s, 0, 2)", ["He", "  ", None, "", "a%", "Ze"]),
        ("startswith(s, 'H') or endswith(s, 'd')", [True, False, None, False, False, True]),
        ("second(ts)", [59, 3, None, 0, 0, 0]),
        ("nvl(i, 5)", [1, -7, 5, 0, 100, 2**31 - 1]),
        ("dt <=> null", [False, False, True, False, False, False]),
    ],
)
def test_where_dialects_differ_a_value_is_spark_s(text: str, expected: list[Any]) -> None:
    columns = {name: ROWS[name].combine_chunks() for name in ROWS.column_names}
    columns["x"] = pa.array([1.5, -2.5, None, 0.0, 2.675, None]) if text.startswith("cast(x") else columns["x"]
    assert evaluated(text, **columns) == expected


_numbers = st.sampled_from(["i", "k", "x", "0", "3", "-2.5", "null"])
_texts = st.sampled_from(["s", "u", "'Zed'", "null"])
_comparisons = st.one_of(
    st.tuples(_numbers, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), _numbers).map(" ".join),
    st.tuples(_texts, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), _texts).map(" ".join),
    st.tuples(_numbers, _numbers, _numbers).map(lambda n: f"{n[0]} in ({n[1]}, {n[2]})"),
    st.tuples(_numbers, _numbers, _numbers).map(lambda n: f"{n[0]} between {n[1]} and {n[2]}"),
    st.sampled_from(["b", "true", "null", "s is null", "x is not null", "10 / k > 2", "s || u = 'ZedZed'"]),
)
_logic = st.recursive(
    _comparisons,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        inner.map(lambda p: f"not ({p})"),
        st.tuples(inner, inner, inner).map(lambda p: f"case when {p[0]} then {p[1]} else {p[2]} end"),
        st.tuples(inner, inner).map(lambda p: f"coalesce({p[0]}, {p[1]})"),
    ),
    max_leaves=6,
)


@given(text=_logic)
def test_logic_has_three_values_as_in_duckdb(text: str) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", ROWS)
        expected = [row[0] for row in connection.execute(f"SELECT ({text}) FROM rows").fetchall()]
    assert evaluated(text) == expected


def test_what_could_fail_is_computed_only_for_the_rows_that_need_it() -> None:
    n = pa.array([2, 0, None])
    assert evaluated("CASE WHEN n <> 0 THEN 10 / n ELSE 0 END", n=n) == [5.0, 0.0, 0.0]
    assert evaluated("n <> 0 AND 10 / n > 1", n=n) == [True, False, None]
    assert evaluated("n = 0 OR 10 / n > 1", n=n) == [True, True, None]
    assert evaluated("coalesce(n, 1 / 0)", n=pa.array([1, 2])) == [1, 2]
    assert evaluated("if(false, cast('x' as int), n)", n=n) == [2, 0, None]
    with pytest.raises(InputError, match="division by zero"):
        evaluated("10 / n", n=n)
    with pytest.raises(InputError, match="division by zero"):
        evaluated("n <> 5 AND 10 / n > 1", n=n)


def test_overflow_is_an_error_and_no_wrong_number() -> None:
    with pytest.raises(InputError, match="overflow"):
        evaluated("n + 1", n=pa.array([2**63 - 1]))
    with pytest.raises(InputError, match="cannot compute"):
        evaluated("cast(n as int)", n=pa.array([2**40]))
    with pytest.raises(InputError, match="cannot compute"):
        evaluated("cast(s as int)", s=pa.array(["five"]))


def test_a_number_in_the_text_does_not_widen_a_float_column() -> None:
    f = pa.array([1.5], pa.float32())
    assert evaluate_value(parse_value("f * 1.5 + 1"), {"f": f}, 1).type == pa.float32()
    assert evaluate_value(parse_value("f + x"), {"f": f, "x": pa.array([1.0])}, 1).type == pa.float64()


def test_long_decimals_keep_their_whole_digits() -> None:
    d = pa.array([D("12345678901234567890123456.123456789")], pa.decimal128(38, 9))
    assert evaluated("d * 2", d=d) == [D("24691357802469135780246912.246914")]
    assert evaluate_value(parse_value("d + d"), {"d": d}, 1).type == pa.decimal128(38, 9)
    assert evaluated("d > 12345678901234567890123456.12", d=d) == [True]
    assert evaluated("id < 99999999999999999999999", id=pa.array([2**63 - 1])) == [True]


def test_names_reach_into_structs_and_keep_their_table() -> None:
    address = pa.array(
        [{"city": "Oslo", "at": {"x": 1}}, None], pa.struct([("city", "string"), ("at", pa.struct([("x", "int64")]))])
    )
    columns = {"t.address": address, "s.op": pa.scalar("D")}
    value = parse_value("t.address.city || s.op")
    assert columns_of(value) == {"t.address.city", "s.op"}
    assert evaluate_value(value, columns, 2).to_pylist() == ["OsloD", None]
    assert evaluate_value(parse_value("t.address.at.x + 1"), columns, 2).to_pylist() == [2, None]
    with pytest.raises(InputError, match="no field 'street'"):
        evaluate_value(parse_value("t.address.street"), columns, 2)
    with pytest.raises(InputError, match=r"there is no column .s\.id.; there are: s\.op, t\.address"):
        evaluate_value(parse_value("s.id"), columns, 2)
    assert columns_of(parse_value("`a b`.c + 1")) == {"a b.c"}


def test_structs_are_made_of_values_that_take_the_types_of_their_column() -> None:
    columns, day = {"n": pa.array([1, None]), "s": pa.array(["a", "b"])}, dt.date(2026, 1, 2)
    made = evaluate_value(parse_value("named_struct('a', n + 1, 'b', struct(s, 5 AS five))"), columns, 2)
    assert made.to_pylist() == [{"a": 2, "b": {"s": "a", "five": 5}}, {"a": None, "b": {"s": "b", "five": 5}}]
    wanted = pa.struct([("x", pa.struct([("day", pa.date32())])), ("y", pa.float32()), ("z", pa.string())])
    text = "named_struct('z', null, 'x', struct('2026-01-02' AS day), 'y', 0.5)"
    typed = evaluate_value(parse_value(text), columns, 2, wanted=wanted)
    assert typed.to_pylist() == [{"z": None, "x": {"day": day}, "y": 0.5}] * 2
    assert {field.type for field in typed.type} == {pa.string(), wanted.field("x").type, pa.float32()}
    with pytest.raises(InputError, match="the struct has the fields x, y, the column x, y, z"):
        evaluate_value(parse_value("named_struct('x', null, 'y', 1)"), columns, 2, wanted=wanted)


def test_lists_and_maps_are_made_of_values() -> None:
    columns = {"n": pa.array([1, None]), "s": pa.array(["a", "b"]), "l": pa.array([[1], []])}
    assert evaluated("array(n, 5, n + 1)", **columns) == [[1, 5, 2], [None, 5, None]]
    assert evaluated("array(array(n), l)", **columns) == [[[1], [1]], [[None], []]]
    nested = evaluate_value(parse_value("array(array(), l)"), columns, 2, wanted=pa.list_(pa.list_(pa.int64())))
    assert nested.to_pylist() == [[[], [1]], [[], []]]
    assert evaluated("array(struct(s), struct('x' AS s))", **columns)[1] == [{"s": "b"}, {"s": "x"}]
    assert evaluated("map(s, n, concat(s, '2'), 7)", **columns) == [[("a", 1), ("a2", 7)], [("b", None), ("b2", 7)]]
    assert [evaluated(text, **columns) for text in ("array()", "map()")] == [[[], []]] * 2
    days = evaluate_value(parse_value("array('2026-01-02', null)"), columns, 2, wanted=pa.list_(pa.date32()))
    assert days.to_pylist() == [[dt.date(2026, 1, 2), None]] * 2
    decimals = pa.map_(pa.string(), pa.decimal128(9, 2))
    assert evaluate_value(parse_value("map('a', 0.5)"), columns, 2, wanted=decimals).type.item_type.scale == 2
    assert evaluated("if(n is null, map('x', 1), map(s, 1, 'a', 2))", s=columns["s"], n=pa.array([None, 1]))[1] == [
        ("b", 1),
        ("a", 2),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("map(s, 1, 'a', 2)", "two keys of a map are equal"),
        ("map(n, 1)", "a key of a map is null"),
        ("array(s, 1)", "have no common type"),
    ],
)
def test_lists_and_maps_that_cannot_be_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        evaluated(text, n=pa.array([1, None]), s=pa.array(["a", "b"]))


def _read(read: Any, text: str) -> bool:
    try:
        read(text)
    except (InputError, UnsupportedError):
        return False
    return True


@pytest.mark.slow
def test_whatever_is_called_with_whatever_arguments_is_read_or_refused() -> None:
    """Scar: the parser trips over ``map('a')``, and its own errors came through."""
    names = [*Spark.Parser.FUNCTIONS, *Spark.Parser.FUNCTION_PARSERS]
    texts = [
        f"{name}({', '.join([each] * count)})" for name in names for count in range(4) for each in ("x", "'a'", "*")
    ]
    read = [text for text in texts if _read(parse_value, text)]
    assert {"UPPER(x)", "MAP(x, x)", "ARRAY()", "SQRT('a')"} < set(read) < set(texts)
    assert "YEAR(x) = 1" in {f"{text} = 1" for text in texts if _read(parse_filter, f"{text} = 1")}


@pytest.mark.parametrize("text", ["named_struct()", "named_struct('a')", "named_struct('a', 1, 'a', 2)"])
def test_a_struct_has_fields_of_different_names(text: str) -> None:
    with pytest.raises(InputError, match="a struct has fields of different names"):
        parse_value(text)


def test_chunks_dictionaries_and_other_strings_are_read_like_plain_columns() -> None:
    chunked = pa.chunked_array([["a"], [], ["b", None]], pa.string()).dictionary_encode()
    assert evaluated("upper(s) || '!'", s=chunked) == ["A!", "B!", None]
    assert evaluated("s = t", s=pa.array(["a", "b"], pa.large_string()), t=pa.array(["a", "a"])) == [True, False]
    assert evaluated("upper(s)", s=pa.array(["a"], pa.string_view())) == ["A"]
    empty = evaluate_value(parse_value("n / 2"), {"n": pa.chunked_array([], pa.int64())}, 0)
    assert empty.type == pa.float64()
    assert len(empty) == 0


def test_a_constant_takes_the_type_of_the_column_that_it_is_meant_for() -> None:
    found = evaluate_value(parse_value("'2026-01-02'"), {}, 2, wanted=pa.date32())
    assert found.to_pylist() == [dt.date(2026, 1, 2)] * 2
    assert evaluate_value(parse_value("null"), {}, 1, wanted=pa.int32()).type == pa.int32()
    with pytest.raises(InputError, match="cannot compute"):
        evaluate_value(parse_value("'x'"), {}, 2, wanted=pa.date32())


def test_a_statement_has_one_moment() -> None:
    env = Env(now_ms=lambda: 1_767_323_045_006)
    found = evaluate_value(parse_value("current_timestamp", env=env), {}, 1)
    assert found.to_pylist() == [dt.datetime(2026, 1, 2, 3, 4, 5, 6000, dt.UTC)]
    assert evaluate_value(parse_value("current_date()", env=env), {}, 1).to_pylist() == [dt.date(2026, 1, 2)]


def test_timestamps_with_and_without_a_zone_do_not_meet_by_themselves() -> None:
    moments = pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    assert evaluated("m > '2025-12-31T00:00:00+02:00'", m=moments) == [True]
    assert evaluated("cast(m as timestamp_ntz) = timestamp '2026-01-01 00:00:00'", m=moments) == [True]
    with pytest.raises(InputError, match="time zone"):
        evaluated("m > timestamp '2025-01-01 00:00:00'", m=moments)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sum(i)", "sum"),
        ("md5(s)", "md5"),
        ("my_function(i)", "my_function"),
        ("rand()", "rand"),
        ("interval 1 day", "INTERVAL"),
        ("try_cast(s as int)", "try_cast"),
        ("i in (select 1)", "query"),
        ("(select 1)", "SUBQUERY"),
        ("cast(i as array<int>)", "ARRAY"),
        ("s like u", "pattern of LIKE"),
        ("i & 1", "BITWISEAND"),
        ("tags[0]", "BRACKET"),
        ("system.bucket(4, i)", "bucket"),
    ],
)
def test_other_functions_are_refused_by_name(text: str, name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        parse_value(text)


@pytest.mark.parametrize(
    "text",
    ["", "i +", "i; drop", "((i)", "i as j", "date_trunc('eon', ts)", "(" * 500 + "i" + ")" * 500, "x" * 10 + "'"],
)
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="as a value"):
        parse_value(text)


def test_deep_chains_are_refused_and_long_logic_is_not() -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        parse_value(" + ".join(["i"] * 2000))
    text = " OR ".join(f"i = {n}" for n in range(300))
    assert evaluated(text, i=pa.array([299, 300])) == [True, False]


@pytest.mark.parametrize(
    "text", ["s + 1", "i and b", "not s", "upper(i)", "hour(dt)", "year(s)", "b > 1", "dt > i", "s = x'00'", "-s"]
)
def test_values_that_do_not_go_together_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="cannot compute"):
        evaluated(text)


def test_a_value_that_is_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="SQL text, not int"):
        parse_value(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("function", ["startswith", "endswith", "contains"])
def test_a_text_test_without_any_row_does_not_fail(function: str) -> None:
    """A branch of a CASE that no row takes is evaluated without rows, which turned the constant into a column."""
    text = f"CASE WHEN i < 5 THEN false ELSE {function}(s, 'x') END"
    assert evaluated(text, i=pa.array([1, 2]), s=pa.array(["a", "x"])) == [False, False]
    assert evaluate_value(parse_value(f"{function}(s, null)"), {"s": pa.array(["a", "x"])}, 2).to_pylist() == [None] * 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [("startswith(s, u)", "must be a constant"), ("contains(s, 5)", "int64 is not text; cast it")],
)
def test_what_a_text_is_tested_for_must_be_a_constant_text(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        evaluated(text)


def test_quotients_of_decimals_are_rounded_and_not_truncated() -> None:
    """As in Spark: half away from zero. Arrow's own division truncates."""
    assert evaluated("d / 0.7", d=pa.array([D("-7.50"), D("2.05"), None], pa.decimal128(8, 2))) == [
        D("-10.714286"),
        D("2.928571"),
        None,
    ]
    assert evaluated("d / 3", d=pa.array([D("1.25")], pa.decimal128(8, 2))) == [D("0.4166666666666666666667")]


def test_decimals_as_text_have_all_their_digits_and_no_exponent() -> None:
    """As in Spark; Arrow writes small ones as 1E-10."""
    small = pa.array([D("1e-10"), D("-0.5"), D("0"), None, D("-1234567890123456789012345678.0123456789")])
    assert evaluated("cast(d as string)", d=small) == [
        *("0.0000000001", "-0.5000000000", "0.0000000000", None, "-1234567890123456789012345678.0123456789")
    ]
    assert evaluated("d || ''", d=pa.array([D("7"), D("-12")], pa.decimal128(3, 0))) == ["7", "-12"]
