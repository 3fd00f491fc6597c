"""Finds the source columns of transforms in Arrow data: top-level, or inside structs, never in lists or maps.

Null values propagate: a field inside a struct is null wherever the struct is (spec: Partitioning).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Struct


def column_path(schema: Schema, field_id: int) -> tuple[str, ...]:
    """The names that lead to a field through structs; empty if there is no such field outside lists and maps."""
    pending: list[tuple[tuple[str, ...], Field]] = [((field.name,), field) for field in schema.fields]
    while len(pending) > 0:
        path, field = pending.pop()
        if field.id == field_id:
            return path
        if isinstance(field.type, Struct):
            pending.extend(((*path, inner.name), inner) for inner in field.type.fields)
    return ()


def column_at(rows: pa.RecordBatch | pa.Table, path: tuple[str, ...]) -> pa.Array | pa.ChunkedArray:
    """A column, or a field inside its structs: null wherever a struct around it is."""
    top = rows.column(path[0])
    return top if len(path) == 1 else pc.struct_field(top, list(path[1:]))
