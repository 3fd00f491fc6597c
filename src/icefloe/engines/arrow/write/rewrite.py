"""Rewrites rows of planned files to new files, with their final row lineage (spec: Reserved Field IDs).

A row that is copied to another file keeps its id and the sequence number of its last change. Ids and numbers that are
not final are left out, so the row gets new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.arrow.read.parallel_streams import in_order
from icefloe.engines.arrow.read.read import FileTask, file_tasks, read_task, reading_threads
from icefloe.engines.arrow.write.write import write_batches
from icefloe.engines.work import FinalLineage, NewLayout, PlannedFiles
from icefloe.engines.zorder import z_indices
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.row_mask import FileDrops
from icefloe.formats.write.sort_rows import sorted_runs
from icefloe.formats.write.split_by_partition import DEFAULT_MEMORY
from icefloe.model.arrow.conform import conform
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from icefloe.model.schema.schema import Schema

_PIECE_ROWS = 128 * 1024


def rewrite_schema(files: PlannedFiles) -> Schema:
    """The columns of rewritten rows: those of the table, then those of row lineage, if the files have any."""
    return Schema(fields=(*files.metadata.schema.fields, *files.lineage))


def rewrite_rows(files: PlannedFiles, layout: NewLayout) -> pa.Table:
    """Write all live rows of planned files to new files; returns their entries.

    Rows are sorted in runs as large as memory allows, by the table's sort order or by ``z_columns``.
    """

    def live(part: FileTask) -> Iterator[pa.RecordBatch]:
        return rows_to_rewrite(files, part, files.deleted_rows.of(part.location))

    if len(layout.z_columns) == 0:
        return rewrite_files(files, live)
    schema = files.metadata.schema
    return rewrite_files(files, live, sort=lambda rows: z_indices(rows, layout.z_columns, schema))


def rewrite_files(
    files: PlannedFiles,
    rows: Callable[[FileTask], Iterator[pa.RecordBatch]],
    *,
    sort: Callable[[pa.Table], pa.Array] | None = None,
) -> pa.Table:
    """Write the rows that ``rows`` returns for every file of a plan to new files; returns their entries.

    Files are read in parallel, rows are written in the order of the plan, or as ``sort`` orders each run of them. The
    rows have the columns of ``rewrite_schema``.
    """
    parts = (part for task in file_tasks(files.plan) for part in task.parts())
    batches = _conforming(
        in_order((partial(rows, part) for part in parts), threads=reading_threads()), rewrite_schema(files)
    )
    if sort is not None:
        runs = sorted_runs(batches, sort, run_bytes=DEFAULT_MEMORY.sort_bytes, piece_rows=_PIECE_ROWS)
        batches = chain.from_iterable(runs)
    return write_batches(files.table, batches, lineage=files.lineage)


def rows_to_rewrite(
    files: PlannedFiles, part: FileTask, deletes: FileDrops, *, row_positions: bool = False
) -> Iterator[pa.RecordBatch]:
    """The whole rows of a file except the deleted ones, with the columns of ``rewrite_schema``."""
    schema = rewrite_schema(files)
    batches = read_task(files.io, part, schema=schema, filter=ALWAYS_TRUE, drops=deletes, row_positions=row_positions)
    if files.is_all_final:
        return batches
    return (_only_final(batch, files.final_lineage) for batch in batches)


def _only_final(rows: pa.RecordBatch, final: FinalLineage) -> pa.RecordBatch:
    """The rows without ids and sequence numbers that are not final."""
    for field, last in ((ROW_ID, final.next_row_id - 1), (LAST_UPDATED, final.last_sequence_number)):
        index = rows.schema.get_field_index(field.name)
        if index >= 0:
            column = rows.column(index)
            kept = pc.if_else(pc.less_equal(column, last), column, pa.scalar(None, column.type))
            rows = rows.set_column(index, rows.schema.field(index), kept)
    return rows


def _conforming(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        # Even if the schema is right: writers reject values below a null struct, which conform removes.
        yield from conform(pa.Table.from_batches([batch]), schema).to_batches()
