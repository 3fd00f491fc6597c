"""Writes rows of a table to data files, split by partition (spec: Partitioning).

A stream of batches is written with bounded memory: each chunk of the stream is split by partition with one sort, and
every partition has at most one open file. Rows of a partition are buffered until they fill a file, so many partitions
need neither many open files nor many small ones. If waiting rows take too much memory, those of the largest partitions
are written. Small batches take less memory than the arrays around them, so they are collected before they are split,
and concatenated afterwards. Rows that are all in memory are written partition by partition.
"""

from __future__ import annotations

import contextlib
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.env import SYSTEM
from icefloe.errors import StorageError
from icefloe.formats.write.entries import WrittenFile, entries_of
from icefloe.formats.write.layout import Layout, layout
from icefloe.formats.write.measure import count_nans
from icefloe.formats.write.metrics import Modes, metrics_modes
from icefloe.formats.write.partition_values import PartitionColumn, folder, partition_fields, split
from icefloe.formats.write.sort_rows import ordered_ids, sorted_runs, usable
from icefloe.formats.write.writers import DataWriter, check_format, open_writer
from icefloe.io.file_io import FileIO
from icefloe.limits import MIB
from icefloe.model.arrow.conform import arrow_schema, conform
from icefloe.model.metadata.properties import FILE_FORMAT, PARQUET_ROW_GROUP_SIZE
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import UNPARTITIONED, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.transforms.ordering import sort_indices

Partition: TypeAlias = tuple[object, ...]
Rows: TypeAlias = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]

