"""What other programs write in version 2, read by icefloe; and one catalog file for all of them at once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from interop.test_programs_read_icefloe import ARROW, events, normal

pytestmark = pytest.mark.interop

PYICEBERG_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "ts", TimestamptzType()),
    NestedField(3, "city", StringType()),
    NestedField(4, "amount", DecimalType(9, 2)),
    NestedField(5, "score", DoubleType()),
    NestedField(6, "day", DateType()),
    NestedField(7, "ok", BooleanType()),
)
PYICEBERG_SPEC = PartitionSpec(
    PartitionField(2, 1000, DayTransform(), "ts_day"),
    PartitionField(1, 1001, BucketTransform(4), "id_bucket"),
    PartitionField(3, 1002, IdentityTransform(), "city"),
)
DDL = "id bigint not null, ts timestamp, city string, amount decimal(9,2), score double, day date, ok boolean"


def required_id(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([ARROW.field(0).with_nullable(False), *list(ARROW)[1:]]))


@pytest.fixture
def namespace(catalog):
    if "theirs" not in catalog.list_namespaces():
        catalog.create_namespace("theirs")
    return "theirs"


def check_reads(table, spark, expected: pa.Table) -> None:
    assert normal(table.scan().to_arrow()) == normal(expected)
    assert normal(table.scan().to_spark(spark).toArrow()) == normal(expected)
    for where in ("id >= 12 and id < 17", "city = 'Oslo'", "city is null", "ts < '1970-01-01T00:00:00+00:00'"):
        ours = normal(table.scan(where).to_arrow())
        assert ours == normal(table.scan(where).to_spark(spark).toArrow()), where
        assert set(ours) <= set(normal(expected)), where
        assert len(ours) > 0, where
    assert len(normal(table.scan("id >= 12 and id < 17").to_arrow())) == 5


def test_a_table_that_pyiceberg_wrote(namespace, catalog, pyiceberg, spark):
    theirs = pyiceberg.create_table("theirs.by_pyiceberg", PYICEBERG_SCHEMA, partition_spec=PYICEBERG_SPEC)
    theirs.append(required_id(events(range(40))))
    theirs.append(required_id(events(range(40, 50))))
    theirs.delete("id >= 45")
    check_reads(catalog.load_table("theirs.by_pyiceberg"), spark, events(range(45)))


def test_a_table_that_apache_iceberg_wrote(namespace, catalog, spark):
    spark.sql(
        f"CREATE TABLE lake.theirs.by_iceberg ({DDL}) USING iceberg"
        " PARTITIONED BY (days(ts), bucket(4, id), city) TBLPROPERTIES ('format-version' = '2')"
    )
    spark.createDataFrame(events(range(40))).writeTo("lake.theirs.by_iceberg").append()
    spark.createDataFrame(events(range(40, 50))).writeTo("lake.theirs.by_iceberg").append()
    spark.sql("DELETE FROM lake.theirs.by_iceberg WHERE id >= 45")
    check_reads(catalog.load_table("theirs.by_iceberg"), spark, events(range(45)))


def test_one_catalog_file_serves_three_programs_at_once(catalog, pyiceberg, spark, readers):
    ours = catalog.create_table("db.shared", schema=DDL, partition_by=["day(ts)"], format_version=2)
    for turn in range(3):
        start = turn * 30
        ours.append(events(range(start, start + 10)))
        pyiceberg.load_table("db.shared").append(required_id(events(range(start + 10, start + 20))))
        spark.createDataFrame(events(range(start + 20, start + 30))).writeTo("lake.db.shared").append()
    expected = events(range(90))
    assert normal(ours.refresh().scan().to_arrow()) == normal(expected)
    for name, read in readers.items():
        assert normal(read(ours)) == normal(expected), name
    ours.delete("id < 30")
    spark.sql("DELETE FROM lake.db.shared WHERE id >= 60")
    assert normal(ours.refresh().scan().to_arrow()) == normal(events(range(30, 60)))
    for name, read in readers.items():
        assert normal(read(ours)) == normal(events(range(30, 60))), name
    names = {name for _, name in pyiceberg.list_tables("db")}
    assert {f"db.{name}" for name in names} == set(catalog.list_tables("db"))
    assert names == {row.tableName for row in spark.sql("SHOW TABLES IN lake.db").collect()}


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_deletes_that_apache_iceberg_wrote(granularity, namespace, catalog, spark):
    name = f"theirs.merge_on_read_{granularity}"
    spark.sql(
        f"CREATE TABLE lake.{name} (id bigint) USING iceberg TBLPROPERTIES ('format-version' = '2',"
        f" 'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = '{granularity}')"
    )
    for start in (0, 100):
        spark.range(start, start + 100).repartition(1).writeTo(f"lake.{name}").append()
    spark.sql(f"DELETE FROM lake.{name} WHERE id IN (7, 150)")
    table = catalog.load_table(name)
    assert table.scan().plan().deletes.num_rows > 0
    expected = [i for i in range(200) if i not in (7, 150)]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    assert sorted(table.scan().to_spark(spark).toArrow()["id"].to_pylist()) == expected
    assert table.scan().count() == 198


def test_deletion_vectors_that_apache_iceberg_wrote_in_version_3(namespace, catalog, spark):
    spark.sql(
        f"CREATE TABLE lake.theirs.vectors ({DDL}) USING iceberg PARTITIONED BY (days(ts), bucket(4, id), city)"
        " TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.createDataFrame(events(range(60))).coalesce(1).writeTo("lake.theirs.vectors").append()
    spark.sql("DELETE FROM lake.theirs.vectors WHERE id >= 45 OR id = 3")
    table = catalog.load_table("theirs.vectors")
    assert table.scan().plan().tasks["dv_cardinality"].null_count < table.scan().plan().files
    expected = pa.concat_tables([events(range(3)), events(range(4, 45))])
    assert normal(table.scan().to_arrow()) == normal(expected)
    assert normal(table.scan().to_spark(spark).toArrow()) == normal(expected)
