"""Expressions of a write are evaluated, whatever their type: one that raises stops the write.

Columns of type void were replaced by nulls, so `raise_error` and `assert_true` did not raise, and rows that should have
failed were committed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icefloe.table.table import Table
from support.tables import new_catalog

pytestmark = pytest.mark.spark
ROWS = "select id, {} city, 1L seq, struct({} as a) s from range(3)"
SCHEMA = "id bigint, city string, seq bigint, s struct<a: int>"
BOOM = "raise_error('boom')"

WRITES: dict[str, Callable[[Table, DataFrame], Any]] = {
    "append": lambda table, rows: table.append(rows),
    "append of a struct": lambda table, rows: table.append(rows.drop("city")),
    "append that merges the schema": lambda table, rows: table.append(rows, schema_mode="merge"),
    "overwrite": lambda table, rows: table.overwrite(rows, where="id < 2"),
    "overwrite of partitions": lambda table, rows: table.overwrite_partitions(rows),
    "upsert": lambda table, rows: table.upsert(rows, on=["id"]),
    "update": lambda table, rows: table.update({"city": BOOM}, where="id = 1", spark=rows.sparkSession),
    "merge of all columns": lambda table, rows: (
        table.merge(rows, on=["id"]).when_matched_update_all().when_not_matched_insert_all().execute()
    ),
    "merge with values": lambda table, rows: (
        table.merge(rows.select("id"), on="t.id = s.id").when_matched_update({"city": BOOM}).execute()
    ),
    "change data": lambda table, rows: table.apply_changes(rows, keys=["id"], sequence_by="seq"),
}


def _named(name: str, write: Callable[[Table, DataFrame], Any], table: Table, rows: DataFrame) -> None:
    write(table, rows)
    pytest.fail(f"{name}: the expression was not evaluated")


@pytest.mark.slow
def test_an_expression_of_type_void_is_evaluated_by_every_write(spark: SparkSession, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema=SCHEMA)
    table.append(spark.sql("select id, 'Oslo' city, 0L seq, struct(1 as a) s from range(3)"))
    before = [snapshot.snapshot_id for snapshot in table.snapshots]
    for name, write in WRITES.items():
        rows = spark.sql(ROWS.format(BOOM, BOOM))
        with pytest.raises(PySparkException, match="boom"):
            _named(name, write, table, rows)
    assert [snapshot.snapshot_id for snapshot in table.refresh().snapshots] == before


def test_it_is_evaluated_by_tasks_that_write_with_arrow_in_columns_without_a_type_and_in_new_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    catalog, rows = new_catalog(tmp_path), spark.sql(ROWS.format("assert_true(id < 2, 'boom')", "null"))
    avro = catalog.create_table("db.a", schema=SCHEMA, properties={"write.format.default": "avro"})
    untyped = catalog.create_table("db.u", schema="id bigint, city unknown", format_version=3)
    writes: list[Callable[[], object]] = [
        lambda: avro.append(rows),
        lambda: untyped.append(rows.select("id", "city")),
        lambda: catalog.create_table("db.n", schema="city string", data=rows.select("city")),
    ]
    for write in writes:
        with pytest.raises(PySparkException, match="boom"):
            write()
    assert len(avro.snapshots) + len(untyped.snapshots) == 0
    assert not catalog.table_exists("db.n")
