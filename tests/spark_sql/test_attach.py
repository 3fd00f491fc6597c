"""Catalogs are attached to sessions, replaced and detached."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefloe
from icefloe.errors import InputError, UnsupportedError


def other(folder: Path) -> icefloe.Catalog:
    return icefloe.catalog("other", uri=f"sqlite:///{folder}/other.db", warehouse=f"file://{folder}/other")


def test_a_second_catalog_has_its_own_tables(spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path) -> None:
    icefloe.attach(spark, "other", other(tmp_path))
    demo.create_table("db.t", schema="id bigint")
    spark.sql("INSERT INTO demo.db.t VALUES (1)")
    spark.sql("CREATE TABLE other.db.t AS SELECT id + 1 AS id FROM demo.db.t")
    query = "SELECT a.id, b.id FROM demo.db.t a CROSS JOIN other.db.t b"
    assert [tuple(row) for row in spark.sql(query).collect()] == [(1, 2)]
    icefloe.detach(spark, "other")
    with pytest.raises(PySparkException, match="not attached"):
        spark.sql("SELECT * FROM other.db.t").collect()


def test_attaching_again_replaces_the_catalog(spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path) -> None:
    demo.create_table("db.t", schema="id bigint")
    assert spark.table("demo.db.t").count() == 0
    icefloe.attach(spark, "demo", other(tmp_path))
    assert not spark.catalog.tableExists("demo.db.t")


def test_a_new_session_is_attached_by_itself(spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path) -> None:
    demo.create_table("db.t", schema="id bigint")
    second = spark.newSession()
    icefloe.attach(second, "demo", other(tmp_path))
    second.sql("CREATE TABLE demo.db.u (id bigint)")
    assert [table.name for table in second.catalog.listTables("demo.db")] == ["u"]
    assert [table.name for table in spark.catalog.listTables("demo.db")] == ["t"]


def test_names_that_spark_cannot_use_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("", "a.b", "spark_catalog"):
        with pytest.raises(InputError, match="cannot be called"):
            icefloe.attach(spark, name, other(tmp_path))
    with pytest.raises(InputError, match="no catalog 'absent' is attached"):
        icefloe.detach(spark, "absent")


def test_spark_connect_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        icefloe.attach(object(), "demo", other(tmp_path))
