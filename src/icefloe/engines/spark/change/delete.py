"""Deletes on Spark: finds rows by position, and rewrites files without them (spec: Row-level Deletes).

The condition is evaluated once, when the rows are found. Merge-on-read stores their positions; copy-on-write rewrites
the files without them.
"""

from __future__ import annotations

from typing import cast

from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.condition import Condition
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import Positioned, survivors
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.work import FinalLineage, PlannedFiles, Positions
from icefloe.expr.filter.nodes import Bound
from icefloe.expr.text.spark_sql import to_sql
from icefloe.formats.read.row_group_reader import merged
from icefloe.model.schema.metadata_columns import LAST_UPDATED, POS, ROW_ID, is_metadata_column
from icefloe.model.schema.types import Field
from icefloe.scan.tasks import Plan


def find_rows(rows: Positioned, condition: str, *, planned_rows: int = 0) -> dict[str, BitMap64]:
    """The positions, by file, of live rows for which a SQL condition is true, and not false or null."""
    with translated():
        return positions_of(rows.frame.where(F.expr(condition)), rows.files, planned_rows=planned_rows).positions


def sql_of(condition: Condition, plan: Plan) -> str:
    """A condition as Spark SQL; the filter of the plan is evaluated too, so that only rows of planned files match."""
    parts = [to_sql(cast(Bound, plan.filter))]
    if plan.metadata_filter is not None:
        parts.append(to_sql(plan.metadata_filter.filter))
    if condition.sql is not None:
        parts.append(f"{condition.sql}\n")  # it may end in a comment
    return " AND ".join(f"({part})" for part in parts)


def tested_columns(condition: Condition, plan: Plan) -> tuple[Field, ...]:
    """The metadata columns that a condition tests, without the position, which all rows that are found have."""
    tested = () if plan.metadata_filter is None else plan.metadata_filter.columns.fields
    in_filter = tuple(field for field in tested if is_metadata_column(field.id))
    return tuple(field for field in merged(in_filter, condition.metadata_columns) if field != POS)


def remaining_rows(spark: SparkSession, files: PlannedFiles, deleted: Positions) -> tuple[DataFrame, tuple[Field, ...]]:
    """The live rows of the files in ``deleted``, without those positions, and the lineage columns that they have."""
    touched = files.only(deleted)
    rows = survivors(spark, planned_source(spark, touched, files.metadata.schema, touched.lineage), deleted)
    final = None if files.is_all_final else files.final_lineage
    return with_final_lineage(rows, touched.lineage, final), touched.lineage


def with_final_lineage(rows: DataFrame, lineage: tuple[Field, ...], final: FinalLineage | None) -> DataFrame:
    """The rows without ids and sequence numbers that are not final; without ``final`` all of them are."""
    if final is None:
        return rows
    last = {ROW_ID.name: final.next_row_id - 1, LAST_UPDATED.name: final.last_sequence_number}
    for name in (field.name for field in lineage):
        rows = rows.withColumn(name, F.when(F.col(name) <= last[name], F.col(name)))
    return rows
