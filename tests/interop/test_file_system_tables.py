"""File-system tables: icefloe and Apache Iceberg's Hadoop tables take turns in one folder."""

from __future__ import annotations

import pyarrow as pa
import pytest

import icefloe

pytestmark = pytest.mark.interop


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": pa.array([f"n{i}" for i in ids])})


def hadoop_table(spark, location: str):
    """The table as Apache Iceberg opens it by its path."""
    jvm = spark.sparkContext._jvm
    return jvm.org.apache.iceberg.hadoop.HadoopTables(spark.sparkContext._jsc.hadoopConfiguration()).load(location)


def by_iceberg(spark, location: str) -> list[tuple[int, str]]:
    return sorted(tuple(row) for row in spark.read.format("iceberg").load(location).collect())


@pytest.mark.parametrize(("version", "codec"), [(1, "none"), (2, "none"), (3, "none"), (2, "gzip")])
def test_a_table_of_icefloe_is_read_and_written_by_hadoop_tables_in_turns(version, codec, tmp_path, spark):
    lake = icefloe.catalog("files", type="files", warehouse=f"file://{tmp_path}")
    lake.create_namespace("db")
    properties = {"write.metadata.compression-codec": codec}
    table = lake.create_table("db.t", schema="id bigint, note string", format_version=version, properties=properties)
    table.append(rows(1, 2))
    location = table.location
    assert by_iceberg(spark, location) == [(1, "n1"), (2, "n2")]

    spark.createDataFrame([(3, "n3")], "id bigint, note string").write.format("iceberg").mode("append").save(location)
    table = lake.load_table("db.t")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]

    table.append(rows(4))
    hadoop_table(spark, location).updateProperties().set("owner", "both").commit()
    table = lake.load_table("db.t")
    assert table.properties["owner"] == "both"
    table.append(rows(5))
    assert by_iceberg(spark, location) == [(n, f"n{n}") for n in range(1, 6)]
    assert (".gz." in table.metadata_location) == (codec == "gzip")
    assert sorted(icefloe.open_table(location).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5]


def test_a_hadoop_table_of_apache_iceberg_is_read_and_written_by_icefloe(tmp_path, spark):
    location = f"file://{tmp_path}/db/made"
    jvm = spark.sparkContext._jvm
    text = '{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}'
    tables = jvm.org.apache.iceberg.hadoop.HadoopTables(spark.sparkContext._jsc.hadoopConfiguration())
    tables.create(jvm.org.apache.iceberg.SchemaParser.fromJson(text), location)
    spark.range(3).write.format("iceberg").mode("append").save(location)

    table = icefloe.catalog("files", type="files", warehouse=f"file://{tmp_path}").load_table("db.made")
    table.append(pa.table({"id": pa.array([7], pa.int64())}))
    spark.createDataFrame([(8,)], "id bigint").write.format("iceberg").mode("append").save(location)
    assert sorted(r[0] for r in spark.read.format("iceberg").load(location).collect()) == [0, 1, 2, 7, 8]
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 7, 8]
