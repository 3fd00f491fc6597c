"""Statistics of icefloe and of Apache Iceberg on the same tables: each reads what the other writes."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefloe.codecs.parquet.partition_statistics import COUNTS
from icefloe.codecs.puffin.statistics_file import distinct_values
from icefloe.codecs.puffin.theta_sketch import ThetaSketch, decode_sketch
from icefloe.table.catalog import Catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from interop.iceberg_reads import CATALOG
from support.people import MERGE, SCHEMA, people
from support.statistics_files import decode_statistics

pytestmark = pytest.mark.interop

THETA = "apache-datasketches-theta-v1"
MODES = {f"write.{verb}.mode": MERGE for verb in ("delete", "update", "merge")}
TYPES = (
    "id bigint, n int, x double, y float, price decimal(20,3), at timestamp, local timestamp_ntz, day date, ok boolean,"
    " raw binary, city string, u uuid, f fixed(3), place struct<street: string, `a.b`: int>"
)
MANY = 20_000


def typed_rows(count: int) -> pa.Table:
    """Rows with nulls, empty and long texts, both zeros and NaN, and decimals of one to nine bytes."""
    start = dt.datetime(2026, 11, 17, 9, 30, tzinfo=dt.UTC)
    floats = [0.0, -0.0, float("nan"), float("-inf"), 1.5]
    cities = ["Oslo", "", None, "São Paulo", "x" * 2000]
    uuids = [uuid.UUID(int=i % 7 + 2**100).bytes for i in range(count)]
    columns = {
        "id": pa.array([None if i % 10 == 9 else i - 3 for i in range(count)], pa.int64()),
        "n": pa.array([i % 9 - 4 for i in range(count)], pa.int32()),
        "x": pa.array([floats[i % 5] for i in range(count)], pa.float64()),
        "y": pa.array([floats[i % 5] for i in range(count)], pa.float32()),
        "price": pa.array([Decimal((-200) ** (i % 8)) / 8 for i in range(count)], pa.decimal128(20, 3)),
        "at": pa.array([start + dt.timedelta(microseconds=i % 11) for i in range(count)], pa.timestamp("us", "UTC")),
        "local": pa.array([start.replace(tzinfo=None, year=1900 + i % 120) for i in range(count)], pa.timestamp("us")),
        "day": pa.array([dt.date(1960, 1, 1 + i % 13) for i in range(count)], pa.date32()),
        "ok": pa.array([(True, False, None)[i % 3] for i in range(count)], pa.bool_()),
        "raw": pa.array([bytes(range(i % 40)) for i in range(count)], pa.binary()),
        "city": pa.array([cities[i % 5] for i in range(count)], pa.string()),
        "u": pa.array(uuids, pa.binary(16)),
        "f": pa.array([bytes([i % 5, 0, 255]) for i in range(count)], pa.binary(3)),
        "place": pa.array(
            [None if i % 4 == 0 else {"street": f"s{i % 17}", "a.b": i % 19} for i in range(count)],
            pa.struct([("street", pa.string()), ("a.b", pa.int32())]),
        ),
    }
    return pa.table(columns)


def java_table(spark: SparkSession, table: Table) -> Any:
    """The table as Apache Iceberg's Java library has it."""
    loaded = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        spark._jsparkSession, f"{CATALOG}.{table.name}"
    )
    loaded.refresh()
    return loaded


def call(spark: SparkSession, procedure: str, table: Table) -> str:
    (row,) = spark.sql(f"CALL {CATALOG}.system.{procedure}(table => '{table.name}')").collect()
    return str(row[0])


def estimates_of_java(spark: SparkSession, table: Table) -> dict[int, tuple[int, str]]:
    """By column: the estimate of Apache DataSketches for each blob that PuffinReader finds, and the property ndv."""
    java, jvm = java_table(spark, table), spark._jvm
    (file,) = java.statisticsFiles()
    assert file.snapshotId() == table.metadata.current_snapshot_id
    source = java.io().newInputFile(file.path())
    reader = jvm.org.apache.iceberg.puffin.Puffin.read(source).withFooterSize(file.fileFooterSizeInBytes()).build()
    blobs = reader.fileMetadata().blobs()
    found = {}
    library = jvm.org.apache.iceberg.shaded.org.apache.datasketches
    pairs = reader.readAll(blobs).iterator()
    while pairs.hasNext():
        pair = pairs.next()
        blob, data = pair.first(), pair.second()
        (column,) = blob.inputFields()
        assert (blob.type(), blob.snapshotId()) == (THETA, file.snapshotId())
        little = jvm.java.nio.ByteOrder.LITTLE_ENDIAN
        sketch = library.theta.Sketches.wrapSketch(library.memory.Memory.wrap(data, little))
        found[column] = (int(sketch.getEstimate()), blob.properties()["ndv"])
    listed = {blob.fields()[0]: blob.properties()["ndv"] for blob in file.blobMetadata()}
    assert listed == {column: ndv for column, (_, ndv) in found.items()}
    return found


