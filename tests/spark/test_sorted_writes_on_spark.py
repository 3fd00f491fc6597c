"""Files written on Spark hold their rows in the table's sort order, whichever writer made them."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from icefloe.engines.spark.write.write import write
from icefloe.io.local import LocalFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.schema.schema import Schema
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import sort_order
from icefloe.transforms.ordering import sort_indices
from spark.fakes import metadata_of

pytestmark = pytest.mark.spark

IO = LocalFileIO()
COLUMNS = (
    "id bigint, i int, g double, f float, s string, b binary, d date, tz timestamp, ntz timestamp_ntz,"
    " p decimal(9, 2), q decimal(30, 4), inner struct<x: bigint, y: string>"
)
NATIVE = parse_ddl(COLUMNS)
IN_TASKS = parse_ddl(f"{COLUMNS}, tags array<string>")
NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0000))[0]
FLOATS = [NEGATIVE_NAN, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan, None]
TEXTS = ["", "a", "ab", "abc", "é", "\U0001f600", "\uffff", "日本", "Z", None]


@pytest.fixture(params=["native", "tasks"])
def schema(request: pytest.FixtureRequest) -> Schema:
    """A schema that Spark's own writer writes, and one that tasks write."""
    return NATIVE if request.param == "native" else IN_TASKS


def some_rows(schema: Schema, count: int = 400) -> pa.Table:
    rng = np.random.default_rng(7)

    def one_of(values: Sequence[Any]) -> list[Any]:
        return [values[n] for n in rng.integers(0, len(values), count)]

    moments = [dt.datetime(1969, 12, 30) + dt.timedelta(hours=int(n), microseconds=1) for n in range(0, 20_000, 611)]
    whole = one_of([-25, -11, -10, -1, 0, 1, 9, 10, 11, 99, None])
    columns = {
        "id": rng.permutation(count).tolist(),
        "i": whole,
        "g": one_of(FLOATS),
        "f": one_of(FLOATS),
        "s": one_of(TEXTS),
        "b": [None if text is None else text.encode() for text in one_of(TEXTS)],
        "d": [None if moment is None else moment.date() for moment in one_of([*moments, None])],
        "tz": [None if moment is None else moment.replace(tzinfo=dt.UTC) for moment in one_of([*moments, None])],
        "ntz": one_of([*moments, None]),
        "p": one_of([Decimal("-1.25"), Decimal("-0.01"), Decimal("0.00"), Decimal("3.99"), Decimal("4.00"), None]),
        "q": one_of([Decimal("-1.2500"), Decimal("123456789012345678901234.5678"), None]),
        "inner": one_of([{"x": 3, "y": "c"}, {"x": 1, "y": None}, {"x": None, "y": "b"}, None]),
        "tags": one_of([["a"], [], None]),
    }
    kept = {field.name: columns[field.name] for field in schema.fields}
    return pa.table(kept, schema=arrow_schema(schema))


def frame_of(spark: SparkSession, folder: Path, rows: pa.Table) -> DataFrame:
    """Rows as Spark reads them from a file: a file has every type and every NaN as it is."""
    source = folder / "source.parquet"
    pq.write_table(rows, source)
    return spark.read.parquet(str(source))


def ordered_table(location: Path, schema: Schema, keys: Sequence[str], *partition_by: str) -> TableMetadata:
    order = sort_order(keys, schema)
    metadata = metadata_of(location, schema, *partition_by)
    return replace(metadata, sort_orders=(order,), default_sort_order_id=order.order_id)


def in_given_tasks(metadata: TableMetadata) -> TableMetadata:
    """The table, written by the tasks that compute the rows."""
    return replace(metadata, properties={"write.distribution-mode": "none"})


def contents(entries: pa.Table, schema: Schema) -> list[pa.Table]:
    tables = [pq.ParquetFile(location).read() for location in entries["location"].to_pylist()]
    return [table.cast(pa.schema(arrow_schema(schema))) for table in tables]


def assert_in_order(entries: pa.Table, metadata: TableMetadata, count: int) -> None:
    files = contents(entries, metadata.schema)
    for rows in files:
        assert sort_indices(rows, metadata.sort_order, metadata.schema).to_pylist() == list(range(rows.num_rows))
    assert entries["sort_order_id"].to_pylist() == [metadata.sort_order.order_id] * len(files)
    assert sorted(id_ for rows in files for id_ in rows["id"].to_pylist()) == list(range(count))
    assert max(rows.num_rows for rows in files) > 20


