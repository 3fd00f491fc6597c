"""Sketches of distinct values on Spark: byte for byte those of this process, and Spark reads them."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.statistics_files import decode_statistics
from support.tables import VERSIONS, new_catalog

SCHEMA = (
    "b boolean, i int, l bigint, f float, x double, p decimal(30,2), q decimal(9,2), d date, ts timestamp_ntz,"
    " tz timestamp, s string, u uuid, x3 fixed(3), raw binary, who struct<name: string, `a.b`: int>"
)
NEW = "t time, ns timestamp_ns, nz timestamptz_ns"
MANY = 9_000


def rows(count: int) -> pa.Table:
    now, numbers = dt.datetime(2026, 11, 17, 9, 30), range(count)
    floats = [0.0, -0.0, float("nan"), float("-inf"), 1.5, None]
    columns = {
        "b": pa.array([(True, False, None)[i % 3] for i in numbers]),
        "i": pa.array([i % 9 - 4 for i in numbers], pa.int32()),
        "l": pa.array([(i - 100) * 2**40 for i in numbers], pa.int64()),
        "f": pa.array([floats[i % 6] for i in numbers], pa.float32()),
        "x": pa.array([floats[i % 6] for i in numbers], pa.float64()),
        "p": pa.array([Decimal((-30) ** (i % 16)) for i in numbers], pa.decimal128(30, 2)),
        "q": pa.array([None if i % 5 == 0 else Decimal(i % 300 - 150) for i in numbers], pa.decimal128(9, 2)),
        "d": pa.array([dt.date(1969, 12, 1 + i % 31) for i in numbers]),
        "ts": pa.array([now.replace(year=1900 + i % 150) for i in numbers], pa.timestamp("us")),
        "tz": pa.array([now + dt.timedelta(microseconds=i % 7) for i in numbers], pa.timestamp("us", "UTC")),
        "s": pa.array([("", None, "São Paulo", "x" * (i % 40))[i % 4] for i in numbers]),
        "u": pa.array([uuid.UUID(int=2**120 + i % 11).bytes for i in numbers], pa.binary(16)),
        "x3": pa.array([bytes([i % 5, 0, 255]) for i in numbers], pa.binary(3)),
        "raw": pa.array([bytes(range(i % 30)) for i in numbers], pa.binary()),
        "who": pa.array(
            [None if i % 4 == 0 else {"name": f"n{i % 17}", "a.b": i} for i in numbers],
            pa.struct([("name", pa.string()), ("a.b", pa.int32())]),
        ),
    }
    return pa.table(columns)


def stored(table: Table) -> dict[int, bytes]:
    (entry,) = table.metadata.statistics
    return {
        blob.fields[0]: blob.data for blob in decode_statistics(pointer_of(table).io.read(entry.statistics_path), entry)
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_both_engines_store_the_same_sketches(spark: SparkSession, tmp_path: Path, version: int) -> None:
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    table = new_catalog(tmp_path).create_table(
        "db.t", schema=SCHEMA, format_version=version, properties={"write.delete.mode": mode}
    )
    table.append(rows(MANY))
    table.append(rows(300))
    table.delete("l between 0 and 5000000000000")
    names = [*(field.name for field in table.schema.fields[:-1]), "who.name", "who.a.b"]
    here = table.analyze(names)
    by_arrow = stored(table)
    there = table.analyze(names, spark=spark)
    assert there.distinct_values == here.distinct_values
    assert stored(table) == by_arrow
    assert len(by_arrow) == len(names)
    estimates = spark.createDataFrame([(id_, bytearray(data)) for id_, data in by_arrow.items()], "id int, data binary")
    found = {row.id: row.n for row in estimates.selectExpr("id", "theta_sketch_estimate(data) AS n").collect()}
    assert [found[table.schema.field(name).id] for name in names] == pytest.approx(
        list(here.distinct_values.values()), abs=1
    )
    assert here.distinct_values["who.a.b"] == pytest.approx(MANY * 3 / 4, rel=0.05)


def test_times_and_nanoseconds_are_counted_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema=NEW, format_version=3)
    columns = {
        "t": pa.array([0, 1, 86_399_999_999, None], pa.time64("us")),
        "ns": pa.array([-1, 1, 999, None], pa.timestamp("ns")),
        "nz": pa.array([1, 1, 2, None], pa.timestamp("ns", "UTC")),
    }
    table.append(pa.table(columns))
    assert table.analyze().distinct_values == {"t": 3, "ns": 3, "nz": 2}
    by_arrow = stored(table)
    assert table.analyze(spark=spark).distinct_values == {"t": 3, "ns": 3, "nz": 2}
    assert stored(table) == by_arrow


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_files_that_tasks_read_are_counted_on_spark(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    table = new_catalog(tmp_path).create_table(
        "db.t", schema="id bigint, s string", properties={"write.format.default": file_format}
    )
    table.append(pa.table({"id": [1, 2, 2], "s": ["a", "a", None]}))
    table.upsert(pa.table({"id": [2, 3], "s": ["b", "c"]}), on=["id"], deletes="equality")
    table.analyze()
    by_arrow = stored(table)
    assert table.analyze(spark=spark).distinct_values == {"id": 3, "s": 3}
    assert stored(table) == by_arrow
