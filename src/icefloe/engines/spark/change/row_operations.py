"""Rows that a change removes and adds, by a statement of Spark SQL or a merge of a DataFrame.

The result of a statement has the operation of each row, and the file and the position of each row of the table. It is
kept in memory or on disk, so the statement is evaluated once: for the positions and for the rows to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.change.kept_rows import keep_rows
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import FILE as NUMBER
from icefloe.engines.spark.read.read import POSITION, FileNumbers
from icefloe.engines.spark.session import local_frame
from icefloe.engines.spark.write.write import write
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.entries import empty
from icefloe.model.schema.metadata_columns import FILE, ROW_ID
from icefloe.model.schema.schema import Schema

FILES_SENT_MAX = 10_000  # to tasks; of more, those with removed rows are found by a job of their own
_OPERATION = "__row_operation"
_DELETE, _UPDATE, _INSERT, _REINSERT = 1, 2, 3, 4  # org.apache.spark.sql.catalyst.util.RowDeltaUtils


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOperations:
    """The updated and inserted rows, if there are any, and the positions of the rows of the table that are removed.

    Updated rows have their ids, if these are known.
    """

    rows: DataFrame | None
    positions: Positions
    rows_updated: int = 0  # of a merge of a DataFrame; those of a statement are not counted

    def write(self, files: PlannedFiles) -> pa.Table:
        """Write updated and inserted rows to new files; an updated row keeps its id."""
        if self.rows is None:
            return empty()
        lineage = (ROW_ID,) if ROW_ID.name in self.rows.columns and len(files.lineage) > 0 else ()
        new = self.rows.select(*(quoted(field.name) for field in (*files.metadata.schema.fields, *lineage)))
        with translated():
            return write(new, metadata=files.metadata, io=files.io, lineage=lineage, is_rewrite=True)


@contextmanager
def row_operations(
    frame: DataFrame, schema: Schema, *, table_rows: int, files: pa.ChunkedArray | None, is_deterministic: bool
) -> Iterator[RowOperations]:
    """The operations of a statement on a table of ``table_rows`` rows, evaluated once.

    ``files`` are the locations of the files that it reads, if they are known. Rows without the column of operations
    are all inserted. ``is_deterministic`` says whether the statement would give the same rows again.
    """
    if _OPERATION not in frame.columns:
        yield RowOperations(rows=frame, positions={})
        return
    with ExitStack() as until:
        with translated():
            kept = keep_rows(frame, until, is_deterministic=is_deterministic)
            positions = _positions(kept, table_rows, files)
        has_values = {field.name for field in schema.fields} <= set(kept.columns)  # those of a DELETE are positions
        new = kept.where(F.col(_OPERATION).isin(_UPDATE, _INSERT, _REINSERT)) if has_values else None
        yield RowOperations(rows=new, positions=positions)


def _positions(rows: DataFrame, table_rows: int, files: pa.ChunkedArray | None) -> Positions:
    """The positions of removed rows, by file; names of files are sent between driver and tasks once."""
    removed = rows.where(F.col(_OPERATION).isin(_DELETE, _UPDATE)).select(FILE.name, POSITION)
    if files is None or len(files) > FILES_SENT_MAX:
        files = removed.select(FILE.name).distinct().toArrow()[FILE.name]
    if len(files) == 0:
        return {}
    numbers = FileNumbers()
    numbered = pa.table({FILE.name: files, NUMBER: numbers.number(files)})
    known = F.broadcast(local_frame(rows.sparkSession, numbered))
    # A row may occur twice: Spark lets several rows of a source delete it.
    return positions_of(
        removed.join(known, FILE.name).select(NUMBER, POSITION), numbers, planned_rows=table_rows
    ).positions
