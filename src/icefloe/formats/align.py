"""Batches of a file turned into batches of a table's current schema (spec: Column Projection, Schema Evolution).

First the file's fields get the table's names, by id and without copying; then Arrow's cast, which matches nested fields
by name, moves, drops, adds and promotes; last the table's ids and flags are put on. A column that the file lacks has
the constant that is given for it, such as a partition value, or else is null.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from icefloe.errors import FormatError
from icefloe.formats.field_ids import field_id, is_given, renamed_schema, struct_ids
from icefloe.formats.relabel import relabel
from icefloe.model.arrow import arrow_schema, arrow_type, nulls
from icefloe.model.schema import Schema
from icefloe.model.types import Field, List, Map, Struct, Type, walk


class Aligner:
    """Turns batches of one file, all with the schema ``stored``, into batches of ``schema``.

    ``constants`` are values by column id, for columns that the file lacks.
    """

    def __init__(self, stored: pa.Schema, schema: Schema, location: str, constants: Mapping[int, pa.Scalar]) -> None:
        self._location = location
        self._fields = schema.fields
        self._present = struct_ids(stored) if len(constants) > 0 else frozenset()
        self._constants = {
            id_: value for id_, value in constants.items() if id_ not in self._present and value.is_valid
        }
        self._given = frozenset(self._constants)
        self._renamed = renamed_schema(stored, schema.fields, location, self._given)
        self._target = arrow_schema(schema)
        positions = {field_id(field): position for position, field in enumerate(stored)}
        self._positions = [positions.get(field.id) for field in schema.fields]
        self._types = [_optional(field.type) for field in schema.fields]
        self._filled = [any(inner.id in self._given for _, inner in walk((field,))) for field in schema.fields]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as the table sees it."""
        if len(self._fields) == 0:
            return without_columns(batch.num_rows)
        named = relabel(batch, self._renamed)
        columns = [self._column(named, index) for index in range(len(self._fields))]
        return relabel(pa.RecordBatch.from_arrays(columns, names=self._target.names), self._target)

    def _column(self, batch: pa.RecordBatch, index: int) -> pa.Array:
        field, position, type_ = self._fields[index], self._positions[index], self._types[index]
        if position is None:
            return self._lacking(field, batch.num_rows)
        column = batch.column(position)
        if field.required and column.null_count > 0:
            message = f"{self._location}: required column {field.name!r} has {column.null_count} nulls in the file"
            raise FormatError(message, location=self._location, field=field.name)
        column = column if column.type == type_ else column.cast(type_)
        return self._with_constants(column, field) if self._filled[index] else column

    def _lacking(self, field: Field, rows: int) -> pa.Array:
        """A column that the file does not have: a constant, a struct around constants, or nulls."""
        constant = self._constants.get(field.id)
        if constant is not None:
            type_ = arrow_type(field.type)
            return pa.repeat(constant if constant.type == type_ else constant.cast(type_), rows)
        if isinstance(field.type, Struct) and is_given(field, self._given):
            inner = [self._lacking(child, rows) for child in field.type.fields]
            return pa.StructArray.from_arrays(inner, names=[child.name for child in field.type.fields])
        return nulls(field.type, rows)

    def _with_constants(self, column: pa.Array, field: Field) -> pa.Array:
        """A struct of the file, in the table's order, with the fields that it lacks; null structs stay null."""
        if not isinstance(field.type, Struct):
            return column
        inner = [
            self._with_constants(column.field(index), child)
            if child.id in self._present
            else self._lacking(child, len(column))
            for index, child in enumerate(field.type.fields)
        ]
        names = [child.name for child in field.type.fields]
        return pa.StructArray.from_arrays(inner, names=names, mask=column.is_null())


def without_columns(rows: int) -> pa.RecordBatch:
    """A batch that has a length and nothing else."""
    return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])).take(pa.array(np.zeros(rows, np.int64))))


def _optional(type_: Type) -> pa.DataType:
    """The Arrow type with nothing required, which any nullable value can be cast to."""
    match type_:
        case Struct(fields):
            return pa.struct([pa.field(field.name, _optional(field.type)) for field in fields])
        case List(element=element):
            return pa.list_(pa.field("element", _optional(element)))
        case Map(key=key, value=value):
            return pa.map_(pa.field("key", _optional(key), nullable=False), pa.field("value", _optional(value)))
        case _:
            return arrow_type(type_)
