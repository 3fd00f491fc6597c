"""The schemas of a table over time: every one it had is kept, one is current (spec: Schema Evolution)."""

from __future__ import annotations

from dataclasses import replace

from icefloe.errors import InputError
from icefloe.model.evolution_rules import promotion_problem
from icefloe.model.metadata import TableMetadata
from icefloe.model.schema import Schema
from icefloe.model.types import Field, is_primitive


def add_schema(metadata: TableMetadata, schema: Schema) -> TableMetadata:
    """The table with ``schema`` as its current one.

    A schema equal to one the table has is that schema; any other gets the highest schema id plus one, whatever id it
    came with. Refused is what written files contradict: an id used for something else before, a narrower type, a
    column that turned required, and a required column brought back after rows were written without it. Times and the
    metadata log are the commit's to set.
    """
    _check_ids(metadata, schema)
    last_column_id = max(metadata.last_column_id, schema.highest_id)
    for known in metadata.schemas:
        if _content(known) == _content(schema):
            return replace(metadata, current_schema_id=known.schema_id, last_column_id=last_column_id)
    schema_id = max(known.schema_id for known in metadata.schemas) + 1
    return replace(
        metadata,
        schemas=(*metadata.schemas, replace(schema, schema_id=schema_id)),
        current_schema_id=schema_id,
        last_column_id=last_column_id,
    )


def _content(schema: Schema) -> tuple[tuple[Field, ...], frozenset[int]]:
    return schema.fields, frozenset(schema.identifier_field_ids)


def _check_ids(metadata: TableMetadata, schema: Schema) -> None:
    types, current = metadata.types, metadata.schema
    snapshot = metadata.current_snapshot
    written = None if snapshot is None else metadata.schema_of(snapshot)
    for column_id, field in schema.by_id.items():
        name, known, former = schema.names[column_id], types.get(column_id), current.by_id.get(column_id)
        if known is None and column_id <= metadata.last_column_id:
            raise InputError(
                f"column {name!r} has id {column_id}, which was used before; give it a new one", field=name
            )
        if known is not None and (
            is_primitive(known) or is_primitive(field.type) or type(known) is not type(field.type)
        ):
            problem = promotion_problem(known, field.type)
            if problem is not None:
                raise InputError(f"column {name!r} (id {column_id}) cannot become {field.type}: {problem}", field=name)
        if not field.required:
            continue
        if former is not None and not former.required:
            raise InputError(f"column {name!r} is optional and cannot become required: rows may hold null", field=name)
        lost = former is None and known is not None and written is not None and column_id not in written.by_id
        if lost and field.initial_default is None:
            raise InputError(f"required column {name!r} was dropped, and rows were written without it", field=name)
