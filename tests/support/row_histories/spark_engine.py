"""The engine of a history whose operations and reads run on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.table.scan import Scan


class OnSpark:
    """Operations on Spark, in a folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.warehouse = str(folder)
        self.io: FileIO = LocalFileIO()
        self.options: dict[str, Any] = {"spark": spark}
        self._spark = spark

    def data(self, rows: pa.Table) -> DataFrame:
        """A DataFrame; times without a zone stay so, where Spark would put them into that of the session."""
        return self._spark.createDataFrame(rows, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))

    def rows(self, scan: Scan) -> list[dict[str, object]]:
        """The rows of a scan, read by Spark."""
        rows: list[dict[str, object]] = scan.to_spark(self._spark).toArrow().to_pylist()
        return rows