def sketches(table: Table) -> dict[int, ThetaSketch]:
    (entry,) = table.refresh().metadata.statistics
    blobs = decode_statistics(pointer_of(table).io.read(entry.statistics_path), entry)
    return {blob.fields[0]: decode_sketch(blob.data, where=entry.statistics_path) for blob in blobs}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_distinct_values_are_those_of_apache_iceberg(version: int, catalog: Catalog, spark: SparkSession) -> None:
    table = catalog.create_table(f"db.analyzed_{version}", schema=TYPES, format_version=version)
    table.append(typed_rows(300))
    table.append(typed_rows(40))
    theirs_file = call(spark, "compute_table_stats", table)
    theirs, their_numbers = sketches(table), distinct_values(table.metadata.statistics[0])
    assert table.metadata.statistics[0].statistics_path == theirs_file

    result = table.analyze()
    ours = sketches(table)
    assert distinct_values(table.metadata.statistics[0]) == their_numbers
    assert set(ours) == set(theirs) == {field.id for field in table.schema.fields[:-1]}
    for id_, sketch in ours.items():
        if table.schema.by_id[id_].name != "u":  # a uuid is a text to Spark, so its hash is another one there
            np.testing.assert_array_equal(sketch.hashes, theirs[id_].hashes, table.schema.by_id[id_].name)
    read = estimates_of_java(spark, table)
    expected = {table.schema.field(name).id: (count, str(count)) for name, count in result.distinct_values.items()}
    assert read == expected
    assert table.analyze(spark=spark).distinct_values == result.distinct_values
    assert estimates_of_java(spark, table) == expected
    assert table.verify(files=True).ok


def test_estimates_of_many_values_are_near_those_of_apache_iceberg(catalog: Catalog, spark: SparkSession) -> None:
    table = catalog.create_table("db.analyzed_many", schema="id bigint, name string")
    ids = pa.array(range(MANY), pa.int64())
    table.append(pa.table({"id": ids, "name": [str(i) for i in range(MANY)]}))
    call(spark, "compute_table_stats", table)
    theirs = distinct_values(table.refresh().metadata.statistics[0])
    result = table.analyze()
    read = estimates_of_java(spark, table)
    for name, count in result.distinct_values.items():
        id_ = table.schema.field(name).id
        assert read[id_] == (count, str(count))
        assert count == pytest.approx(MANY, rel=0.05)
        assert count == pytest.approx(theirs[id_], rel=0.05)


def partitioned(catalog: Catalog, version: int, name: str) -> Table:
    """Two partition specs, data files that were removed, and deletes of every kind that the version has."""
    table = catalog.create_table(
        f"db.{name}_{version}", schema=SCHEMA, partition_by=["city"], format_version=version, properties=MODES
    )
    table.append(people(1, 2, 3, 4, city="Oslo"))
    table.append(people(5, 6, 7, city="Rome"))
    table.append(people(8, 9, city=None))
    table.append(people(10, 11, city="Bern"))
    table.delete("id in (1, 5)")
    table.delete("id in (10, 11)")
    with table.update_partitioning() as edit:
        edit.add("truncate(10, id)", name="tens")
    table.append(people(20, 21, 35, city="Oslo"))
    if version == 2:
        table.upsert(people(2, 40, amount=9, city="Oslo"), on=["id", "city"], deletes="equality")
    return table


def rows_of_java(spark: SparkSession, table: Table) -> Iterator[tuple[object, ...]]:
    """The rows that Apache Iceberg reads of the partition statistics file of the current snapshot."""
    java = java_table(spark, table)
    found = java.newPartitionStatisticsScan().useSnapshot(table.metadata.current_snapshot_id).scan().iterator()
    jvm = spark._jvm
    kind = jvm.java.lang.Class.forName("java.lang.Object")
    names = [name for name in COUNTS if name != "dv_count" or table.format_version > 2]
    while found.hasNext():
        row = found.next()
        partition = row.partition()
        values = tuple(partition.get(i, kind) for i in range(partition.size()))
        yield (*values, *(row.get(position, kind) for position in range(1, len(names) + 1)))


def in_comparable_order(rows: Iterator[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_partition_statistics_are_those_of_apache_iceberg(version: int, catalog: Catalog, spark: SparkSession) -> None:
    table = partitioned(catalog, version, "totals")
    call(spark, "compute_partition_stats", table)
    table.refresh()
    files = 2 + list(COUNTS).index("data_file_count")
    # A partition without files has a row of zeros there, and none here.
    theirs = in_comparable_order(row for row in rows_of_java(spark, table) if row[files] != 0)
    result = table.analyze_partitions()
    ours = list(rows_of_java(spark, table))
    assert in_comparable_order(iter(ours)) == theirs
    cities = [row[0] for row in ours]
    assert cities == sorted(cities, key=lambda city: (city is not None, str(city)))
    assert set(cities) == {None, "Oslo", "Rome"}
    assert result.partitions == len(ours) > 3
    assert table.verify(files=True).ok
    # Apache Iceberg continues from our file: it adds what changed since then.
    table.append(people(50, city="Rome"))
    call(spark, "compute_partition_stats", table)
    continued = in_comparable_order(row for row in rows_of_java(spark, table.refresh()) if row[files] != 0)
    table.analyze_partitions()
    assert in_comparable_order(rows_of_java(spark, table)) == continued
