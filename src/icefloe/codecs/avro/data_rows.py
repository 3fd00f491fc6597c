"""Records of Avro data files as Arrow columns (spec: Appendix A, Avro).

``project`` says which fields to read, ``RowDecoder`` decodes them as plain values, and ``typed`` converts these to the
types of the columns. Plain values are numbers, text and bytes instead of dates, times, decimals and fixed bytes, and
lists of pairs instead of maps. The fields of a plain type are named by their position in the file.

Many blocks are decoded side by side with numpy. If there are few blocks, or their types have no vectorized reader,
fastavro reads the records in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.avro.container import Block, records_of
from icefloe.codecs.avro.vectorized import decode_side_by_side
from icefloe.codecs.value.bounds import decode_bounds
from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.arrow.field_metadata import FIELD_ID
from icefloe.model.schema.types import Decimal, Field, Fixed, List, Map, Struct, Type

LEAST_LANES = 24  # with fewer blocks than this side by side, reading in order is faster


class RowDecoder:
    """Decodes blocks of records that have a plain schema (see ``file_schema``)."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self.together = True  # until a block cannot be decoded side by side

    def decode(self, blocks: list[Block], wanted: pa.StructType) -> pa.StructArray:
        """The wanted fields of all records, in order; ``wanted`` has the types and names of the plain schema."""
        counts = np.array([block.count for block in blocks], np.int64)
        if self.together and int(counts.sum()) >= LEAST_LANES * int(counts.max()):
            try:
                return decode_side_by_side([block.data for block in blocks], counts, self._plain, wanted)
            except UnsupportedError:
                self.together = False
        return _in_order(blocks, self._plain, wanted)


