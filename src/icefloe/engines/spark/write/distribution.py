"""How the rows of a write are distributed over tasks: ``write.distribution-mode``, as in Apache Iceberg.

``none`` leaves rows in the tasks that compute them. ``hash`` brings the rows of a partition together. ``range`` gives
each task a range of partitions and sort keys, so that files of a partition do not overlap. Tasks get about as many rows
as fill a file: Spark splits a partition that is too large for one, and gives several small ones to one task.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.spark.write.file_sizes import most_tasks, shuffle_bytes_per_task
from icefloe.model.metadata.properties import DISTRIBUTION_MODE
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortOrder

_TRANSPARENT = frozenset({"Project", "SubqueryAlias"})
_PARTS = 200  # Spark's own default
_PARTS_PER_CORE = 16
_REPARTITIONS = frozenset({"Repartition", "RepartitionByExpression", "RebalancePartitions"})


class Distribution(StrEnum):
    """A distribution of rows over tasks."""

    NONE = "none"
    HASH = "hash"
    RANGE = "range"


def distribution_of(metadata: TableMetadata, order: SortOrder, *, is_rewrite: bool = False) -> Distribution | None:
    """The distribution of a write: that of the table; None if nobody asks for any.

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
        return rows if _is_repartitioned(rows) else rows.coalesce(most_tasks(rows, metadata))
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
    size = shuffle_bytes_per_task(metadata)
    # A number that py4j passes would be an Integer if it is small.
    boxed = jvm.java.util.stream.LongStream.range(size, size + 1).boxed().findFirst()
    plan = getattr(jvm.org.apache.spark.sql.catalyst.plans.logical, kind)(
        node.partitionExpressions(),
        node.child(),
        node.optNumPartitions(),
        jvm.scala.jdk.javaapi.OptionConverters.toScala(boxed),
    )
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)
