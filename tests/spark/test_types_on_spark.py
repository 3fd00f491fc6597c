"""Every type that Spark has is read on Spark as in this process; the others are refused by name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.read.read import dataframe
from icefloe.errors import InputError, UnsupportedError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import VARIANT, Field
from icefloe.table.table import Table
from spark.fakes import Files
from support.tables import new_catalog

pytestmark = pytest.mark.spark
SEVEN = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}  # the int 7 as a variant
POINT = b"\x01\x01\x00\x00\x00" + bytes(16)
NANOSECONDS = 1_700_000_000_123_456_789


def new_table(folder: Path, schema: str) -> Table:
    return new_catalog(folder).create_table("db.t", schema=schema, format_version=3)


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.orderBy("id").collect()]


@pytest.fixture
def kathmandu(spark: SparkSession) -> Iterator[SparkSession]:
    former = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", former)


def test_values_of_all_types_are_read(spark: SparkSession, tmp_path: Path) -> None:
    columns = "id bigint, b boolean, i int, f float, d double, m decimal(38, 10), y date, t time, s string, u uuid"
    table = new_table(tmp_path, f"{columns}, x fixed(4), z binary, n unknown, v variant, w struct<v: variant>")
    values: dict[str, Any] = {
        "id": 1, "b": True, "i": -5, "f": 0.5, "d": -0.25, "m": Decimal("12345678901234567890.5000000000"),
        "y": dt.date(1, 1, 1), "t": dt.time(1, 2, 3, 4), "s": "\0ü", "u": bytes(range(16)), "x": b"\0\1\2\xff",
        "z": b"\xff", "n": None, "v": SEVEN, "w": {"v": SEVEN},
    }  # fmt: skip
    nothing = dict.fromkeys(values)
    table.append(pa.Table.from_pylist([values, {**nothing, "id": 2}], table.scan().to_arrow().schema))
    frame = table.scan().to_spark(spark)
    names = [name for name in values if name not in ("v", "w")]
    expected = [tuple(values[name] for name in names), (2, *[None] * (len(names) - 1))]
    assert [tuple(row) for row in rows(frame.select(*names))] == expected
    variants = frame.selectExpr("id", "variant_get(v, '$', 'int')", "variant_get(w.v, '$', 'int')")
    assert rows(variants) == [(1, 7, 7), (2, None, None)]
    assert rows(frame.where("variant_get(v, '$', 'int') = 7").select("id")) == [(1,)]


def test_a_variant_that_spark_wrote_is_read_by_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, v variant")
    table.append(spark.sql("SELECT 1L id, parse_json('{\"a\": 1}') v UNION ALL SELECT 2L, NULL"))
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert found[0]["v"]["metadata"] == b"\x01\x01\x00\x01a"
    assert found[1]["v"] is None
    frame = table.scan().to_spark(spark)
    assert rows(frame.selectExpr("id", "to_json(v)")) == [(1, '{"a":1}'), (2, None)]
    assert rows(frame.selectExpr("id", "try_variant_get(v, '$.a', 'int')")) == [(1, 1), (2, None)]


def test_a_shredded_variant_of_another_writer_is_read(spark: SparkSession, files: Files) -> None:
    settings = {"writeShredding.enabled": "true", "forceShreddingSchemaForTest": "a int, b string"}
    try:
        for name, value in settings.items():
            spark.conf.set(f"spark.sql.variant.{name}", value)
        made = spark.sql('SELECT parse_json(\'{"a": 1, "c": true}\') v UNION ALL SELECT parse_json(\'{"a": "x"}\')')
        made = made.select(F.col("v").alias("v", metadata={"parquet.field.id": 1})).coalesce(1)
        made.write.parquet(str(files.folder))
    finally:
        for name in settings:
            spark.conf.unset(f"spark.sql.variant.{name}")
    (path,) = files.folder.glob("*.parquet")
    assert "typed_value" in str(pq.read_schema(path))
    size = path.stat().st_size
    files.rows.append({"location": str(path), "file_format": "parquet", "file_size_in_bytes": size, "record_count": 2})
    frame = dataframe(spark, files.source(Schema(fields=(Field(1, "w", VARIANT),))))
    assert {row[0] for row in frame.selectExpr("to_json(w)").collect()} == {'{"a":1,"c":true}', '{"a":"x"}'}
    assert frame.where("try_variant_get(w, '$.a', 'int') = 1").count() == 1


def test_times_are_filtered_in_sessions_without_time_literals(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, t time")
    times = [dt.time(1), dt.time(1, 0, 0, 500_000), dt.time(1, 0, 0, 250_000), dt.time(23, 59, 59, 999_999), None]
    table.append(pa.table({"id": range(5), "t": pa.array(times, pa.time64("us"))}))
    for condition in ("t > '01:00:00.25'", "t in ('01:00:00', '01:00:00.500')", "t != '23:59:59.999999'", "t is null"):
        ours = table.scan(condition).to_arrow()["id"].to_pylist()
        assert [row[0] for row in rows(table.scan(condition, columns=["id"]).to_spark(spark))] == ours


def test_nanoseconds_are_refused_by_name_unless_microseconds_are_asked_for(
    kathmandu: SparkSession, tmp_path: Path
) -> None:
    spark, schema = kathmandu, "id bigint, a timestamp_ns, b timestamptz_ns, s struct<l: array<timestamp_ns>>"
    table = new_table(tmp_path, schema)
    counts = [NANOSECONDS, -1, None]
    nested = [None if count is None else {"l": [count, None]} for count in counts]
    types = table.scan().to_arrow().schema
    columns = [pa.array(range(3), pa.int64()), *(pa.array(counts, types.field(name).type) for name in "ab")]
    table.append(pa.table([*columns, pa.array(nested, types.field("s").type)], schema=types))
    with pytest.raises(UnsupportedError, match=r"column 'a' is timestamp_ns, .* nanoseconds='microseconds'"):
        table.scan().to_spark(spark)
    with pytest.raises(UnsupportedError, match=r"column 's\.l\.element' is timestamp_ns"):
        table.scan(columns=["s"]).to_spark(spark)
    with pytest.raises(InputError, match="nanoseconds='seconds': give 'microseconds'"):
        table.scan().to_spark(spark, nanoseconds="seconds")  # type: ignore[arg-type]
    assert rows(table.scan(columns=["id"]).to_spark(spark)) == [(0,), (1,), (2,)]
    frame = table.scan().to_spark(spark, nanoseconds="microseconds")
    assert [field.dataType.simpleString() for field in frame.schema] == [
        *("bigint", "timestamp_ntz", "timestamp", "struct<l:array<timestamp_ntz>>")
    ]
    cut = dt.datetime(2023, 11, 14, 22, 13, 20, 123_456)
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    assert rows(frame.select("id", "a", "s.l")) == [(0, cut, [cut, None]), (1, before, [before, None]), (2, None, None)]
    assert rows(frame.selectExpr("id", "unix_micros(b)")) == [(0, NANOSECONDS // 1000), (1, -1), (2, None)]
    assert frame.where("a > TIMESTAMP_NTZ '2000-01-01'").count() == 1
    exact = table.scan("a >= '2023-11-14T22:13:20.123456789'", columns=["id", "s.l"])
    assert exact.to_arrow().num_rows == exact.to_spark(spark, nanoseconds="microseconds").count() == 1
    later = table.scan("b > '2023-11-14T22:13:20.123456789+00:00'", columns=["id"])
    assert later.to_spark(spark, nanoseconds="microseconds").count() == 0


def test_shapes_are_refused_by_name_and_can_be_left_out(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, g geometry, s struct<h: geography>")
    table.append(pa.Table.from_pylist([{"id": 1, "g": POINT, "s": None}], table.scan().to_arrow().schema))
    with pytest.raises(UnsupportedError, match=r"column 'g' is geometry\(OGC:CRS84\), which Spark's"):
        table.scan().to_spark(spark)
    with pytest.raises(UnsupportedError, match=r"column 's\.h' is geography"):
        table.scan(columns=["id", "s"]).to_spark(spark)
    assert rows(table.scan("id > 0", columns=["id"]).to_spark(spark)) == [(1,)]


DEFAULTS: dict[str, tuple[str, Any]] = {
    "b": ("boolean", True),
    "i": ("int", -5),
    "l": ("bigint", 1 << 40),
    "f": ("float", 0.5),
    "d": ("double", 0.1),
    "m": ("decimal(9, 2)", Decimal("1.50")),
    "y": ("date", dt.date(1900, 1, 1)),
    "p": ("timestamp_ntz", dt.datetime(2024, 3, 10, 2, 30, 0, 1)),
    "s": ("string", "it's \\ ü\n"),
}
BINARY_DEFAULTS: dict[str, tuple[str, Any]] = {"u": ("uuid", bytes(range(16))), "z": ("binary", b"\0\xff")}


def with_defaults(table: Table, defaults: dict[str, tuple[str, Any]]) -> None:
    with table.update_schema() as change:
        for name, (type_, value) in defaults.items():
            change.add_column(name, type_, default=value)


@pytest.mark.parametrize("defaults", [DEFAULTS, BINARY_DEFAULTS], ids=["values", "bytes"])
def test_columns_that_a_file_lacks_have_their_initial_defaults(
    kathmandu: SparkSession, tmp_path: Path, defaults: dict[str, tuple[str, Any]]
) -> None:
    table = new_table(tmp_path, "id bigint, k int")
    table.append(pa.table({"id": [1, 2, 3], "k": pa.array([1, 2, 3], pa.int32())}))
    with_defaults(table, defaults)
    types = table.scan().to_arrow().schema
    table.append(pa.Table.from_pylist([dict.fromkeys(types.names)], types))
    table.delete("k = 2")
    frame = table.scan().to_spark(kathmandu)
    values = tuple(value for _, value in defaults.values())
    nulls = (None,) * (2 + len(defaults))
    assert rows(frame) == [nulls, (1, 1, *values), (3, 3, *values)]
    assert rows(frame.selectExpr("1 id", *(f"count_if({name} is null)" for name in defaults))) == [
        (1, *[1] * len(defaults))
    ]
    if "i" in defaults:
        assert frame.where("i = -5 and id > 1").count() == 1
        assert table.scan("i = -5", columns=["id"]).to_spark(kathmandu).count() == 2
        assert table.scan("i > 0").to_spark(kathmandu).count() == 0


def test_a_default_of_a_timestamp_is_an_instant_in_any_time_zone(kathmandu: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint")
    table.append(pa.table({"id": [1]}))
    instant = dt.datetime(2024, 3, 10, 2, 30, 0, 1, tzinfo=dt.UTC)
    with_defaults(
        table, {"at": ("timestamp", instant), "ns": ("timestamptz_ns", "2024-01-01T00:00:00.000001999+00:00")}
    )
    frame = table.scan().to_spark(kathmandu, nanoseconds="microseconds")
    assert rows(frame.selectExpr("id", "unix_micros(at)", "unix_micros(ns)")) == [
        (1, int(instant.timestamp()) * 1_000_000 + 1, 1_704_067_200_000_001)
    ]


def test_a_default_that_spark_cannot_apply_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint")
    table.append(pa.Table.from_pylist([{"id": 1}], table.scan().to_arrow().schema))
    with_defaults(table, {"t": ("time", dt.time(1, 2))})
    with pytest.raises(UnsupportedError, match=r"column 't' is a time with an initial default.*timeType\.enabled"):
        table.scan(columns=["t"]).to_spark(spark)
    assert rows(table.scan(columns=["id"]).to_spark(spark)) == [(1,)]
