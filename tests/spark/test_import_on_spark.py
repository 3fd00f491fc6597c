"""Spark writes the rows of an imported folder (spec: Column Projection)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from support.tables import new_catalog


def test_spark_rewrites_an_imported_folder_with_the_columns_of_its_paths(spark: SparkSession, tmp_path: Path) -> None:
    for code in ("01", "x"):
        (tmp_path / f"in/code={code}").mkdir(parents=True)
        rows = pa.table({"id": [1, 2], "tags": [["a"], None]})
        pq.write_table(rows, tmp_path / f"in/code={code}/part.parquet")
    cat = new_catalog(tmp_path)
    on_spark = cat.import_table("db.spark", str(tmp_path / "in"), mode="rewrite", spark=spark)
    on_arrow = cat.import_table("db.arrow", str(tmp_path / "in"), mode="rewrite")
    key = [("code", "ascending"), ("id", "ascending")]
    assert on_spark.scan().to_arrow().sort_by(key).to_pylist() == on_arrow.scan().to_arrow().sort_by(key).to_pylist()
    assert on_spark.snapshots[0].summary["engine-name"] == "spark"
    assert on_spark.schema == on_arrow.schema