_ARRAY_BYTES = 512  # the memory of an array besides its values: Arrow's allocations, rounded up
_SMALL_FACTOR = 8  # times the memory of the arrays: batches with more values are not concatenated with others
_CHUNK_ROWS = 128 * 1024
_CHUNK_BYTES = 16 * MIB
_SMALL_CHUNK_BYTES = 64 * 1024
_CHUNKS_PER_FILE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much a write may hold: open files, bytes of rows that wait to be written, and bytes that are sorted."""

    open_files: int = 128
    waiting_bytes: int = 256 * MIB
    sort_bytes: int = 1024 * MIB


DEFAULT_MEMORY = Memory()


class _Waiting:
    """Rows of a partition that has no open file."""

    __slots__ = ("_last_bytes", "batches", "bytes")

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.bytes = 0
        self._last_bytes = 0

    def add(self, rows: pa.RecordBatch, *, small: int) -> None:
        """Take rows; as part of the last ones if all of these are ``small``, so that no row is copied often."""
        size = rows.nbytes
        self.bytes += size
        if len(self.batches) > 0 and self._last_bytes + size <= small:
            self.batches[-1] = pa.concat_batches([self.batches[-1], rows])
            self._last_bytes += size
        else:
            self.batches.append(rows)
            self._last_bytes = size


@dataclass(kw_only=True)
class PartitionWriter:
    """Sends rows to the files of their partitions; open files are kept least recently used first."""

    io: FileIO
    prefix: str
    run: str
    layout: Layout
    file_format: str
    columns: tuple[PartitionColumn, ...]
    memory: Memory
    chunk_bytes: int  # of rows of one partition: enough to begin a file with

    def __post_init__(self) -> None:
        self._waiting: dict[Partition, _Waiting] = {}
        self._gathered: list[pa.RecordBatch] = []  # not split by partition yet
        self._gathered_bytes = 0
        self._enough_bytes = 0
        self._batch_bytes = _ARRAY_BYTES * sum(_arrays(field.type) for field in self.layout.rows)
        self._open: OrderedDict[Partition, DataWriter] = OrderedDict()
        self._closed: list[WrittenFile] = []
        self._begun: list[str] = []

    def add(self, chunk: pa.RecordBatch) -> None:
        """Write each row to the file of its partition."""
        if len(self.columns) == 0:
            self._write((), chunk)
        else:
            self._gathered.append(chunk)
            self._gathered_bytes += chunk.nbytes
            if self._gathered_bytes >= self._enough_bytes:
                self._split_gathered()
        self._make_room()

    def add_table(self, rows: pa.Table, order: npt.NDArray[np.int64], batch_rows: int) -> None:
        """Write rows that are all in memory, sorted, one partition after the other."""
        for group in split(rows, self.columns, order):
            numbers = pa.array(order) if group.rows is None else group.rows
            for start in range(0, len(numbers), batch_rows):
                for batch in rows.take(numbers.slice(start, batch_rows)).to_batches():
                    self._write(group.partition, batch)
            self._close(group.partition)

    def close_all(self) -> None:
        """Finish all files, one after the other."""
        self._split_gathered()
        for partition in list(self._waiting):
            self._release(partition)
            self._close(partition)
        for partition in list(self._open):
            self._close(partition)

    @property
    def files(self) -> list[WrittenFile]:
        """The finished files, in the order they were begun."""
        order = {location: position for position, location in enumerate(self._begun)}
        return sorted(self._closed, key=lambda file: order[file.location])

    def abandon(self) -> None:
        """Delete every file of this write; that failing must not hide why it is abandoned."""
        for writer in self._open.values():
            writer.abandon()
        with contextlib.suppress(StorageError):
            self.io.delete(self._begun)

    def _split_gathered(self) -> None:
        """Sort the gathered rows by partition; where that gives many small batches, gather more of them next time."""
        if len(self._gathered) == 0:
            return
        rows = self._gathered[0] if len(self._gathered) == 1 else pa.concat_batches(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        groups = split(rows, self.columns)
        self._enough_bytes = min(_SMALL_FACTOR * self._batch_bytes * len(groups), self.memory.waiting_bytes // 4)
        for group in groups:
            self._keep(group.partition, rows if group.rows is None else rows.take(group.rows))

    def _keep(self, partition: Partition, rows: pa.RecordBatch) -> None:
        """Take rows of a partition; they wait unless it has an open file, or they are enough to begin one."""
        if partition in self._open:
            self._write(partition, rows)
            return
        waiting = self._waiting.setdefault(partition, _Waiting())
        waiting.add(rows, small=_SMALL_FACTOR * self._batch_bytes)
        if waiting.bytes >= self.chunk_bytes:
            self._release(partition)

    def _release(self, partition: Partition) -> None:
        """Hand the waiting rows of a partition to its file."""
        for batch in self._waiting.pop(partition).batches:
            self._write(partition, batch)

    def _write(self, partition: Partition, rows: pa.RecordBatch) -> None:
        nans = count_nans(rows, self.layout.floats)
        writer = self._open.get(partition)
        if writer is not None and not writer.takes(nans):
            self._close(partition)
            writer = None
        if writer is None:
            writer = self._begin(partition)
        self._open.move_to_end(partition)
        writer.add(rows, nans)
        if writer.is_full:
            self._close(partition)

    def _close(self, partition: Partition) -> None:
        writer = self._open.get(partition)
        if writer is not None:
            self._closed.append(writer.close())
            del self._open[partition]

    def _begin(self, partition: Partition) -> DataWriter:
        if len(self._open) >= self.memory.open_files:
            self._close(next(iter(self._open)))
        path = folder(partition, self.columns)
        name = f"{self.run}-{len(self._begun):05d}.{self.file_format}"
        location = "/".join(part for part in (self.prefix, path, name) if part != "")
        self._begun.append(location)
        writer = open_writer(self.io, location, self.file_format, self.layout, partition)
        self._open[partition] = writer
        return writer

    def _make_room(self) -> None:
        """When rows that wait are too much, write the largest groups of them until half of the room is free."""
        sizes = self._sizes()
        if sum(sizes.values()) + self._gathered_bytes <= self.memory.waiting_bytes:
            return
        if len(self._gathered) > 0:
            self._split_gathered()
            sizes = self._sizes()
        held = sum(sizes.values())
        for partition in sorted(sizes, key=sizes.__getitem__, reverse=True):
            if held <= self.memory.waiting_bytes // 2:
                return
            if partition in self._waiting:
                self._release(partition)
            if partition in self._open:  # it may have been closed to make room for others
                self._open[partition].flush()
            held -= sizes[partition]

    def _sizes(self) -> dict[Partition, int]:
        """The bytes that the rows of each partition take."""
        sizes = {partition: writer.pending_bytes for partition, writer in self._open.items()}
        batch_bytes = self._batch_bytes
        sizes.update(
            (partition, rows.bytes + len(rows.batches) * batch_bytes) for partition, rows in self._waiting.items()
        )
        return sizes


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
        chunk_bytes=_chunk_bytes(chosen),
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
        writer.add_table(whole, np.asarray(numbers).astype(np.int64), _CHUNK_ROWS)
        return
    runs: Iterable[Iterator[pa.RecordBatch]] = (batches,)
    if order.is_sorted:
        source = pa.Table.from_batches(list(batches), arrow_schema(schema)) if at_hand is not None else batches
        runs = sorted_runs(
            source,
            lambda run: sort_indices(run, order, schema),
            run_bytes=memory.sort_bytes,
            batch_rows=_CHUNK_ROWS,
        )
    for run in runs:
        for chunk in _chunks(run, writer.chunk_bytes):
            writer.add(chunk)
        writer.close_all()


def _chunk_bytes(layout: Layout) -> int:
    """The size of chunks: at most a row group, and many to a file, so that its size comes close to the target."""
    target = layout.target_bytes
    small = max(target // _CHUNKS_PER_FILE, min(target, _SMALL_CHUNK_BYTES))
    return min(_CHUNK_BYTES, small, PARQUET_ROW_GROUP_SIZE.of(layout.properties))


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


def _chunks(batches: Iterable[pa.RecordBatch], chunk_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that are neither tiny nor huge."""
    waiting: list[pa.RecordBatch] = []
    waiting_rows = waiting_bytes = 0
    for batch in batches:
        for chunk in _sliced(batch, chunk_bytes):
            waiting.append(chunk)
            waiting_rows += chunk.num_rows
            waiting_bytes += chunk.nbytes
            if waiting_rows >= _CHUNK_ROWS or waiting_bytes >= chunk_bytes:
                yield _joined(waiting)
                waiting, waiting_rows, waiting_bytes = [], 0, 0
    if len(waiting) > 0:
        yield _joined(waiting)


def _sliced(batch: pa.RecordBatch, chunk_bytes: int) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    per_row = max(1, batch.nbytes // batch.num_rows)
    step = max(1, min(_CHUNK_ROWS, chunk_bytes // per_row))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _arrays(type_: pa.DataType) -> int:
    """How many arrays hold values of a type."""
    return 1 + sum(_arrays(type_.field(number).type) for number in range(type_.num_fields))
