"""Random histories of rows on icefloe's Spark engine, every snapshot of which Apache Iceberg reads in the same Spark.

The histories, the operations and the model are those of tests/spark/test_row_histories_on_spark.py.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icefloe.table.scan import Scan
from support.row_histories.columns import in_order
from support.row_histories.history import RowHistory, random_steps
from support.row_histories.model import Start
from support.row_histories.spark_engine import OnSpark

pytestmark = pytest.mark.interop
NEWEST = 3  # the newest version that Apache Iceberg reads
LENGTH = 6
SEEDS = [seed for seed in range(21) if Start.drawn(seed).version <= NEWEST]  # two of each version and file format
NEGATIVE_ZERO = re.compile(r"(?<![\w.])-0\.0(?!\d)")


class WrittenBySpark(OnSpark):
    """Operations on Spark; rows are read in this process, since Apache Iceberg is what reads them on Spark."""

    def rows(self, scan: Scan) -> list[dict[str, object]]:
        """The rows of a scan in this process."""
        rows: list[dict[str, object]] = scan.to_arrow().to_pylist()
        return rows


class HistoryForIceberg(RowHistory):
    """A history that stays within the versions of Apache Iceberg, which reads all snapshots at the end."""

    def __init__(self, start: Start, engine: OnSpark, spark: SparkSession) -> None:
        super().__init__(start, engine)
        self._spark = spark

    def do(self, verb: str, rng: random.Random) -> None:
        """Carry out a step, unless it upgrades the table to a version that Apache Iceberg does not read."""
        if verb != "upgrade" or self.table.format_version < NEWEST:
            super().do(verb, rng)

    def finish(self) -> None:
        """Compare the rows of every snapshot."""
        super().finish()
        for snapshot in self.table.snapshots:
            reader = self._spark.read.format("iceberg").option("versionAsOf", snapshot.snapshot_id)
            rows = in_order(reader.load(self.table.metadata_location).toArrow().to_pylist())
            expected = self.expected[snapshot.snapshot_id]
            tasks = self.table.at(snapshot=snapshot.snapshot_id).scan().plan().tasks
            if "orc" in tasks["file_format"].to_pylist():
                rows, expected = _with_one_zero(rows), _with_one_zero(expected)
            if rows != expected:
                raise AssertionError(f"snapshot {snapshot.snapshot_id}: Apache Iceberg reads {rows}, not {expected}")


def _with_one_zero(rows: list[str]) -> list[str]:
    """Rows in which -0.0 is 0.0: the ORC reader of Java takes zeros that follow each other for one repeated value."""
    return sorted(NEGATIVE_ZERO.sub("0.0", row) for row in rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_apache_iceberg_reads_every_snapshot_of_a_history(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    history = HistoryForIceberg(Start.drawn(seed), WrittenBySpark(spark, tmp_path), spark)
    history.run(random_steps(seed, LENGTH))
    history.finish()
