"""One Parquet data file, written row group by row group (spec: Appendix A, Parquet).

Nothing is read back: sizes come from the stream, statistics from the footer that was just written. NaNs and the bytes
of values, which a footer does not count, are counted as rows pass by.

Arrow leaves NaN out of a column's bounds, but Spark holds NaN to be the greatest number and skips row groups by their
bounds: it would lose such rows. So a file that holds a NaN has no footer statistics for that column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from icefloe.formats.parquet.options import parquet_options
from icefloe.formats.read.storage_errors import close_quietly, open_sink, writing
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.layout import Layout
from icefloe.formats.write.measure import Measurer, count_bytes
from icefloe.io.file_io import FileIO
from icefloe.model.schema.schema import Schema

ROW_GROUP_ROWS = 1024 * 1024
_FULL = 0.95  # of the target: what is missing is not worth a row group


class ParquetWriter:
    """An open file: rows wait in memory until they fill a row group."""

    def __init__(self, io: FileIO, location: str, layout: Layout, partition: tuple[object, ...] = ()) -> None:
        self.location = location
        self.pending_bytes = 0
        self.written_bytes = 0
        self._layout = layout
        self._options = parquet_options(layout)
        self._partition = partition
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._group_bytes = self._options.row_group_bytes
        self._taken_bytes = 0  # of rows in memory that have been written
        self._nan_counts = dict.fromkeys(layout.floats, 0)
        self._value_bytes = dict.fromkeys(layout.sized, 0)
        self._footers: list[Any] = []
        self._sink = open_sink(io, location)
        self._writer: Any = None  # begun with the first row group, when it is known which columns hold a NaN
        self._unmeasured: frozenset[int] = frozenset()  # columns without footer statistics
        self._left_out = Measurer(Schema(fields=()))  # measures them instead

    def takes(self, nans: Mapping[int, int]) -> bool:
        """Whether rows with these NaNs may go into this file: not if a column is measured and turns out to hold one."""
        return self._writer is None or all(n == 0 or id_ in self._unmeasured for id_, n in nans.items())

    def add(self, batch: pa.RecordBatch, nans: Mapping[int, int]) -> None:
        """Take rows that have the layout's schema, and this many NaNs."""
        for id_, count in nans.items():
            self._nan_counts[id_] += count
        for id_, size in count_bytes(batch, self._layout.sized).items():
            self._value_bytes[id_] += size
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self.pending_bytes += batch.nbytes
        if self.pending_bytes >= self._group_bytes or self._pending_rows >= ROW_GROUP_ROWS:
            self.flush()

    @property
    def is_full(self) -> bool:
        """Whether the file has reached its target size."""
        return self.written_bytes >= self._layout.target_bytes * _FULL

    def flush(self) -> None:
        """Write the waiting rows as a row group."""
        if self._pending_rows == 0:
            return
        with writing(self.location):
            if self._writer is None:
                self._begin()
            for batch in self._pending:
                self._left_out.add(batch)
            rows = pa.Table.from_batches([self._options.stored.rows(batch) for batch in self._pending])
            self._writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
            self.written_bytes = self._sink.tell()
        self._taken_bytes += self.pending_bytes
        self._pending, self._pending_rows, self.pending_bytes = [], 0, 0
        self._group_bytes = self._next_group()

    def _next_group(self) -> int:
        """How many bytes of rows the next row group has: as many as the file lacks, by what rows took so far."""
        left = max(1, self._layout.target_bytes - self.written_bytes)
        return min(self._options.row_group_bytes, left * self._taken_bytes // max(1, self.written_bytes) + 1)

    def _begin(self) -> None:
        self._unmeasured = frozenset(id_ for id_, count in self._nan_counts.items() if count > 0)
        self._left_out = Measurer(self._layout.schema, only=self._unmeasured | self._options.stored.unmeasured)
        self._writer = self._options.begin(self._sink, self._unmeasured, self._pending_rows, self._footers)

    def close(self) -> WrittenFile:
        """Finish the file; it is not durable before ``FileIO.sync``."""
        self.flush()
        with writing(self.location):
            if self._writer is None:
                self._begin()
            self._writer.close()
            size = self._sink.tell()
            self._sink.close()
        (footer,) = self._footers
        return WrittenFile(
            location=self.location,
            size=size,
            footer=footer,
            partition=self._partition,
            nan_counts=self._nan_counts,
            value_bytes=self._value_bytes,
            measures=self._left_out.measures(),
        )

    def abandon(self) -> None:
        """Let go of the file without finishing it; deleting it is the caller's part."""
        self._pending = []
        close_quietly(*(() if self._writer is None else (self._writer,)), self._sink)
