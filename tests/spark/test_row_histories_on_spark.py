"""Random histories of rows on Spark against a plain-Python model, in every version, file format and write mode.

Operations run on Spark, except that a transaction mixes both engines. Thirty short histories run in ``make test``, the
others in ``make thorough``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.table.scan import Scan
from support.row_histories.history import RowHistory, random_steps
from support.row_histories.model import Start
from support.selection import first

HISTORIES, SHORT, LENGTH = 66, 30, 4
GROUPS = 12  # seeds that are equal in this have the same version and format
SEEDS = {
    **{f"short {part}": tuple(range(part, SHORT, 3)) for part in range(3)},
    **{f"group {group}": tuple(range(SHORT + group, HISTORIES, GROUPS)) for group in range(GROUPS)},
}


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


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", first(3, SEEDS))
def test_every_snapshot_of_a_history_on_spark_has_the_rows_of_the_model(
    spark: SparkSession, tmp_path: Path, seeds: str
) -> None:
    for seed in SEEDS[seeds]:
        history = RowHistory(Start.drawn(seed), OnSpark(spark, tmp_path / str(seed)))
        history.run(random_steps(seed, 3 if seed < SHORT else LENGTH))
        history.finish()
