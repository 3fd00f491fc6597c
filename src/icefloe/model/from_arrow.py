"""Schemas read from Arrow: what users hand in when they create a table (spec: Schemas and Data Types).

Arrow has several types for one of ours (``string``, ``large_string``, a dictionary of strings); all of them are taken.
What the format cannot store is refused by name.
"""

from __future__ import annotations

import pyarrow as pa

from icefloe.errors import InputError, UnsupportedError
from icefloe.limits import DEFAULT
from icefloe.model.schema import Schema, fresh_ids
from icefloe.model.types import (
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
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)

FIELD_ID = b"PARQUET:field_id"

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
}


def schema_from_arrow(schema: pa.Schema) -> Schema:
    """The columns of an Arrow schema; ids are kept when every field has one and assigned afresh otherwise.

    >>> schema_from_arrow(pa.schema({"id": pa.int64(), "name": pa.large_string()})).field("name").type
    Primitive(name='string', since=1)
    """
    columns, numbered = fields_from_arrow(schema)
    return Schema(fields=columns if numbered else fresh_ids(columns))


def fields_from_arrow(schema: pa.Schema) -> tuple[tuple[Field, ...], bool]:
    """The columns of an Arrow schema, and whether every field had an id; those without have 0."""
    found: list[int | None] = []
    columns = tuple(_field(field, field.name, found, 0) for field in schema)
    return columns, None not in found


def _stored_id(field: pa.Field) -> int | None:
    text = None if field.metadata is None else field.metadata.get(FIELD_ID)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"column {field.name!r}: field id {text!r} is not a number", field=field.name) from error


def _field(field: pa.Field, name: str, found: list[int | None], depth: int) -> Field:
    """One Arrow field as a field of the format; ``name`` is its full name, for errors, ``found`` gets its id."""
    stored = _stored_id(field)
    found.append(stored)
    own = 0 if stored is None else stored
    return Field(own, field.name, _type(field.type, name, found, depth), not field.nullable)


def _type(type_: pa.DataType, name: str, found: list[int | None], depth: int) -> Type:
    if depth > DEFAULT.type_depth:
        raise InputError(f"column {name!r}: types are nested deeper than {DEFAULT.type_depth}", field=name)
    if isinstance(type_, pa.BaseExtensionType):
        return UUID if isinstance(type_, pa.UuidType) else _type(type_.storage_type, name, found, depth)
    if pa.types.is_dictionary(type_):
        return _type(type_.value_type, name, found, depth)
    if pa.types.is_struct(type_):
        inner = tuple(_field(child, f"{name}.{child.name}", found, depth + 1) for child in type_.fields)
        return Struct(inner)
    if is_list(type_):
        element = _field(type_.value_field, f"{name}.element", found, depth + 1)
        return List(element.id, element.type, element.required)
    if pa.types.is_map(type_):
        key = _field(type_.key_field, f"{name}.key", found, depth + 1)
        value = _field(type_.item_field, f"{name}.value", found, depth + 1)
        return Map(key.id, key.type, value.id, value.type, value.required)
    return _leaf(type_, name)


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
    if pa.types.is_timestamp(type_) and type_.unit != "ns":
        return TIMESTAMP if type_.tz is None else TIMESTAMPTZ
    hint = "; cast it to microseconds first" if getattr(type_, "unit", None) == "ns" else ""
    raise UnsupportedError(f"column {name!r}: Arrow type {type_} has no counterpart in the format{hint}", field=name)