ORDERS = [
    ["i", "id desc"],
    ["i desc", "s asc nulls last", "b desc nulls first"],
    ["g", "f desc"],
    ["f nulls last", "g desc nulls first", "id"],
    ["d desc", "tz", "ntz"],
    ["p", "q desc", "id"],
    ["inner.x", "inner.y desc nulls first", "id"],
    ["year(tz) desc", "month(ntz)", "id"],
    ["month(tz)", "day(ntz) desc", "id"],
    ["day(tz) desc nulls first", "hour(ntz)", "id"],
    ["hour(tz) desc", "month(d)", "id desc"],
    ["truncate(10, i)", "truncate(2, s) desc", "id"],
    ["truncate(1, b)", "truncate(50, p) desc", "truncate(30000, q)", "id"],
    ["bucket(4, id)", "bucket(3, s) desc", "id"],
]


@pytest.mark.parametrize("keys", ORDERS, ids=", ".join)
def test_rows_of_every_file_are_in_the_order(tokyo: SparkSession, tmp_path: Path, keys: list[str]) -> None:
    metadata = in_given_tasks(ordered_table(tmp_path / "t", NATIVE, keys))
    entries = write(frame_of(tokyo, tmp_path, some_rows(NATIVE)).repartition(2), metadata=metadata, io=IO)
    assert entries.num_rows == 2
    assert_in_order(entries, metadata, 400)


def test_rows_of_every_file_of_tasks_are_in_the_order(spark: SparkSession, tmp_path: Path) -> None:
    keys = ["truncate(2, s) desc", "g nulls last", "bucket(3, id)", "id"]
    metadata = in_given_tasks(ordered_table(tmp_path / "t", IN_TASKS, keys))
    entries = write(frame_of(spark, tmp_path, some_rows(IN_TASKS)).repartition(2), metadata=metadata, io=IO)
    assert entries.num_rows == 2
    assert_in_order(entries, metadata, 400)


@pytest.mark.parametrize("partition_by", [("inner.y",), ("bucket[2](id)", "month(d)"), ("s", "truncate[100](i)")])
def test_rows_of_partitions_are_in_the_order(
    spark: SparkSession, tmp_path: Path, schema: Schema, partition_by: tuple[str, ...]
) -> None:
    metadata = ordered_table(tmp_path / "t", schema, ["g desc", "s", "id"], *partition_by)
    entries = write(frame_of(spark, tmp_path, some_rows(schema, 2000)).repartition(3), metadata=metadata, io=IO)
    assert_in_order(entries, metadata, 2000)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_constant_partition_does_not_undo_the_order(
    spark: SparkSession, tmp_path: Path, schema: Schema, adaptive: str
) -> None:
    """Spark's optimizer knows the value of such a column, and may leave it out of a sort or sort once more by it."""
    former = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        rows = frame_of(spark, tmp_path, some_rows(schema, 2000)).repartition(3)
        for constant in (F.lit("eu"), F.lit(None).cast("string")):
            metadata = ordered_table(tmp_path / "t", schema, ["i desc", "id"], "s")
            entries = write(rows.withColumn("s", constant), metadata=metadata, io=IO)
            assert_in_order(entries, metadata, 2000)
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", former)


@pytest.mark.parametrize(("name", "value"), [
    ("spark.sql.maxConcurrentOutputFileWriters", "1"),
    ("spark.sql.optimizer.plannedWrite.enabled", "false"),
])  # fmt: skip
def test_settings_of_the_user_do_not_undo_the_order(spark: SparkSession, tmp_path: Path, name: str, value: str) -> None:
    former = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        metadata = ordered_table(tmp_path / "t", NATIVE, ["i desc", "id"], "bucket[5](id)")
        entries = write(frame_of(spark, tmp_path, some_rows(NATIVE, 2000)).repartition(3), metadata=metadata, io=IO)
        assert_in_order(entries, metadata, 2000)
    finally:
        spark.conf.set(name, former)


