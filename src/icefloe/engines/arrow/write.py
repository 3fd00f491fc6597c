"""Writes rows to new data files of a table, and rewrites planned files (spec: Writer requirements).

Nothing is committed here: the entries of the new, durable files are returned. A row that is copied to another file
keeps its row id and the sequence number of its last change (spec: Reserved Field IDs). Ids and numbers that are not
final are left out, so the row gets new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.arrow.read.plan_reader import read_in_parallel
from icefloe.engines.work import FinalLineage, NewLayout, PlannedFiles, TableFiles
from icefloe.engines.zorder import z_indices
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.file_read import FileDeletes, FileRead
from icefloe.formats.read.reader import read_file
from icefloe.formats.write.sort_rows import sorted_runs
from icefloe.formats.write.write_files import DEFAULT_MEMORY, write_files
from icefloe.model.arrow.conform import as_table, conform
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

_BATCH_ROWS = 128 * 1024


def write_rows(table: TableFiles, data: object, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
    """Write rows under the table's current schema and spec; returns the entries of the new files.

    ``data`` is an Arrow table, or anything with Arrow's stream protocol, which is then read batch by batch. The rows
    have the lineage columns ``lineage`` as well.
    """
    return write_batches(table, _rows(data, Schema(fields=(*table.metadata.schema.fields, *lineage))), lineage=lineage)


def write_batches(
    table: TableFiles, rows: pa.Table | Iterable[pa.RecordBatch], *, lineage: tuple[Field, ...] = ()
) -> pa.Table:
    """Write rows that conform to the table's schema already, with the lineage columns after its columns."""
    metadata = table.metadata
    return write_files(
        table.io,
        rows,
        schema=metadata.schema,
        spec=metadata.spec,
        sort_order=metadata.sort_order,
        data_location=metadata.data_location,
        properties=metadata.properties,
        lineage=lineage,
    )


def _rows(data: object, schema: Schema) -> pa.Table | Iterator[pa.RecordBatch]:
    if isinstance(data, (pa.Table, pa.RecordBatch)) or not hasattr(data, "__arrow_c_stream__"):
        return conform(as_table(data), schema)
    return _stream(pa.RecordBatchReader.from_stream(data), schema)


def _stream(reader: pa.RecordBatchReader, schema: Schema) -> Iterator[pa.RecordBatch]:
    no_rows = [pa.nulls(0, field.type) for field in reader.schema]  # of any type, unlike pyarrow's empty_table
    # Wrong columns are reported before the first batch, and even if there is none.
    conform(pa.Table.from_arrays(no_rows, schema=reader.schema), schema)
    for batch in reader:
        yield from conform(pa.Table.from_batches([batch]), schema).to_batches()


def rewrite_schema(files: PlannedFiles) -> Schema:
    """The columns of rewritten rows: those of the table, then those of row lineage, if the files have any."""
    return Schema(fields=(*files.metadata.schema.fields, *files.lineage))


def rewrite_rows(files: PlannedFiles, layout: NewLayout) -> pa.Table:
    """Write all live rows of planned files to new files; returns their entries.

    Rows are sorted in runs as large as memory allows, by the table's sort order or by ``z_columns``.
    """

    def live(part: FileRead) -> Iterator[pa.RecordBatch]:
        return rows_to_rewrite(files, part, files.deleted_rows.of(part.location))

    if len(layout.z_columns) == 0:
        return rewrite_files(files, live)
    schema = files.metadata.schema
    return rewrite_files(files, live, sort=lambda rows: z_indices(rows, layout.z_columns, schema))


def rewrite_files(
    files: PlannedFiles,
    rows: Callable[[FileRead], Iterator[pa.RecordBatch]],
    *,
    sort: Callable[[pa.Table], pa.Array] | None = None,
) -> pa.Table:
    """Write the rows that ``rows`` returns for every file of a plan to new files; returns their entries.

    Files are read in parallel, rows are written in the order of the plan, or as ``sort`` orders each run of them. The
    rows have the columns of ``rewrite_schema``.
    """
    schema = rewrite_schema(files)
    batches = _conforming(read_in_parallel(replace(files.plan, schema=schema), rows), schema)
    if sort is not None:
        runs = sorted_runs(batches, sort, run_bytes=DEFAULT_MEMORY.sort_bytes, batch_rows=_BATCH_ROWS)
        batches = chain.from_iterable(runs)
    return write_batches(files.table, batches, lineage=files.lineage)


def rows_to_rewrite(files: PlannedFiles, part: FileRead, deletes: FileDeletes) -> Iterator[pa.RecordBatch]:
    """The rows of a file except the deleted ones, whether they match the filter of the plan or not."""
    batches = read_file(files.io, replace(part, table_schema=None, filter=ALWAYS_TRUE, deletes=deletes))
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
