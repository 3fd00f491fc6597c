"""Spark chooses and orders joins by the rows and bytes that scans read after the filters of the query."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.spark_sql.conditions import Column, Condition, LiteralValue
from icefloe.spark_sql.estimates import EstimateCalls
from icefloe.spark_sql.messages import LoadTable
from icefloe.spark_sql.scan_messages import ColumnEstimate, EstimateScan, ScanEstimate
from icefloe.spark_sql.table_loads import TableLoads

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3, 4])
NEWEST = pytest.mark.parametrize("version", [4])
FILES, ROWS = 8, 500


@contextmanager
def configured(spark: Any, **settings: object) -> Iterator[None]:
    names = {f"spark.sql.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


@pytest.fixture
def facts(demo, version):
    """Eight files; ids and days rise from file to file."""
    demo.create_namespace("db")
    schema = "id bigint, part int, day date, price decimal(9, 2), x double, name string"
    table = demo.create_table("db.facts", schema=schema, partition_by=["part"], format_version=version)
    for number in range(FILES):
        ids = range(number * ROWS, number * ROWS + ROWS)
        rows = {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array([number] * ROWS, pa.int32()),
            "day": pa.array([number] * ROWS, pa.int32()).cast(pa.date32()),
            "price": pa.array([Decimal(number)] * ROWS, pa.decimal128(9, 2)),
            "x": [None, *(float(i) for i in ids[1:])],
            "name": [f"name {i * 7919 % 100003}" for i in ids],
        }
        table.append(pa.table(rows))
    return table


def estimate(catalog: icefloe.Catalog, *columns: str, below: int | None = None) -> ScanEstimate:
    """The estimate of the rows whose id is less than a number."""
    loads = TableLoads(catalog)
    handle = loads.load(LoadTable(namespace=("db",), name="facts")).key
    less = (Column(path=("ID",)), LiteralValue(type="bigint", value=str(below)))
    filters = () if below is None else (Condition(name="<", arguments=less),)
    return EstimateCalls(loads).estimate_scan(EstimateScan(handle=handle, options={}, columns=columns, filters=filters))


@VERSIONS
def test_an_estimate_has_the_rows_bytes_and_columns_of_the_files_that_filters_leave(spark, demo, facts):
    whole, part = estimate(demo), estimate(demo, "id", "x", "price", "day", "name", below=2 * ROWS)
    assert (whole.rows, part.rows) == (FILES * ROWS, 2 * ROWS)
    assert whole.size_bytes == sum(facts.inspect.files()["file_size_in_bytes"].to_pylist())
    assert part.size_bytes < whole.size_bytes / 3
    assert part.columns == {
        "id": ColumnEstimate(nulls=0, least="0", greatest=str(2 * ROWS - 1)),
        "x": ColumnEstimate(nulls=2, least="1.0", greatest=str(2.0 * ROWS - 1)),
        "price": ColumnEstimate(nulls=0, least="0.00", greatest="1.00"),
        "day": ColumnEstimate(nulls=0, least="0", greatest="1"),
        "name": ColumnEstimate(nulls=0),
    }


@VERSIONS
def test_an_estimate_knows_distinct_values_of_the_newest_statistics_file(spark, demo, facts):
    assert estimate(demo, "part").columns["part"].distinct is None
    facts.analyze(["part", "id"])
    facts.append(pa.table({"id": pa.array([1], pa.int64())}))
    known = estimate(demo, "part", "id").columns
    assert known["part"].distinct == FILES
    assert known["id"].distinct == pytest.approx(FILES * ROWS, rel=0.05)
    assert known["part"].nulls == 1


@pytest.mark.parametrize("version", [3, 4])
def test_rows_deleted_by_vectors_are_not_counted(spark, demo, facts):
    facts.set_properties({"write.delete.mode": "merge-on-read"})
    facts.delete("id < 100")
    assert estimate(demo).rows == FILES * ROWS - 100


@NEWEST
def test_an_estimate_of_a_table_without_rows_or_bounds_says_what_is_known(spark, demo, version):
    demo.create_namespace("db")
    properties = {"write.metadata.metrics.default": "none"}
    table = demo.create_table("db.facts", schema="id bigint", format_version=version, properties=properties)
    assert estimate(demo, "id") == ScanEstimate(rows=0, size_bytes=0, columns={"id": ColumnEstimate(nulls=0)})
    table.append(pa.table({"id": [1]}))
    assert estimate(demo, "id").columns == {"id": ColumnEstimate()}


@VERSIONS
@pytest.mark.parametrize("where", ["part = 3", f"id < {ROWS}", f"day = date '{dt.date(1970, 1, 4)}'"])
def test_a_table_of_which_filters_leave_few_files_is_broadcast(spark, facts, where):
    query = "SELECT count(*), sum(l.x) FROM demo.db.facts l JOIN demo.db.facts r ON l.name = r.name"
    size = sum(facts.inspect.files()["file_size_in_bytes"].to_pylist())
    with configured(spark, autoBroadcastJoinThreshold=size // 4, adaptive_enabled="false"):
        assert "SortMergeJoin" in plan(spark, query)
        assert "BroadcastHashJoin" in plan(spark, f"{query} WHERE r.{where}")
        assert spark.sql(f"{query} WHERE r.{where}").collect()[0][0] == ROWS


def plan(spark: Any, query: str) -> str:
    return str(spark.sql(query)._jdf.queryExecution().executedPlan().toString())


@NEWEST
def test_joins_are_ordered_by_the_rows_that_filters_leave(spark, demo, facts):
    """Without rows and distinct values Spark joins tables in the order of the query."""
    few = demo.create_table("db.few", schema="id bigint, code bigint", format_version=4)
    few.append(pa.table({"id": range(40), "code": [i % 4 for i in range(40)]}))
    many = demo.create_table("db.many", schema="number bigint, name string", format_version=4)
    many.append(pa.table({"number": range(5000), "name": [f"name {i}" for i in range(5000)]}))
    for table in (facts, few, many):
        table.analyze()
    query = (
        "SELECT f.id, m.number, d.code FROM demo.db.many m JOIN demo.db.facts f ON m.number = f.id"
        " JOIN demo.db.few d ON f.id = d.id"
    )
    reordered = {"cbo_enabled": "true", "cbo_joinReorder_enabled": "true", "adaptive_enabled": "false"}
    with configured(spark, autoBroadcastJoinThreshold=-1, **reordered):
        ordered = plan(spark, query)
        assert len(spark.sql(query).collect()) == 40
    with configured(spark, autoBroadcastJoinThreshold=-1, adaptive_enabled="false"):
        written = plan(spark, query)
    assert scans(written) == ["number", "id", "code"]
    assert sorted(scans(ordered)[:2]) != ["id", "number"]


def scans(text: str) -> list[str]:
    """What tells the scans of a plan apart, in its order: the first of two joins comes first."""
    lines = [line.split("FileScan parquet")[1] for line in text.splitlines() if "FileScan parquet" in line]
    return [next(name for name in ("number", "code", "id") if f"{name}#" in line) for line in lines]
