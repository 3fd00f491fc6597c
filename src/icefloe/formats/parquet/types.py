"""The stored form of rows in Parquet: ids, physical and logical types (spec: Appendix A, Parquet).

Every field at every depth has its id, lists have three levels, decimals and UUIDs have the types of the spec,
shapes the logical types GEOMETRY and GEOGRAPHY. Columns of type ``unknown`` have only nulls and are not stored.
A variant is a group of two byte strings; Arrow has no way to write the VARIANT annotation on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.errors import UnsupportedError
from icefloe.formats.read.batches import relabel
from icefloe.model.arrow.arrow_types import nested_type, struct_array
from icefloe.model.arrow.conform import FIELD_ID, arrow_type
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    UNKNOWN,
    UUID,
    Field,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
    Variant,
    children,
)

_EDGES = "spherical"  # the only edges that Arrow's Parquet writer supports


class ShapeType(pa.ExtensionType):  # type: ignore[misc]
    """Shapes as well-known binary; Arrow's Parquet writer derives the logical type from the name of this type.

    It is not registered with Arrow: other libraries register types of this name, and a process can have only one.
    """

    def __init__(self, parameters: bytes) -> None:
        self._parameters = parameters
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._parameters

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        return cls(serialized)

    def __reduce__(self) -> tuple[type[Self], tuple[bytes]]:
        return type(self), (self._parameters,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The stored form of a schema: Parquet columns by field id, and the columns that are not only relabelled."""

    schema: pa.Schema
    paths: Mapping[int, str]
    plain: pa.Schema  # the labels of rows before columns are changed
    changed: tuple[str, ...]
    unmeasured: frozenset[int]  # columns without footer statistics

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of a table in their stored form."""
        if len(self.changed) == 0:
            return relabel(batch, self.schema)
        labelled = relabel(batch, self.plain)
        columns = {field.name: labelled.column(field.name) for field in self.schema}
        for name in self.changed:
            if name in columns:
                columns[name] = _changed(columns[name], self.schema.field(name).type)
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=self.schema)


def stored_form(schema: Schema) -> Stored:
    """How Parquet stores the rows of a schema; what it cannot store is refused by name."""
    _check(schema)
    stored = pa.schema([_stored(field, shapes=True) for field in schema.fields if field.type != UNKNOWN])
    if len(stored) == 0:
        raise UnsupportedError("a table without a column of a known type has nothing to put into a Parquet file")
    footer: list[Any] = []
    with pq.ParquetWriter(pa.BufferOutputStream(), stored, store_schema=False, metadata_collector=footer):
        pass
    columns = footer[0].schema
    ids = enumerate(_leaf_ids(schema.fields))
    shapes = {id_ for id_, field in schema.by_id.items() if isinstance(field.type, (Geometry, Geography))}
    return Stored(
        schema=stored,
        paths={id_: columns.column(index).path for index, id_ in ids if id_ is not None},
        plain=pa.schema([_stored(field, shapes=False) for field in schema.fields]),
        changed=tuple(field.name for field in schema.fields if _changes(field)),
        unmeasured=frozenset(shapes & schema.measured.keys()),
    )


def _check(schema: Schema) -> None:
    for name, field in schema.by_name.items():
        if isinstance(field.type, Geography) and field.type.algorithm != _EDGES:
            raise UnsupportedError(
                f"column {name!r}: Parquet files with edges other than {_EDGES} are not written, this is {field.type}",
                field=name,
            )
        if isinstance(field.type, (List, Map)) and any(child.type == UNKNOWN for child in children(field.type)):
            raise UnsupportedError(f"column {name!r}: {field.type} has no place in a Parquet file", field=name)
        if isinstance(field.type, Struct) and all(child.type == UNKNOWN for child in field.type.fields):
            raise UnsupportedError(
                f"column {name!r}: a struct without a field of a known type has no place in a Parquet file", field=name
            )


def _changes(field: Field) -> bool:
    """Whether the stored form of a column differs from its form in memory."""
    pending = [field]
    while len(pending) > 0:
        nested = pending.pop()
        if nested.type == UNKNOWN or isinstance(nested.type, (Geometry, Geography)):
            return True
        pending.extend(children(nested.type))
    return False


def _leaf_ids(fields: tuple[Field, ...]) -> list[int | None]:
    """The field ids of a file's Parquet columns in their order; those inside variants have none."""
    ids: list[int | None] = []
    pending = list(reversed(fields))
    while len(pending) > 0:
        field = pending.pop()
        inner = children(field.type)
        if isinstance(field.type, Variant):
            ids += [None, None]
        elif len(inner) == 0 and field.type != UNKNOWN:
            ids.append(field.id)
        pending.extend(reversed(inner))
    return ids


def _stored(field: Field, *, shapes: bool) -> pa.Field:
    """The field as a Parquet writer needs it, or with ``shapes`` off, as rows of the same layout are labelled."""
    metadata = {FIELD_ID: str(field.id).encode()}
    return pa.field(field.name, _stored_type(field.type, shapes), nullable=not field.required, metadata=metadata)


def _stored_type(type_: Type, shapes: bool) -> pa.DataType:
    inner = [_stored(child, shapes=shapes) for child in children(type_) if not shapes or child.type != UNKNOWN]
    match type_:
        case Struct() | List() | Map():
            return nested_type(type_, inner)
        case Geometry(crs) if shapes:
            return ShapeType(json.dumps({"crs": crs}).encode())
        case Geography(crs, algorithm) if shapes:
            return ShapeType(json.dumps({"crs": crs, "edges": algorithm}).encode())
        case _:
            return pa.uuid() if type_ == UUID else arrow_type(type_)


def _changed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array in its stored form: geometries have their extension type, fields of unknown type are omitted."""
    if isinstance(type_, ShapeType):
        return pa.ExtensionArray.from_storage(type_, array)
    if isinstance(type_, pa.StructType):
        inner = [_changed(array.field(child.name), child.type) for child in type_]
        return struct_array(inner, list(type_), array.is_null())
    if not isinstance(type_, (pa.ListType, pa.MapType)):
        return array
    own = array.take(pa.array(np.arange(len(array))))  # without values outside of a slice
    if isinstance(type_, pa.ListType):
        below = _changed(own.values, type_.value_type)
    else:
        entries = [_changed(own.keys, type_.key_type), _changed(own.items, type_.item_type)]
        below = pa.StructArray.from_arrays(entries, fields=[type_.key_field, type_.item_field])
    return pa.Array.from_buffers(type_, len(own), own.buffers()[:2], own.null_count, 0, [below])
