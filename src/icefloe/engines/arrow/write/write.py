"""Writes rows of this process to data files of a table (spec: Writer requirements).

Nothing is committed here: the entries of the new, durable files are returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from icefloe.engines.work import TableFiles
from icefloe.formats.write.split_by_partition import write_files
from icefloe.model.arrow.conform import as_table, conform
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field


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
