"""The attributes of types in ORC files: field ids, and what the types of ORC do not say (spec: Appendix A, ORC)."""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.model.schema.types import (
    TIME,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UUID,
    Field,
    Fixed,
    Geography,
    Geometry,
    Type,
    Variant,
)

ID, REQUIRED = "iceberg.id", "iceberg.required"
LONG_TYPE, BINARY_TYPE, LENGTH = "iceberg.long-type", "iceberg.binary-type", "iceberg.length"
TIMESTAMP_UNIT = "iceberg.timestamp-unit"
_STRUCT_TYPE = "iceberg.struct-type"
_OF_TYPES: Mapping[Type, Mapping[str, str]] = {
    TIME: {LONG_TYPE: "TIME"},
    UUID: {BINARY_TYPE: "UUID"},
    TIMESTAMP_NS: {TIMESTAMP_UNIT: "NANOS"},
    TIMESTAMPTZ_NS: {TIMESTAMP_UNIT: "NANOS"},
}


def orc_attributes(field: Field) -> dict[str, str]:
    """The attributes of the type of a column, or of a field inside one.

    >>> orc_attributes(Field(3, "digest", Fixed(32)))
    {'iceberg.binary-type': 'FIXED', 'iceberg.length': '32', 'iceberg.id': '3', 'iceberg.required': 'false'}
    """
    match field.type:
        case Fixed(length):
            of_type: Mapping[str, str] = {BINARY_TYPE: "FIXED", LENGTH: str(length)}
        case Geometry() | Geography():
            of_type = {BINARY_TYPE: type(field.type).__name__.upper()}
        case Variant():
            of_type = {_STRUCT_TYPE: "VARIANT"}
        case _:
            of_type = _OF_TYPES.get(field.type, {})
    return {**of_type, ID: str(field.id), REQUIRED: "true" if field.required else "false"}
