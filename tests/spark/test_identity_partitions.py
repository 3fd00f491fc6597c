"""Columns by which files are partitioned as they are: Spark takes them from metadata, files may lack them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.errors import QueryExecutionException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.read.footers import Footers
from icefloe.engines.spark.read.identity_columns import IdentityColumns
from icefloe.engines.spark.read.read import FILE, POSITION, dataframe, rows_with_positions, survivors
from icefloe.engines.spark.read.source import Source
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.formats.read.reader import stored_columns
from icefloe.io.local import LocalFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, UUID, Field, Struct
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import TASK, Plan
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.tables import VERSIONS, append_without, new_catalog

pytestmark = pytest.mark.spark

CITIES = ("Oslo", "", "a/b=c d%20'\"\\\n\u00e9\U0001f600", None)
ROWS = [(id_, city, f"n{id_}") for id_, city in enumerate(CITIES * 3)]


def new_table(folder: Path, version: int = 2, schema: str = "id bigint not null, city string, note string") -> Table:
    catalog = new_catalog(folder)
    catalog.create_namespace("db")
    return catalog.create_table("db.t", schema=schema, partition_by=["city"], format_version=version)


def arrow(rows: list[tuple[int, str | None, str]]) -> pa.Table:
    ids, cities, notes = zip(*rows, strict=True)
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string()), pa.field("note", pa.string())]
    return pa.table([pa.array(ids, pa.int64()), pa.array(cities, pa.string()), list(notes)], schema=pa.schema(fields))


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def expected(keep: Any = lambda id_, city: True) -> list[tuple[Any, ...]]:
    return sorted(((i, c, n) for i, c, n in ROWS if keep(i, c)), key=repr)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def table(tmp_path: Path, version: int) -> Table:
    found = new_table(tmp_path, version)
    append_without(found, arrow(ROWS), "city")
    return found


def planned(spark: SparkSession, table: Table) -> tuple[DataFrame, list[Plan]]:
    """The table as a DataFrame, and what its planner answers."""
    plans: list[Plan] = []
    base = pointer_of(table).load()

    def plan(filter_: Expr, bounded: tuple[int, ...] = ()) -> Plan:
        plans.append(plan_scan(base.store, base.metadata, base.metadata.current_snapshot, filter=filter_))
        return plans[-1]

    return dataframe(spark, replace(source_of(table), plan=plan)), plans


def source_of(table: Table) -> Source:
    base = pointer_of(table).load()
    metadata = base.metadata
    return Source(
        plan=lambda filter_, bounded: plan_scan(base.store, metadata, metadata.current_snapshot, filter=filter_),
        vectors=lambda _: {},
        schema=metadata.schema,
        location=metadata.location,
        size_bytes=1 << 30,
        has_deletes=False,
        identity=IdentityColumns(
            metadata.schema, metadata.specs, pa.chunked_array([[0]]), Footers.in_storage(base.store.io)
        ),
    )


def test_a_file_without_its_partition_column_reads_right(spark: SparkSession, table: Table) -> None:
    frame = table.scan().to_spark(spark)
    assert [(f.name, f.dataType.simpleString(), f.nullable) for f in frame.schema] == [
        ("id", "bigint", False),
        ("city", "string", True),
        ("note", "string", True),
    ]
    assert rows_of(frame) == expected()
    assert rows_of(frame.select("city").distinct()) == sorted(((city,) for city in CITIES), key=repr)
    assert frame.where("id = 5").select("note", "city").collect() == [("n5", "")]
    assert frame.count() == len(ROWS)


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_filters_on_the_constant_are_exact(spark: SparkSession, table: Table, vectorized: str) -> None:
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        frame = table.scan().to_spark(spark)
        for city in CITIES:
            assert rows_of(frame.where(F.col("city").eqNullSafe(city))) == expected(lambda _, c, v=city: c == v)
        assert rows_of(frame.where("CITY = 'Oslo' and id > 4")) == expected(lambda i, c: c == "Oslo" and i > 4)
        assert rows_of(frame.where("city = 'Oslo' or id = 5")) == expected(lambda i, c: c == "Oslo" or i == 5)
        assert rows_of(frame.where("length(city) > 4")) == expected(lambda _, c: c is not None and len(c) > 4)
        assert rows_of(frame.alias("x").where("x.city <> ''")) == expected(lambda _, c: c not in ("", None))
        late = table.scan("city is null and id > 3").to_spark(spark)
        assert rows_of(late) == expected(lambda i, c: c is None and i > 3)
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_filters_on_the_constant_prune_files_in_the_planner(spark: SparkSession, table: Table) -> None:
    frame, plans = planned(spark, table)
    assert frame.where("city = 'Oslo'").count() == 3
    assert (plans[-1].files, plans[-1].files_skipped) == (1, 3)
    (kept,) = plans[-1].tasks["location"].to_pylist()
    for location in table.scan().plan().tasks["location"].to_pylist():
        if location != kept:
            os.remove(location.removeprefix("file://"))
    assert rows_of(frame.where("city = 'Oslo' and note <> 'n0'")) == expected(lambda i, c: c == "Oslo" and i > 0)
    assert frame.where("city = 'nowhere'").collect() == []
    assert plans[-1].files == 0


def test_a_join_reads_the_partitions_that_it_needs(spark: SparkSession, table: Table) -> None:
    wanted = spark.createDataFrame([("Oslo", 1), ("x", 2)], "city string, k int").where("k = 1")
    assert rows_of(table.scan().to_spark(spark).join(wanted, "city", "left_semi").select("id", "city", "note")) == (
        expected(lambda _, c: c == "Oslo")
    )
    frame = table.scan().to_spark(spark)
    frame.createOrReplaceTempView("identity_join")
    text = "SELECT * FROM identity_join WHERE city = (SELECT max(city) FROM identity_join WHERE city < 'Z')"
    assert rows_of(spark.sql(text)) == expected(lambda _, c: c == "Oslo")


def test_rows_are_deleted_and_the_others_keep_the_value(spark: SparkSession, table: Table) -> None:
    table.delete("city = 'Oslo' and id > 4 or city is null and id = 3", spark=spark)
    kept = expected(lambda i, c: not (c == "Oslo" and i > 4) and not (c is None and i == 3))
    assert rows_of(table.scan().to_spark(spark)) == kept
    table.delete("city = '' and id < 3", spark=spark)
    kept = [row for row in kept if row[0] != 1]
    assert rows_of(table.scan().to_spark(spark)) == kept
    assert rows_of(table.scan().to_spark(spark).where("city = ''")) == [row for row in kept if row[1] == ""]
    assert sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=repr) == kept


def test_upserts_match_by_the_constant(spark: SparkSession, table: Table) -> None:
    shape = "id long, city string, note string"
    table.upsert(spark.createDataFrame([(4, "Oslo", "new"), (4, "Rome", "new")], shape), on=["city", "id"])
    found = rows_of(table.scan().to_spark(spark))
    assert found == sorted([*expected(lambda i, _: i != 4), (4, "Oslo", "new"), (4, "Rome", "new")], key=repr)
    table.upsert(spark.createDataFrame([(5, "Rome", "late")], shape), on=["id"])
    assert rows_of(table.scan("id = 5").to_spark(spark)) == [(5, "Rome", "late")]


def test_positions_and_survivors_come_with_the_constants(spark: SparkSession, table: Table) -> None:
    rows = rows_with_positions(spark, source_of(table))
    assert rows.frame.columns == ["id", "city", "note", POSITION, FILE]
    places = {(rows.files.location(row[FILE]), row[POSITION]): row.id for row in rows.frame.collect()}
    assert sorted(places.values()) == list(range(12))
    oslo = rows.frame.where("city = 'Oslo' and _pos = 1").collect()
    assert [(row.id, row.city) for row in oslo] == [(4, "Oslo")]
    location = rows.files.location(oslo[0][FILE])
    kept = survivors(spark, source_of(table), {location: BitMap64([1])})
    assert rows_of(kept) == [(0, "Oslo", "n0"), (8, "Oslo", "n8")]
    assert rows_of(kept.where("city <> 'Oslo'")) == []


UTC_MOMENT = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
VALUES: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "boolean": (pa.bool_(), [False, True, None], "p"),
    "int": (pa.int32(), [-(2**31), 0, None], "p < 0"),
    "bigint": (pa.int64(), [2**63 - 1, -(2**63), None], "p > 5"),
    "float": (pa.float32(), [math.nan, 0.1, math.inf, None], "isnan(p)"),
    "double": (pa.float64(), [math.nan, 0.1, -math.inf, None], "p > 1e300D"),
    "decimal(9,2)": (pa.decimal128(9, 2), [decimal.Decimal("-1.20"), decimal.Decimal("0.00"), None], "p < 0"),
    "decimal(38,10)": (
        pa.decimal128(38, 10),
        [decimal.Decimal("1234567890123456789012345678.0123456789"), decimal.Decimal("-0.0000000001"), None],
        "p > 0",
    ),
    "string": (pa.string(), ["", "null", "x" * 300, "\u00e9'\\", None], "p = ''"),
    "binary": (pa.binary(), [b"", b"\x00\xff", None], "p = X'00FF'"),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), None], "p >= DATE '1900-01-01'"),
    "timestamp_ntz": (
        pa.timestamp("us"),
        [UTC_MOMENT.replace(tzinfo=None), dt.datetime(2024, 3, 10, 2, 30), None],
        "p >= TIMESTAMP_NTZ '2024-03-10 02:30:00'",
    ),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [UTC_MOMENT, dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None],
        "p >= TIMESTAMP '2023-12-31 12:00:00'",
    ),
}


def evaluated_on_every_row(spark: SparkSession, table: Table) -> DataFrame:
    """The table as a DataFrame whose reader skips no row groups."""
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    try:
        return table.scan().to_spark(spark)
    finally:
        spark.conf.unset("spark.sql.parquet.filterPushdown")


@pytest.mark.parametrize("type_", VALUES)
def test_values_of_every_type_are_those_of_the_column(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    arrow_type, values, where = VALUES[type_]
    catalog = new_catalog(tmp_path)
    catalog.create_namespace("db")
    rows = pa.table({"p": pa.array(values, arrow_type), "id": pa.array(range(len(values)), pa.int64())})
    lacking, whole = (
        catalog.create_table(f"db.{name}", schema=f"p {type_}, id bigint", partition_by=[key], format_version=2)
        for name, key in (("lacking", "p"), ("whole", "bucket(2, id)"))
    )
    append_without(lacking, rows, "p")
    whole.append(rows)
    got = lacking.scan().to_spark(spark)
    want = evaluated_on_every_row(spark, whole)
    assert got.schema == want.schema
    assert repr(got.orderBy("id").collect()) == repr(want.orderBy("id").collect())
    assert got.orderBy("id").toArrow()["p"].to_pylist()[-1] is None
    for text in (where, f"NOT ({where})", "p IS NULL", "p IS NOT NULL", f"{where} OR id = 1"):
        found = [row.id for row in got.where(text).orderBy("id").collect()]
        assert found == [row.id for row in want.where(text).orderBy("id").collect()], text
    assert 0 < got.where(where).count() < len(values)


def test_constants_keep_their_place_among_any_columns(spark: SparkSession, tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    catalog.create_namespace("db")
    schema = "size int, s struct<size: int, x: int>, location string, id bigint, end string"
    table = catalog.create_table("db.t", schema=schema, partition_by=["end", "location", "size"], format_version=2)
    row = {"size": 1, "s": {"size": 2, "x": 3}, "location": "here", "id": 4, "end": "z"}
    types = {"size": pa.int32(), "s": pa.struct([("size", pa.int32()), ("x", pa.int32())]), "location": pa.string()}
    types |= {"id": pa.int64(), "end": pa.string()}
    append_without(table, pa.Table.from_pylist([row], schema=pa.schema(types)), "end", "location", "size")
    frame = table.scan().to_spark(spark)
    assert frame.columns == list(row)
    assert frame.collect() == [(1, (2, 3), "here", 4, "z")]
    assert frame.where("s.x = 3 AND end = 'z'").select("s.size", "end", "size").collect() == [(2, "z", 1)]
    assert frame.where("size = 1 AND location = 'here'").select("location").collect() == [("here",)]
    table.delete("id > 100 or size = 2", spark=spark)
    assert frame.select("end").collect() == [("z",)]


def test_constants_whose_names_differ_in_case_alone_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema="A int, id int, a int", partition_by=["a", "A"], format_version=2)
    row = pa.table({name: pa.array([value], pa.int32()) for name, value in (("A", 5), ("id", 1), ("a", 6))})
    append_without(table, row, "a", "A")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = table.scan().to_spark(spark)
        assert frame.collect() == [(5, 1, 6)]
        assert frame.where("A = 5 AND a = 6").select("a", "A").collect() == [(6, 5)]
        assert frame.where("A = 6 OR a = 5").count() == 0
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def by(source_id: int, spec_id: int) -> PartitionSpec:
    field = PartitionField(source_id=source_id, field_id=1000, name="p", transform="identity")
    return PartitionSpec(spec_id=spec_id, fields=(field,))


UNPARTITIONED = PartitionSpec(spec_id=0)
ID = Field(1, "id", LONG)


def source_without(
    folder: Path,
    field: Field,
    *specs: PartitionSpec,
    read: list[str] | None = None,
    used: list[int] | None = None,
    **statistics: pa.Array,
) -> Source:
    """A table with files of all these specs, of which plans have one, of the last spec, that holds ``id`` alone."""
    used = [spec.spec_id for spec in specs] if used is None else used
    schema, path = Schema(fields=(ID, field)), folder / "f.parquet"
    pq.write_table(pa.table({"id": [0, 1]}, schema=arrow_schema(Schema(fields=(ID,)))), path, store_schema=False)
    row = {"location": str(path), "file_format": "parquet", "record_count": 2, "partition_spec_id": specs[-1].spec_id}
    tasks = pa.Table.from_pylist([{**row, "file_size_in_bytes": path.stat().st_size}], schema=TASK)
    for name, values in statistics.items():
        tasks = tasks.append_column(f"{name}:p1000", values)
    plan = Plan(tasks=tasks, schema=schema, table_schema=schema, filter=ALWAYS_TRUE, specs=specs)

    def stored(location: str) -> frozenset[int]:
        if read is not None:
            read.append(location)
        return stored_columns(LocalFileIO(), location)

    return Source(
        plan=lambda _, bounded: plan,
        vectors=lambda _: {},
        schema=schema,
        location=str(folder),
        size_bytes=1,
        has_deletes=False,
        identity=IdentityColumns(schema, specs, pa.chunked_array([used]), Footers(stored)),
    )


@pytest.mark.parametrize(
    "field",
    [Field(2, "p", STRING), Field(3, "s", Struct((Field(2, "p", STRING),)))],
    ids=["a column of some specs", "a field inside a struct"],
)
def test_a_column_that_cannot_be_a_constant_must_be_in_the_file(
    spark: SparkSession, tmp_path: Path, field: Field
) -> None:
    source = source_without(tmp_path, field, UNPARTITIONED, by(2, 1), lower_bound=pa.array(["x"]))
    with pytest.raises(QueryExecutionException, match=r"f\.parquet: the file lacks the column '(s\.)?p'"):
        dataframe(spark, source).collect()


def test_a_type_that_spark_lacks_is_no_constant(spark: SparkSession, tmp_path: Path) -> None:
    source = source_without(tmp_path, Field(2, "p", UUID), by(2, 0), lower_bound=pa.array([bytes(16)], pa.binary(16)))
    with pytest.raises(QueryExecutionException, match=r"f\.parquet: the file lacks the column 'p'"):
        dataframe(spark, source).collect()


def test_files_of_other_specs_may_lack_the_column(spark: SparkSession, tmp_path: Path) -> None:
    read: list[str] = []
    source = source_without(tmp_path, Field(2, "p", STRING), by(2, 1), UNPARTITIONED, read=read)
    assert sorted(dataframe(spark, source).collect()) == [(0, None), (1, None)]
    assert read == []


def test_footers_are_read_once_for_a_dataframe_and_never_without_need(spark: SparkSession, tmp_path: Path) -> None:
    read: list[str] = []
    source = source_without(tmp_path, Field(2, "p", STRING), UNPARTITIONED, by(1, 1), read=read)
    frame = dataframe(spark, source)
    assert [frame.where(f"id >= {i}").count() for i in range(3)] == [2, 1, 0]
    assert read == [f"{tmp_path}/f.parquet"]
    read.clear()
    value = pa.array(["x"])
    constant = source_without(tmp_path, Field(2, "p", STRING), by(2, 0), read=read, lower_bound=value)
    assert sorted(dataframe(spark, constant).collect()) == [(0, "x"), (1, "x")]
    assert read == []


def test_a_spec_that_no_file_has_does_not_count(spark: SparkSession, tmp_path: Path) -> None:
    field, value = Field(2, "p", STRING), pa.array(["x"])
    source = source_without(tmp_path, field, UNPARTITIONED, by(2, 1), used=[1, 1], lower_bound=value)
    assert sorted(dataframe(spark, source).where("p = 'x'").collect()) == [(0, "x"), (1, "x")]
    assert dataframe(spark, source).where("p <> 'x'").collect() == []


@pytest.mark.parametrize("statistics", [{}, {"null_value_count": pa.array([2])}])
def test_a_required_column_without_a_value_is_refused(
    spark: SparkSession, tmp_path: Path, statistics: dict[str, pa.Array]
) -> None:
    source = source_without(tmp_path, Field(2, "p", STRING, True), by(2, 0), **statistics)
    with pytest.raises(QueryExecutionException, match=r"FormatError: .*f\.parquet: the file is partitioned by 'p'"):
        dataframe(spark, source).collect()


def test_files_of_other_formats_are_not_opened_as_parquet_to_see_their_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two specs are in use, and only one has the column as a partition: footers decide which Parquet files lack it."""
    table = new_table(tmp_path)
    table.set_properties({"write.format.default": "orc"})
    table.append(arrow(ROWS[:2]))
    with table.update_partitioning() as partitioning:
        partitioning.remove("city")
    table.append(arrow(ROWS[2:4]))
    assert rows_of(table.scan().to_spark(spark)) == sorted(ROWS[:4], key=repr)
