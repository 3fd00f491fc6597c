"""The rules for schemas that are written, by format version (spec: Schemas and Data Types, Default values).

``Schema`` itself only requires unique names and ids, so that tables of other writers can be read.
"""

from __future__ import annotations

from collections.abc import Iterator

from icefloe.errors import FormatError, InputError, UnsupportedError
from icefloe.model.evolution.change_rules import identifier_problem, reserved_name_problem
from icefloe.model.metadata.version_rules import rules
from icefloe.model.schema.json_values import value_from_json
from icefloe.model.schema.metadata_columns import MAX_COLUMN_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    UNKNOWN,
    Field,
    Geography,
    Geometry,
    Primitive,
    Type,
    Variant,
    children,
    since,
    walk,
)
from icefloe.model.text.text_checks import named_problem


def check_schema(schema: Schema, format_version: int) -> None:
    """Refuse a schema that a table of the format version cannot have; the error names the column and the rule.

    >>> from icefloe.model.schema.types import VARIANT
    >>> check_schema(Schema(fields=(Field(1, "v", VARIANT),)), 2)
    Traceback (most recent call last):
    icefloe.errors.InputError: column 'v': type variant needs format version 3, and this is 2
    """
    for name, problem in schema_problems(schema, format_version):
        raise InputError(f"column {name!r}: {problem}", field=name)


def schema_problems(schema: Schema, format_version: int) -> Iterator[tuple[str, str]]:
    """All problems of a schema, each with the full name of its column."""
    for field in schema.fields:
        if (reserved := reserved_name_problem(field.name)) is not None:
            yield field.name, reserved
    for name, field in walk(schema.fields):
        for problem in _field_problems(field, format_version):
            yield name, problem
    yield from id_problems(schema)


def id_problems(schema: Schema) -> Iterator[tuple[str, str]]:
    """The reserved ids and the unfit identifier fields of a schema, each with the full name of its column.

    Tables of other programs with such schemas are read, but none is written.
    """
    for name, field in walk(schema.fields):
        if field.id > MAX_COLUMN_ID:
            yield name, f"its id {field.id} is reserved; column ids end at {MAX_COLUMN_ID}"
    yield from _identifier_problems(schema)


def _field_problems(field: Field, format_version: int) -> Iterator[str]:
    if field.name == "":
        yield "a column needs a name"
    if (problem := named_problem(field.name, field.doc)) is not None:
        yield problem
    if field.id < 1:
        yield f"its id {field.id} is not one of 1 to {MAX_COLUMN_ID}"
    # Every version has nested types; the fields inside are checked on their own.
    if len(children(field.type)) == 0 and since(field.type) > format_version:
        yield f"type {field.type} needs format version {since(field.type)}, and this is {format_version}"
    if field.type == UNKNOWN and field.required:
        yield "a column of type unknown has only nulls and cannot be required"
    yield from _default_problems(field, format_version)


def _default_problems(field: Field, format_version: int) -> Iterator[str]:
    both = (("initial", field.initial_default), ("write", field.write_default))
    defaults = [(kind, value) for kind, value in both if value is not None]
    if len(defaults) > 0 and not rules(format_version).column_defaults:
        yield f"defaults need format version 3, and this is {format_version}"
    elif len(defaults) > 0 and _defaults_to_null(field.type):
        yield f"the default of a {field.type} can only be null"
    else:
        for kind, value in defaults:
            try:
                value_from_json(value, field.type)
            except (FormatError, UnsupportedError) as error:
                yield f"its {kind} default: {error}"
    if field.required and field.initial_default is not None and field.write_default is None:
        yield "it is required and has an initial default, so it needs a write default too"


def _defaults_to_null(type_: Type) -> bool:
    return isinstance(type_, (Geometry, Geography, Variant)) or (isinstance(type_, Primitive) and type_ == UNKNOWN)


def _identifier_problems(schema: Schema) -> Iterator[tuple[str, str]]:
    owners = {child.id: field for _, field in walk(schema.fields) for child in children(field.type)}
    for id_ in schema.identifier_field_ids:
        field, around = schema.by_id[id_], list[tuple[str, Type, bool]]()
        owner = owners.get(id_)
        while owner is not None:
            around.append((schema.names[owner.id], owner.type, owner.required))
            owner = owners.get(owner.id)
        problem = identifier_problem(field.type, required=field.required, owners=tuple(around))
        if problem is not None:
            yield schema.names[id_], f"it cannot be an identifier field: {problem}"
