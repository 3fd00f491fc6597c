"""The steps that add the columns of incoming rows that a table lacks (spec: Schema Evolution).

Columns are matched by name at every depth. Columns of the table keep their types: numbers from Python always have 64
bits, so a wider type in the rows means nothing. Whether values fit is checked when they are written.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from icefloe.model.arrow.arrow_types import arrow_field
from icefloe.model.arrow.field_metadata import unnamed_index
from icefloe.model.arrow.schema_from_arrow import is_list, schema_from_arrow
from icefloe.model.evolution.schema_union import union_by_name
from icefloe.model.evolution.steps import AddColumn, SchemaChange, SetDefault
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, List, Map, Struct, children


def merge_steps(schema: Schema, row_schema: pa.Schema, *, format_version: int) -> tuple[SchemaChange, ...]:
    """The steps that add the columns that the rows have and the table lacks; none if it has them all.

    New columns are optional. Columns of the table that the rows lack stay, with their types.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> rows = pa.schema({"id": pa.int64(), "note": pa.string()})
    >>> [(step.name, str(step.type)) for step in merge_steps(parse_ddl("id int"), rows, format_version=2)]
    [('note', 'string')]
    """
    index = unnamed_index(row_schema)
    missing = _missing_fields([field for field in row_schema if field.name not in index], schema.fields)
    if len(missing) == 0:
        return ()
    other = schema_from_arrow(pa.schema(missing), format_version=format_version)
    steps = union_by_name(schema, other, format_version=format_version)
    return tuple(step for step in steps if isinstance(step, (AddColumn, SetDefault)))


def _missing_fields(row_fields: Iterable[pa.Field], ours: tuple[Field, ...]) -> list[pa.Field]:
    """The fields that a table lacks, and for structs, lists and maps that it has, the fields missing inside them."""
    known = {field.name: field for field in ours}
    missing = [field if field.name not in known else _missing(field, known[field.name]) for field in row_fields]
    return [field for field in missing if field is not None]


def _missing(row_field: pa.Field, ours: Field) -> pa.Field | None:
    type_ = row_field.type.storage_type if isinstance(row_field.type, pa.BaseExtensionType) else row_field.type
    match ours.type:
        case Struct(fields) if isinstance(type_, pa.StructType):
            inner = _missing_fields(list(type_), fields)
            return None if len(inner) == 0 else pa.field(ours.name, pa.struct(inner))
        case List() if is_list(type_):
            (element,) = children(ours.type)
            missing = _missing(type_.value_field, element)
            return None if missing is None else pa.field(ours.name, pa.list_(missing))
        case Map() if isinstance(type_, pa.MapType):
            key, value = children(ours.type)
            missing = _missing(type_.item_field, value)
            return None if missing is None else pa.field(ours.name, pa.map_(_plain(key), missing))
        case _:
            return None


def _plain(field: Field) -> pa.Field:
    return arrow_field(field).remove_metadata()
