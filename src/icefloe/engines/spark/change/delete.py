"""Deletes on Spark: which rows match, and what is left of files without them (spec: Row-level Deletes).

Rows are found once and named by file and position. A table with deletion vectors commits the positions; any other
table has the touched files rewritten without them, so the condition is never evaluated twice.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.engine import Horizon
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import FILE, POSITION, FileNumbers, Positioned, Source, survivors
from icefloe.engines.spark.write.write import write
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID


def find_rows(rows: Positioned, condition: str) -> dict[str, BitMap64]:
    """The positions, by file, of live rows for which a SQL condition is true; a null is not true."""
    with translated():
        return positions(rows.frame.where(F.expr(condition)), rows.files)


def positions(frame: DataFrame, files: FileNumbers) -> dict[str, BitMap64]:
    """The positions of all rows of a frame, by file."""
    found = frame.select(FILE, POSITION).toArrow()
    if found.num_rows == 0:
        return {}
    numbers = found[FILE].to_numpy()
    order = np.argsort(numbers, kind="stable")
    at = found[POSITION].cast(pa.uint64()).to_numpy()[order]
    unique, starts = np.unique(numbers[order], return_index=True)
    parts = np.split(at, starts[1:])
    return {files.location(int(number)): BitMap64(part) for number, part in zip(unique, parts, strict=True)}


def rewrite_without(
    spark: SparkSession,
    source: Source,
    deleted: Mapping[str, BitMap64],
    *,
    metadata: TableMetadata,
    io: FileIO,
    horizon: Horizon | None = None,
) -> pa.Table:
    """Write what the files in ``deleted`` hold besides the given positions; the entries replace those files.

    ``source.schema`` must be the whole schema of the table; row lineage is kept as far as the source returns it and it
    is final.
    """
    rows, lineage = survivors(spark, source, deleted), source.inherited.fields
    if horizon is not None:
        last = {ROW_ID.name: horizon.next_row_id - 1, LAST_UPDATED.name: horizon.last_sequence_number}
        for name in (field.name for field in lineage):
            rows = rows.withColumn(name, F.when(F.col(name) <= last[name], F.col(name)))
    return write(rows, metadata=metadata, io=io, lineage=lineage)
