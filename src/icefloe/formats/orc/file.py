"""Reads ORC data files: stripes, their statistics, columns by id (spec: Appendix A, ORC).

Arrow reads the rows and presents the attributes of ORC types as metadata of fields. This module applies the attributes:
ids, times of day stored as integers, UUIDs and fixed-length values stored as bytes, the unit of timestamps. Arrow reads
timestamps as 64 bits of nanoseconds only, so values before 1677 and after 2262 are refused.

Statistics are used only where they are certain: not the bounds of floating-point columns that may hold a NaN, and those
of timestamps with a margin, because writers round times before 1970 differently.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import orc

from icefloe.codecs.orc.attributes import BINARY_TYPE, ID, LENGTH, LONG_TYPE, TIMESTAMP_UNIT
from icefloe.codecs.orc.tail import OrcColumn, OrcStripe, read_stripes
from icefloe.errors import (
    CorruptFile,
    FormatError,
    LimitError,
    UnsupportedError,
)
from icefloe.formats.column_stats import NOTHING, Known, Raw, statistics_of
from icefloe.formats.parquet.field_ids import Leaf, field_id, labelled, weight
from icefloe.formats.read.batches import relabel, without_columns
from icefloe.formats.read.data_file import RowRange, StoredFile
from icefloe.formats.read.promotion import readable
from icefloe.formats.read.storage_errors import reading
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT
from icefloe.model.arrow.conform import FIELD_ID
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Struct

_OUT_OF_RANGE = "out of range for nanosecond"
_MARGIN_MS = 1_000
_PER_MS = {"us": 1_000, "ns": 1_000_000}
_EXACT = decimal.Context(prec=76)


class OrcFile(StoredFile):
    """An open ORC file; its row groups are its stripes, which are read whole."""

    def __init__(self, file: Any, stripes: tuple[OrcStripe, ...], schema: pa.Schema, location: str) -> None:
        super().__init__(schema)
        self._file = file
        self._stripes = stripes
        self._location = location
        self._by_name = _names_are_paths(list(schema))

    @cached_property
    def row_groups(self) -> tuple[RowRange, ...]:
        """The rows of each stripe."""
        starts = np.cumsum([0, *(stripe.rows for stripe in self._stripes)]).tolist()
        return tuple(RowRange(group=i, start=starts[i], rows=stripe.rows) for i, stripe in enumerate(self._stripes))

    def statistics(self, schema: Schema) -> pa.Table | None:
        """The statistics of the columns, one row for each stripe."""
        return _stripe_stats(self._stripes, self.schema, schema)

    def read(self, rows: RowRange, wanted: tuple[Field, ...], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a stripe; of structs only the fields that are wanted, lists and maps whole."""
        paths = _paths(list(self.schema), wanted, "")
        if len(paths) == 0:
            for start in range(0, rows.rows, batch_rows):
                yield without_columns(min(batch_rows, rows.rows - start))
            return
        stripe = self._file.read_stripe(rows.group, columns=paths if self._by_name else None)
        if stripe.num_rows != rows.rows:
            message = f"{self._location}: stripe {rows.group} has {stripe.num_rows} rows, and not {rows.rows}"
            raise CorruptFile(message, location=self._location)
        target = pa.schema(_pruned(list(self.schema), list(stripe.schema))) if self._by_name else self.schema
        columns = [self._converted(column, field) for column, field in zip(stripe.columns, target, strict=True)]
        batch = relabel(pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(target))]), target)
        for start in range(0, rows.rows, batch_rows):
            yield batch.slice(start, batch_rows)

    def _converted(self, column: pa.Array, field: pa.Field) -> pa.Array:
        try:
            return _as_type(column, field.type)
        except pa.ArrowInvalid as error:
            message = f"{self._location}: column {field.name!r} has values that are no {field.type}: {error}"
            raise CorruptFile(message, location=self._location, field=field.name) from error


@contextmanager
def open_orc(
    io: FileIO, location: str, mapping: NameMapping | None = None, *, use_threads: bool = True
) -> Iterator[StoredFile]:
    """An open ORC file; ``mapping`` gives ids to the columns of a file that has none.

    One thread reads it, with ``use_threads`` or without. Errors while it is read are raised as errors of this library.
    """
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


