"""Makes a schema the current one of a table, which keeps all its older schemas (spec: Schema Evolution)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icefloe.errors import InputError
from icefloe.model.evolution.change_rules import promotion_problem
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.defaults import promoted_default
from icefloe.model.schema.metadata_columns import MAX_COLUMN_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.schema_rules import id_problems
from icefloe.model.schema.types import Field, Map, children, since
from icefloe.model.text.text_checks import named_problem


def add_schema(metadata: TableMetadata, schema: Schema) -> TableMetadata:
    """The table with ``schema`` as its current one.

    If the table has an equal schema, that one becomes current. Otherwise the schema is added with the highest schema id
    plus one. InputError for what the format forbids: an id that is reserved or was used for another column, an
    identifier field that can be null, a type that is no promotion of the former one, a field in another struct, other
    map keys, another initial default, an optional column that became required, a new or restored required column that
    written rows lack, and types and defaults that the format version does not have. The commit sets times and the
    metadata log.
    """
    _History(metadata).check(schema)
    for name, problem in id_problems(schema):
        raise InputError(f"column {name!r}: {problem}; drop the column, or set other identifier columns", field=name)
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


def _content(schema: Schema) -> tuple[tuple[Field, ...], frozenset[int], object]:
    return schema.fields, frozenset(schema.identifier_field_ids), schema.extra


def _owners(schema: Schema) -> dict[int, int]:
    """The id of the parent field of each field that is not a top-level column."""
    return {child.id: field.id for field in schema.by_id.values() for child in children(field.type)}


class _History:
    """Every field that a table has had, each from the newest schema that contains it."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._version = metadata.format_version
        self._has_defaults = metadata.rules.column_defaults
        self._last_column_id = metadata.last_column_id
        self._current = metadata.schema
        ordered = (*(s for s in metadata.schemas if s.schema_id != metadata.current_schema_id), metadata.schema)
        self._fields: Mapping[int, Field] = {i: f for schema in ordered for i, f in schema.by_id.items()}
        self._owners: Mapping[int, int] = {i: o for schema in ordered for i, o in _owners(schema).items()}
        snapshot = metadata.current_snapshot
        self._written = None if snapshot is None else metadata.schema_of(snapshot)

    def check(self, schema: Schema) -> None:
        """Refuse a schema that contradicts earlier schemas or written rows."""
        owners = _owners(schema)
        for column_id, field in schema.by_id.items():
            former, owner = self._fields.get(column_id), owners.get(column_id)
            problem = self._new_problem(field) if former is None else self._old_problem(former, field, owner)
            if problem is None and field.required:
                problem = self._required_problem(field, owner)
            if (unnamed := named_problem(field.name, field.doc)) is not None:
                problem = f"cannot be written, {unnamed}"
            if problem is not None:
                name = schema.names[column_id]
                raise InputError(f"column {name!r} (id {column_id}) {problem}", field=name)

    def _new_problem(self, field: Field) -> str | None:
        if field.id > MAX_COLUMN_ID:
            return f"has a reserved id; column ids end at {MAX_COLUMN_ID}"
        if field.id <= self._last_column_id:
            return "has an id that was used before; give it a new one"
        if since(field.type) > self._version:
            return f"is {field.type}, which needs format version {since(field.type)} or later, this is {self._version}"
        has_default = field.initial_default is not None or field.write_default is not None
        if has_default and not self._has_defaults:
            return f"has a default, which needs format version 3 or later, this is {self._version}"
        return None

    def _old_problem(self, former: Field, field: Field, owner: int | None) -> str | None:
        if self._owners.get(field.id) != owner:
            return "was in another struct, and fields stay in theirs"
        if type(former.type) is not type(field.type) or len(children(field.type)) == 0:
            problem = promotion_problem(former.type, field.type, self._version)
            if problem is not None:
                return f"cannot become {field.type}: {problem}"
        known = self._current.by_id.get(field.id, field).type
        if isinstance(known, Map) and children(known)[:1] != children(field.type)[:1]:
            return "is a map, and its keys cannot change"
        if not _same_default(former, field):
            return "has another initial default than before, and rows already written read that one"
        return None

    def _required_problem(self, field: Field, owner: int | None) -> str | None:
        current = self._current.by_id.get(field.id)
        if current is not None:
            return None if current.required else "is optional and cannot become required: rows may hold null"
        written = self._written
        if field.initial_default is not None or written is None or field.id in written.by_id:
            return None
        if owner is not None and owner not in written.by_id:
            return None  # no row has a struct that could lack it
        if field.id in self._fields:
            return "is required and was dropped, and rows were written without it; bring it back as optional"
        return "is required and new, and rows were written without it; give it a default or make it optional"


def _same_default(former: Field, field: Field) -> bool:
    try:
        return bool(promoted_default(former.initial_default, former.type, field.type) == field.initial_default)
    except InputError:
        return False
