"""How the rows of a write are distributed over tasks and files: ``write.distribution-mode``, as in Apache Iceberg.

``none`` leaves rows in the tasks that compute them. ``hash`` brings the rows of a partition together. ``range`` gives
each task a range of partitions and sort keys, so that files of a partition do not overlap. Tasks get about as many rows
as fill a file: Spark splits a partition that is too large for one, and gives several small ones to one task. Spark
limits the rows of a file and not its bytes, so the size of a row is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.session import PerJvm, java_class
from icefloe.expr.text.spark_sql import quoted
from icefloe.limits import MIB
from icefloe.model.metadata.properties import DISTRIBUTION_MODE, PARQUET_COMPRESSION, TARGET_FILE_SIZE
from icefloe.model.metadata.snapshots import SummaryKey, summary_number
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortOrder
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BOOLEAN, DATE, FLOAT, INT, STRING, Decimal, Fixed, Type, is_primitive
from icefloe.transforms.base import MAX_INT

_TRANSPARENT = frozenset({"Project", "SubqueryAlias"})
_PARTS = 200  # Spark's own default
_PARTS_PER_CORE = 16
_REPARTITIONS = frozenset({"Repartition", "RepartitionByExpression", "RebalancePartitions"})
_OVERSIZE = 1.5  # times the target: a file is split above it, so that no small rest is split off
_SHUFFLE_RATIO = {"uncompressed": 1.0, "snappy": 2.0, "lz4": 2.0}  # bytes of a shuffle for a byte of a file
_COMPRESSED_RATIO = 3.0
_LEAST_ROWS = 1000  # of a table whose files are taken as a measure of others
_TASKS_PER_CORE = 4
_SMALL_FILES = 32  # of them make a file of the target size
_WRITER_BYTES = 8 * MIB  # that an open file takes, about
_WRITERS_SHARE = 4  # open files take a fourth of the memory of a task
_MAX_WRITERS = 256


class Distribution(StrEnum):
    """A distribution of rows over tasks."""

    NONE = "none"
    HASH = "hash"
    RANGE = "range"


def distribution_of(metadata: TableMetadata, order: SortOrder, *, is_rewrite: bool = False) -> Distribution | None:
    """The distribution of a write: that of the table; None if none is set.

    The default is ``range`` for tables with a sort order and ``hash`` for other partitioned tables. A rewrite of rows
    that the table has is never distributed by range by default: the rows of a file are in order already, and Spark
    would compute them twice, the first time for a sample.
    """
    is_partitioned = any(not field.is_void for field in metadata.spec.fields)
    text = DISTRIBUTION_MODE.of(metadata.properties)
    if text == Distribution.NONE:
        return Distribution.NONE
    if not is_partitioned and not order.is_sorted:
        return None
    if text == "":
        if order.is_sorted and not is_rewrite:
            return Distribution.RANGE
        return Distribution.HASH if is_partitioned else None
    if text == Distribution.HASH:
        return Distribution.HASH if is_partitioned else Distribution.NONE
    return Distribution.RANGE


def distributed(
    rows: DataFrame, mode: Distribution | None, folders: Sequence[str], keys: Sequence[Column], metadata: TableMetadata
) -> DataFrame:
    """Rows in the tasks that write them; ``folders`` are the partition columns, ``keys`` those of the sort order."""
    if mode is None:
        return rows if _is_repartitioned(rows) else rows.coalesce(_most_tasks(rows, metadata))
    if mode is Distribution.NONE:
        return rows
    partition = [F.col(quoted(name)) for name in folders]
    if mode is Distribution.HASH:
        return _sized(rows.repartition(*partition), "RebalancePartitions", metadata)
    by_range = rows.repartitionByRange(*(column.asc() for column in partition), *keys)
    return _sized(by_range, "RepartitionByExpression", metadata)


def hash_settings(spark: SparkSession) -> dict[str, str]:
    """Settings by which rows are hashed into so many parts that few partitions of a table share one.

    Spark gives several small parts to one task, but never divides the partitions of a part over tasks: with as many
    parts as cores, one task could get nearly all rows.
    """
    parts = min(_PARTS, _PARTS_PER_CORE * int(spark.sparkContext.defaultParallelism))
    if int(spark._jsparkSession.sessionState().conf().numShufflePartitions()) >= parts:
        return {}
    return {"spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(parts)}


def _is_repartitioned(rows: DataFrame) -> bool:
    """Whether the last step of the query before its projections is a repartition: then the user chose the tasks."""
    node = rows._jdf.queryExecution().analyzed()
    while str(node.nodeName()) in _TRANSPARENT:
        node = node.child()
    return str(node.nodeName()) in _REPARTITIONS


def _sized(shuffled: DataFrame, kind: str, metadata: TableMetadata) -> DataFrame:
    """A repartitioned frame as another kind of shuffle, with bytes per task: a setting would affect the whole query."""
    spark, node = shuffled.sparkSession, shuffled._jdf.queryExecution().analyzed()
    jvm: Any = spark._jvm
    size = _shuffle_bytes_per_task(metadata)
    # A number that py4j passes would be an Integer if it is small.
    boxed = jvm.java.util.stream.LongStream.range(size, size + 1).boxed().findFirst()
    plan = getattr(jvm.org.apache.spark.sql.catalyst.plans.logical, kind)(
        node.partitionExpressions(),
        node.child(),
        node.optNumPartitions(),
        jvm.scala.jdk.javaapi.OptionConverters.toScala(boxed),
    )
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def _shuffle_bytes_per_task(metadata: TableMetadata) -> int:
    """How many bytes of a shuffle fill a file: its rows are compressed less than those of a file."""
    codec = PARQUET_COMPRESSION.of(metadata.properties)
    return math.ceil(TARGET_FILE_SIZE.of(metadata.properties) * _SHUFFLE_RATIO.get(codec, _COMPRESSED_RATIO))


def rows_per_file(metadata: TableMetadata) -> int:
    """The most rows of a file, by the size of rows in the files of the table, or else by the types of its columns."""
    limit = TARGET_FILE_SIZE.of(metadata.properties) * _OVERSIZE
    return max(1, int(limit / _bytes_per_row(metadata)))


def _bytes_per_row(metadata: TableMetadata) -> float:
    keys = (SummaryKey.TOTAL_RECORDS, SummaryKey.TOTAL_FILES_SIZE)
    rows, size = (summary_number(metadata.current_snapshot, key) for key in keys)
    if rows is not None and size is not None and rows >= _LEAST_ROWS:
        return max(1.0, size / rows)
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


def _most_tasks(rows: DataFrame, metadata: TableMetadata) -> int:
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
