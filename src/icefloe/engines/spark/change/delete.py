"""Deletes on Spark: finds rows by position, and rewrites files without them (spec: Row-level Deletes).

The condition is evaluated once, when the rows are found. Merge-on-read stores their positions; copy-on-write rewrites
the files without them.
"""

from __future__ import annotations

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.condition import Condition
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import Positioned, survivors
from icefloe.engines.spark.read.source import Source
from icefloe.engines.spark.write.write import write
from icefloe.engines.work import FinalLineage, Positions, TableFiles
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.row_filter import to_sql
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from icefloe.model.schema.schema import Schema


def find_rows(rows: Positioned, condition: str, *, planned_rows: int = 0) -> dict[str, BitMap64]:
    """The positions, by file, of live rows for which a SQL condition is true, and not false or null."""
    with translated():
        return positions_of(rows.frame.where(F.expr(condition)), rows.files, planned_rows=planned_rows).positions


def sql_of(condition: Condition, schema: Schema) -> str:
    """A condition as Spark SQL; the filter is evaluated too, so that only rows of planned files match."""
    filter_ = to_sql(bind(condition.filter, schema))
    return filter_ if condition.sql is None else f"({filter_}) AND ({condition.sql}\n)"  # it may end in a comment


def rewrite_without(
    spark: SparkSession, source: Source, deleted: Positions, table: TableFiles, *, final: FinalLineage | None = None
) -> pa.Table:
    """Write the rows of the files in ``deleted`` to new files, without those positions; returns the entries.

    ``source.schema`` must be the whole schema of the table. The lineage columns that the source returns are kept; with
    ``final``, row ids and sequence numbers that are not final are left out.
    """
    rows, lineage = survivors(spark, source, deleted), source.inherited.fields
    if final is not None:
        last = {ROW_ID.name: final.next_row_id - 1, LAST_UPDATED.name: final.last_sequence_number}
        for name in (field.name for field in lineage):
            rows = rows.withColumn(name, F.when(F.col(name) <= last[name], F.col(name)))
    return write(rows, metadata=table.metadata, io=table.io, lineage=lineage)
