"""Which columns data files are read and written with; the others are refused by name (spec: Schemas and Data Types)."""

from __future__ import annotations

from icefloe.errors import UnsupportedError
from icefloe.model.schema import Schema
from icefloe.model.types import TIMESTAMP_NS, TIMESTAMPTZ_NS, Geography, Geometry, Variant


def check_types(schema: Schema) -> None:
    """Refuse columns whose values are not handled yet, before anything is read or written."""
    for name, field in schema.by_name.items():
        if isinstance(field.type, (Variant, Geometry, Geography)) or field.type in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
            raise UnsupportedError(
                f"column {name!r}: values of type {field.type} are not read or written yet; leave the column out",
                field=name,
            )
