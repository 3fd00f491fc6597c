"""Filters as Spark SQL: Spark gives the rows that the plain definition gives, in any session time zone."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from icefloe.expr.filter.bind import bind
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.expr.text.spark_sql import to_sql
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BINARY, DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, Decimal, Field
from support.row_matching import matches

pytestmark = pytest.mark.spark

SCHEMA = Schema(
    fields=(
        Field(1, "row", INT),
        Field(2, "z", TIMESTAMPTZ),
        Field(3, "t", TIMESTAMP),
        Field(4, "d", DATE),
        Field(5, "i", INT),
        Field(6, "l", LONG),
        Field(7, "m", Decimal(9, 2)),
        Field(8, "s", STRING),
        Field(9, "x", BINARY),
    )
)
MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 1),
    dt.datetime(2024, 2, 29, 23, 30),
    dt.datetime(2024, 12, 31, 23, 59, 59),
    dt.datetime(2025, 1, 1),
]
NUMBERS = [-21, -20, -1, 0, 19, 20]
TEXTS = ["", "a", "ab", "abc", "\U0001f600é!", "b"]


def content() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "row": n,
            "z": moment.replace(tzinfo=dt.UTC),
            "t": moment,
            "d": moment.date(),
            "i": number,
            "l": number,
            "m": decimal.Decimal(number).scaleb(-1) + decimal.Decimal("0.07"),
            "s": text,
            "x": text.encode(),
        }
        for n, (moment, number, text) in enumerate(zip(MOMENTS, NUMBERS, TEXTS, strict=True))
    ]
    return [*found, dict.fromkeys(found[0]) | {"row": len(found)}]


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    former = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", former)


FILTERS = [
    *(f"{unit}({column}) {test}" for column in "zt" for unit, test in (
        ("years", "= -1"), ("years", ">= 54"), ("months", "IN (-1, 649, 660)"), ("months", "< 0"),
        ("days", "= DATE '2024-02-29'"), ("days", "< DATE '1970-01-01'"), ("hours", "= -1"), ("hours", ">= 474815"),
    )),
    *(f"{unit}(d) {test}" for unit, test in (("years", "= 54"), ("months", "NOT IN (-1)"), ("days", "> 5"))),
    *(f"truncate(10, {column}) {test}" for column in "il" for test in ("= -30", "= -20", "> -15", "!= 10")),
    "truncate(50, m) = -2.5", "truncate(50, m) < 0", "truncate(50, m) IN (0, 1.5)",
    "truncate(2, s) = 'ab'", "truncate(2, s) = '\U0001f600é'", "truncate(2, s) < 'abc'", "truncate(2, s) LIKE 'a%'",
    "truncate(1, x) = X'61'", "truncate(1, x) > X'6161'", "truncate(1, x) IS NULL",
]  # fmt: skip


def test_spark_gives_the_same_rows_of_transforms_in_every_time_zone(session: SparkSession) -> None:
    rows = content()
    types = "row int, z timestamp, t timestamp_ntz, d date, i int, l bigint, m decimal(9, 2), s string, x binary"
    frame = session.createDataFrame([tuple(row.values()) for row in rows], types)
    bounds = {text: bind(parse_filter(text), SCHEMA) for text in FILTERS}
    marks = [f"coalesce({to_sql(bound)}, false) AS c{n}" for n, bound in enumerate(bounds.values())]
    answers = {row["row"]: row for row in frame.selectExpr("row", *marks).collect()}
    for n, (text, bound) in enumerate(bounds.items()):
        found = [row["row"] for row in rows if answers[row["row"]][f"c{n}"]]
        assert found == [row["row"] for row in rows if matches(bound, row)], text
