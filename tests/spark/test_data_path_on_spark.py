"""The property ``write.data.path`` on Spark: files are written there and read back by both engines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefloe.testing.check import check_table
from support.tables import new_catalog

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("schema", "query"),
    [
        ("id bigint, note string", "SELECT id, 'a' note FROM range(4)"),
        ("id bigint, notes array<string>", "SELECT id, array('a') notes FROM range(4)"),  # written in Python tasks
    ],
)
def test_files_written_by_spark_under_the_data_path_are_read_back(
    spark: SparkSession, tmp_path: Path, schema: str, query: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    table = new_catalog(tmp_path).create_table(
        "db.t", schema, format_version=4, properties={"write.data.path": f"file://{elsewhere}"}
    )
    table.append(spark.sql(query))
    table.append(pa.table({"id": pa.array([10, 11], pa.int64())}))
    table.delete("id IN (1, 10)", spark=spark)
    assert sorted(row.id for row in table.scan().to_spark(spark).select("id").collect()) == [0, 2, 3, 11]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 2, 3, 11]
    kinds = {path.suffix for path in elsewhere.rglob("*") if path.is_file()}
    assert kinds == {".parquet", ".puffin"}
    assert not (tmp_path / "warehouse/db/t/data").exists()
    assert check_table(table) == []