@pytest.mark.parametrize("column", ["g", "f"])
def test_floats_are_in_the_order_of_the_format(spark: SparkSession, tmp_path: Path, column: str) -> None:
    """In Spark's own order the zeros are equal. Every NaN that Spark's writer stores is a positive one."""
    rows = some_rows(NATIVE)
    made = {}
    for direction in ("asc", "desc"):
        metadata = ordered_table(tmp_path / "t", NATIVE, [f"{column} {direction} nulls last"])
        [table] = contents(write(frame_of(spark, tmp_path, rows).coalesce(1), metadata=metadata, io=IO), NATIVE)
        signs = [None if v is None else (math.copysign(1, v), str(abs(v))) for v in table[column].to_pylist()]
        made[direction] = list(dict.fromkeys(signs))
    expected = [(-1, "inf"), (-1, "1.5"), (-1, "0.0"), (1, "0.0"), (1, "1.5"), (1, "inf"), (1, "nan")]
    assert made == {"asc": [*expected, None], "desc": [*reversed(expected), None]}


def test_texts_with_a_collation_are_in_the_order_of_their_bytes(spark: SparkSession, tmp_path: Path) -> None:
    schema = parse_ddl("s string")
    frame = spark.sql("SELECT s COLLATE UTF8_LCASE AS s FROM VALUES ('b'), ('A'), ('a'), ('B') AS t(s)").coalesce(1)
    metadata = ordered_table(tmp_path / "t", schema, ["s"])
    [table] = contents(write(frame, metadata=metadata, io=IO), schema)
    assert table["s"].to_pylist() == ["A", "B", "a", "b"]


def test_texts_with_a_collation_are_partitioned_by_their_bytes(spark: SparkSession, tmp_path: Path) -> None:
    schema = parse_ddl("s string, n int")
    frame = spark.sql(
        "SELECT s COLLATE UTF8_LCASE AS s, n FROM VALUES ('a', 1), ('A', 2), ('a', 3), ('A', 4) AS t(s, n)"
    )
    metadata = ordered_table(tmp_path / "t", schema, ["n desc"], "s")
    tables = contents(write(frame.coalesce(1), metadata=metadata, io=IO), schema)
    assert sorted(table.to_pydict()["s"] + table["n"].to_pylist() for table in tables) == [
        ["A", "A", 4, 2],
        ["a", "a", 3, 1],
    ]


def test_columns_of_the_order_have_bounds_in_any_case(spark: SparkSession, tmp_path: Path, schema: Schema) -> None:
    metadata = ordered_table(tmp_path / "t", schema, ["tz"])
    metadata = replace(metadata, properties={"write.metadata.metrics.max-inferred-column-defaults": "1"})
    entries = write(frame_of(spark, tmp_path, some_rows(schema)), metadata=metadata, io=IO)
    assert entries[f"lower_bound:{schema.field('tz').id}"].null_count == 0
    assert f"lower_bound:{schema.field('ntz').id}" not in entries.column_names


def test_an_order_that_cannot_be_computed_is_not_claimed(spark: SparkSession, tmp_path: Path, schema: Schema) -> None:
    order = SortOrder(order_id=1, fields=(SortField(source_id=1, transform="zorder"),))
    metadata = replace(metadata_of(tmp_path / "t", schema), sort_orders=(order,), default_sort_order_id=1)
    entries = write(frame_of(spark, tmp_path, some_rows(schema)), metadata=metadata, io=IO)
    assert entries["sort_order_id"].null_count == entries.num_rows > 0


def test_an_unsorted_table_keeps_the_rows_as_they_come(spark: SparkSession, tmp_path: Path, schema: Schema) -> None:
    rows = some_rows(schema)
    entries = write(frame_of(spark, tmp_path, rows).coalesce(1), metadata=metadata_of(tmp_path / "t", schema), io=IO)
    [table] = contents(entries, schema)
    assert table["id"].to_pylist() == rows["id"].to_pylist()
    assert entries["sort_order_id"].null_count == 1


def test_rows_that_move_are_written_in_the_order(spark: SparkSession, tmp_path: Path) -> None:
    lake = icefloe.catalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/wh")
    table = lake.create_table("db.t", schema="id bigint, note string", sort_by=["note desc"], partition_by=["id"])
    table.append(spark.sql("SELECT id % 2 AS id, string(id) AS note FROM range(40)"))
    table.delete("note = '7'", spark=spark)
    table.upsert(spark.sql("SELECT 5L AS id, 'x' AS note"), on=["note"])
    tasks = table.scan().plan().tasks
    assert tasks.num_rows == 3
    for location in tasks["location"].to_pylist():
        notes = pq.ParquetFile(location.removeprefix("file://")).read()["note"].to_pylist()
        assert notes == sorted(notes, reverse=True)
