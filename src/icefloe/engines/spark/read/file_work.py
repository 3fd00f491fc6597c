"""Work on single files that Spark's tasks do: each task gets some rows of a table of files and opens its storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, LongType, StructType

from icefloe.engines.file_sets import FileWork
from icefloe.engines.spark.failures import marking, translated
from icefloe.engines.spark.schema import arrow_frame
from icefloe.engines.spark.storage import TaskStorage, task_storage
from icefloe.engines.spark.task_python import arrow_stream, map_in_arrow
from icefloe.io.file_io import FileIO

_PARTS_PER_CORE = 16  # files differ in size, so tasks get small parts
_RESULT = StructType().add("part", LongType()).add("result", BinaryType())


def work_on_files(spark: SparkSession, work: FileWork, io: FileIO, files: pa.Table) -> Iterator[pa.Table]:
    """The results of work on files, in the order of the files."""
    if files.num_rows == 0:
        return
    count = min(files.num_rows, _PARTS_PER_CORE * spark.sparkContext.defaultParallelism)
    bounds = np.linspace(0, files.num_rows, count + 1).astype(int).tolist()
    parts = [arrow_stream(files.slice(start, end - start)) for start, end in pairwise(bounds)]
    numbered = pa.table({"part": np.arange(count), "files": pa.array(parts, pa.binary())})
    with translated():
        task = _Task(storage=task_storage(io), work=work)
        results = map_in_arrow(arrow_frame(spark, numbered).repartition(count), task, _RESULT).toArrow()
    for result in results.sort_by("part")["result"]:
        yield pa.ipc.open_stream(result.as_buffer()).read_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What tasks do: the work on each part of the files."""

    storage: TaskStorage
    work: FileWork

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For each part, the results as an Arrow stream."""
        with marking():
            io = self.storage.open()
            for batch in batches:
                for part, files in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                    results = list(self.work(io, pa.ipc.open_stream(files.as_buffer()).read_all()))
                    yield pa.record_batch({"part": [part], "result": [arrow_stream(pa.concat_tables(results))]})
