"""Prints schemas as the text that ``parse_ddl`` reads."""

from __future__ import annotations

from collections.abc import Iterable

from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import TIMESTAMP, Field, Geography, Geometry, List, Map, Struct, Type
from icefloe.model.text.sql_literals import sql_literal
from icefloe.model.text.sql_tokens import quoted_text


def ddl_text(schema: Schema) -> str:
    """The columns; ids, identifier fields and an initial default that differs from the write default are left out."""
    return _columns(schema.fields)


def _columns(fields: Iterable[Field]) -> str:
    return ", ".join(f"`{field.name.replace('`', '``')}` {_type(field.type)}{_options(field)}" for field in fields)


def _options(field: Field) -> str:
    default = (
        "" if field.write_default is None else f" DEFAULT {sql_literal(field.write_default, field.type, field.name)}"
    )
    return _required(field.required) + default + ("" if field.doc is None else f" COMMENT {quoted_text(field.doc)}")


def _required(required: bool) -> str:
    return " NOT NULL" if required else ""


def _type(type_: Type) -> str:
    match type_:
        case Struct(fields):
            return f"struct<{_columns(fields)}>"
        case List():
            return f"array<{_type(type_.element)}{_required(type_.element_required)}>"
        case Map():
            return f"map<{_type(type_.key)}, {_type(type_.value)}{_required(type_.value_required)}>"
        case Geometry(crs):
            return f"geometry({quoted_text(crs)})"
        case Geography(crs, algorithm):
            return f"geography({quoted_text(crs)}, {quoted_text(algorithm)})"
        case _:
            return "timestamp_ntz" if type_ == TIMESTAMP else str(type_)
