"""An ORC data file as a reader sees it: stripes, their statistics, columns by id (spec: Appendix A, ORC).

Arrow reads the rows and shows the attributes of ORC types as metadata of fields. What the attributes say is done here:
ids, times of day kept as integers, UUIDs and fixed-length values kept as bytes, the unit of timestamps. Arrow reads
timestamps as 64 bits of nanoseconds only, so values before 1677 and after 2262 are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import orc

from icefloe.codecs.orc.attributes import BINARY_TYPE, ID, LENGTH, LONG_TYPE, TIMESTAMP_UNIT
from icefloe.codecs.orc.tail import OrcStripe, read_stripes
from icefloe.errors import (
    CorruptFile,
    FormatError,
    LimitError,
    UnsupportedError,
)
from icefloe.formats.orc.stats import stripe_stats
from icefloe.formats.parquet.field_ids import field_id, labelled, weight
from icefloe.formats.read.align import without_columns
from icefloe.formats.read.data_file import Piece, StoredFile, WholePieces
from icefloe.formats.read.relabel import relabel
from icefloe.formats.read.storage_errors import reading
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT
from icefloe.model.arrow.conform import FIELD_ID
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Struct

_OUT_OF_RANGE = "out of range for nanosecond"


class OrcFile(WholePieces):
    """An open ORC file; its pieces are its stripes."""

    def __init__(self, file: Any, stripes: tuple[OrcStripe, ...], schema: pa.Schema, location: str) -> None:
        super().__init__(schema)
        self._file = file
        self._stripes = stripes
        self._location = location
        self._by_name = _names_are_paths(list(schema))

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The stripes."""
        starts = np.cumsum([0, *(stripe.rows for stripe in self._stripes)]).tolist()
        return tuple(Piece(index=i, start=starts[i], rows=stripe.rows) for i, stripe in enumerate(self._stripes))

    def statistics(self, schema: Schema) -> pa.Table | None:
        """The statistics of the columns, one row for each stripe."""
        return stripe_stats(self._stripes, self._schema, schema)

    def read(self, piece: Piece, wanted: tuple[Field, ...], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a stripe; of structs only the fields that are wanted, lists and maps whole."""
        paths = _paths(list(self._schema), wanted, "")
        if len(paths) == 0:
            for start in range(0, piece.rows, batch_rows):
                yield without_columns(min(batch_rows, piece.rows - start))
            return
        stripe = self._file.read_stripe(piece.index, columns=paths if self._by_name else None)
        if stripe.num_rows != piece.rows:
            message = f"{self._location}: stripe {piece.index} has {stripe.num_rows} rows, and not {piece.rows}"
            raise CorruptFile(message, location=self._location)
        target = pa.schema(_pruned(list(self._schema), list(stripe.schema))) if self._by_name else self._schema
        columns = [self._converted(column, field) for column, field in zip(stripe.columns, target, strict=True)]
        rows = relabel(pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(target))]), target)
        for start in range(0, piece.rows, batch_rows):
            yield rows.slice(start, batch_rows)

    def _converted(self, column: pa.Array, field: pa.Field) -> pa.Array:
        try:
            return _as_type(column, field.type)
        except pa.ArrowInvalid as error:
            message = f"{self._location}: column {field.name!r} has values that are no {field.type}: {error}"
            raise CorruptFile(message, location=self._location, field=field.name) from error


def open_orc(
    io: FileIO, location: str, mapping: NameMapping | None = None, *, alone: bool = True
) -> AbstractContextManager[StoredFile]:
    """An open ORC file; ``mapping`` gives ids to the columns of a file that has none. ``alone`` or not, one thread
    reads it.
    """
    return _open(io, location, mapping)


@contextmanager
def _open(io: FileIO, location: str, mapping: NameMapping | None) -> Iterator[StoredFile]:
    """The open file; read errors are raised as errors of this library."""
    files, path = io.arrow_path(location)
    try:
        with reading(location), files.open_input_file(path) as source:
            stripes = read_stripes(lambda offset, length: source.read_at(length, offset), source.size())
            file = orc.ORCFile(source)
            schema = pa.schema([_presented(field, location, 0) for field in file.schema])
            yield OrcFile(file, stripes, labelled(schema, mapping, location), location)
    except CorruptFile as error:
        if _OUT_OF_RANGE not in str(error):
            raise
        raise UnsupportedError(f"{error}; such times are read from Parquet", location=location) from error


def _presented(field: pa.Field, location: str, depth: int) -> pa.Field:
    """A field of the file with its id, and the type that its attributes give it."""
    if depth > DEFAULT.type_depth:
        raise LimitError(f"{location}: types are nested deeper than {DEFAULT.type_depth}", location=location)
    marks = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
    type_ = _type(field.type, marks, location, depth + 1)
    metadata = {FIELD_ID: marks[ID].encode()} if ID in marks else None
    return pa.field(field.name, type_, metadata=metadata)


def _type(type_: pa.DataType, marks: Mapping[str, str], location: str, depth: int) -> pa.DataType:
    if isinstance(type_, pa.StructType):
        return pa.struct([_presented(child, location, depth) for child in type_])
    if isinstance(type_, pa.MapType):
        key, value = (_presented(child, location, depth) for child in (type_.key_field, type_.item_field))
        return pa.map_(key.with_name("key").with_nullable(False), value.with_name("value"))
    if isinstance(type_, pa.ListType):
        return pa.list_(_presented(type_.value_field, location, depth).with_name("element"))
    if pa.types.is_int64(type_) and marks.get(LONG_TYPE) == "TIME":
        return pa.time64("us")
    if pa.types.is_timestamp(type_):
        return pa.timestamp("ns" if marks.get(TIMESTAMP_UNIT) == "NANOS" else "us", type_.tz)
    length = {"UUID": "16", "FIXED": marks.get(LENGTH, "")}.get(marks.get(BINARY_TYPE, ""))
    if pa.types.is_binary(type_) and length is not None:
        if not length.isascii() or not length.isdigit() or not 0 < int(length) < 2**31:
            raise FormatError(f"{location}: {LENGTH} of a fixed-length column is {length!r}", location=location)
        return pa.binary(int(length))
    return type_


def _names_are_paths(fields: list[pa.Field]) -> bool:
    """Whether columns can be asked for by their names with dots between: no name has a dot itself, or comes twice."""
    names = [field.name for field in fields]
    if len(set(names)) < len(names) or any("." in name for name in names):
        return False
    return all(_names_are_paths(list(f.type)) for f in fields if isinstance(f.type, pa.StructType))


def _paths(fields: list[pa.Field], wanted: tuple[Field, ...], prefix: str) -> list[str]:
    """The columns to read from the file; for a struct without any of the fields, the field that is read fastest."""
    by_id: dict[int | None, Field] = {field.id: field for field in wanted}
    paths: list[str] = []
    for field in fields:
        target, path = by_id.get(field_id(field)), prefix + field.name
        if target is None:
            continue
        if not isinstance(target.type, Struct) or not isinstance(field.type, pa.StructType):
            paths.append(path)
            continue
        inside = _paths(list(field.type), target.type.fields, f"{path}.")
        paths.extend(inside if len(inside) > 0 else [_lightest(field, path)])
    return paths


def _lightest(field: pa.Field, path: str) -> str:
    """The column in a struct that is read fastest: any column shows which structs are null."""
    _, lightest = min(_weights(field, path), key=itemgetter(0))
    return lightest


def _weights(field: pa.Field, path: str) -> Iterator[tuple[int, str]]:
    if isinstance(field.type, pa.StructType) and field.type.num_fields > 0:
        for inner in field.type:
            yield from _weights(inner, f"{path}.{inner.name}")
    else:
        yield weight(field.type), path


def _pruned(fields: list[pa.Field], stored: list[pa.Field]) -> list[pa.Field]:
    """The labels of the fields that were read, where only some fields of a struct were."""
    by_name = {field.name: field for field in fields}
    return [_pruned_field(by_name[field.name], field) for field in stored]


def _pruned_field(field: pa.Field, stored: pa.Field) -> pa.Field:
    if not isinstance(field.type, pa.StructType):
        return field
    return field.with_type(pa.struct(_pruned(list(field.type), list(stored.type))))


def _as_type(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Values as Arrow read them, as the type that their attributes give them; the layout of nested ones is kept."""
    if array.offset > 0:  # what is below counts from the beginning of the buffers
        array = array.take(pa.array(np.arange(len(array))))
    if isinstance(type_, pa.StructType):
        inner = [_as_type(array.field(i), type_.field(i).type) for i in range(type_.num_fields)]
        return pa.Array.from_buffers(type_, len(array), array.buffers()[:1], array.null_count, 0, inner)
    if isinstance(type_, pa.MapType):
        pairs = [_as_type(array.keys, type_.key_type), _as_type(array.items, type_.item_type)]
        entries = pa.StructArray.from_arrays(pairs, fields=[type_.key_field, type_.item_field])
        return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, 0, [entries])
    if isinstance(type_, pa.ListType):
        values = _as_type(array.values, type_.value_type)
        return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, 0, [values])
    if array.type == type_:
        return array
    if pa.types.is_timestamp(type_):
        return _microseconds(array, type_)
    return array.view(type_) if pa.types.is_time(type_) else array.cast(type_)


def _microseconds(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Nanoseconds as microseconds, cut downwards as other readers do."""
    if len(array) == 0:
        return pa.array([], type_)
    validity, values = array.buffers()
    whole = np.frombuffer(values, np.int64, count=len(array)) // 1000
    return pa.Array.from_buffers(type_, len(array), [validity, pa.py_buffer(whole)], array.null_count)
