"""SQL values printed for Spark: Spark computes what Arrow computes, for every function and operator."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icefloe.engines.spark.session import child_session
from icefloe.errors import InputError
from icefloe.expr.value.expressions import Value, evaluate_value, parse_value
from icefloe.expr.value.functions import FUNCTIONS
from icefloe.expr.value.nodes import ARRAY, MAP, STRUCT, WITH_FIELDS, Call, Reference, walk
from icefloe.expr.value.spark_functions import CALLS, CONSTRUCTORS
from icefloe.expr.value.spark_sql import SESSION_SETTINGS, to_spark_sql
from icefloe.expr.value.spark_types import spark_type
from icefloe.expr.value.struct_fields import column_values
from icefloe.model.text.ddl import parse_ddl

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

COMPUTED_WHILE_PLANNING = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
D = decimal.Decimal
UTC = dt.UTC
PLACE = "place struct<city: string, at: struct<x: int, y: double>>"
ROWS = pa.table(
    {
        "i": pa.array([1, -7, None, 0, 100, 2**31 - 1, -(2**31)], pa.int32()),
        "k": pa.array([3, 2, 5, None, -4, 2, 1], pa.int64()),
        "l": pa.array([2**63 - 1, -(2**63), None, 0, 1, -1, 2**53 + 1], pa.int64()),
        "x": pa.array([1.5, -2.5, None, 0.0, 2.675, math.nan, -0.0], pa.float64()),
        "y": pa.array([1.005, -0.5, 0.49999999999999994, None, 1e15 + 0.5, 123.456, 2.5], pa.float64()),
        "e": pa.array([math.inf, -math.inf, None, 5e-324, 1.7976931348623157e308, 0.1, -0.0], pa.float64()),
        "f": pa.array([1.5, -2.25, None, 0.0, 0.1, math.nan, 3.4e38], pa.float32()),
        "g": pa.array([1.5, -2.25, None, 0.0, 0.75, -0.05, 100.0], pa.float32()),
        "d": pa.array(
            [D("1.25"), D("-7.50"), None, D("0.00"), D("999999.99"), D("2.05"), D("-0.01")], pa.decimal128(8, 2)
        ),
        "w": pa.array(
            [D("1e-10"), D("-7.5"), None, D("0"), D("12345678901234567890.0123456789"), D("2.5"), D("1")],
            pa.decimal128(38, 10),
        ),
        "s": pa.array(["Hello", "  wörld ", None, "", "a%b_c\\", "Zed", "😀é\nx"]),
        "u": pa.array(["l", "x", "y", "", None, "Zed", "é"]),
        "n": pa.array(["12", " -7 ", None, "0", "99", "5", "1"]),
        "b": pa.array([True, False, None, True, False, None, True]),
        "z": pa.array([b"a", b"\x00\xff", None, b"", b"abc", b"a", b"b"], pa.binary()),
        "dt": pa.array(
            [dt.date(2026, 2, 28), dt.date(1969, 12, 31), None, dt.date(1970, 1, 1), dt.date(2000, 2, 29),
             dt.date(1, 1, 1), dt.date(9999, 12, 31)]
        ),
        "ts": pa.array(
            [dt.datetime(2026, 2, 28, 23, 59, 59, 123456), dt.datetime(1969, 12, 31, 1, 2, 3), None,
             dt.datetime(1970, 1, 1), dt.datetime(2000, 2, 29, 12, 30, 0, 500000), dt.datetime(1, 1, 1),
             dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],
            pa.timestamp("us"),
        ),
        "tz": pa.array(
            [dt.datetime(2026, 2, 28, 23, 59, 59, 123456, UTC), dt.datetime(1969, 12, 31, 1, 2, 3, tzinfo=UTC), None,
             dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(2000, 2, 29, 12, 30, 0, 500000, UTC),
             dt.datetime(1582, 10, 4, tzinfo=UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)],
            pa.timestamp("us", "UTC"),
        ),
        "place": pa.array(
            [{"city": "Oslo", "at": {"x": 1, "y": 1.5}}, {"city": None, "at": None}, None,
             {"city": "", "at": {"x": None, "y": None}}, None, None, None],
            pa.struct([("city", pa.string()), ("at", pa.struct([("x", pa.int32()), ("y", pa.float64())]))]),
        ),
    }
)  # fmt: skip
COMPARED = ["i", "l", "x", "e", "f", "d", "w", "s", "b", "z", "dt", "ts", "tz"]
TEXTS = [
    *(f"{c} {op} {c}" for c in COMPARED for op in ("=", "<>", "<", "<=>")),
    *("i <= k", "i >= k", "i > k", "i < d", "d = 1.25", "x > 1", "x <= 1", "x <= f", "e >= x", "f = 0.1", "i < 2.5"),
    *("l = 9007199254740993", "d < w", "s < u", "s = 'Zed'", "dt > '2000-01-01'", "dt < ts", "i = '100'", "tz = tz"),
    *("tz >= timestamp '1970-01-01 00:00:00Z'", "ts > '1970-01-01 00:00:00'", "z = X'61'", "b = true", "null = i"),
    *("null = null", "i <=> null", "x <=> e", "i is distinct from k", "x = cast('nan' as double)"),
    *("i in (1, 100)", "i not in (1, null)", "i in (k, 1)", "x in (0, 1.5)", "x in (-0.0)", "f in (0.1, 1.5)"),
    *("s in ('Zed', 'x')", "dt in ('1970-01-01')", "d in (1.25, 7)", "null in (1)", "e in (x, 1)", "z in (X'61')"),
    *("i is null", "i is not null", "null is null", "isnan(x)", "isnan(f)", "isnan(i)", "isnull(s)", "isnotnull(s)"),
    *("not b", "b and i > 0", "b or i > 0", "b and b is null", "null and b", "null or b", "b is true", "b is not true"),
    *("i + 1", "i + i", "i - k", "i * k", "k + null", "x + 1", "f + 1", "f * 1.5", "f + f", "x - f", "d + 1", "d - d"),
    *("d * d", "d * 1.5", "i + d", "w + d", "w * d", "w - 1", "k * d", "1 + 1", "x + d", "f - d", "e * 2", "d + null"),
    *("i / 2", "k / 7", "x / 3", "f / 3", "d / 3", "d / 7", "w / 3", "d / 0.7", "i / 2.0", "x / (f + 1)", "null / 2"),
    *("i div 3", "k div 2", "y div 2", "d div 2", "d div 0.3", "i div 0.5", "i % 3", "k % -3", "d % 2", "x % 2"),
    *("f % 1.5", "d % 0.3", "mod(i, 7)", "power(i, 2)", "power(f, 0.5)", "power(x, -1.5)", "sqrt(x)"),
    *("sqrt(abs(i))", "sqrt(d * d)", "-i", "-d", "-x", "-f", "-w", "-null", "abs(i)", "abs(d)", "abs(x)", "abs(f)"),
    *("ceil(y)", "ceil(d)", "ceil(i)", "ceil(w)", "floor(y)", "floor(d)", "floor(k)", "floor(w)", "ceil(-y)"),
    *("round(y)", "round(y, 2)", "round(y, 1)", "round(y, -1)", "round(g, 1)", "round(d)", "round(d, 1)", "round(i)"),
    *("round(k, -1)", "round(i, -2)", "round(w, 5)", "round(d, 5)", "round(d, -1)", "round(e)", "round(x, 2)"),
    *("greatest(i, k)", "greatest(x, f)", "greatest(s, u)", "greatest(i, k, 2)", "greatest(dt, '2000-01-01')"),
    *("least(i, k)", "least(x, f)", "least(d, i)", "least(s, u)", "least(x, null)"),
    *("cast(i as bigint)", "cast(i as double)", "cast(k as float)", "cast(i as string)", "cast(i as boolean)"),
    *("cast(i as decimal(12, 1))", "cast(k as int)", "cast(k as smallint)", "cast(k as tinyint)", "cast(y as bigint)"),
    *("cast(y as float)", "cast(g as decimal(9, 2))"),
    *("cast(d as int)", "cast(d as double)", "cast(d as string)", "cast(d as decimal(10, 1))", "cast(w as string)"),
    *("cast(w as decimal(30, 2))", "cast(b as int)", "cast(b as string)", "cast(b as double)"),
    *("cast(n as int)", "cast(n as double)", "cast(n as decimal(5, 2))", "cast(n as bigint)"),
    *("cast(b as decimal(3, 1))", "cast('2.345' as decimal(5, 2))"),
    *("cast(s as binary)", "cast(u as string)", "cast(dt as string)", "cast(ts as string)", "cast(tz as string)"),
    *("cast(dt as timestamp)", "cast(dt as timestamp_ntz)", "cast(ts as date)", "cast(tz as date)"),
    *("cast(ts as timestamp)", "cast(tz as timestamp_ntz)", "cast('2026-01-02' as date)", "cast(null as int)"),
    *("cast('2026-01-02 03:04:05' as timestamp_ntz)", "cast('true' as boolean)", "cast(f as double)"),
    *("upper(s)", "lower(s)", "upper(u || 'é')", "trim(s)", "ltrim(s)", "rtrim(s)", "trim(both 'Hodx' from s)"),
    *("ltrim('Z', s)", "trim(trailing 'o\\\\' from s)", "length(s)", "length(z)", "length(null)", "substring(s, 2)"),
    *("substring(s, 2, 3)", "substring(s, -3)", "substring(s, -3, 2)", "substring(s, 0, 2)", "substring(s, 3, 0)"),
    *("substring(s, -9, 6)", "substring(s, 2, -1)", "replace(s, 'l', 'LL')", "replace(s, '', 'x')", "replace(s, 'é')"),
    *("s like '%l%'", "s not like 'H_llo'", "s like '_ed'", "s ilike 'h%'", "s like ''", "s like '%!_c%' escape '!'"),
    *("s like '%x'", "s like '%é_x'", "s like 'a\\\\%b%'", "s || u", "s || '-' || i", "concat(s, d, dt, b)"),
    "ts || '!'",
    *("concat(tz, k)", "startswith(s, 'H')", "endswith(s, ' ')", "contains(s, '%')", "contains(s, null)"),
    *(f"{part}({c})" for part in ("year", "quarter", "month", "day") for c in ("dt", "ts", "tz")),
    *(f"{part}({c})" for part in ("hour", "minute", "second") for c in ("ts", "tz")),
    *(f"date_trunc('{unit}', {c})" for unit in ("year", "quarter", "month", "week", "day") for c in ("dt", "ts", "tz")),
    *(f"date_trunc('{unit}', {c})" for unit in ("hour", "minute", "second", "millisecond") for c in ("ts", "tz")),
    "date_trunc('microsecond', ts)",
    *("coalesce(i, k)", "coalesce(null, i, 7)", "coalesce(x, d)", "coalesce(i, 10 / k)", "coalesce(null, null)"),
    *("case when i > 0 then 'p' when i < 0 then 'n' else 'z' end", "case i when 1 then 'one' when 0 then 'zero' end"),
    *("case when b then i else d end", "if(b, i, k)", "nullif(i, 1)", "nullif(s, u)"),
    "case when k <> 0 then i / k end",
    *("case when b then dt end", "case when null then 1 else 2 end", "k <> 0 and 10 / k > 1", "current_date() > dt"),
    *("place.city", "place.at.x + 1", "named_struct('a', i, 'b', named_struct('c', s))", "struct(i, s)", "array(i, k)"),
    *("array(x, d, null)", "array()", "map('a', i, 'b', k)", "map(coalesce(i, 0), s)", "array(array(i))"),
]  # fmt: skip


def assigned(**values: str) -> Value:
    """A new value of the column ``place``, with these fields assigned."""
    parsed = {name.replace("__", "."): parse_value(text) for name, text in values.items()}
    return column_values(parsed, parse_ddl(PLACE).fields, lambda name: Reference((name,)))["place"]


VALUES = {
    **{text: parse_value(text) for text in TEXTS},
    "set city": assigned(place__city="upper(s)"),
    "set at.y and city": assigned(place__at__y="x + 1", place__city="'x'"),
}


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal; NaN equals NaN, and Arrow's doubles of decimals may be off by one bit."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=4e-16)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return bool(one == other)


def columns() -> dict[str, pa.Array]:
    return {name: ROWS[name].combine_chunks() for name in ROWS.column_names}


def in_spark(spark: SparkSession, values: Mapping[str, Value]) -> pa.Table:
    session = child_session(spark, {**SESSION_SETTINGS, "spark.sql.optimizer.excludedRules": COMPUTED_WHILE_PLANNING})
    types = {field.name: field.type for field in ROWS.schema}
    texts = [f"{to_spark_sql(value, types)} AS c{number}" for number, value in enumerate(values.values())]
    return session.createDataFrame(ROWS).selectExpr(*texts).toArrow()


def test_every_function_is_printed_and_compared() -> None:
    others = {"and", "or", "coalesce", ARRAY, MAP, STRUCT, WITH_FIELDS}
    assert {*CALLS, *CONSTRUCTORS} == {*FUNCTIONS, *others}
    compared = {node.function for value in VALUES.values() for node in walk(value.node) if isinstance(node, Call)}
    assert compared == {*FUNCTIONS, *others}


def test_spark_computes_what_arrow_computes(spark: SparkSession) -> None:
    answers = in_spark(spark, VALUES)
    wrong = []
    for (text, value), answer in zip(VALUES.items(), answers.columns, strict=True):
        expected = evaluate_value(value, columns(), ROWS.num_rows)
        if not same(answer.to_pylist(), expected.to_pylist()):
            wrong.append((text, answer.to_pylist(), expected.to_pylist()))
        elif spark_type(answer.type) != spark_type(expected.type):
            wrong.append((text, answer.type, expected.type))
    assert wrong == []


@pytest.mark.parametrize("text", ["i / 0", "x % 0", "l + 1", "cast(s as int)", "ceil(x)"])
def test_what_fails_in_arrow_fails_in_spark(spark: SparkSession, text: str) -> None:
    value = parse_value(text)
    with pytest.raises(InputError):
        evaluate_value(value, columns(), ROWS.num_rows)
    with pytest.raises(PySparkException):
        in_spark(spark, {text: value})


def test_the_known_differences_are_those_of_the_page(spark: SparkSession) -> None:
    """They are listed on the page about values; a difference that is gone should leave the page."""
    texts = ["cast(1e20 as string)", "cast(1.005e0 as decimal(9, 2))", "upper('ß')"]
    answers = in_spark(spark, {text: parse_value(text) for text in texts})
    assert [column[0].as_py() for column in answers.columns] == ["1.0E20", D("1.01"), "SS"]
    expected = [evaluate_value(parse_value(text), {}, 1)[0].as_py() for text in texts]
    assert expected == ["1e+20", D("1.00"), "ẞ"]
