"""Updates on Spark: finds rows by a condition and writes them with new values (spec: Reserved Field IDs).

The rows that match are read once, with their new values, and kept in memory or on disk: the condition is evaluated once
for both their positions and the new files. If all rows match, or the files are too large to keep their rows, they are
read twice. An updated row keeps its id; the commit sets the sequence number of its last change.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from icefloe.commit.phases import Phase
from icefloe.engines.condition import Condition
from icefloe.engines.engine import UpdatedRows
from icefloe.engines.spark.change.conditions import unread_table
from icefloe.engines.spark.change.delete import remaining_rows, sql_of, tested_columns
from icefloe.engines.spark.change.kept_rows import keep_rows
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.change.values import Assignments
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import FILE, POSITION, rows_with_positions
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.spark.schema import spark_type
from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.spark.write.write import write
from icefloe.engines.work import PlannedFiles
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.expr.value.expressions import Value
from icefloe.formats.read.row_group_reader import merged
from icefloe.model.entries import empty
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from icefloe.model.schema.types import Field

KEPT_BYTES_MAX = 64 << 30  # of planned files whose matching rows are kept


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
    inherited = merged((ROW_ID,) if has_ids else (), tested_columns(condition, files.plan))
    rows = rows_with_positions(spark, planned_source(spark, files, schema, inherited))
    matching = rows.frame.where(F.expr(sql_of(condition, files.plan)))
    new = [columns.get(field.name, F.col(quoted(field.name))).alias(field.name) for field in schema.fields]
    row_id = F.col(ROW_ID.name)
    ids = [F.when(row_id < files.final_lineage.next_row_id, row_id).alias(ROW_ID.name)] if has_ids else []
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
