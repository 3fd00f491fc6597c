"""The whole way: a table in a catalog, written, read and changed by Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from icefloe.engines.spark.engine import SparkEngine
from icefloe.engines.work import TableFiles
from icefloe.errors import InputError
from icefloe.io.local import LocalFileIO
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field
from spark.fakes import metadata_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", [2, 4])
def test_a_table_is_written_read_and_changed(spark: SparkSession, tmp_path: Path, version: int) -> None:
    catalog = icefloe.catalog("test", uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        schema="id bigint not null, day timestamp, note string",
        partition_by=["day(day)"],
        format_version=version,
    )
    assert table.scan().to_spark(spark).count() == 0
    stamp = F.expr("timestamp_micros(id * 3600000000)")
    table.append(spark.range(100).select("id", stamp.alias("day"), F.lit("old").alias("note")))
    rows = table.scan("id >= 10", columns=["note", "id"]).to_spark(spark)
    assert rows.columns == ["note", "id"]
    assert rows.where("id < 20").agg(F.sum("id")).collect() == [(145,)]
    table.delete("id IN (3, 4, 50)", spark=spark)
    table.upsert(spark.sql("SELECT 5L id, NULL day, 'new' note UNION ALL SELECT 200L, NULL, 'new'"), on=["id"])
    expected = sorted([(i, "old") for i in range(100) if i not in (3, 4, 5, 50)] + [(5, "new"), (200, "new")])
    assert sorted(map(tuple, table.scan().to_spark(spark).select("id", "note").collect())) == expected
    assert sorted((row["id"], row["note"]) for row in table.scan().to_arrow().to_pylist()) == expected
    first = table.snapshots[0].snapshot_id
    assert table.at(snapshot=first).scan().to_spark(spark).count() == 100


def test_rows_that_are_no_dataframe_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    metadata = metadata_of(tmp_path, Schema(fields=(Field(1, "id", LONG),)))
    with pytest.raises(InputError, match="expected a Spark DataFrame, got Table"):
        SparkEngine(spark).write(TableFiles(io=LocalFileIO(), metadata=metadata), pa.table({"id": [1]}))
