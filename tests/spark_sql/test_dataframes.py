"""Writes and lists through the DataFrame API: ``writeTo``, ``saveAsTable``, ``insertInto``, ``spark.catalog``."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe

TABLE = "demo.db.t"


def ids(spark: SparkSession) -> list[int]:
    return sorted(row.id for row in spark.table(TABLE).collect())


def test_write_to_creates_appends_and_overwrites(spark: SparkSession, demo: icefloe.Catalog) -> None:
    rows = spark.range(3).withColumn("note", F.lit("a"))
    rows.writeTo(TABLE).using("icefloe").partitionedBy(F.partitioning.bucket(2, "id")).create()
    assert [field.transform for field in demo.load_table("db.t").spec.fields] == ["bucket[2]"]
    rows.where("id = 0").writeTo(TABLE).append()
    assert ids(spark) == [0, 0, 1, 2]
    rows.where("id = 2").writeTo(TABLE).overwrite((F.col("ID") < 1) | F.col("note").isNull())
    assert ids(spark) == [1, 2, 2]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        rows.writeTo(TABLE).create()


def test_save_as_table_and_insert_into_write_rows(spark: SparkSession, demo: icefloe.Catalog) -> None:
    spark.range(2).write.saveAsTable(TABLE)
    spark.range(2, 3).write.mode("append").saveAsTable(TABLE)
    spark.range(3, 4).write.insertInto(TABLE)
    assert ids(spark) == [0, 1, 2, 3]
    spark.range(7, 8).write.insertInto(TABLE, overwrite=True)
    assert ids(spark) == [7]


def test_the_catalog_of_the_session_lists_tables_and_columns(spark: SparkSession, demo: icefloe.Catalog) -> None:
    demo.create_table("db.t", schema="id bigint not null, note string")
    assert [table.name for table in spark.catalog.listTables("demo.db")] == ["t"]
    assert spark.catalog.tableExists(TABLE)
    assert not spark.catalog.tableExists("demo.db.other")
    assert [(column.name, column.nullable) for column in spark.catalog.listColumns(TABLE)] == [
        ("id", False),
        ("note", True),
    ]
