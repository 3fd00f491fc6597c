"""The memory of the driver while it gets the positions of many rows; 100 million rows took less than 800 MB."""

from __future__ import annotations

import resource

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefloe.engines.spark.change import positions as position_bitmaps
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.read.read import FILE, POSITION, FileNumbers

pytestmark = pytest.mark.spark
ROWS, FILES, STEP = 5_000_000, 10, 40


@pytest.mark.parametrize("limit", [10**12, 0], ids=["words", "ranges"])
def test_the_driver_needs_a_few_bytes_per_row(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(position_bitmaps, "WORDS_MAX_ROWS", limit)
    files = FileNumbers()
    files.number(pa.chunked_array([[str(number) for number in range(FILES)]]))
    frame = spark.range(ROWS).selectExpr(f"id % {FILES} AS {FILE}", f"(id div {FILES}) * {STEP} AS {POSITION}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = positions_of(frame, files, planned_rows=ROWS * STEP)
    grown_kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert sum(len(rows) for rows in found.positions.values()) == ROWS
    assert grown_kilobytes * 1024 < 100 * ROWS