def _in_order(blocks: list[Block], plain: Any, wanted: pa.StructType) -> pa.StructArray:
    parsed = fastavro.parse_schema({"type": "array", "items": plain})
    # Block by block, so that few Python objects are alive at any time.
    return pa.concat_arrays([pa.array(records_of(block, parsed), wanted) for block in blocks])


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Some columns of a file: what they are, and what decoders read."""

    typed: pa.StructType
    plain: pa.StructType


def project(schema: pa.Schema, wanted: tuple[Field, ...]) -> Projection:
    """The columns of a file that have the ids of these fields, and of nested ones the fields inside."""
    plain, typed = _fields(list(schema), wanted)
    return Projection(typed=pa.struct(typed), plain=pa.struct(plain))


def _fields(fields: list[pa.Field], wanted: tuple[Field, ...]) -> tuple[list[pa.Field], list[pa.Field]]:
    by_id = {str(field.id).encode(): field for field in wanted}
    plains, kept = [], []
    for place, field in enumerate(fields):
        target = by_id.get((field.metadata or {}).get(FIELD_ID, b""))
        if target is not None:
            plain, typed = _types(field.type, target.type)
            plains.append(pa.field(f"f{place}", plain))
            kept.append(field.with_type(typed))
    return plains, kept


def _types(type_: pa.DataType, target: Type | None) -> tuple[pa.DataType, pa.DataType]:
    """The plain and the full form of a type, of a struct only the fields that a target has; without one, all."""
    kinds = pa.types
    if kinds.is_struct(type_):
        return _struct(list(type_), target)
    if kinds.is_map(type_):
        inner = (target.key, target.value) if isinstance(target, Map) else (None, None)
        keys, values = _types(type_.key_type, inner[0]), _types(type_.item_type, inner[1])
        pair = pa.struct([pa.field("f0", keys[0]), pa.field("f1", values[0])])
        return pa.list_(pair), pa.map_(type_.key_field.with_type(keys[1]), type_.item_field.with_type(values[1]))
    if kinds.is_list(type_):
        plain, typed = _types(type_.value_type, target.element if isinstance(target, List) else None)
        return pa.list_(plain), pa.list_(type_.value_field.with_type(typed))
    if kinds.is_date(type_) or kinds.is_time32(type_):
        return pa.int32(), type_
    if kinds.is_time64(type_) or kinds.is_timestamp(type_):
        return pa.int64(), type_
    return (pa.binary() if kinds.is_decimal(type_) or kinds.is_fixed_size_binary(type_) else type_), type_


def _struct(fields: list[pa.Field], target: Type | None) -> tuple[pa.DataType, pa.DataType]:
    if isinstance(target, Struct):
        plains, kept = _fields(fields, target.fields)
        if len(kept) > 0:
            return pa.struct(plains), pa.struct(kept)
        fields = fields[:1]  # one field must be read to find out which structs are null
    both = [_types(field.type, None) for field in fields]
    plains = [pa.field(f"f{place}", plain) for place, (plain, _) in enumerate(both)]
    return pa.struct(plains), pa.struct(
        [field.with_type(typed) for field, (_, typed) in zip(fields, both, strict=True)]
    )


def fixed_bytes(type_: pa.DataType) -> int:
    """How many bytes of fixed width a value has, null or not; those inside lists and maps count once."""
    if pa.types.is_fixed_size_binary(type_):
        return int(type_.byte_width)
    if pa.types.is_nested(type_):
        return sum(fixed_bytes(type_.field(i).type) for i in range(type_.num_fields))
    return 0


def typed(array: pa.Array, type_: pa.DataType, where: str) -> pa.Array:
    """Plain values as values of a type; all fields inside are optional, and get their names and ids later."""
    kinds = pa.types
    if kinds.is_struct(type_):
        inner = array.flatten()  # null wherever the struct is: fields of a null struct are ignored
        children = [typed(values, field.type, where) for values, field in zip(inner, type_, strict=True)]
        fields = [pa.field(f"f{i}", child.type) for i, child in enumerate(children)]
        return pa.StructArray.from_arrays(
            children, fields=fields, mask=array.is_null() if array.null_count > 0 else None
        )
    if kinds.is_map(type_):
        return _map(array, type_, where)
    if kinds.is_list(type_):
        values = typed(array.values, type_.value_type, where)
        return _around(pa.list_(values.type), array, values)
    if kinds.is_decimal(type_):
        return decode_bounds(array, Decimal(type_.precision, type_.scale), where=where)
    if kinds.is_fixed_size_binary(type_):
        return _fixed(array, type_, where)
    if kinds.is_time(type_) and len(array) > 0:
        ends, last = pc.min_max(array), 24 * 60 * 60 * (1000 if kinds.is_time32(type_) else 1_000_000)
        if array.null_count < len(array) and not 0 <= ends["min"].as_py() <= ends["max"].as_py() < last:
            raise FormatError(f"{where}: a time is not within a day", location=where)
    return array if array.type == type_ else array.cast(type_)


def _fixed(array: pa.Array, type_: pa.DataType, where: str) -> pa.Array:
    widths = pc.min_max(pc.binary_length(array))
    if array.null_count < len(array) and not widths["min"].as_py() == widths["max"].as_py() == type_.byte_width:
        raise FormatError(f"{where}: a value is not {type_.byte_width} bytes long", location=where)
    return decode_bounds(array, Fixed(type_.byte_width), where=where)


def _map(array: pa.Array, type_: pa.MapType, where: str) -> pa.Array:
    pairs = array.values
    keys, values = typed(pairs.field(0), type_.key_type, where), typed(pairs.field(1), type_.item_type, where)
    if keys.null_count > 0:
        raise FormatError(f"{where}: a key of a map is null", location=where)
    made = pa.map_(pa.field("key", keys.type, nullable=False), pa.field("value", values.type))
    return _around(made, array, pa.StructArray.from_arrays([keys, values], fields=[made.key_field, made.item_field]))


def _around(type_: pa.DataType, array: pa.Array, values: pa.Array) -> pa.Array:
    """A list or map of other values with the places of a list."""
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, array.offset, [values])
