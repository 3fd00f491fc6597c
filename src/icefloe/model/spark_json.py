"""Schemas in the JSON of Spark's ``StructType``, without Spark (spec: Schemas and Data Types).

Spark's ``timestamp`` is an instant, the format's ``timestamptz``; Spark's ``timestamp_ntz`` is the format's
``timestamp``. Types that Spark lacks come out as those its Parquet reader gives for them: uuid and fixed as binary.
"""

from __future__ import annotations

import json
import re
from typing import Any

from icefloe.errors import InputError, UnsupportedError
from icefloe.limits import DEFAULT
from icefloe.model.schema import Schema
from icefloe.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    parse_type,
)

FIELD_ID = "parquet.field.id"

_TO_SPARK: dict[Primitive, str] = {
    BOOLEAN: "boolean",
    INT: "integer",
    LONG: "long",
    FLOAT: "float",
    DOUBLE: "double",
    DATE: "date",
    TIMESTAMP: "timestamp_ntz",
    TIMESTAMPTZ: "timestamp",
    STRING: "string",
    UUID: "binary",
    BINARY: "binary",
}
_FROM_SPARK: dict[str, Type] = {
    **{name: type_ for type_, name in _TO_SPARK.items() if type_ != UUID},
    "byte": INT,
    "short": INT,
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_TEXT = re.compile(r"(varchar|char)\(\d+\)|string collate \w+")


def spark_schema_json(schema: Schema) -> dict[str, Any]:
    """The JSON of the Spark schema of a table, with the id of every struct field in its metadata.

    >>> spark_schema_json(Schema(fields=(Field(1, "id", LONG, True),)))["fields"]
    [{'name': 'id', 'type': 'long', 'nullable': False, 'metadata': {'parquet.field.id': 1}}]
    """
    return {"type": "struct", "fields": [_field_json(field, field.name) for field in schema.fields]}


def _field_json(field: Field, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {FIELD_ID: field.id}
    if field.doc is not None:
        metadata["comment"] = field.doc
    type_ = spark_type_json(field.type, name)
    return {"name": field.name, "type": type_, "nullable": not field.required, "metadata": metadata}


def spark_type_json(type_: Type, name: str = "") -> str | dict[str, Any]:
    """The JSON of the Spark type that holds a type; ``name`` is the column's, for errors."""
    match type_:
        case Struct(fields):
            return {"type": "struct", "fields": [_field_json(field, f"{name}.{field.name}") for field in fields]}
        case List():
            element = spark_type_json(type_.element, f"{name}.element")
            return {"type": "array", "elementType": element, "containsNull": not type_.element_required}
        case Map():
            return {
                "type": "map",
                "keyType": spark_type_json(type_.key, f"{name}.key"),
                "valueType": spark_type_json(type_.value, f"{name}.value"),
                "valueContainsNull": not type_.value_required,
            }
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Fixed():
            return "binary"
        case Primitive():
            if type_ not in _TO_SPARK:
                raise UnsupportedError(f"column {name!r}: Spark has no type for {type_}", field=name)
            return _TO_SPARK[type_]


def fields_from_spark_json(text: str) -> tuple[Field, ...]:
    """The columns of the JSON of a Spark schema, without ids."""
    try:
        parsed = json.loads(text)
        return tuple(_field(field, "", 0) for field in parsed["fields"])
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"not the JSON of a Spark StructType: {error!r}") from error


def _field(value: dict[str, Any], parent: str, depth: int) -> Field:
    name = value["name"]
    type_ = _type(value["type"], f"{parent}{name}", depth)
    return Field(0, name, type_, not value["nullable"], value.get("metadata", {}).get("comment"))


def _type(value: Any, name: str, depth: int) -> Type:
    if depth > DEFAULT.type_depth:
        raise InputError(f"column {name!r}: types are nested deeper than {DEFAULT.type_depth}", field=name)
    if isinstance(value, str):
        return _leaf(value, name)
    match value["type"]:
        case "struct":
            return Struct(tuple(_field(field, f"{name}.", depth + 1) for field in value["fields"]))
        case "array":
            element = _type(value["elementType"], f"{name}.element", depth + 1)
            return List(0, element, not value["containsNull"])
        case "map":
            key = _type(value["keyType"], f"{name}.key", depth + 1)
            entry = _type(value["valueType"], f"{name}.value", depth + 1)
            return Map(0, key, 0, entry, not value["valueContainsNull"])
        case kind:
            raise UnsupportedError(f"column {name!r}: Spark type {kind} is not handled", field=name)


def _leaf(text: str, name: str) -> Type:
    if (found := _FROM_SPARK.get(text)) is not None:
        return found
    if _DECIMAL.fullmatch(text) is not None:
        return parse_type(text)
    if _TEXT.fullmatch(text) is not None:
        return STRING
    raise UnsupportedError(f"column {name!r}: Spark type {text} has no counterpart in the format", field=name)
