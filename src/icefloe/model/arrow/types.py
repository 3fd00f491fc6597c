"""The format's types as Arrow types (spec: Schemas and Data Types).

Field ids travel in the metadata key that Parquet readers and writers use, ``PARQUET:field_id``, at every depth, so an
Arrow schema made here is all that a Parquet writer needs. ``schema_from_arrow`` reads it back whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from icefloe.model.arrow.field_metadata import field_marks
from icefloe.model.schema.schema import Schema, derived
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    Variant,
    children,
    fold_type,
)

# Variants are stored unshredded: the names of their fields, then their encoded values.
VARIANT_PARTS = (pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False))

_ARROW: dict[Primitive, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    INT: pa.int32(),
    LONG: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    DATE: pa.date32(),
    TIME: pa.time64("us"),
    TIMESTAMP: pa.timestamp("us"),
    TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_NS: pa.timestamp("ns"),
    TIMESTAMPTZ_NS: pa.timestamp("ns", tz="UTC"),
    STRING: pa.string(),
    UUID: pa.binary(16),
    BINARY: pa.binary(),
    UNKNOWN: pa.null(),
}


def arrow_type(type_: Type) -> pa.DataType:
    """The Arrow type that holds values of a type; fields inside it carry their ids.

    >>> arrow_type(Decimal(9, 2))
    Decimal128Type(decimal128(9, 2))
    """
    return _ARROW[type_] if isinstance(type_, Primitive) else fold_type(type_, _built)


def _built(type_: Type, inner: tuple[pa.DataType, ...]) -> pa.DataType:
    fields = [_field(child, built) for child, built in zip(children(type_), inner, strict=True)]
    match type_:
        case Primitive():
            return _ARROW[type_]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Fixed(length):
            return pa.binary(length)
        case Geometry() | Geography():
            return pa.binary()
        case Variant():
            return pa.struct(VARIANT_PARTS)
        case Struct() | List() | Map():
            return nested_type(type_, fields)


def nested_type(type_: Struct | List | Map, fields: Sequence[pa.Field]) -> pa.DataType:
    """The Arrow type of a struct, list or map whose fields, element, or key and value are these."""
    match type_:
        case Struct():
            return pa.struct(fields)
        case List():
            return pa.list_(*fields)
        case Map():
            return pa.map_(fields[0].with_nullable(False), fields[1])


def _field(field: Field, type_: pa.DataType) -> pa.Field:
    return pa.field(field.name, type_, nullable=not field.required, metadata=field_marks(field))


def arrow_field(field: Field) -> pa.Field:
    """A column or nested field in Arrow, with its id, its comment and its defaults."""
    return _field(field, arrow_type(field.type))


def arrow_schema(schema: Schema) -> pa.Schema:
    """The columns of a table in Arrow, every field at every depth with its id.

    >>> arrow_schema(Schema(fields=(Field(1, "id", LONG, True),))).field("id").metadata
    {b'PARQUET:field_id': b'1'}
    """
    return derived(schema, "arrow", _arrow_schema)


def _arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([arrow_field(field) for field in schema.fields])


def nulls(type_: Type, length: int) -> pa.Array:
    """Nulls of a type, such that required fields below a null struct hold no null themselves.

    Parquet writers look at the flag of a field alone and refuse ``pyarrow.nulls`` of such a struct.

    >>> nulls(Struct((Field(1, "a", STRING, True),)), 2).field(0).null_count
    0
    """
    if isinstance(type_, Variant):
        values, fields = [pa.nulls(length, part.type) for part in VARIANT_PARTS], list(VARIANT_PARTS)
    elif isinstance(type_, Struct):
        values = [nulls(field.type, length) for field in type_.fields]
        fields = [arrow_field(field) for field in type_.fields]
    else:
        return pa.nulls(length, arrow_type(type_))
    return struct_array(values, fields, pa.repeat(True, length))


def struct_array(values: list[pa.Array], fields: list[pa.Field], mask: pa.Array) -> pa.StructArray:
    """A struct array whose required fields have no nulls; ``values`` may have them where the struct is null."""
    pairs = zip(values, fields, strict=True)
    checked = [array if field.nullable else _without_nulls(array) for array, field in pairs]
    return pa.StructArray.from_arrays(checked, fields=fields, mask=mask)


def _without_nulls(array: pa.Array) -> pa.Array:
    """The array without its validity bitmap: null slots hold arbitrary values, which must not be used."""
    if array.null_count == 0:
        return array
    if pa.types.is_struct(array.type):
        inner = [array.field(i) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(inner, fields=list(array.type))
    nested = pa.types.is_list(array.type) or pa.types.is_map(array.type)
    buffers = [None, *(array.buffers()[1:2] if nested else array.buffers()[1:])]
    below = [_entries(array)] if pa.types.is_map(array.type) else [array.values] if nested else None
    return pa.Array.from_buffers(array.type, len(array), buffers, 0, array.offset, below)


def _entries(array: pa.MapArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([array.keys, array.items], fields=[array.type.key_field, array.type.item_field])
