"""Commits of rows from Spark: schema merges, branches, staged snapshots, transactions, summaries, idempotency keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icefloe
from icefloe.errors import InputError
from icefloe.table.catalog import Catalog
from icefloe.table.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Catalog:
    return icefloe.catalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/wh")


def contents(table: Table, **options: Any) -> list[dict[str, Any]]:
    return sorted(table.scan(**options).to_arrow().to_pylist(), key=lambda row: int(row["id"]))


@pytest.mark.parametrize("version", [2, 4])
def test_columns_that_the_table_lacks_are_added_with_the_rows(spark: SparkSession, lake: Catalog, version: int) -> None:
    table = lake.create_table("db.t", schema="id bigint, s struct<x: int>", format_version=version)
    table.append(pa.table({"id": [1], "s": [{"x": 1}]}))
    frame = spark.sql(
        "SELECT 2L AS ID, named_struct('X', 2, 'y', 'new') AS s, TIMESTAMP_NTZ '2026-01-01 00:00:00' AS at,"
        " array(named_struct('k', 1.5BD)) AS l"
    )
    result = table.append(frame, schema_mode="merge")
    assert (result.rows_added, result.snapshots) == (1, 1)
    assert [str(column.type) for column in table.metadata.schema.fields][2] == "timestamp"
    assert [field.name for field in table.metadata.schema.fields] == ["id", "s", "at", "l"]
    first, second = contents(table)
    assert first == {"id": 1, "s": {"x": 1, "y": None}, "at": None, "l": None}
    assert second["s"] == {"x": 2, "y": "new"}
    assert str(second["l"][0]["k"]) == "1.5"
    assert table.append(frame, schema_mode="merge").rows_added == 1
    assert len(table.metadata.schemas) == 2
    with pytest.raises(InputError, match="no column more"):
        table.append(frame.selectExpr("*", "1 AS more"))


@pytest.mark.parametrize("version", [2, 4])
def test_a_transaction_mixes_operations_of_both_engines(spark: SparkSession, lake: Catalog, version: int) -> None:
    table = lake.create_table("db.t", schema="id bigint, note string", format_version=version)
    with table.transaction() as work:
        work.append(pa.table({"id": [1, 2], "note": ["a", "b"]}))
        work.append(spark.sql("SELECT 3L AS id, 'c' AS note, 1 AS more"), schema_mode="merge")
        work.delete("id = 1", spark=spark)
        work.upsert(spark.sql("SELECT 2L AS id, 'B' AS note, 5 AS more"), on=["id"])
        work.update({"note": "upper(note)"}, where="id = 3")
        work.overwrite(spark.sql("SELECT 9L AS id, 'z' AS note, NULL AS more"), where="id = 9")
    assert contents(table) == [
        {"id": 2, "note": "B", "more": 5},
        {"id": 3, "note": "C", "more": 1},
        {"id": 9, "note": "z", "more": None},
    ]
    assert len(table.metadata.metadata_log) == 1
    assert contents(table) == sorted(
        (row.asDict() for row in table.scan().to_spark(spark).collect()), key=lambda r: r["id"]
    )


def test_branches_and_staged_snapshots_take_rows_of_spark(spark: SparkSession, lake: Catalog) -> None:
    table = lake.create_table("db.t", schema="id bigint")
    table.append(pa.table({"id": [1]}))
    table.append(spark.range(2, 4), branch="audit", create_branch=True)
    table.delete("id = 2", branch="audit", spark=spark)
    assert [row["id"] for row in contents(table)] == [1]
    assert sorted(table.at(branch="audit").scan().to_arrow()["id"].to_pylist()) == [1, 3]
    staged = table.append(spark.range(7, 8), wap_id="tuesday")
    assert [row["id"] for row in contents(table)] == [1]
    table.cherry_pick(staged.snapshot_id)
    assert [row["id"] for row in contents(table)] == [1, 7]


def test_summaries_name_spark_and_the_application(spark: SparkSession, lake: Catalog) -> None:
    table = lake.create_table("db.t", schema="id bigint")
    table.append(spark.range(3))
    expected = {
        "engine-name": "spark",
        "engine-version": spark.version,
        "spark.app.id": spark.sparkContext.applicationId,
    }
    for change in (
        lambda: table.append(spark.range(3)),
        lambda: table.delete("id = 1", spark=spark),
        lambda: table.upsert(spark.range(2, 5), on=["id"]),
    ):
        change()
        head = table.metadata.current_snapshot
        assert head is not None
        assert {key: head.summary.get(key) for key in expected} == expected
    table.append(pa.table({"id": [9]}))
    head = table.metadata.current_snapshot
    assert head is not None
    assert "engine-name" not in head.summary


def test_a_job_that_repeats_itself_commits_once(spark: SparkSession, lake: Catalog) -> None:
    table = lake.create_table("db.t", schema="id bigint")
    first = table.append(spark.range(3), idempotency_key="run 1")
    again = table.append(spark.range(3).selectExpr("raise_error('computed again')"), idempotency_key="run 1")
    assert (again.already_committed, again.snapshot_id) == (True, first.snapshot_id)
    table.upsert(spark.range(2, 5), on=["id"], idempotency_key="run 2")
    assert table.upsert(spark.range(2, 9), on=["id"], idempotency_key="run 2").already_committed
    table.overwrite(spark.range(20, 21), where="id = 0", idempotency_key="run 3")
    assert table.overwrite(spark.range(20, 21), where="id = 0", idempotency_key="run 3").already_committed
    assert [row["id"] for row in contents(table)] == [1, 2, 3, 4, 20]
