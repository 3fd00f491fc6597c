"""Deletes on Spark: finds rows by position, and rewrites files without them (spec: Row-level Deletes).

The condition is evaluated once, when the rows are found. Merge-on-read stores their positions; copy-on-write rewrites
the files without them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import FILE, POSITION, FileNumbers, Positioned, Source, survivors
from icefloe.engines.spark.write.write import write
from icefloe.engines.work import FinalLineage, Positions, TableFiles
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID


def find_rows(rows: Positioned, condition: str) -> dict[str, BitMap64]:
    """The positions, by file, of live rows for which a SQL condition is true, and not false or null."""
    with translated():
        return positions_of(rows.frame.where(F.expr(condition)), rows.files)


def positions_of(frame: DataFrame, files: FileNumbers) -> dict[str, BitMap64]:
    """The positions of all rows of a frame, by file."""
    rows = frame.select(FILE, POSITION).toArrow()
    if rows.num_rows == 0:
        return {}
    numbers = rows[FILE].to_numpy()
    order = np.argsort(numbers, kind="stable")
    positions = rows[POSITION].cast(pa.uint64()).to_numpy()[order]
    unique, starts = np.unique(numbers[order], return_index=True)
    parts = np.split(positions, starts[1:])
    return {files.location(int(number)): BitMap64(part) for number, part in zip(unique, parts, strict=True)}


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
