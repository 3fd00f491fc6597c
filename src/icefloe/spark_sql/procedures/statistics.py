"""``CALL demo.system.compute_table_stats`` and ``compute_partition_stats``, with the arguments of Apache Iceberg."""

from __future__ import annotations

from pyspark.sql import SparkSession

from icefloe.spark_sql.options.session_names import columns
from icefloe.spark_sql.procedures.shape import Arguments, Row
from icefloe.table.table import Table


def compute_table_stats(table: Table, arguments: Arguments) -> list[Row]:
    """Count the distinct values of columns on Spark; the row has the statistics file, if there is a snapshot."""
    named = arguments.get("columns")
    result = table.analyze(
        None if named is None else columns(named, table.refresh().schema),
        snapshot=_snapshot(arguments),
        spark=SparkSession.active(),
    )
    return [] if result.statistics_file is None else [(result.statistics_file,)]


def compute_partition_stats(table: Table, arguments: Arguments) -> list[Row]:
    """Sum up the files of partitions; the row has the partition statistics file, if there is a snapshot."""
    result = table.analyze_partitions(snapshot=_snapshot(arguments))
    return [] if result.partition_statistics_file is None else [(result.partition_statistics_file,)]


def _snapshot(arguments: Arguments) -> int | None:
    given = arguments.get("snapshot_id")
    return None if given is None else int(given)
