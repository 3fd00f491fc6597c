"""Schemas read from Arrow, as users pass them to create a table (spec: Schemas and Data Types).

Arrow has several types for one of ours (``string``, ``large_string``, a dictionary of strings); all of them are taken.
What the format cannot store is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from icefloe.errors import InputError, UnsupportedError
from icefloe.limits import DEFAULT
from icefloe.model.arrow.field_metadata import FIELD_ID, marked_defaults, marked_doc, marked_id, marked_type
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION
from icefloe.model.schema.schema import Schema, fresh_ids
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_DECIMAL_PRECISION,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    since,
)

__all__ = ["FIELD_ID", "fields_from_arrow", "is_list", "schema_from_arrow"]

_SIMPLE: dict[pa.DataType, Primitive] = {
    pa.bool_(): BOOLEAN,
    pa.int8(): INT,
    pa.int16(): INT,
    pa.int32(): INT,
    pa.uint8(): INT,
    pa.uint16(): INT,
    pa.int64(): LONG,
    pa.uint32(): LONG,
    pa.float16(): FLOAT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.date32(): DATE,
    pa.time32("s"): TIME,
    pa.time32("ms"): TIME,
    pa.time64("us"): TIME,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    pa.null(): UNKNOWN,
}


def schema_from_arrow(schema: pa.Schema, *, format_version: int = DEFAULT_FORMAT_VERSION) -> Schema:
    """The columns of an Arrow schema; ids are kept if every field has one and newly assigned otherwise.

    Types that need format version 3, such as timestamps in nanoseconds, are allowed if ``format_version`` has them.

    >>> schema_from_arrow(pa.schema({"id": pa.int64(), "name": pa.large_string()})).field("name").type
    Primitive(name='string', since=1)
    >>> str(schema_from_arrow(pa.schema({"at": pa.timestamp("ns")}), format_version=3).field("at").type)
    'timestamp_ns'
    """
    columns, numbered = fields_from_arrow(schema, format_version=format_version)
    return Schema(fields=columns if numbered else fresh_ids(columns))


def fields_from_arrow(
    schema: pa.Schema, *, format_version: int = DEFAULT_FORMAT_VERSION
) -> tuple[tuple[Field, ...], bool]:
    """The columns of an Arrow schema, and whether every field had an id; those without have 0."""
    reader = _Reader(format_version, [])
    columns = tuple(reader.field(field, field.name, 0) for field in schema)
    return columns, None not in reader.ids


@dataclass(frozen=True, slots=True)
class _Reader:
    """One reading of an Arrow schema; ``ids`` gets the id of every field, or none. Names are full, for errors."""

    format_version: int
    ids: list[int | None]

    def field(self, field: pa.Field, name: str, depth: int) -> Field:
        id_ = marked_id(field)
        self.ids.append(id_)
        type_ = marked_type(field, name)
        read = self._type(field.type, name, depth) if type_ is None else self._allowed(type_, field.type, name)
        initial, write = marked_defaults(field, name)
        return Field(
            *(0 if id_ is None else id_, field.name, read, not field.nullable),
            doc=marked_doc(field),
            initial_default=initial,
            write_default=write,
        )

    def _type(self, type_: pa.DataType, name: str, depth: int) -> Type:
        if depth > DEFAULT.type_depth:
            raise InputError(f"column {name!r}: types are nested deeper than {DEFAULT.type_depth}", field=name)
        if isinstance(type_, pa.BaseExtensionType):
            return self._type(type_.storage_type, name, depth)
        if pa.types.is_dictionary(type_):
            return self._type(type_.value_type, name, depth)
        if pa.types.is_struct(type_):
            return Struct(tuple(self.field(child, f"{name}.{child.name}", depth + 1) for child in type_.fields))
        if is_list(type_):
            element = self.field(type_.value_field, f"{name}.element", depth + 1)
            return List(element.id, element.type, element.required)
        if pa.types.is_map(type_):
            key = self.field(type_.key_field, f"{name}.key", depth + 1)
            value = self.field(type_.item_field, f"{name}.value", depth + 1)
            return Map(key.id, key.type, value.id, value.type, value.required)
        return self._allowed(_leaf(type_, name), type_, name)

    def _allowed(self, type_: Type, source_type: pa.DataType, name: str) -> Type:
        if since(type_) <= self.format_version:
            return type_
        cast = " or cast it to microseconds first" if type_ in (TIMESTAMP_NS, TIMESTAMPTZ_NS) else ""
        raise UnsupportedError(
            f"column {name!r}: Arrow {source_type} is the type {type_} of format version {since(type_)}; "
            f"ask for format_version={since(type_)}{cast}",
            field=name,
        )


def is_list(type_: pa.DataType) -> bool:
    """Whether an Arrow type is a list; list views are not, as Arrow cannot cast them safely."""
    kinds = pa.types
    return bool(kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_))


def _leaf(type_: pa.DataType, name: str) -> Type:
    if (simple := _SIMPLE.get(type_)) is not None:
        return simple
    if pa.types.is_fixed_size_binary(type_):
        return Fixed(type_.byte_width)
    if pa.types.is_decimal(type_) and type_.precision <= MAX_DECIMAL_PRECISION and 0 <= type_.scale <= type_.precision:
        return Decimal(type_.precision, type_.scale)
    if pa.types.is_timestamp(type_):
        local, instant = (TIMESTAMP_NS, TIMESTAMPTZ_NS) if type_.unit == "ns" else (TIMESTAMP, TIMESTAMPTZ)
        return local if type_.tz is None else instant
    hint = "; cast it to microseconds first" if getattr(type_, "unit", None) == "ns" else ""
    raise UnsupportedError(f"column {name!r}: Arrow type {type_} has no counterpart in the format{hint}", field=name)
