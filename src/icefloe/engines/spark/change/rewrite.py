"""Compaction on Spark: one job writes the live rows of some files to new files (spec: Row-level Deletes).

Rows pass from Spark's reader to its writer. Without an order across files there is no shuffle: as many tasks as new
files are expected read and write the rows.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.change.delete import with_final_lineage
from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.spark.write.distribution import Distribution
from icefloe.engines.spark.write.sort import sort_keys
from icefloe.engines.spark.write.write import Arrangement, write
from icefloe.engines.spark.write.zorder import z_keys
from icefloe.engines.work import NewLayout, PlannedFiles
from icefloe.formats.write.sort_rows import usable


def rewrite_rows(spark: SparkSession, files: PlannedFiles, layout: NewLayout) -> pa.Table:
    """Write all live rows of planned files to new files; returns their entries."""
    metadata = files.metadata
    rows = dataframe(spark, planned_source(spark, files, metadata.schema, files.lineage))
    rows = with_final_lineage(rows, files.lineage, None if files.is_all_final else files.final_lineage)
    if len(layout.z_columns) > 0:
        keys = z_keys(spark, layout.z_columns, metadata.schema)
    else:
        keys = sort_keys(spark, usable(metadata.sort_order, metadata.schema), metadata.schema)
    mode = _mode(layout)
    rows = _in_tasks(rows, layout, mode)
    arranged = Arrangement(mode=mode, keys=keys)
    return write(rows, metadata=metadata, io=files.io, lineage=files.lineage, arrangement=arranged)


def _mode(layout: NewLayout) -> Distribution:
    if layout.is_ordered and (layout.files > 1 or not layout.is_one_partition):
        return Distribution.RANGE
    return Distribution.NONE if layout.is_one_partition else Distribution.HASH


def _in_tasks(rows: DataFrame, layout: NewLayout, mode: Distribution) -> DataFrame:
    """Rows that are not shuffled, in as many tasks as files are expected."""
    return rows.coalesce(layout.files) if mode is Distribution.NONE else rows
