"""Partition and sort keys that Spark computes itself: the results are those of the format, and no Python runs."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.session import child_session, in_session
from icefloe.engines.spark.write.conform import conformed
from icefloe.engines.spark.write.transform_columns import partition_folders, transform_key
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
)
from icefloe.transforms import parse_transform

pytestmark = pytest.mark.spark

COLUMNS = Schema(
    fields=(
        Field(1, "i", INT), Field(2, "l", LONG), Field(3, "d", DATE), Field(4, "ts", TIMESTAMP),
        Field(5, "tz", TIMESTAMPTZ), Field(6, "s", STRING), Field(7, "b", BINARY), Field(8, "small", Decimal(9, 2)),
        Field(9, "middle", Decimal(18, 0)), Field(10, "wide", Decimal(38, 10)), Field(11, "u", UUID),
        Field(12, "f", Fixed(3)),
    )
)  # fmt: skip
TRANSFORMS = {
    "bucket[1]": tuple(field.name for field in COLUMNS.fields),
    "bucket[16]": tuple(field.name for field in COLUMNS.fields),
    "bucket[2147483647]": tuple(field.name for field in COLUMNS.fields),
    "truncate[7]": ("i", "l", "s", "b", "small", "middle", "wide"),
    "truncate[1000000]": ("small", "middle", "wide"),
}
ALPHABET = ["a", "Z", "0", "é", "ß", "日", "\U0001f600", "\U00010348", "\x00", "\uffff", "e\u0301"]


def random_rows(count: int = 300) -> pa.Table:
    rng = random.Random(17)

    def text() -> str:
        return "".join(rng.choices(ALPHABET, k=rng.choice([0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 40])))

    def unscaled(digits: int) -> int:
        bound = 10 ** rng.randint(1, digits) - 1
        return rng.choice([rng.randint(-bound, bound), rng.choice([0, 127, 128, -128, -129, 255, 256, -1, 32767])])

    def one() -> dict[str, Any]:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=rng.randint(-(10**16), 10**16))
        return {
            "i": rng.choice([rng.randint(-(2**31) + 7, 2**31 - 1), rng.randint(-20, 20)]),
            "l": rng.choice([rng.randint(-(2**63) + 7, 2**63 - 1), rng.randint(-20, 20)]),
            "d": moment.date(),
            "ts": moment,
            "tz": moment.replace(tzinfo=dt.UTC),
            "s": text(),
            "b": text().encode() + rng.randbytes(rng.randint(0, 9)),
            "small": decimal.Decimal(unscaled(6)).scaleb(-2),
            "middle": decimal.Decimal(unscaled(17)),
            "wide": decimal.Context(prec=60).scaleb(decimal.Decimal(unscaled(37)), -10),
            "u": rng.randbytes(16),
            "f": rng.randbytes(3),
        }

    rows = [{k: v if rng.random() > 0.05 else None for k, v in one().items()} for _ in range(count)]
    return pa.Table.from_pylist([dict.fromkeys(rows[0]), *rows], schema=arrow_schema(COLUMNS))


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return random_rows()


@pytest.fixture
def frame(spark: SparkSession, tmp_path: Path, rows: pa.Table) -> DataFrame:
    """The rows as Spark reads them from a file."""
    pq.write_table(rows, tmp_path / "rows.parquet")
    return conformed(spark.read.parquet(str(tmp_path / "rows.parquet")), COLUMNS)


def test_keys_are_those_of_the_format_and_no_python_runs(spark: SparkSession, frame: DataFrame, rows: pa.Table) -> None:
    child = child_session(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"})
    cases = [(text, name) for text, names in TRANSFORMS.items() for name in names]
    keys = [
        transform_key(child, parse_transform(text), (name,), COLUMNS.field(name).type).alias(f"{text} {name}")
        for text, name in cases
    ]
    keyed = in_session(frame, child).select(*keys)
    assert "Python" not in keyed._jdf.queryExecution().executedPlan().toString()
    for (text, name), column in zip(cases, keyed.toArrow().columns, strict=True):
        expected = parse_transform(text).apply(rows[name], COLUMNS.field(name).type).to_pylist()
        assert _ranks(column.to_pylist(), text, name) == _ranks(expected, text, name), (text, name)


def _ranks(values: list[Any], text: str, name: str) -> list[Any]:
    """Buckets as they are; other keys only have the order and equality of the results."""
    if text.startswith("bucket"):
        return values
    known = sorted({value for value in values if value is not None})
    return [None if value is None else known.index(value) for value in values]


def test_folders_have_the_texts_of_the_results_and_no_python_runs(
    spark: SparkSession, frame: DataFrame, rows: pa.Table
) -> None:
    fields = tuple(
        PartitionField(source_id=COLUMNS.field(name).id, field_id=1000 + number, name=f"p{number}", transform=text)
        for number, (text, name) in enumerate(
            [("bucket[16]", "wide"), ("truncate[7]", "small"), ("truncate[1000]", "wide"), ("truncate[7]", "i")]
        )
    )
    folders = partition_folders(spark, COLUMNS, PartitionSpec(fields=fields))
    named = frame.select(*(folder.text.alias(folder.name) for folder in folders))
    assert "Python" not in named._jdf.queryExecution().executedPlan().toString()
    for field, column in zip(fields, named.toArrow().columns, strict=True):
        source = COLUMNS.by_id[field.source_id]
        results = parse_transform(field.transform).apply(rows[source.name], source.type).to_pylist()
        assert column.to_pylist() == [_shown(value) for value in results]


def _shown(value: object) -> str:
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    return f"{value:f}" if isinstance(value, decimal.Decimal) else str(value)


def test_times_of_day_are_hashed_as_microseconds(spark: SparkSession) -> None:
    spark = child_session(spark, {"spark.sql.timeType.enabled": "true"})
    frame = spark.sql("SELECT TIME '23:59:59.999999' AS t UNION ALL SELECT NULL").coalesce(1)
    key = transform_key(spark, parse_transform("bucket[1000]"), ("t",), TIME)
    expected = parse_transform("bucket[1000]").value(dt.time(23, 59, 59, 999_999), TIME)
    assert [row[0] for row in frame.select(key).collect()] == [expected, None]
