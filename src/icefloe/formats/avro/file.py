"""Reads Avro data files: runs of blocks, columns by id (spec: Appendix A, Avro).

Avro stores records one after another, so all bytes of a block are read whichever columns are wanted. A file has no
statistics. The headers of all blocks are read once before the rows, for their numbers of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyarrow import fs

from icefloe.codecs.avro.block_index import BlockPlace, Header, find_blocks, read_header
from icefloe.codecs.avro.compression import decompress
from icefloe.codecs.avro.container import Block
from icefloe.codecs.avro.data_rows import Projection, RowDecoder, fixed_bytes, project, typed
from icefloe.codecs.avro.file_schema import StoredSchema, stored_schema, takes_nothing
from icefloe.errors import CorruptFile, IcefloeError, LimitError, damaged
from icefloe.formats.parquet.field_ids import labelled
from icefloe.formats.read.batches import relabel, without_columns
from icefloe.formats.read.data_file import RowRange, StoredFile
from icefloe.formats.read.storage_errors import reading
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT, MIB, Limits
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

RUN_BYTES = 8 * MIB  # of blocks as they are stored, at least
GROUP_BYTES = 32 * MIB  # of blocks decompressed, which are decoded together
BATCH_FIXED_BYTES = 64 * MIB  # of values that take their full width even if they are null
_NEAR_BYTES, FAR_BYTES = 4 * 1024, 8 * MIB  # read at once while going through the blocks
KEPT_BYTES = 64 * MIB  # a file far away that is no larger is read once and kept
_MOST_EMPTY_ROWS = 2**31  # of records without a byte


class AvroFile(StoredFile):
    """An open Avro file; its row groups are runs of blocks."""

    is_columnar = False

    def __init__(self, source: _Source, stored: StoredSchema, schema: pa.Schema) -> None:
        super().__init__(schema)
        self._source = source
        self._decoder = RowDecoder(stored.plain)
        self._is_empty = takes_nothing(stored.plain)

    @cached_property
    def row_groups(self) -> tuple[RowRange, ...]:
        """The rows of each run of blocks."""
        groups, start, where = [], 0, self._source.location
        for index, run in enumerate(self._runs):
            groups.append(RowRange(group=index, start=start, rows=run.rows))
            start += run.rows
        if self._is_empty and start > _MOST_EMPTY_ROWS:
            raise LimitError(f"{where}: {start} records without a byte, limit {_MOST_EMPTY_ROWS}", location=where)
        return tuple(groups)

    @cached_property
    def _runs(self) -> list[_Run]:
        source = self._source
        return _runs(find_blocks(source.walk, source.header, source.size, source.location))

    def statistics(self, schema: Schema) -> pa.Table | None:
        """None: the format has no statistics."""
        return None

    def read(self, rows: RowRange, wanted: tuple[Field, ...], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a run; of nested columns only the fields that are wanted."""
        columns = project(self.schema, wanted)
        for blocks in self._block_groups(self._runs[rows.group]):
            if columns.typed.num_fields == 0:
                count = sum(block.count for block in blocks)
                yield from (without_columns(min(batch_rows, count - at)) for at in range(0, count, batch_rows))
            else:
                with _decoding(self._source.location):
                    decoded = self._decoder.decode(blocks, columns.plain)
                yield from self._batches(decoded, columns, batch_rows)

    def _batches(self, decoded: pa.StructArray, columns: Projection, batch_rows: int) -> Iterator[pa.RecordBatch]:
        width = max(1, fixed_bytes(columns.typed))
        at_once = len(decoded) if width * len(decoded) <= BATCH_FIXED_BYTES else max(1, BATCH_FIXED_BYTES // width)
        schema = pa.schema(list(columns.typed))
        for start in range(0, len(decoded), at_once):
            with _decoding(self._source.location):
                rows = typed(decoded.slice(start, at_once), columns.typed, self._source.location)
                batch = relabel(pa.RecordBatch.from_struct_array(rows), schema)
            for begin in range(0, batch.num_rows, batch_rows):
                yield batch.slice(begin, batch_rows)

    def _block_groups(self, run: _Run) -> Iterator[list[Block]]:
        """The blocks of a run, decompressed, as many at a time as are decoded together."""
        group: list[Block] = []
        size = 0
        data = self._source.fetch(run.offset, run.size)
        for place in run.blocks:
            block = self._block(data, run.offset, place)
            if len(group) > 0 and size + len(block.data) > GROUP_BYTES:
                yield group
                group, size = [], 0
            group.append(block)
            size += len(block.data)
        yield group

    def _block(self, data: bytes, offset: int, place: BlockPlace) -> Block:
        source, begin = self._source, place.offset - offset
        with _decoding(source.location):
            limit = source.limits.avro_block_bytes
            payload = decompress(data[begin : begin + place.size], source.header.codec, limit, source.location)
        if place.count > len(payload) and not self._is_empty:
            message = f"{source.location}: a block of {place.count} records in {len(payload)} bytes"
            raise CorruptFile(message, location=source.location)
        return Block(place.count, payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Consecutive blocks."""

    blocks: list[BlockPlace]

    @property
    def offset(self) -> int:
        return self.blocks[0].offset

    @property
    def size(self) -> int:
        return self.blocks[-1].offset + self.blocks[-1].size - self.offset

    @property
    def rows(self) -> int:
        return sum(block.count for block in self.blocks)


def _runs(places: list[BlockPlace]) -> list[_Run]:
    runs: list[list[BlockPlace]] = []
    for place in places:
        if len(runs) == 0 or runs[-1][-1].offset + runs[-1][-1].size - runs[-1][0].offset >= RUN_BYTES:
            runs.append([])
        runs[-1].append(place)
    return [_Run(blocks=blocks) for blocks in runs]


class _Source:
    """The bytes of a file. On remote storage every read is a request, so reads are large and their bytes are cached."""

    def __init__(self, file: Any, location: str, *, far: bool, limits: Limits) -> None:
        self.location = location
        self.limits = limits
        self.size = int(file.size())
        self._file = file
        self._window = (0, b"")
        self._at_once = FAR_BYTES if far else _NEAR_BYTES
        if far and self.size <= KEPT_BYTES:
            self._window = (0, self._read(0, self.size))
        self.header: Header = read_header(self.fetch, self.size, location)

    def fetch(self, offset: int, length: int) -> bytes:
        """Bytes from what is kept, or from the file; safe to call from several threads."""
        start, kept = self._window
        begin = offset - start
        if begin >= 0 and begin + length <= len(kept):
            return kept[begin : begin + length]
        return self._read(offset, length)

    def walk(self, offset: int, length: int) -> bytes:
        """The same for sequential reads: the bytes that follow are read ahead."""
        start, kept = self._window
        if offset < start or offset + length > start + len(kept):
            self._window = (offset, self._read(offset, min(max(length, self._at_once), self.size - offset)))
        return self.fetch(offset, length)

    def _read(self, offset: int, length: int) -> bytes:
        limit = self.limits.avro_block_bytes + RUN_BYTES
        if length > limit:
            raise LimitError(
                f"{self.location}: a block of {length} bytes at offset {offset}, limit {limit}", location=self.location
            )
        data = bytes(self._file.read_at(length, offset))
        if len(data) != length:
            raise CorruptFile(f"{self.location}: the file ends inside {length} bytes at offset {offset}")
        return data


@contextmanager
def open_avro(
    io: FileIO, location: str, mapping: NameMapping | None = None, *, use_threads: bool = True, limits: Limits = DEFAULT
) -> Iterator[StoredFile]:
    """An open Avro file; ``mapping`` gives ids to the columns of a file that has none.

    One thread reads it, with ``use_threads`` or without. Errors while it is read are raised as errors of this library.
    """
    files, path = io.arrow_path(location)
    with reading(location), files.open_input_file(path) as file:
        source = _Source(file, location, far=not isinstance(files, fs.LocalFileSystem), limits=limits)
        stored = stored_schema(source.header.schema, where=location, limits=limits)
        yield AvroFile(source, stored, labelled(stored.arrow, mapping, location))


@contextmanager
def _decoding(location: str) -> Iterator[None]:
    """Any error that damaged bytes cause in decoders is raised as an error of the file."""
    try:
        yield
    except IcefloeError:
        raise
    except Exception as error:
        raise damaged(error, f"cannot read data file {location}: {error!r:.200}", location=location) from error