def orc_leaves(schema: pa.Schema, key: bytes = FIELD_ID) -> Mapping[int, Leaf]:
    """The primitive columns of a file that are not inside a list or a map, by the field id in their metadata.

    The index of a column is its number among all columns of the file, nested ones and those around them included.
    """
    return dict(_leaves(list(schema), 1, key))


def _leaves(fields: list[pa.Field], number: int, key: bytes) -> Iterator[tuple[int, Leaf]]:
    for field in fields:
        id_ = (field.metadata or {}).get(key, b"")
        if isinstance(field.type, pa.StructType):
            yield from _leaves(list(field.type), number + 1, key)
        elif id_.isdigit() and field.type.num_fields == 0:
            yield int(id_), Leaf(index=number, type=field.type)
        number += _width(field.type)


def _width(type_: pa.DataType) -> int:
    """How many columns a field of this type has in the file, itself included."""
    if isinstance(type_, pa.MapType):
        return 1 + _width(type_.key_type) + _width(type_.item_type)
    return 1 + sum(_width(type_.field(i).type) for i in range(type_.num_fields))


def _stripe_stats(stripes: tuple[OrcStripe, ...], stored: pa.Schema, schema: Schema) -> pa.Table:
    """One row for each stripe: its record count and the statistics of the schema's columns."""
    leaves = orc_leaves(stored)
    counts = pa.array([stripe.rows for stripe in stripes], pa.int64())
    units = [_StripeStats(stripe=stripe, leaves=leaves) for stripe in stripes]
    return pa.table({"record_count": counts, **statistics_of(units, schema, None)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _StripeStats:
    """The statistics of one stripe."""

    stripe: OrcStripe
    leaves: Mapping[int, Leaf]

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The statistics of a column in the stripe; none if absent or of another type."""
        leaf = self.leaves.get(column.id)
        if leaf is None or leaf.index >= len(self.stripe.columns):
            return NOTHING
        statistics = self.stripe.columns[leaf.index]
        lower, upper = _bounds(statistics, leaf.type, type_)
        return Known(
            values=self.stripe.rows,
            nulls=None if statistics.values is None else self.stripe.rows - statistics.values,
            nans=0 if statistics.no_nans else None,
            lower=lower,
            upper=upper,
        )


def _bounds(statistics: OrcColumn, file_type: pa.DataType, table_type: pa.DataType) -> tuple[Raw | None, Raw | None]:
    """The bounds as comparable values of the table's type; none if the file's type cannot be read as that."""
    if statistics.lower is None or statistics.upper is None or not readable(file_type, table_type):
        return None, None
    if pa.types.is_timestamp(table_type):
        if not pa.types.is_timestamp(file_type):  # a date column promoted to timestamp
            return None, None
        per_ms = _PER_MS[table_type.unit]
        ends = (statistics.lower - _MARGIN_MS) * per_ms, (statistics.upper + _MARGIN_MS + 1) * per_ms
    elif pa.types.is_decimal(table_type):
        ends = _unscaled(statistics.lower, table_type.scale), _unscaled(statistics.upper, table_type.scale)
    else:
        ends = statistics.lower, statistics.upper
    return ends if all(_is_value(end, table_type) for end in ends) else (None, None)


def _is_value(value: Raw | None, type_: pa.DataType) -> bool:
    """Whether a bound is valid for the type: a damaged file may contain anything."""
    kinds = pa.types
    if kinds.is_boolean(type_) or kinds.is_floating(type_):
        return isinstance(value, bool if kinds.is_boolean(type_) else float)
    if kinds.is_string(type_):
        return isinstance(value, bytes)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    if kinds.is_decimal(type_):
        return bool(abs(value) < 10**type_.precision)
    whole = kinds.is_integer(type_) or kinds.is_temporal(type_)
    return bool(whole and -(2 ** (type_.bit_width - 1)) <= value < 2 ** (type_.bit_width - 1))


def _unscaled(text: Raw, scale: int) -> int | None:
    """A decimal written as text, as the integer that it is without its point; none if it has more digits."""
    try:
        scaled = decimal.Decimal(str(text, "ascii") if isinstance(text, bytes) else "NaN").scaleb(scale, _EXACT)
    except (decimal.DecimalException, UnicodeDecodeError):
        return None
    return int(scaled) if scaled.is_finite() and scaled == scaled.to_integral_value() else None
