"""Rows of this process written to data files of a table (spec: Writer requirements).

Nothing is committed here: the entries of the new, durable files are handed back.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from icefloe.formats.write.split_by_partition import write_files
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import as_table, conform
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field


def write_rows(io: FileIO, data: object, metadata: TableMetadata, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
    """Write rows under the table's current schema and spec; the entries of the files made.

    ``data`` is an Arrow table, or anything that speaks Arrow's stream protocol, which is then read batch by batch.
    ``lineage`` are the columns of row lineage that the rows have beside those of the table.
    """
    return write_files(
        io,
        _rows(data, Schema(fields=(*metadata.schema.fields, *lineage))),
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
    nothing = [pa.nulls(0, field.type) for field in reader.schema]  # of any type, unlike pyarrow's empty_table
    # Wrong columns are told before the first batch, or without one.
    conform(pa.Table.from_arrays(nothing, schema=reader.schema), schema)
    for batch in reader:
        yield from conform(pa.Table.from_batches([batch]), schema).to_batches()
