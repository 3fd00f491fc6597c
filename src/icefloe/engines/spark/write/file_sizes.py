"""Estimates by which Spark writes files near the target size: rows of a file, bytes of a task, open files of a task."""

from __future__ import annotations

import math

from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.session import PerJvm, java_class
from icefloe.limits import MIB
from icefloe.model.metadata.properties import PARQUET_COMPRESSION, TARGET_FILE_SIZE
from icefloe.model.metadata.snapshots import SummaryKey
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BOOLEAN, DATE, FLOAT, INT, STRING, Decimal, Fixed, Type, is_primitive
from icefloe.transforms.base import MAX_INT

_OVERSIZE = 1.5  # times the target: a file is split above it, so that no small rest is split off
_SHUFFLE_RATIO = {"uncompressed": 1.0, "snappy": 2.0, "lz4": 2.0}  # bytes of a shuffle for a byte of a file
_COMPRESSED_RATIO = 3.0
_LEAST_ROWS = 1000  # of a table whose files are taken as a measure of others
_TASKS_PER_CORE = 4
_SMALL_FILES = 32  # of them make a file of the target size
_WRITER_BYTES = 8 * MIB  # that an open file takes, about
_WRITERS_SHARE = 4  # open files take a fourth of the memory of a task
_MAX_WRITERS = 256


def shuffle_bytes_per_task(metadata: TableMetadata) -> int:
    """How many bytes of a shuffle fill a file: its rows are compressed less than those of a file."""
    codec = PARQUET_COMPRESSION.of(metadata.properties)
    return math.ceil(TARGET_FILE_SIZE.of(metadata.properties) * _SHUFFLE_RATIO.get(codec, _COMPRESSED_RATIO))


def rows_per_file(metadata: TableMetadata) -> int:
    """The most rows of a file, by the size of rows in the files of the table, or else by the types of its columns."""
    limit = TARGET_FILE_SIZE.of(metadata.properties) * _OVERSIZE
    return max(1, int(limit / _bytes_per_row(metadata)))


def _bytes_per_row(metadata: TableMetadata) -> float:
    head = metadata.current_snapshot
    if head is not None:
        rows, size = (head.summary.get(key, "") for key in (SummaryKey.TOTAL_RECORDS, SummaryKey.TOTAL_FILES_SIZE))
        if rows.isdigit() and size.isdigit() and int(rows) >= _LEAST_ROWS:
            return max(1.0, int(size) / int(rows))
    return expected_row_bytes(metadata.schema)


def expected_row_bytes(schema: Schema) -> float:
    """About how many bytes a row takes in a compressed file, by the types of its columns.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> expected_row_bytes(parse_ddl("id bigint, name string"))
    17.0
    """
    leaves = (field.type for field in schema.by_id.values() if is_primitive(field.type))
    return max(1.0, sum(_expected_bytes(type_) for type_ in leaves))


def _expected_bytes(type_: Type) -> float:
    if type_ == BOOLEAN:
        return 0.25
    if type_ in (INT, DATE, FLOAT):
        return 3.0
    if isinstance(type_, Fixed):
        return float(type_.length)
    if isinstance(type_, Decimal):
        return 5.0 if type_.precision <= 18 else 9.0
    return 12.0 if type_ == STRING else 5.0


def most_tasks(rows: DataFrame, metadata: TableMetadata) -> int:
    """The most tasks that write rows which need no shuffle, so that many small tasks do not make many small files.

    All cores have work, and large tasks are left as they are. Spark's own estimate of the size is usually too large.
    """
    target = TARGET_FILE_SIZE.of(metadata.properties)
    size = int(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
    cores = int(rows.sparkSession.sparkContext.defaultParallelism)
    small = min(_TASKS_PER_CORE * cores, math.ceil(size * _SMALL_FILES / target))
    return min(MAX_INT, max(cores, small, math.ceil(size / target)))


def concurrent_writers(spark: SparkSession, fanout: str = "") -> int:
    """How many files a task may have open, by ``write.spark.fanout.enabled``, or else by its memory.

    Spark sorts the rows of the other partitions, if there are more.
    """
    if fanout != "":
        return MAX_INT if fanout == "true" else 0
    memory = _task_memory(spark) // _WRITERS_SHARE
    return max(1, min(_MAX_WRITERS, memory // _WRITER_BYTES))


def _task_memory(spark: SparkSession) -> int:
    """The heap of an executor for each of its cores."""
    context = spark.sparkContext
    if context.master.startswith("local") and not context.master.startswith("local-cluster"):
        return _HEAP.of(spark) // max(1, int(context.defaultParallelism))
    conf = context.getConf()
    sizes = java_class(spark, "org.apache.spark.network.util.JavaUtils")
    memory = sizes.byteStringAsBytes(conf.get("spark.executor.memory", "1g"))
    return int(memory) // max(1, int(conf.get("spark.executor.cores", "1")))


_HEAP = PerJvm(lambda spark: int(java_class(spark, "java.lang.Runtime").getRuntime().maxMemory()))
