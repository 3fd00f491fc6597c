"""Writes Avro data files, block by block (spec: Appendix A, Avro).

Rows are encoded column by column and cut into compressed blocks. The format stores no statistics, so the writer
measures columns. Arrays and maps are written with their sizes in bytes, so readers can skip them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from icefloe.codecs.avro.block_index import MAGIC, SYNC_BYTES
from icefloe.codecs.avro.compression import compressor
from icefloe.codecs.avro.container import encoded_blocks
from icefloe.codecs.avro.encode import encode_metadata, encode_records, number
from icefloe.codecs.avro.schemas import avro_name, avro_schema
from icefloe.errors import InputError, UnsupportedError
from icefloe.formats.read.storage_errors import close_quietly, open_sink, writing
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.layout import Layout
from icefloe.formats.write.measure import Measurer
from icefloe.io.file_io import FileIO
from icefloe.limits import MIB
from icefloe.model.metadata.properties import AVRO_COMPRESSION, AVRO_COMPRESSION_LEVEL
from icefloe.model.schema.schema import Schema, derived
from icefloe.model.schema.types import UNKNOWN, List, Struct, Type, children, walk

AVRO = "avro"
BLOCK_BYTES = 16 * 1024  # before compression: readers decode blocks in parallel, so many small ones are faster
CODECS = {"gzip": "deflate", "zstd": "zstandard", "snappy": "snappy", "uncompressed": "null"}
_LEVELS = {"gzip": range(10), "zstd": range(1, 23)}
_WAITING_BYTES = 8 * MIB  # of rows that are encoded together
SLICE_ROWS, _SLICE_BYTES = 32 * 1024, 64 * MIB  # encoded at a time, which bounds the memory of encoding


class AvroWriter:
    """An open file: rows are buffered until a block is full."""

    def __init__(self, io: FileIO, location: str, layout: Layout, partition: tuple[object, ...] = ()) -> None:
        self.location = location
        self.pending_bytes = 0
        self.written_bytes = 0
        self._layout = layout
        self._partition = partition
        self._schema: dict[str, Any] = derived(layout.schema, AVRO, file_schema)
        codec, self._compress = _compression(layout.properties)
        self._measurer = Measurer(layout.schema)
        self._pending: list[pa.RecordBatch] = []
        self._rows = 0
        header = MAGIC + encode_metadata(
            {"avro.schema": msgspec.json.encode(self._schema), "avro.codec": codec.encode()}
        )
        # Locations of files are unique, so data does not contain this marker by chance.
        self._sync = hashlib.sha256(header + location.encode()).digest()[:SYNC_BYTES]
        self._sink = open_sink(io, location)
        self._write(header + self._sync)

    @property
    def is_full(self) -> bool:
        """Whether the file has reached its target size."""
        return self.written_bytes >= self._layout.target_bytes

    def takes(self, nans: Mapping[int, int]) -> bool:
        """Whether rows with these NaNs may go into this file: always."""
        return True

    def add(self, batch: pa.RecordBatch, nans: Mapping[int, int]) -> None:
        """Take rows that have the layout's schema."""
        self._measurer.add(batch)
        self._rows += batch.num_rows
        self._pending.append(batch)
        self.pending_bytes += batch.nbytes
        if self.pending_bytes >= min(_WAITING_BYTES, self._layout.target_bytes):
            self.flush()

    def flush(self) -> None:
        """Encode and write the buffered rows."""
        for batch in pa.Table.from_batches(self._pending, self._layout.rows).combine_chunks().to_batches():
            for rows in _slices(batch):
                self._write(b"".join(self._blocks(rows)))
        self._pending, self.pending_bytes = [], 0

    def _blocks(self, rows: pa.RecordBatch) -> Iterator[bytes]:
        try:
            encoded = encode_records(rows.to_struct_array(), self._schema, sized=True)
        except pa.ArrowCapacityError as error:
            raise InputError(f"rows are too large for an Avro file: {error}") from error
        for count, block in encoded_blocks(encoded, self._compress, BLOCK_BYTES):
            yield b"".join((number(count), number(len(block)), block, self._sync))

    def _write(self, data: bytes) -> None:
        with writing(self.location):
            self._sink.write(data)
            self.written_bytes += len(data)

    def close(self) -> WrittenFile:
        """Finish the file; it is not durable before ``FileIO.sync``."""
        self.flush()
        with writing(self.location):
            self._sink.close()
        return WrittenFile(
            location=self.location,
            size=self.written_bytes,
            file_format=AVRO,
            rows=self._rows,
            partition=self._partition,
            measures=self._measurer.measures(),
        )

    def abandon(self) -> None:
        """Close the file without finishing it; the caller deletes it."""
        self._pending = []
        close_quietly(self._sink)


def file_schema(schema: Schema) -> dict[str, Any]:
    """The Avro schema of files with these columns; columns that such a file cannot hold are refused by name."""
    for name, field in (("", None), *walk(schema.fields)):
        type_ = Struct(schema.fields) if field is None else field.type
        if isinstance(type_, List) and _takes_nothing(type_.element, type_.element_required):
            raise UnsupportedError(f"column {name!r}: Avro files have no lists of {type_.element}", field=name)
        names: dict[str, str] = {}
        for child in children(type_):
            spelled = avro_name(child.name)
            if spelled in names:
                message = f"columns {names[spelled]!r} and {child.name!r} have the same name {spelled!r} in Avro files"
                raise UnsupportedError(message, field=f"{name}.{child.name}" if field is not None else child.name)
            names[spelled] = child.name
    return avro_schema(schema)


def _takes_nothing(type_: Type, required: bool) -> bool:
    """Whether values take no bytes: a long list of them could not be distinguished from a damaged file."""
    if isinstance(type_, Struct):
        return required and all(_takes_nothing(field.type, field.required) for field in type_.fields)
    return type_ == UNKNOWN


def _compression(properties: Mapping[str, str]) -> tuple[str, Any]:
    name = AVRO_COMPRESSION.of(properties)
    levels = _LEVELS.get(name)
    text = "" if levels is None else AVRO_COMPRESSION_LEVEL.of(properties)  # the other codecs have no levels
    if text == "" or levels is None:
        return CODECS[name], compressor(CODECS[name])
    if int(text) not in levels:
        message = (
            f"property {AVRO_COMPRESSION_LEVEL.name}: {text!r} is not from {levels[0]} to {levels[-1]}, as for {name}"
        )
        raise InputError(message, property=AVRO_COMPRESSION_LEVEL.name)
    return CODECS[name], compressor(CODECS[name], int(text))


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    step = max(1, min(SLICE_ROWS, _SLICE_BYTES * batch.num_rows // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)
