"""Schemas in the JSON of Spark's ``StructType``, without Spark (spec: Schemas and Data Types).

Spark's ``timestamp`` is an instant, the format's ``timestamptz``; Spark's ``timestamp_ntz`` is the format's
``timestamp``. Types that Spark lacks have the type that Spark's Parquet reader returns: uuid and fixed are binary.
Comments, defaults and ids are in the metadata of fields; the ids of list elements and map entries, which are not fields
in Spark, are in that of the field around them. Ids are written for Spark's file readers, and never read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from icefloe.errors import FormatError, InputError, UnsupportedError
from icefloe.limits import DEFAULT
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.schema import Schema
from icefloe.model.text.sql_literals import parse_literal, sql_literal

FIELD_ID = "parquet.field.id"

_NESTED_IDS = "parquet.field.nested.ids"
_FIELD_IDS = "parquet.field."  # begins both
_COMMENT = "comment"
WRITE_DEFAULT = "CURRENT_DEFAULT"
_INITIAL_DEFAULT = "EXISTS_DEFAULT"
_TO_SPARK: Mapping[iceberg.Primitive | iceberg.Variant, str] = {
    iceberg.BOOLEAN: "boolean",
    iceberg.INT: "integer",
    iceberg.LONG: "long",
    iceberg.FLOAT: "float",
    iceberg.DOUBLE: "double",
    iceberg.DATE: "date",
    iceberg.TIME: "time(6)",
    iceberg.TIMESTAMP: "timestamp_ntz",
    iceberg.TIMESTAMPTZ: "timestamp",
    iceberg.STRING: "string",
    iceberg.UUID: "binary",
    iceberg.BINARY: "binary",
    iceberg.UNKNOWN: "void",
    iceberg.VARIANT: "variant",
}
_FROM_SPARK: Mapping[str, iceberg.Type] = {
    **{name: type_ for type_, name in _TO_SPARK.items() if type_ != iceberg.UUID},
    "byte": iceberg.INT,
    "short": iceberg.INT,
}
_SPARK_CRS = (iceberg.DEFAULT_CRS, "EPSG:3857", "SRID:0")
_DECIMAL = re.compile(r"decimal\(\d+,\s*\d+\)")
_TEXT = re.compile(r"(varchar|char)\(\d+\)|string collate \w+")
_TIME = re.compile(r"time\([0-6]\)")
_SHAPE = re.compile(r"(geometry|geography)(\([^()]*\))?")


def spark_schema_json(schema: Schema) -> dict[str, Any]:
    """The JSON of the Spark schema of a table, with the id of every field in its metadata.

    >>> spark_schema_json(Schema(fields=(iceberg.Field(1, "id", iceberg.LONG, True),)))["fields"]
    [{'name': 'id', 'type': 'long', 'nullable': False, 'metadata': {'parquet.field.id': 1}}]
    """
    return {"type": "struct", "fields": [_field_json(field, field.name) for field in schema.fields]}


def without_field_ids(node: Any) -> Any:
    """The JSON of a Spark schema, or a part of it, without the ids that are for file readers.

    >>> without_field_ids(spark_schema_json(Schema(fields=(iceberg.Field(1, "id", iceberg.LONG, True),))))["fields"]
    [{'name': 'id', 'type': 'long', 'nullable': False, 'metadata': {}}]
    """
    if isinstance(node, list):
        return [without_field_ids(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: entry for name, entry in value.items() if not name.startswith(_FIELD_IDS)}
        if key == "metadata"
        else without_field_ids(value)
        for key, value in node.items()
    }


def _field_json(field: iceberg.Field, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {FIELD_ID: field.id}
    if len(nested := _nested_ids(field)) > 0:
        metadata[_NESTED_IDS] = nested
    if field.doc is not None:
        metadata[_COMMENT] = field.doc
    for key, default in ((WRITE_DEFAULT, field.write_default), (_INITIAL_DEFAULT, field.initial_default)):
        if default is not None:
            metadata[key] = _literal(default, field.type, name)
    type_ = spark_type_json(field.type, name)
    return {"name": field.name, "type": type_, "nullable": not field.required, "metadata": metadata}


def _nested_ids(field: iceberg.Field) -> dict[str, int]:
    """The ids of elements, keys and values inside a field, except those inside structs, by names relative to it."""
    ids: dict[str, int] = {}
    pending = [(field.name, field.type)]
    while len(pending) > 0:
        name, type_ = pending.pop()
        if isinstance(type_, (iceberg.List, iceberg.Map)):
            for child in iceberg.children(type_):
                ids[f"{name}.{child.name}"] = child.id
                pending.append((f"{name}.{child.name}", child.type))
    return ids


def _literal(default: Any, type_: iceberg.Type, name: str) -> str:
    """A default as Spark reads it; a uuid is binary to Spark."""
    as_bytes = type_ == iceberg.UUID and isinstance(default, str)
    return (
        sql_literal(default.replace("-", ""), iceberg.BINARY, name) if as_bytes else sql_literal(default, type_, name)
    )


def spark_type_json(type_: iceberg.Type, name: str = "") -> str | dict[str, Any]:
    """The JSON of the Spark type that holds a type; ``name`` is the column's, for errors."""
    match type_:
        case iceberg.Struct(fields):
            return {"type": "struct", "fields": [_field_json(field, f"{name}.{field.name}") for field in fields]}
        case iceberg.List():
            element = spark_type_json(type_.element, f"{name}.element")
            return {"type": "array", "elementType": element, "containsNull": not type_.element_required}
        case iceberg.Map():
            return {
                "type": "map",
                "keyType": spark_type_json(type_.key, f"{name}.key"),
                "valueType": spark_type_json(type_.value, f"{name}.value"),
                "valueContainsNull": not type_.value_required,
            }
        case iceberg.Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case iceberg.Fixed():
            return "binary"
        case iceberg.Geometry(crs) if crs in _SPARK_CRS:
            return f"geometry({crs})"
        case iceberg.Geography(crs, algorithm) if (crs, algorithm) == (iceberg.DEFAULT_CRS, iceberg.DEFAULT_ALGORITHM):
            return f"geography({crs}, {algorithm.upper()})"
        case iceberg.Primitive() | iceberg.Variant() if type_ in _TO_SPARK:
            return _TO_SPARK[type_]
    raise UnsupportedError(
        f"column {name!r}: Spark has no type for {type_}; leave the column out, or read it as Arrow", field=name
    )


