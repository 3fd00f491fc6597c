"""Deletes, updates and compaction on Spark: rows found by a condition, and files rewritten (spec: Row-level Deletes).

The condition is evaluated once, when the rows are found. Merge-on-read stores their positions; copy-on-write rewrites
the files without them.

An update reads matching rows once, with their new values, and keeps them in memory or on disk. If all rows match, or
the files are too large to keep their rows, they are read twice. An updated row keeps its id; the commit sets the
sequence number of its last change (spec: Reserved Field IDs).

Compaction passes rows from Spark's reader to its writer. Without an order across files there is no shuffle: as many
tasks as new files are expected read and write the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from icefloe.commit.phases import Phase
from icefloe.engines.engine import UpdatedRows
from icefloe.engines.spark.change.conditions import unread_table
from icefloe.engines.spark.change.kept_rows import keep_rows
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.change.values import Assignments
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import FILE, POSITION, Positioned, dataframe, rows_with_positions, survivors
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.spark.schema import spark_type
from icefloe.engines.spark.write.distribution import Distribution
from icefloe.engines.spark.write.sort import sort_keys, z_keys
from icefloe.engines.spark.write.write import Arrangement, write
from icefloe.engines.work import Condition, NewLayout, PlannedFiles, Positions
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound
from icefloe.expr.text.spark_sql import quoted, to_sql
from icefloe.expr.value.expressions import Value
from icefloe.formats.write.sort_rows import usable
from icefloe.model.entries import empty
from icefloe.model.schema.metadata_columns import LAST_UPDATED, POS, ROW_ID, is_metadata_column
from icefloe.model.schema.schema import merged_fields
from icefloe.model.schema.types import Field
from icefloe.scan.tasks import Plan

KEPT_BYTES_MAX = 64 << 30  # of planned files whose matching rows are kept


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
    return tuple(field for field in merged_fields(in_filter, condition.metadata_columns) if field != POS)


def remaining_rows(spark: SparkSession, files: PlannedFiles, deleted: Positions) -> tuple[DataFrame, tuple[Field, ...]]:
    """The live rows of the files in ``deleted``, without those positions, and the lineage columns that they have."""
    touched = files.only(deleted)
    rows = survivors(spark, planned_source(spark, touched, files.metadata.schema, touched.lineage), deleted)
    return _with_final_lineage(rows, files, touched.lineage), touched.lineage


def _with_final_lineage(rows: DataFrame, files: PlannedFiles, lineage: tuple[Field, ...]) -> DataFrame:
    """The rows of planned files without ids and sequence numbers that are not final."""
    if len(lineage) == 0 or files.is_all_final:
        return rows
    number = F.col(LAST_UPDATED.name)
    is_final = number <= files.final_lineage.last_sequence_number
    return rows.withColumns({ROW_ID.name: final_row_id(files), LAST_UPDATED.name: F.when(is_final, number)})


def final_row_id(files: PlannedFiles) -> Column:
    """The id of a row of planned files; null if it is not final."""
    row_id = F.col(ROW_ID.name)
    return F.when(row_id < files.final_lineage.next_row_id, row_id).alias(ROW_ID.name)


def update_rows(
    spark: SparkSession, files: PlannedFiles, condition: Condition, values: Mapping[str, Value], *, copy_others: bool
) -> UpdatedRows:
    """Write the rows for which the condition is true with new values, and with ``copy_others`` the rest of their files.

    InputError names a text that Spark refuses, or a value that does not fit its column.
    """
    schema = files.metadata.schema
    types: dict[tuple[str, ...], DataType] = {(field.name,): spark_type(field) for field in schema.fields}
    assignments = Assignments(frame=unread_table(spark, schema), types=types)
    columns = {
        field.name: assignments.column(values[field.name].node, field)
        for field in schema.fields
        if field.name in values
    }
    if files.plan.files == 0:
        return UpdatedRows(positions={}, entries=empty())
    has_ids = len(files.lineage) > 0
    inherited = merged_fields((ROW_ID,) if has_ids else (), tested_columns(condition, files.plan))
    rows = rows_with_positions(spark, planned_source(spark, files, schema, inherited))
    matching = rows.frame.where(F.expr(sql_of(condition, files.plan)))
    new = [columns.get(field.name, F.col(quoted(field.name))).alias(field.name) for field in schema.fields]
    ids = [final_row_id(files)] if has_ids else []
    with ExitStack() as kept, translated():
        updated = matching.select(FILE, POSITION, *ids, *new)
        if _are_kept(files, condition):
            updated = keep_rows(updated, kept)
        with files.timer.of(Phase.MATCH):
            positions = positions_of(updated, rows.files, planned_rows=files.rows).positions
        if len(positions) == 0:
            return UpdatedRows(positions={}, entries=empty())
        written = updated.drop(FILE, POSITION)
        lineage: tuple[Field, ...] = (ROW_ID,) if has_ids else ()
        if copy_others:
            others, lineage = remaining_rows(spark, files, positions)
            written = others.unionByName(_without_number(written, has_ids))
        with files.timer.of(Phase.WRITE):
            entries = write(written, metadata=files.metadata, io=files.io, lineage=lineage, is_rewrite=True)
    return UpdatedRows(positions=positions, entries=entries)


def _are_kept(files: PlannedFiles, condition: Condition) -> bool:
    """Whether matching rows are kept; a filter can be evaluated twice, a text may give other rows the second time."""
    if condition.sql is not None:
        return True
    size = int(pc.sum(files.plan.tasks["file_size_in_bytes"]).as_py())
    return condition.filter != ALWAYS_TRUE and size <= KEPT_BYTES_MAX


def _without_number(rows: DataFrame, has_ids: bool) -> DataFrame:
    """The rows without the sequence number of a last change: the commit sets it."""
    return rows.withColumn(LAST_UPDATED.name, F.lit(None).cast("long")) if has_ids else rows


def rewrite_rows(spark: SparkSession, files: PlannedFiles, layout: NewLayout) -> pa.Table:
    """Write all live rows of planned files to new files; returns their entries."""
    metadata = files.metadata
    rows = dataframe(spark, planned_source(spark, files, metadata.schema, files.lineage))
    rows = _with_final_lineage(rows, files, files.lineage)
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
