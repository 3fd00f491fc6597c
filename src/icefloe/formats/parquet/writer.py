"""Writes Parquet data files, row group by row group, with Iceberg's settings (spec: Appendix A, Parquet).

Nothing is read back: sizes come from the stream, statistics from the footer. NaNs and the bytes of values, which are
not in footers, are counted when rows are added.

Arrow leaves NaN out of a column's bounds, but for Spark NaN is the greatest number. Spark skips row groups by their
bounds, so rows would be missing. A column with a NaN therefore has no statistics in the footer of the file.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.errors import InputError, UnsupportedError
from icefloe.formats.parquet.types import Stored, stored_form
from icefloe.formats.read.storage_errors import close_quietly, open_sink, writing
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.layout import Layout
from icefloe.formats.write.measure import Measurer, count_bytes
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.properties import (
    PARQUET_BLOOM_COLUMN,
    PARQUET_BLOOM_FPP_COLUMN,
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_LEVEL,
    PARQUET_DICT_SIZE,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_SIZE,
    PARQUET_ROW_GROUP_SIZE,
    Property,
)
from icefloe.model.schema.schema import Schema, derived
from icefloe.model.schema.types import BOOLEAN, is_primitive

ROW_GROUP_ROWS = 1024 * 1024
_FULL = 0.95  # of the target size: the rest is not worth a row group
_LEVELLED = frozenset({"zstd", "gzip", "brotli"})
_KNOWN = frozenset(inspect.signature(pq.ParquetWriter).parameters)  # the options of this Arrow version
_FPP = 0.01


class ParquetWriter:
    """An open file: rows are buffered until they fill a row group."""

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
        self._writer: Any = None  # opened for the first row group, when the columns with a NaN are known
        self._unmeasured: frozenset[int] = frozenset()  # columns without footer statistics
        self._left_out = Measurer(Schema(fields=()))  # measures them instead

    def takes(self, nans: Mapping[int, int]) -> bool:
        """Whether rows with these NaNs may be added: not if a column with a NaN has footer statistics."""
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
        """Write the buffered rows as a row group."""
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
        """The size in memory of the next row group: what is left to the target size, by the compression so far."""
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
        """Close the file without finishing it; the caller deletes it."""
        self._pending = []
        close_quietly(*(() if self._writer is None else (self._writer,)), self._sink)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetOptions:
    """The options of a Parquet writer."""

    stored: Stored
    row_group_bytes: int
    blooms: Mapping[str, float]  # the false positive rate, by path
    bloom_bytes: int
    settings: Mapping[str, Any]

    def begin(self, sink: Any, unmeasured: frozenset[int], group_rows: int, footers: list[Any]) -> Any:
        """A writer of one file; ``unmeasured`` columns have no statistics in its footer."""
        blooms = {path: {"fpp": fpp, "ndv": self._distinct(fpp, group_rows)} for path, fpp in self.blooms.items()}
        measured = [path for id_, path in self.stored.paths.items() if id_ not in unmeasured]
        return pq.ParquetWriter(
            sink,
            self.stored.schema,
            write_statistics=measured if len(unmeasured) > 0 else True,
            metadata_collector=footers,
            **({} if len(blooms) == 0 else {"bloom_filter_options": blooms}),
            **self.settings,
        )

    def _distinct(self, fpp: float, rows: int) -> int:
        """The number of values that a Bloom filter is made for: all rows of a group, limited by its allowed size."""
        most = -self.bloom_bytes * math.log(1 - fpp ** (1 / 8))
        return max(1, min(rows, int(most)))


def parquet_options(layout: Layout) -> ParquetOptions:
    """The options that a table's schema and properties ask for."""
    properties = layout.properties
    stored: Stored = derived(layout.schema, "parquet", stored_form)
    group = PARQUET_ROW_GROUP_SIZE.of(properties)
    return ParquetOptions(
        stored=stored,
        row_group_bytes=min(group, layout.target_bytes),
        blooms=_blooms(layout.schema, properties, stored.paths),
        bloom_bytes=PARQUET_BLOOM_MAX_BYTES.of(properties),
        settings={
            **_compression(properties),
            "data_page_size": PARQUET_PAGE_SIZE.of(properties),
            **_page_rows(properties),
            "dictionary_pagesize_limit": PARQUET_DICT_SIZE.of(properties),
            "store_schema": False,
            "store_decimal_as_integer": True,
            "use_compliant_nested_type": True,
            "write_page_checksum": True,
            "write_page_index": True,
        },
    )


def _page_rows(properties: Mapping[str, str]) -> dict[str, Any]:
    """The largest number of rows of a page; an older Arrow limits pages only by size."""
    rows = PARQUET_PAGE_ROWS.of(properties)
    return {"max_rows_per_page": rows} if "max_rows_per_page" in _KNOWN else {}


def _compression(properties: Mapping[str, str]) -> dict[str, Any]:
    codec = PARQUET_COMPRESSION.of(properties)
    if codec not in _LEVELLED:  # other codecs have no levels
        return {"compression": "none" if codec == "uncompressed" else codec}
    text, name = PARQUET_COMPRESSION_LEVEL.of(properties), PARQUET_COMPRESSION_LEVEL.name
    if text == "":
        return {"compression": codec}
    level = int(text)
    lowest, highest = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    if not lowest <= level <= highest:
        raise InputError(f"property {name}: {codec} has levels {lowest} to {highest}, not {level}", property=name)
    return {"compression": codec, "compression_level": level}


def _blooms(schema: Schema, properties: Mapping[str, str], paths: Mapping[int, str]) -> dict[str, float]:
    """The columns that get a Bloom filter, with its rate; names of columns that the table lacks are ignored."""
    rates: dict[str, float] = {}
    for name in properties:
        if not name.startswith(PARQUET_BLOOM_COLUMN) or not Property(name, False).of(properties):
            continue
        column = schema.by_name.get(name.removeprefix(PARQUET_BLOOM_COLUMN))
        if column is None:
            continue
        if column.id not in paths or not is_primitive(column.type) or column.type == BOOLEAN:
            raise InputError(f"property {name}: a column of type {column.type} has no Bloom filter", property=name)
        if "bloom_filter_options" not in _KNOWN:
            raise UnsupportedError(f"property {name}: Bloom filters need a newer pyarrow", property=name)
        rates[paths[column.id]] = _rate(PARQUET_BLOOM_FPP_COLUMN + schema.names[column.id], properties)
    return rates


def _rate(name: str, properties: Mapping[str, str]) -> float:
    text = properties.get(name)
    try:
        rate = _FPP if text is None else float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < 1:
        raise InputError(f"property {name}: expected a number between 0 and 1, got {text!r}", property=name)
    return rate
