"""Tables whose columns Spark's Parquet reader does not find: it looks types up by the names in files.

Random histories of rows met all of these: names that two columns exchanged failed with a type mismatch.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from icefloe.table.table import Table
from support.tables import new_catalog


def same_on_both_engines(table: Table, spark: SparkSession, *, by_tasks: bool = True) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.scan().to_arrow().to_pylist()
    assert table.scan().to_spark(spark).toArrow().to_pylist() == rows
    assert ("by tasks in Python" in table.scan().explain()) == by_tasks
    return rows


def test_two_columns_that_exchanged_their_names_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n double, d decimal(9,2)")
    table.append(pa.table({"id": [1], "n": [1.5], "d": pa.array([2], pa.decimal128(9, 2))}))
    with table.update_schema() as edit:
        edit.rename_column("n", "aside")
        edit.rename_column("d", "n")
        edit.rename_column("aside", "d")
    assert same_on_both_engines(table, spark) == [{"id": 1, "d": 1.5, "n": Decimal("2.00")}]
    assert table.delete("d > 1 and n = 2", spark=spark).rows_deleted == 1


def test_fields_of_structs_in_lists_that_exchanged_their_names_are_read(spark: SparkSession, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, l array<struct<p: float, q: date>>")
    type_ = pa.list_(pa.struct([("p", pa.float32()), ("q", pa.date32())]))
    table.append(pa.table({"id": [1], "l": pa.array([[{"p": 1.5, "q": dt.date(2026, 1, 1)}]], type_)}))
    with table.update_schema() as edit:
        edit.rename_column("l.element.p", "aside")
        edit.rename_column("l.element.q", "p")
        edit.rename_column("l.element.aside", "q")
    assert same_on_both_engines(table, spark)[0]["l"] == [{"q": 1.5, "p": dt.date(2026, 1, 1)}]


def test_a_column_that_was_renamed_and_widened_is_read(spark: SparkSession, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n int")
    table.append(pa.table({"id": [1], "n": pa.array([7], pa.int32())}))
    with table.update_schema() as edit:
        edit.rename_column("n", "m")
    same_on_both_engines(table, spark, by_tasks=False)
    with table.update_schema() as edit:
        edit.update_column("m", type="bigint")
    assert same_on_both_engines(table, spark) == [{"id": 1, "m": 7}]


def test_an_initial_default_inside_a_struct_is_applied(spark: SparkSession, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, s struct<a: int>", format_version=3)
    table.append(pa.table({"id": [1], "s": pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))}))
    with table.update_schema() as edit:
        edit.add_column("s.b", "int", default=5)
    assert same_on_both_engines(table, spark) == [{"id": 1, "s": {"a": 1, "b": 5}}]
