"""Writes ORC data files, stripe by stripe (spec: Appendix A, ORC).

Arrow stores the metadata of fields as attributes of ORC types: every field at every depth has its id, whether it is
required, and the part of its type that ORC types do not express. Columns of type unknown are not stored. Arrow reads
timestamps as 64 bits of nanoseconds, so values before 1677 or after 2262 are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from icefloe.codecs.orc.attributes import ID, orc_attributes
from icefloe.codecs.orc.tail import read_stripes
from icefloe.errors import InputError, UnsupportedError
from icefloe.formats.orc.file import orc_leaves
from icefloe.formats.read.batches import relabel
from icefloe.formats.read.storage_errors import close_quietly, open_sink, writing
from icefloe.formats.write.entries import WrittenFile
from icefloe.formats.write.layout import Layout
from icefloe.formats.write.measure import Measurer
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.arrow_types import nested_type
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.metadata.properties import (
    ORC_BLOOM_COLUMNS,
    ORC_BLOOM_FPP,
    ORC_COMPRESSION,
    ORC_STRATEGY,
    ORC_STRIPE_SIZE,
)
from icefloe.model.schema.schema import Schema, derived
from icefloe.model.schema.types import TIME, UNKNOWN, Field, List, Map, Struct, Type, children, walk

ORC = "orc"
CODECS = {"zlib": "zlib", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd", "none": "uncompressed"}
_BATCH_ROWS = 16 * 1024
_DICTIONARY_SHARE = 0.8  # a text column gets a dictionary if it has at most this share of distinct values
_SECONDS = 2**63 // 10**9  # what Arrow's nanoseconds can count either way
_PER_SECOND = {"us": 10**6, "ns": 10**9}


class OrcWriter:
    """An open file; Arrow's writer buffers rows until they fill a stripe."""

    def __init__(self, io: FileIO, location: str, layout: Layout, partition: tuple[object, ...] = ()) -> None:
        self.location = location
        self.pending_bytes = 0
        self.written_bytes = 0
        self._io = io
        self._layout = layout
        self._partition = partition
        self._stored: pa.Schema = derived(layout.schema, ORC, stored_schema)
        self._stripe_bytes = min(ORC_STRIPE_SIZE.of(layout.properties), layout.target_bytes)
        settings = _settings(layout, self._stored)
        self._measurer = Measurer(layout.schema)
        self._rows = 0
        self._size: int | None = None  # of the finished file
        self._sink = _Sink(open_sink(io, location))
        self._writer = orc.ORCWriter(pa.PythonFile(self._sink, mode="w"), stripe_size=self._stripe_bytes, **settings)

    @property
    def is_full(self) -> bool:
        """Whether the file has reached its target size, or was finished early."""
        return self._size is not None or self.written_bytes >= self._layout.target_bytes

    def takes(self, nans: Mapping[int, int]) -> bool:
        """Whether more rows may go into this file, which NaNs never prevent."""
        return self._size is None

    def add(self, batch: pa.RecordBatch, nans: Mapping[int, int]) -> None:
        """Take rows that have the layout's schema."""
        for field, column in zip(self._layout.schema.fields, batch.columns, strict=True):
            _check_times(column, field.name)
        self._measurer.add(batch)
        self._rows += batch.num_rows
        self._write(_without_unknown(batch, self._layout.schema))
        here = self._sink.tell()
        waiting = batch.nbytes if here > self.written_bytes else self.pending_bytes + batch.nbytes
        self.pending_bytes, self.written_bytes = min(waiting, self._stripe_bytes), here

    def flush(self) -> None:
        """Write the waiting rows; Arrow only does so at the end of a file, so this file is finished with them."""
        if self._rows > 0:
            self._finish()

    def close(self) -> WrittenFile:
        """Finish the file; it is not durable before ``FileIO.sync``."""
        self._finish()
        size = self.written_bytes if self._size is None else self._size
        stripes = read_stripes(lambda offset, length: self._io.read_range(self.location, offset, length), size)
        return WrittenFile(
            location=self.location,
            size=size,
            file_format=ORC,
            rows=self._rows,
            partition=self._partition,
            measures=self._measurer.measures(),
            split_offsets=tuple(stripe.offset for stripe in stripes),
        )

    def abandon(self) -> None:
        """Close the file without finishing it; the caller deletes it."""
        self._sink.ignore()
        close_quietly(self._writer, self._sink.inner)

    def _write(self, batch: pa.RecordBatch) -> None:
        columns = [column if column.type.num_fields == 0 else _plain(column) for column in batch.columns]
        batch = pa.RecordBatch.from_arrays(columns, names=[str(number) for number in range(len(columns))])
        with writing(self.location):
            self._writer.write(pa.Table.from_batches([relabel(batch, self._stored)]))
            self._sink.check()

    def _finish(self) -> None:
        if self._size is not None:
            return
        with writing(self.location):
            if self._rows == 0:  # a file without rows still has its columns
                self._writer.write(self._stored.empty_table())
            self._writer.close()
            self._sink.check()
            self._size = self._sink.tell()
            self._sink.finish()
        self.pending_bytes, self.written_bytes = 0, self._size


