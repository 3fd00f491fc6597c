"""The streams of bench ``spark_sql``: micro-batches of a few rows, written to tables and files.

The streams run one after another, so that none takes time from another. Each writes a new table.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from measure import Sample
from spark_contenders import ApacheIceberg, IcefloeSql

FILE_SINK, NO_SINK = "Parquet file sink", "noop"
BATCH, STEPS = "triggerExecution", ("latestOffset", "walCommit", "queryPlanning", "addBatch", "commitOffsets")
BATCH_ROWS = 20
SECONDS = 1800  # within which a stream has run its batches
COLUMNS = "timestamp timestamp, value bigint"


@dataclass(frozen=True, slots=True)
class _Stream:
    """A running stream, and what it has written; nothing that could be read for the sink that drops all rows."""

    query: StreamingQuery
    written: Callable[[], DataFrame] | None


class Streams:
    """The sinks, each of which gets ``first`` batches that do not count and ``batches`` that do."""

    def __init__(
        self, spark: SparkSession, folder: Path, own: IcefloeSql, java: ApacheIceberg, *, batches: int, first: int
    ) -> None:
        self._spark, self._folder, self._own, self._java = spark, folder, own, java
        self._batches, self._first = batches, first
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(10 * (batches + first) + 1000))

    def in_turns(self, turns: int, tell: Callable[[str], None]) -> dict[str, list[Sample]]:
        """How long each batch and its steps took, in milliseconds, by sink."""
        sinks = {
            NO_SINK: self._to_nothing,
            FILE_SINK: self._to_files,
            self._own.name: self._to_icefloe,
            self._java.name: self._to_apache_iceberg,
        }
        samples: dict[str, list[Sample]] = {name: [] for name in sinks}
        names = list(sinks)
        for turn in range(turns):
            tell(f"spark_sql: streams of {self._first + self._batches} batches, turn {turn + 1} of {turns}")
            shift = turn % len(names)
            for name in names[shift:] + names[:shift]:
                samples[name] += self._run(sinks[name], name)
        return samples

    def _run(self, sink: Callable[[DataStreamWriter, ExitStack], _Stream], name: str) -> list[Sample]:
        source = self._spark.readStream.format("rate-micro-batch")
        rows = source.option("rowsPerBatch", BATCH_ROWS).option("numPartitions", 1).load()
        checkpoint = self._folder / "checkpoint"
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, checkpoint, ignore_errors=True)
            stream = sink(rows.writeStream.option("checkpointLocation", str(checkpoint)), undo)
            try:
                progress = _progress(stream.query, self._first + self._batches)
            finally:
                stream.query.stop()
            if stream.written is not None:
                _check_values(stream.written(), len(progress), name)
        counted = progress[self._first :]
        return [{step: float(one.durationMs.get(step, 0)) for step in (BATCH, *STEPS)} for one in counted]

    def _to_nothing(self, writer: DataStreamWriter, undo: ExitStack) -> _Stream:
        return _Stream(writer.format("noop").start(), None)

    def _to_files(self, writer: DataStreamWriter, undo: ExitStack) -> _Stream:
        folder = self._folder / "sink"
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        query = writer.format("parquet").option("compression", "zstd").start(str(folder))
        return _Stream(query, lambda: self._spark.read.parquet(str(folder)))

    def _to_icefloe(self, writer: DataStreamWriter, undo: ExitStack) -> _Stream:
        self._spark.sql(f"CREATE TABLE demo.db.s ({COLUMNS}) TBLPROPERTIES ('format-version' = '4')")
        undo.callback(self._own.drop, "s")
        return _Stream(writer.format("icefloe").toTable("demo.db.s"), lambda: self._own.read("s"))

    def _to_apache_iceberg(self, writer: DataStreamWriter, undo: ExitStack) -> _Stream:
        properties = "'format-version' = '3', 'write.parquet.compression-codec' = 'zstd'"
        self._spark.sql(f"CREATE TABLE iceberg.db.s ({COLUMNS}) USING iceberg TBLPROPERTIES ({properties})")
        undo.callback(self._java.drop, "s")
        return _Stream(writer.format("iceberg").toTable("iceberg.db.s"), lambda: self._java.read("s"))


def _progress(query: StreamingQuery, batches: int) -> list[Any]:
    """The progress of the first batches of a stream, which runs one batch after another."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and query.isActive:
        done = [one for one in query.recentProgress if one.numInputRows > 0]
        if len(done) >= batches:
            return done[:batches]
        time.sleep(0.5)  # reading the progress takes time from the stream
    raise RuntimeError(f"the stream ran {len(query.recentProgress)} of {batches} batches") from query.exception()


def _check_values(rows: DataFrame, batches: int, name: str) -> None:
    """RuntimeError if a stream did not write every row of its batches once; it may have begun further batches."""
    count, distinct, end = rows.selectExpr("count(*)", "count(DISTINCT value)", "max(value) + 1").collect()[0]
    if not count == distinct == end or count % BATCH_ROWS > 0 or count < batches * BATCH_ROWS:
        raise RuntimeError(f"{name}: {count} rows, {distinct} distinct ones, {end} sent, {batches} batches")
