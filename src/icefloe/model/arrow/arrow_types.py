"""Iceberg types and schemas as Arrow types and schemas (spec: Schemas and Data Types).

Every field at every depth has its id under the metadata key of Parquet, ``PARQUET:field_id``, so a Parquet writer needs
only the Arrow schema. ``schema_from_arrow`` converts it back without loss.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from icefloe.model.arrow.field_metadata import field_marks
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.schema import Schema, derived

# Variants are stored unshredded: the names of their fields, then their encoded values.
VARIANT_PARTS = (pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False))

_ARROW: dict[iceberg.Primitive, pa.DataType] = {
    iceberg.BOOLEAN: pa.bool_(),
    iceberg.INT: pa.int32(),
    iceberg.LONG: pa.int64(),
    iceberg.FLOAT: pa.float32(),
    iceberg.DOUBLE: pa.float64(),
    iceberg.DATE: pa.date32(),
    iceberg.TIME: pa.time64("us"),
    iceberg.TIMESTAMP: pa.timestamp("us"),
    iceberg.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    iceberg.TIMESTAMP_NS: pa.timestamp("ns"),
    iceberg.TIMESTAMPTZ_NS: pa.timestamp("ns", tz="UTC"),
    iceberg.STRING: pa.string(),
    iceberg.UUID: pa.binary(16),
    iceberg.BINARY: pa.binary(),
    iceberg.UNKNOWN: pa.null(),
}


def arrow_type(type_: iceberg.Type) -> pa.DataType:
    """The Arrow type that holds values of a type; fields inside it carry their ids.

    >>> arrow_type(iceberg.Decimal(9, 2))
    Decimal128Type(decimal128(9, 2))
    """
    return _ARROW[type_] if isinstance(type_, iceberg.Primitive) else iceberg.fold_type(type_, _built)


def _built(type_: iceberg.Type, inner: tuple[pa.DataType, ...]) -> pa.DataType:
    fields = [_field(child, built) for child, built in zip(iceberg.children(type_), inner, strict=True)]
    match type_:
        case iceberg.Primitive():
            return _ARROW[type_]
        case iceberg.Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case iceberg.Fixed(length):
            return pa.binary(length)
        case iceberg.Geometry() | iceberg.Geography():
            return pa.binary()
        case iceberg.Variant():
            return pa.struct(VARIANT_PARTS)
        case iceberg.Struct() | iceberg.List() | iceberg.Map():
            return nested_type(type_, fields)


def nested_type(type_: iceberg.Struct | iceberg.List | iceberg.Map, fields: Sequence[pa.Field]) -> pa.DataType:
    """The Arrow type of a struct, list or map whose fields, element, or key and value are these."""
    match type_:
        case iceberg.Struct():
            return pa.struct(fields)
        case iceberg.List():
            return pa.list_(*fields)
        case iceberg.Map():
            return pa.map_(fields[0].with_nullable(False), fields[1])


def _field(field: iceberg.Field, type_: pa.DataType) -> pa.Field:
    return pa.field(field.name, type_, nullable=not field.required, metadata=field_marks(field))


def arrow_field(field: iceberg.Field) -> pa.Field:
    """A column or nested field in Arrow, with its id, its comment and its defaults."""
    return _field(field, arrow_type(field.type))


def arrow_schema(schema: Schema) -> pa.Schema:
    """The columns of a table in Arrow, every field at every depth with its id.

    >>> arrow_schema(Schema(fields=(iceberg.Field(1, "id", iceberg.LONG, True),))).field("id").metadata
    {b'PARQUET:field_id': b'1'}
    """
    return derived(schema, "arrow", _arrow_schema)


def _arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([arrow_field(field) for field in schema.fields])


def nulls(type_: iceberg.Type, length: int) -> pa.Array:
    """Nulls of a type, such that required fields below a null struct hold no null themselves.

    Parquet writers look at the flag of a field alone and refuse ``pyarrow.nulls`` of such a struct.

    >>> nulls(iceberg.Struct((iceberg.Field(1, "a", iceberg.STRING, True),)), 2).field(0).null_count
    0
    """
    if isinstance(type_, iceberg.Variant):
        values, fields = [pa.nulls(length, part.type) for part in VARIANT_PARTS], list(VARIANT_PARTS)
    elif isinstance(type_, iceberg.Struct):
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