class _Sink:
    """An output stream that hides errors from Arrow, whose writer ends the process if a write fails while it closes.

    Bytes written after an error are discarded; ``check`` raises the error.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.closed = False
        self._position = 0
        self._error: Exception | None = None

    def write(self, data: Any) -> int:
        """Write bytes; all are counted, also those that are discarded."""
        if self._error is None:
            try:
                self.inner.write(data)
            except Exception as error:
                self._error = error
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """The number of bytes so far."""
        return self._position

    def flush(self) -> None:
        """The stream below is flushed when it is closed."""

    def close(self) -> None:
        """The stream below is closed by ``finish``."""
        self.closed = True

    def finish(self) -> None:
        """Close the stream; errors are raised."""
        self.inner.close()

    def check(self) -> None:
        """Raise the error of an earlier write, if there was one."""
        if self._error is not None:
            raise self._error

    def ignore(self) -> None:
        """Discard bytes that are written from now on."""
        self._error = self._error or OSError("the file is abandoned")


def stored_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema for a file of these columns: types that ORC has, and attributes as metadata."""
    kept = Schema(fields=tuple(_kept_field(field, field.name) for field in schema.fields if field.type != UNKNOWN))
    return pa.schema([_stored(field) for field in kept.fields])


def _kept_field(field: Field, name: str) -> Field:
    """A field without the fields of type unknown inside structs, refused inside lists and maps."""
    match field.type:
        case Struct(fields):
            inner = tuple(_kept_field(child, f"{name}.{child.name}") for child in fields if child.type != UNKNOWN)
            return replace(field, type=Struct(inner))
        case List() | Map():
            for inside, nested in walk(children(field.type)):
                if nested.type == UNKNOWN:
                    message = f"column {f'{name}.{inside}'!r}: ORC files have no lists or maps of type unknown"
                    raise UnsupportedError(message, field=name)
    return field


def _stored(field: Field) -> pa.Field:
    return pa.field(field.name, _stored_type(field.type), metadata=orc_attributes(field))


def _stored_type(type_: Type) -> pa.DataType:
    if isinstance(type_, (Struct, List, Map)):
        return nested_type(type_, [_stored(child) for child in children(type_)])
    return pa.int64() if type_ == TIME else arrow_type(type_)


def _settings(layout: Layout, stored: pa.Schema) -> dict[str, Any]:
    """The writer settings in a table's properties."""
    properties = layout.properties
    return {
        "batch_size": _BATCH_ROWS,
        "compression": CODECS[ORC_COMPRESSION.of(properties)],
        "compression_strategy": ORC_STRATEGY.of(properties),
        "dictionary_key_size_threshold": _DICTIONARY_SHARE,
        "bloom_filter_columns": _bloom_columns(layout, stored),
        "bloom_filter_fpp": float(ORC_BLOOM_FPP.of(properties)),
    }