def fields_from_spark_json(value: str | dict[str, Any]) -> tuple[iceberg.Field, ...]:
    """The columns of the JSON of a Spark schema, text or parsed. All ids are 0, whatever ids the metadata has."""
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
        return tuple(_field(field, "", 0) for field in parsed["fields"])
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"not the JSON of a Spark StructType: {error!r}") from error


def _field(value: dict[str, Any], parent: str, depth: int) -> iceberg.Field:
    metadata = value.get("metadata", {})
    name = f"{parent}{value['name']}"
    type_ = _type(value["type"], name, depth)
    return iceberg.Field(
        id=0,
        name=value["name"],
        type=type_,
        required=not value["nullable"],
        doc=metadata.get(_COMMENT),
        initial_default=_default(metadata.get(_INITIAL_DEFAULT), type_, name),
        write_default=_default(metadata.get(WRITE_DEFAULT), type_, name),
    )


def _default(text: object, type_: iceberg.Type, name: str) -> Any:
    return None if text is None else parse_literal(str(text), type_, name)


def _type(value: Any, name: str, depth: int) -> iceberg.Type:
    if depth > DEFAULT.type_depth:
        raise InputError(f"column {name!r}: types are nested deeper than {DEFAULT.type_depth}", field=name)
    if isinstance(value, str):
        return _leaf(value, name)
    match value["type"]:
        case "struct":
            return iceberg.Struct(tuple(_field(field, f"{name}.", depth + 1) for field in value["fields"]))
        case "array":
            element = _type(value["elementType"], f"{name}.element", depth + 1)
            return iceberg.List(0, element, not value["containsNull"])
        case "map":
            key = _type(value["keyType"], f"{name}.key", depth + 1)
            entry = _type(value["valueType"], f"{name}.value", depth + 1)
            return iceberg.Map(0, key, 0, entry, not value["valueContainsNull"])
        case kind:
            raise UnsupportedError(f"column {name!r}: Spark type {kind} is not handled", field=name)


def _leaf(text: str, name: str) -> iceberg.Type:
    if (type_ := _FROM_SPARK.get(text)) is not None:
        return type_
    if _TEXT.fullmatch(text) is not None:
        return iceberg.STRING
    if _TIME.fullmatch(text) is not None:
        return iceberg.TIME
    if _DECIMAL.fullmatch(text) is not None or (_SHAPE.fullmatch(text) is not None and "ANY" not in text.upper()):
        try:
            return iceberg.parse_type(text)
        except FormatError as error:
            raise InputError(f"column {name!r}: {error}", field=name) from error
    raise UnsupportedError(f"column {name!r}: Spark type {text} has no counterpart in the format", field=name)
