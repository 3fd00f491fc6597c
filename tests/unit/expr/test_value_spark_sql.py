"""SQL values as Spark SQL text: names quoted, constants typed, arguments in the type in which Arrow computes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.value.expressions import parse_value
from icefloe.expr.value.spark_sql import to_spark_sql

TYPES = {
    "t.n": pa.int32(),
    "t.day": pa.date32(),
    "t.at": pa.struct([("city", pa.string()), ("zip", pa.int32())]),
    "s.d": pa.decimal128(38, 2),
    "s.ns": pa.timestamp("ns"),
}


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("t.n", "`t`.`n`"),
        ("t.at.`zip`", "`t`.`at`.`zip`"),
        ("t.n = 5", "(CAST(`t`.`n` AS BIGINT) = 5L)"),
        ("t.day > '2026-01-01'", "(`t`.`day` > DATE '2026-01-01')"),
        ("s.d * 2", "CAST((CAST(`s`.`d` AS DECIMAL(37, 2)) * CAST('2' AS DECIMAL(19, 0))) AS DECIMAL(38, 2))"),
        ("concat(t.n, ' it\\'s')", r"concat(CAST(`t`.`n` AS STRING), CAST(' it\'s' AS STRING))"),
        (
            "CASE WHEN t.n > 0 THEN t.n END",
            "CASE WHEN (CAST(`t`.`n` AS BIGINT) > 0L) THEN `t`.`n` ELSE CAST(NULL AS INT) END",
        ),
    ],
)
def test_a_value_is_printed(text: str, sql: str) -> None:
    assert to_spark_sql(parse_value(text), TYPES) == sql


@pytest.mark.parametrize(
    ("text", "wanted", "sql"),
    [
        ("'2026-01-01'", pa.date32(), "DATE '2026-01-01'"),
        ("null", pa.int32(), "CAST(NULL AS INT)"),
        ("array()", pa.list_(pa.string()), "CAST(array() AS ARRAY<STRING>)"),
        ("map('a', 1)", pa.map_(pa.string(), pa.int32()), "map('a', 1L)"),
        (
            "named_struct('zip', null, 'city', 'Oslo')",
            TYPES["t.at"],
            "named_struct('zip', CAST(NULL AS INT), 'city', 'Oslo')",
        ),
    ],
)
def test_a_constant_takes_the_type_of_its_column(text: str, wanted: pa.DataType, sql: str) -> None:
    assert to_spark_sql(parse_value(text), TYPES, wanted=wanted) == sql


def test_types_and_columns_that_spark_does_not_have_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"Spark has no type for values of type timestamp\[ns\]"):
        to_spark_sql(parse_value("s.ns = cast('2026-01-01' as timestamp_ntz)"), TYPES)
    with pytest.raises(InputError, match=r"there is no column 't\.x'"):
        to_spark_sql(parse_value("t.x + 1"), TYPES)


def test_a_value_that_cannot_be_computed_is_an_input_error() -> None:
    for text in ("t.n = 'x'", "t.day + 1", "t.at = t.n"):
        with pytest.raises(InputError):
            to_spark_sql(parse_value(text), TYPES)