def _bloom_columns(layout: Layout, stored: pa.Schema) -> list[int] | None:
    """The numbers of the columns that get bloom filters."""
    names = [name.strip() for name in ORC_BLOOM_COLUMNS.of(layout.properties).split(",") if name.strip() != ""]
    leaves, by_name = orc_leaves(stored, ID.encode()), layout.schema.by_name
    for name in names:
        if name not in by_name or by_name[name].id not in leaves:
            message = f"property {ORC_BLOOM_COLUMNS.name}: {name!r} is no column that can have a bloom filter"
            raise InputError(message, property=ORC_BLOOM_COLUMNS.name, field=name)
    return [leaves[by_name[name].id].index for name in names] if len(names) > 0 else None


def _check_times(array: pa.Array, name: str) -> None:
    """Refuse timestamps that Arrow cannot read."""
    type_ = array.type
    if pa.types.is_timestamp(type_):
        ends = pc.min_max(array.cast(pa.int64()))
        least, greatest = ends["min"].as_py(), ends["max"].as_py()
        limit = _SECONDS * _PER_SECOND[type_.unit]
        if least is not None and not -limit <= least <= greatest < limit:
            message = (
                f"column {name!r}: {'/'.join(str(ends[e].cast(type_)) for e in ('min', 'max'))} is out of range; ORC "
                "files hold times from 1677-09-21 to 2262-04-11: set write.format.default to parquet for others"
            )
            raise InputError(message, field=name)
    elif pa.types.is_struct(type_):
        for child, values in zip(type_, array.flatten(), strict=True):
            _check_times(values, f"{name}.{child.name}")
    elif pa.types.is_map(type_):
        _check_times(array.keys, f"{name}.key")
        _check_times(array.items, f"{name}.value")
    elif pa.types.is_list(type_):
        _check_times(array.flatten(), f"{name}.element")


def _plain(array: pa.Array) -> pa.Array:
    """Nested values as Arrow's writer needs them: no slices, and fields of null structs are null.

    The writer takes the nulls of a slice from the beginning of the whole array. It also writes values inside null
    structs, which ORC does not expect, so all later values are shifted.
    """
    array = array.take(pa.array(np.arange(len(array))))
    if pa.types.is_struct(array.type):
        inner = [_plain(values) if values.type.num_fields > 0 else values for values in array.flatten()]
        fields = [pa.field(str(number), values.type) for number, values in enumerate(inner)]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=array.is_null())
    if pa.types.is_map(array.type):
        inner = [_plain(values) if values.type.num_fields > 0 else values for values in (array.keys, array.items)]
        fields = [pa.field("key", inner[0].type, nullable=False), pa.field("value", inner[1].type)]
        entries = pa.StructArray.from_arrays(inner, fields=fields)
        return pa.Array.from_buffers(pa.map_(*fields), len(array), array.buffers()[:2], array.null_count, 0, [entries])
    values = _plain(array.values) if array.values.type.num_fields > 0 else array.values
    type_ = pa.list_(pa.field("element", values.type))
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, 0, [values])


def _without_unknown(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """The rows without columns, and fields of structs, of type unknown."""
    if not any(field.type == UNKNOWN for _, field in walk(schema.fields)):
        return batch
    kept = [(field, batch.column(i)) for i, field in enumerate(schema.fields) if field.type != UNKNOWN]
    columns = [_without_unknown_fields(column, field.type) for field, column in kept]
    return pa.RecordBatch.from_arrays(columns, names=[field.name for field, _ in kept])


def _without_unknown_fields(array: pa.Array, type_: Type) -> pa.Array:
    if not isinstance(type_, Struct):
        return array
    kept = [(i, field) for i, field in enumerate(type_.fields) if field.type != UNKNOWN]
    inner = [_without_unknown_fields(array.field(i), field.type) for i, field in kept]
    fields = [pa.field(field.name, values.type) for (_, field), values in zip(kept, inner, strict=True)]
    return pa.StructArray.from_arrays(inner, fields=fields, mask=array.is_null())
