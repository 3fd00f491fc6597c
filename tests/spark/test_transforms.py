"""Every partition transform written by Spark: the values are those of the format, in any session time zone."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from icefloe.engines.spark.write.write import write
from icefloe.errors import InputError
from icefloe.io.local import LocalFileIO
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BINARY, DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, Decimal, Field, List
from icefloe.transforms import parse_transform
from spark.fakes import metadata_of

pytestmark = pytest.mark.spark

IO = LocalFileIO()
MOMENTS = Schema(
    fields=(Field(1, "id", LONG), Field(2, "tz", TIMESTAMPTZ), Field(3, "ntz", TIMESTAMP), Field(4, "d", DATE))
)
TIMES = [
    "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "1969-12-01 00:00:00", "1968-06-15 12:30:00",
    "2024-02-29 23:00:00", "2024-02-29 23:59:59.999999", "2024-03-01 00:00:00", "2025-01-01 08:59:59",
]  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def partition_of_each_row(entries: Any) -> dict[int, object]:
    found: dict[int, object] = {}
    values = entries["lower_bound:p1000"].to_pylist()
    assert values == entries["upper_bound:p1000"].to_pylist()
    for location, value in zip(entries["location"].to_pylist(), values, strict=True):
        found |= dict.fromkeys(pq.ParquetFile(location).read()["id"].to_pylist(), value)
    return found


@pytest.mark.parametrize(
    ("column", "transform"),
    [
        (column, unit)
        for column in ("tz", "ntz", "d")
        for unit in ("year", "month", "hour")
        if (column, unit) != ("d", "hour")
    ],
)
def test_times_are_those_of_utc(tokyo: SparkSession, table: Path, column: str, transform: str) -> None:
    values = ", ".join(f"({i}L, TIMESTAMP '{m}Z', TIMESTAMP_NTZ '{m}', DATE '{m[:10]}')" for i, m in enumerate(TIMES))
    frame = tokyo.sql(f"SELECT * FROM VALUES {values}, (99L, NULL, NULL, NULL) AS t(id, tz, ntz, d)")
    entries = write(frame, metadata=metadata_of(table, MOMENTS, f"{transform}({column})"), io=IO)
    moments = [dt.datetime.fromisoformat(text) for text in TIMES]
    expected = {i: parse_transform(transform).value(moment, TIMESTAMP) for i, moment in enumerate(moments)}
    assert partition_of_each_row(entries) == expected | {99: None}
    assert entries.num_rows == len(set(expected.values())) + 1
    text = {"year": "1969", "month": "1969-12", "hour": "1969-12-31-23"}[transform]
    assert sum(f"={text}/" in location for location in entries["location"].to_pylist()) == 1


NUMBERS = [0, 9, 10, -1, -10, -11, 2**31 - 1, -(2**31) + 8]
DECIMALS = [0, 1065, 1049, -1, -50, -51, 10**17, 10**17 + 49]
CUT = Schema(
    fields=(
        Field(1, "id", LONG), Field(2, "i", INT), Field(3, "l", LONG), Field(4, "m", Decimal(18, 2)),
        Field(5, "wide", Decimal(38, 10)), Field(6, "s", STRING), Field(7, "b", BINARY),
    )
)  # fmt: skip
TEXTS = ["", "a", "ab", "abc", "abd", "\U0001f600é/x", "\U0001f600é/y", "a/.."]


def cut_rows() -> list[tuple[Any, ...]]:
    longs = [*NUMBERS[:6], 2**63 - 1, -(2**63) + 8]
    scaled = [decimal.Decimal(n).scaleb(-2) for n in DECIMALS]
    wide = [decimal.Decimal(n).scaleb(-10) for n in DECIMALS]
    columns = (range(8), NUMBERS, longs, scaled, wide, TEXTS, [text.encode() for text in TEXTS])
    return [*zip(*columns, strict=True), (99, *(None,) * 6)]


@pytest.mark.parametrize(
    "partition",
    ["truncate[10](i)", "truncate[10](l)", "truncate[50](m)", "truncate[50](wide)", "truncate[2](s)", "truncate[3](b)"],
)
def test_values_are_cut_as_the_format_says(spark: SparkSession, table: Path, partition: str) -> None:
    rows = cut_rows()
    ddl = "id long, i int, l long, m decimal(18,2), wide decimal(38,10), s string, b binary"
    entries = write(spark.createDataFrame(rows, ddl), metadata=metadata_of(table, CUT, partition), io=IO)
    transform, _, name = partition.rstrip(")").partition("(")
    position = [column.name for column in CUT.fields].index(name)
    expected = {row[0]: _cut(row[position], int(transform[9:-1])) for row in rows}
    assert partition_of_each_row(entries) == expected
    assert entries.num_rows == len(set(expected.values()))


def _cut(value: Any, width: int) -> Any:
    if value is None or isinstance(value, (str, bytes)):
        return None if value is None else value[:width]
    if isinstance(value, int):
        return value - value % width
    exponent = int(value.as_tuple().exponent)
    unscaled = int(value.scaleb(-exponent))
    return decimal.Decimal(unscaled - unscaled % width).scaleb(exponent)


def test_files_that_tasks_write_have_the_same_partitions(spark: SparkSession, table: Path) -> None:
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "tags", List(3, STRING)), Field(4, "ts", TIMESTAMPTZ)))
    frame = spark.sql("SELECT id, array('a') tags, timestamp_micros(id * 86400000000L * 20) ts FROM range(-3, 6)")
    entries = write(frame, metadata=metadata_of(table, schema, "month(ts)", "truncate[2](id)"), io=IO)
    found = {(row["lower_bound:p1000"], row["lower_bound:p1001"]) for row in entries.to_pylist()}
    days = [dt.date(1970, 1, 1) + dt.timedelta(days=20 * i) for i in range(-3, 6)]
    assert found == {
        ((day.year - 1970) * 12 + day.month - 1, i - i % 2) for i, day in zip(range(-3, 6), days, strict=True)
    }


@pytest.mark.parametrize(
    ("type_", "ddl", "value"),
    [(INT, "int", -(2**31)), (LONG, "long", -(2**63)), (Decimal(9, 2), "decimal(9,2)", decimal.Decimal("-9999999.99"))],
)
def test_a_row_without_a_partition_is_refused(
    spark: SparkSession, table: Path, type_: Any, ddl: str, value: Any
) -> None:
    schema = Schema(fields=(Field(1, "x", type_),))
    frame = spark.createDataFrame([(value,), (None,)], f"x {ddl}")
    with pytest.raises(InputError, match=r"truncate\[10\] of -\d+(\.99)? is below the lowest"):
        write(frame, metadata=metadata_of(table, schema, "truncate[10](x)"), io=IO)
    assert [path for path in table.rglob("*") if path.is_file()] == []
