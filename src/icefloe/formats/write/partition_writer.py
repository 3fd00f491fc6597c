"""The files of one write, a few of them open at a time (spec: Partitioning).

Rows of a partition are buffered until they fill a file, so that many partitions need neither many open files nor many
small ones. When rows that wait take too much memory, those of the largest partitions are written. A few rows take far
less of it than the arrays around them, so rows are collected before they are split by partition, and concatenated
after.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.errors import StorageError
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.layout import Layout
from icefloe.formats.write.measure import count_nans
from icefloe.formats.write.partition_values import PartitionColumn, folder, split
from icefloe.formats.write.writers import DataWriter, open_writer
from icefloe.io.file_io import FileIO

MIB = 1024 * 1024
_ARRAY_BYTES = 512  # that an array takes beside its values: what Arrow allocates for it and rounds up
_SMALL = 8  # times what its arrays take: rows with more values than that are no longer joined with others

Partition = tuple[object, ...]


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
    piece_bytes: int  # of rows of one partition: enough to begin a file with

    def __post_init__(self) -> None:
        self._waiting: dict[Partition, _Waiting] = {}
        self._gathered: list[pa.RecordBatch] = []  # not split by partition yet
        self._gathered_bytes = 0
        self._enough_bytes = 0
        self._batch_bytes = _ARRAY_BYTES * sum(_arrays(field.type) for field in self.layout.rows)
        self._open: OrderedDict[Partition, DataWriter] = OrderedDict()
        self._closed: list[WrittenFile] = []
        self._begun: list[str] = []

    def add(self, piece: pa.RecordBatch) -> None:
        """Write each row to the file of its partition."""
        if len(self.columns) == 0:
            self._write((), piece)
        else:
            self._gathered.append(piece)
            self._gathered_bytes += piece.nbytes
            if self._gathered_bytes >= self._enough_bytes:
                self._split_gathered()
        self._make_room()

    def add_table(self, rows: pa.Table, order: npt.NDArray[np.int64], piece_rows: int) -> None:
        """Write rows that are all in memory, sorted, one partition after the other."""
        for group in split(rows, self.columns, order):
            numbers = pa.array(order) if group.rows is None else group.rows
            for start in range(0, len(numbers), piece_rows):
                for batch in rows.take(numbers.slice(start, piece_rows)).to_batches():
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
        """Sort the gathered rows by partition; where that gives many small pieces, gather more of them next time."""
        if len(self._gathered) == 0:
            return
        rows = self._gathered[0] if len(self._gathered) == 1 else pa.concat_batches(self._gathered)
        self._gathered, self._gathered_bytes = [], 0
        groups = split(rows, self.columns)
        self._enough_bytes = min(_SMALL * self._batch_bytes * len(groups), self.memory.waiting_bytes // 4)
        for group in groups:
            self._keep(group.partition, rows if group.rows is None else rows.take(group.rows))

    def _keep(self, partition: Partition, rows: pa.RecordBatch) -> None:
        """Take rows of a partition; they wait unless it has an open file, or they are enough to begin one."""
        if partition in self._open:
            self._write(partition, rows)
            return
        waiting = self._waiting.setdefault(partition, _Waiting())
        waiting.add(rows, small=_SMALL * self._batch_bytes)
        if waiting.bytes >= self.piece_bytes:
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


def _arrays(type_: pa.DataType) -> int:
    """How many arrays hold values of a type."""
    return 1 + sum(_arrays(type_.field(number).type) for number in range(type_.num_fields))
