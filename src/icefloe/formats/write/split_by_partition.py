"""Rows of a table split into data files by partition (spec: Partitioning).

Works on a stream of batches with bounded memory: each piece of the stream is split by partition with one sort, and
every partition has at most one open file. Rows that are all in memory are written partition by partition. Plain
values in, an entry table out, so that the same function runs in this process and inside tasks elsewhere.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from icefloe.env import SYSTEM
from icefloe.formats.write.entries import entries_of
from icefloe.formats.write.layout import Layout, layout
from icefloe.formats.write.metrics import Modes, metrics_modes
from icefloe.formats.write.partition_values import partition_fields
from icefloe.formats.write.partition_writer import DEFAULT_MEMORY, MIB, Memory, PartitionWriter
from icefloe.formats.write.sort_rows import ordered_ids, sorted_runs, usable
from icefloe.formats.write.writers import check_format
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_schema, conform
from icefloe.model.metadata.properties import FILE_FORMAT, PARQUET_ROW_GROUP_SIZE
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import UNPARTITIONED, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.transforms.ordering import sort_indices

__all__ = ["DEFAULT_MEMORY", "MIB", "Memory", "conformed", "write_files"]

Rows: TypeAlias = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]

_PIECE_ROWS = 128 * 1024
_PIECE_BYTES = 16 * MIB
_SMALL_PIECE_BYTES = 64 * 1024
_PIECES_PER_FILE = 16


def write_files(
    io: FileIO,
    rows: Rows,
    *,
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    data_location: str,
    properties: Mapping[str, str] | None = None,
    memory: Memory = DEFAULT_MEMORY,
    lineage: tuple[Field, ...] = (),
    file_format: str | None = None,
    modes: Modes | None = None,
    new_uuid: Callable[[], uuid.UUID] = SYSTEM.new_uuid,
) -> pa.Table:
    """Write rows to new, durable files under ``data_location`` and return their entries.

    Batches whose schema is not the table's are conformed to it. If anything fails, the files made so far are deleted.
    ``lineage`` are columns that files store after those of the table, without statistics in entries.
    Without ``file_format`` and ``modes``, those of the table's properties are used.
    """
    asked = {} if properties is None else properties
    stored = Schema(fields=(*schema.fields, *lineage)) if len(lineage) > 0 else schema
    order = usable(sort_order, schema)
    chosen = layout(stored, asked)
    written_as = FILE_FORMAT.of(asked).lower() if file_format is None else file_format
    check_format(written_as)
    kept = metrics_modes(schema, asked, ordered_ids(order)) if modes is None else modes
    writer = PartitionWriter(
        io=io,
        prefix=data_location.rstrip("/"),
        run=str(new_uuid()),
        layout=chosen,
        file_format=written_as,
        columns=partition_fields(schema, spec),
        memory=memory,
        piece_bytes=_piece_bytes(chosen),
    )
    try:
        _fill(writer, rows, order)
        files = writer.files
        io.sync([file.location for file in files])
        order_id = order.order_id if order.is_sorted else None
        return entries_of(files, schema=schema, spec=spec, modes=kept, sort_order_id=order_id)
    except BaseException:
        writer.abandon()
        raise


def _fill(writer: PartitionWriter, rows: Rows, order: SortOrder) -> None:
    """Write rows, conformed and in order. Files hold rows of one run; only rows to be sorted make more than one."""
    schema, memory = writer.layout.schema, writer.memory
    batches = conformed(_batches(rows), schema)
    at_hand: int | None = rows.nbytes if isinstance(rows, (pa.Table, pa.RecordBatch)) else None
    if at_hand is not None and len(writer.columns) > 0 and at_hand > memory.waiting_bytes:
        whole = pa.Table.from_batches(list(batches), arrow_schema(schema))
        numbers = sort_indices(whole, order, schema)  # which are those of the rows as they are where nothing is sorted
        writer.add_table(whole, np.asarray(numbers).astype(np.int64), _PIECE_ROWS)
        return
    runs: Iterable[Iterator[pa.RecordBatch]] = (batches,)
    if order.is_sorted:
        source = pa.Table.from_batches(list(batches), arrow_schema(schema)) if at_hand is not None else batches
        runs = sorted_runs(
            source,
            lambda run: sort_indices(run, order, schema),
            run_bytes=memory.sort_bytes,
            piece_rows=_PIECE_ROWS,
        )
    for run in runs:
        for piece in _pieces(run, writer.piece_bytes):
            writer.add(piece)
        writer.close_all()


def _piece_bytes(layout: Layout) -> int:
    """How large pieces are: no larger than a row group, and many to a file, so that it comes close to its target."""
    target = layout.target_bytes
    small = max(target // _PIECES_PER_FILE, min(target, _SMALL_PIECE_BYTES))
    return min(_PIECE_BYTES, small, PARQUET_ROW_GROUP_SIZE.of(layout.properties))


def conformed(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Batches with exactly the schema of a table; those that have it already pass untouched."""
    target = arrow_schema(schema)
    for batch in batches:
        if batch.schema.equals(target, check_metadata=False):
            yield batch
        else:
            yield from conform(pa.Table.from_batches([batch]), schema).to_batches()


def _batches(rows: Rows) -> Iterable[pa.RecordBatch]:
    batches: Iterable[pa.RecordBatch] = rows.to_batches() if isinstance(rows, pa.Table) else rows
    return (rows,) if isinstance(rows, pa.RecordBatch) else batches


def _pieces(batches: Iterable[pa.RecordBatch], piece_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in pieces that are neither tiny nor huge."""
    waiting: list[pa.RecordBatch] = []
    waiting_rows = waiting_bytes = 0
    for batch in batches:
        for piece in _sliced(batch, piece_bytes):
            waiting.append(piece)
            waiting_rows += piece.num_rows
            waiting_bytes += piece.nbytes
            if waiting_rows >= _PIECE_ROWS or waiting_bytes >= piece_bytes:
                yield _joined(waiting)
                waiting, waiting_rows, waiting_bytes = [], 0, 0
    if len(waiting) > 0:
        yield _joined(waiting)


def _sliced(batch: pa.RecordBatch, piece_bytes: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    per_row = max(1, batch.nbytes // batch.num_rows)
    step = max(1, min(_PIECE_ROWS, piece_bytes // per_row))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
