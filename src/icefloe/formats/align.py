"""Batches of a file turned into batches of a table's current schema (spec: Column Projection, Schema Evolution).

First the file's fields get the table's names, by id and without copying; then Arrow's cast, which matches nested fields
by name, moves, drops, adds and promotes; last the table's ids and flags are put on.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from icefloe.errors import FormatError
from icefloe.formats.field_ids import field_id, renamed_schema
from icefloe.formats.relabel import relabel
from icefloe.model.arrow import arrow_schema, arrow_type, nulls
from icefloe.model.schema import Schema
from icefloe.model.types import List, Map, Struct, Type


class Aligner:
    """Turns batches of one file, all with the schema ``stored``, into batches of ``schema``."""

    def __init__(self, stored: pa.Schema, schema: Schema, location: str) -> None:
        self._location = location
        self._fields = schema.fields
        self._renamed = renamed_schema(stored, schema.fields, location)
        self._target = arrow_schema(schema)
        positions = {field_id(field): position for position, field in enumerate(stored)}
        self._positions = [positions.get(field.id) for field in schema.fields]
        self._types = [_optional(field.type) for field in schema.fields]

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
            return nulls(field.type, batch.num_rows)
        column = batch.column(position)
        if field.required and column.null_count > 0:
            message = f"{self._location}: required column {field.name!r} has {column.null_count} nulls in the file"
            raise FormatError(message, location=self._location, field=field.name)
        return column if column.type == type_ else column.cast(type_)


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
