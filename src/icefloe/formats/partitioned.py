"""Rows of a table split into data files by partition (spec: Partitioning).

Works on a stream of batches with bounded memory: each piece of the stream is split by partition with one sort, every
partition has at most one open file, and the least recently used file is closed when there are too many. Plain values
in, an entry table out, so that the same function runs in this process and inside tasks elsewhere.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from icefloe.env import SYSTEM
from icefloe.errors import StorageError
from icefloe.formats.parquet_stats import WrittenFile, entries_of
from icefloe.formats.parquet_writer import FileWriter, Layout, count_nans, layout
from icefloe.formats.partition_values import PartitionColumn, folder, partition_fields, split
from icefloe.io.file_io import FileIO
from icefloe.model.arrow import arrow_schema, conform
from icefloe.model.partitioning import UNPARTITIONED, PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.types import Field

MIB = 1024 * 1024
_PIECE_ROWS = 128 * 1024
_PIECE_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much a partitioned write may hold: open files, and bytes of rows that wait for a row group."""

    open_files: int = 128
    waiting_bytes: int = 256 * MIB


DEFAULT_MEMORY = Memory()


def write_files(
    io: FileIO,
    rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch],
    *,
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    data_location: str,
    properties: Mapping[str, str] | None = None,
    memory: Memory = DEFAULT_MEMORY,
    lineage: tuple[Field, ...] = (),
    new_uuid: Callable[[], uuid.UUID] = SYSTEM.new_uuid,
) -> pa.Table:
    """Write rows to new, durable Parquet files under ``data_location`` and return their entries.

    Batches whose schema is not the table's are conformed to it. If anything fails, the files made so far are deleted.
    ``lineage`` are columns that the files hold behind those of the table, and that entries say nothing of.
    """
    stored = Schema(fields=(*schema.fields, *lineage))
    chosen = layout(stored, properties or {})
    writer = _PartitionedWriter(
        io=io,
        prefix=data_location.rstrip("/"),
        run=str(new_uuid()),
        layout=chosen,
        columns=partition_fields(schema, spec),
        memory=memory,
    )
    try:
        for piece in _pieces(conformed(_batches(rows), stored), min(_PIECE_BYTES, chosen.row_group_bytes)):
            writer.add(piece)
        files = writer.finish()
        io.sync([file.location for file in files])
        return entries_of(files, schema=schema, spec=spec)
    except BaseException:
        writer.abandon()
        raise


def conformed(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Batches with exactly the schema of a table; those that have it already pass untouched."""
    target = arrow_schema(schema)
    for batch in batches:
        if batch.schema.equals(target, check_metadata=False):
            yield batch
        else:
            yield from conform(pa.Table.from_batches([batch]), schema).to_batches()


def _batches(rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
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


@dataclass(kw_only=True)
class _PartitionedWriter:
    """The open files of a write, least recently used first."""

    io: FileIO
    prefix: str
    run: str
    layout: Layout
    columns: tuple[PartitionColumn, ...]
    memory: Memory

    def __post_init__(self) -> None:
        self._open: OrderedDict[tuple[object, ...], FileWriter] = OrderedDict()
        self._closed: list[WrittenFile] = []
        self._begun: list[str] = []

    def add(self, piece: pa.RecordBatch) -> None:
        """Send each row to the file of its partition."""
        if len(self.columns) == 0:
            self._append((), piece)
            return
        for group in split(piece, self.columns):
            self._append(group.partition, piece if group.rows is None else piece.take(group.rows))

    def finish(self) -> list[WrittenFile]:
        """Close what is open; every file, in the order they were begun."""
        while len(self._open) > 0:
            self._closed.append(self._open.popitem(last=False)[1].close())
        order = {location: position for position, location in enumerate(self._begun)}
        return sorted(self._closed, key=lambda file: order[file.location])

    def abandon(self) -> None:
        """Delete every file of this write; that failing must not hide why it is abandoned."""
        for writer in self._open.values():
            writer.abandon()
        with contextlib.suppress(StorageError):
            self.io.delete(self._begun)

    def _append(self, partition: tuple[object, ...], rows: pa.RecordBatch) -> None:
        nans = count_nans(rows, self.layout)
        writer = self._open.get(partition)
        if writer is not None and not writer.takes(nans):
            self._closed.append(self._open.pop(partition).close())
            writer = None
        if writer is None:
            writer = self._begin(partition)
        self._open.move_to_end(partition)
        writer.add(rows, nans)
        if writer.is_full:
            self._closed.append(self._open.pop(partition).close())
        self._make_room()

    def _begin(self, partition: tuple[object, ...]) -> FileWriter:
        if len(self._open) >= self.memory.open_files:
            self._closed.append(self._open.popitem(last=False)[1].close())
        path = folder(partition, self.columns)
        name = f"{self.run}-{len(self._begun):05d}.parquet"
        location = "/".join(part for part in (self.prefix, path, name) if part != "")
        self._begun.append(location)
        writer = FileWriter(self.io, location, self.layout, partition)
        self._open[partition] = writer
        return writer

    def _make_room(self) -> None:
        """Write the largest group of waiting rows while all of them together are too much."""
        while sum(writer.pending_bytes for writer in self._open.values()) > self.memory.waiting_bytes:
            max(self._open.values(), key=lambda writer: writer.pending_bytes).flush()
