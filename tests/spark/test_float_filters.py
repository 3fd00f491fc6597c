"""Filters on float columns give the rows of SQL: -0.0 equals 0.0, and NaN is greater than every number."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.read.read import dataframe
from icefloe.model.arrow.arrow_types import arrow_schema
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, LONG, Field, Struct
from icefloe.table.table import Table
from spark.fakes import Files
from support.tables import new_catalog

pytestmark = pytest.mark.spark
NAN, INF = float("nan"), float("inf")
FILES = (
    [-0.0] * 20,
    [0.0] * 20,
    [1.0, NAN] * 10,
    [-1.0, -INF, None] * 5,
    [5.0, INF, NAN, -0.0] * 5,
)
VALUES = [value for file in FILES for value in file]
CONDITIONS = {
    "{} = 0.0D": lambda x: x == 0,
    "{} = -0.0D": lambda x: x == 0,
    "{} <=> 0.0D": lambda x: x == 0,
    "{} in (0.0D, 1.0D)": lambda x: x in (0, 1),
    "{} in (0.0D, 7.0D, 8.0D, 9.0D, 10.0D, 11.0D, 12.0D, 13.0D, 14.0D, 15.0D, 16.0D, 17.0D)": lambda x: x == 0,
    "{} >= 0.0D": lambda x: x >= 0 or x != x,
    "{} > -0.0D": lambda x: x > 0 or x != x,
    "{} <= -0.0D": lambda x: x <= 0,
    "{} < 0.0D": lambda x: x < 0,
    "{} != 0.0D": lambda x: x != 0,
    "{} > 2.0D": lambda x: x > 2 or x != x,
    "{} not in (0.0D, 1.0D)": lambda x: x not in (0, 1),
    "isnan({})": lambda x: x != x,
    "not isnan({}) and {} is not null": lambda x: x == x,
    "{} = double('NaN')": lambda x: x != x,
    "{} < double('NaN')": lambda x: x == x,
    "({} = 0.0D or id = 60)": lambda x: x == 0,
}
COLUMNS = ("x", "`s`.`odd.name`", "y", "s.x")
IN_SCANS = ("{} = 0.0D", "{} in (0.0D, 1.0D)", "{} >= 0.0D", "{} > 2.0D")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of files that another program wrote: with dictionaries, and with bounds that omit NaN."""
    schema = "id bigint, x double, y float, s struct<x: double, `odd.name`: double>"
    made = new_catalog(tmp_path).create_table("db.t", schema=schema)
    start = 0
    for number, values in enumerate(FILES):
        rows = {
            "id": range(start, start + len(values)),
            "x": values,
            "y": values,
            "s": [{"x": value, "odd.name": value} for value in values],
        }
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table(rows, arrow_schema(made.schema)), path, store_schema=False, write_page_index=True)
        made.add_files(str(path))
        start += len(values)
    return made


def expected(condition: str) -> list[int]:
    matches = CONDITIONS[condition]
    own = [id_ for id_, value in enumerate(VALUES) if value is not None and matches(value)]
    return sorted({*own, 60}) if "id = 60" in condition else own


def all_ids(frames: dict[str, DataFrame]) -> dict[str, list[int]]:
    """The ids of each frame, read in one job."""
    whole = None
    for label, frame in frames.items():
        part = frame.selectExpr("id", f"'{label}' label".replace("('NaN')", "(NaN)"))
        whole = part if whole is None else whole.union(part)
    assert whole is not None
    found: dict[str, list[int]] = {label: [] for label in frames}
    for id_, label in whole.collect():
        found[label.replace("(NaN)", "('NaN')")].append(id_)
    return {label: sorted(ids) for label, ids in found.items()}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_filter_on_a_float_finds_zeros_of_both_signs_and_nan(spark: SparkSession, table: Table, column: str) -> None:
    texts = {condition: condition.format(column, column) for condition in CONDITIONS}
    ids = {condition: expected(condition) for condition in CONDITIONS}
    later = {condition: table.scan().to_spark(spark).where(text) for condition, text in texts.items()}
    assert all_ids(later) == ids
    scans = {condition: table.scan(texts[condition]).to_spark(spark) for condition in IN_SCANS}
    assert all_ids(scans) == {condition: ids[condition] for condition in IN_SCANS}
    for condition, text in texts.items():
        if "double('NaN')" not in text:
            assert sorted(table.scan(text).to_arrow()["id"].to_pylist()) == ids[condition]


def test_row_groups_are_still_skipped_by_filters_on_other_columns(spark: SparkSession, files: Files) -> None:
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "x", DOUBLE), Field(3, "s", Struct((Field(4, "n", LONG),)))))
    rows = {"id": range(10_000), "x": [n / 2 for n in range(10_000)], "s": [{"n": n} for n in range(10_000)]}
    files.add("a.parquet", pa.table(rows, arrow_schema(schema)), schema, row_group_size=500)
    files.ranges.clear()
    frame = dataframe(spark, replace(files.source(schema), stable_names=True))

    def rows_read(condition: str) -> int:
        filtered = frame.where(condition)
        assert len(filtered.collect()) == 1
        leaf = filtered._jdf.queryExecution().executedPlan().collectLeaves().head()
        return int(leaf.metrics().apply("numOutputRows").value())

    assert rows_read("x = 7.5") == 10_000
    assert rows_read("x = 7.5 and id < 100") <= 500
    assert rows_read("x = 7.5 and s.n < 100") <= 500
    assert rows_read("(x is null or id = 9999) and x is not null") <= 500


_ON_A_CLUSTER = """
import sys
from pyspark.sql import SparkSession
from icefloe.table.open import open_table
spark = (SparkSession.builder.master("local-cluster[1, 1, 1024]").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate())
frame = open_table(sys.argv[1]).scan().to_spark(spark)
print("found", frame.where("x = 0.0D and s.x >= 0D").count(), frame.groupBy("x").count().count())
spark.stop()
"""


def test_executors_of_their_own_need_no_class_of_this_library(table: Table) -> None:
    command = [sys.executable, "-c", _ON_A_CLUSTER, table.metadata_location]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert "found 45 8" in done.stdout, done.stderr[-2000:]
