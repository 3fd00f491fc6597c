"""Catalogs are attached to sessions, replaced and detached."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefloe
from icefloe.errors import InputError, UnsupportedError
from icefloe.spark_sql.kept import Kept
from spark_sql.many_statements import statements


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


def test_statements_leave_no_threads_and_no_sockets_behind(
    spark: SparkSession, demo: icefloe.Catalog, tmp_path: Path
) -> None:
    """In the JVM, adaptive plans and streams call the catalog from threads that are always new."""
    work = statements(spark, f"{tmp_path}/work", "icefloe")
    held = []
    for _ in range(2):
        for _ in range(10):
            next(work)()
        held.append((threading.active_count(), len(os.listdir("/proc/self/fd"))))
    assert held[1] <= held[0]


def test_names_that_spark_cannot_use_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("", "a.b", "spark_catalog"):
        with pytest.raises(InputError, match="cannot be called"):
            icefloe.attach(spark, name, other(tmp_path))
    with pytest.raises(InputError, match="no catalog 'absent' is attached"):
        icefloe.detach(spark, "absent")


def test_spark_connect_is_refused_by_name(tmp_path: Path) -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        icefloe.attach(remote(), "demo", other(tmp_path))


def test_threads_and_cloned_sessions_use_the_catalog(spark: SparkSession, demo: icefloe.Catalog) -> None:
    demo.create_table("db.t", schema="id bigint").append(pa.table({"id": [1, 2, 3]}))
    with ThreadPoolExecutor(4) as pool:
        counts = pool.map(lambda low: spark.table("demo.db.t").where(f"id > {low}").count(), range(4))
    assert list(counts) == [3, 2, 1, 0]
    clone = SparkSession(spark.sparkContext, jsparkSession=spark._jsparkSession.cloneSession())
    clone.sql("INSERT INTO demo.db.t VALUES (4)")
    assert clone.table("demo.db.t").count() == 4
    assert spark.table("demo.db.t").count() == 4


def test_a_dataframe_stays_at_its_snapshot_and_is_loaded_again_when_it_is_not_kept(
    spark: SparkSession, demo: icefloe.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = demo.create_table("db.t", schema="id bigint")
    table.append(pa.table({"id": [1]}))
    before = spark.table("demo.db.t")
    for number in range(2):
        table.append(pa.table({"id": [number]}))
        with table.update_schema() as edit:
            edit.add_column(f"c{number}", "int")
    monkeypatch.setattr(Kept, "get", lambda kept, key: None)
    assert [tuple(row) for row in before.collect()] == [(1,)]
    monkeypatch.undo()
    assert spark.table("demo.db.t").count() == 3


def test_filters_of_a_query_prune_files(spark: SparkSession, demo: icefloe.Catalog) -> None:
    table = demo.create_table("db.t", schema="id bigint, s struct<a: int, b: int>", partition_by=["id"])
    table.append(pa.table({"id": [1, 2, 3], "s": [{"a": 1, "b": 2}] * 3}))
    query = spark.sql("SELECT s.a FROM demo.db.t WHERE id = 2")
    assert [tuple(row) for row in query.collect()] == [(1,)]
    plan = query._jdf.queryExecution().executedPlan()
    assert "s:struct<a:int>" in plan.toString().lower()
    assert plan.collectLeaves().head().metrics().apply("numFiles").value() == 1
