"""Columns that Spark does not move yet; they are refused by name (spec: Schemas and Data Types)."""

from __future__ import annotations

from icefloe.errors import UnsupportedError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import TIMESTAMP_NS, TIMESTAMPTZ_NS, Geography, Geometry, Variant


def check_types(schema: Schema) -> None:
    """Refuse columns whose values Spark does not read or write here yet, before anything is."""
    for name, field in schema.by_name.items():
        if isinstance(field.type, (Variant, Geometry, Geography)) or field.type in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
            raise UnsupportedError(
                f"column {name!r}: values of type {field.type} are not moved by Spark yet; leave the column out",
                field=name,
            )
