"""Schemas as Avro schemas, and Avro types of single values as types (spec: Appendix A, Avro).

Field ids are stored where the specification says: ``field-id`` on record fields, ``element-id`` on arrays, ``key-id``
and ``value-id`` on maps. Names that Avro does not allow are escaped, and kept in ``iceberg-field-name``.
"""

from __future__ import annotations

import re
from typing import Any, TypeGuard

from icefloe.codecs.manifest.value_sizes import decimal_bytes
from icefloe.errors import FormatError, InputError, UnsupportedError
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.schema import Schema

Json = dict[str, Any]
Avro = str | Json | list[Any]

_ORIGINAL_NAME = "iceberg-field-name"
_PLAIN: dict[str, iceberg.Type] = {
    "boolean": iceberg.BOOLEAN,
    "int": iceberg.INT,
    "long": iceberg.LONG,
    "float": iceberg.FLOAT,
    "double": iceberg.DOUBLE,
    "string": iceberg.STRING,
    "bytes": iceberg.BINARY,
    "null": iceberg.UNKNOWN,
}
_LOGICAL: dict[tuple[str, str], iceberg.Type] = {("int", "date"): iceberg.DATE, ("long", "time-micros"): iceberg.TIME}
_TIMESTAMPS = {
    "timestamp-micros": (iceberg.TIMESTAMP, iceberg.TIMESTAMPTZ),
    "timestamp-nanos": (iceberg.TIMESTAMP_NS, iceberg.TIMESTAMPTZ_NS),
}
_TIMESTAMP = {"type": "long", "logicalType": "timestamp-micros"}
_TIMESTAMP_NS = {"type": "long", "logicalType": "timestamp-nanos"}
_AVRO: dict[iceberg.Primitive, str | Json] = {
    iceberg.BOOLEAN: "boolean",
    iceberg.INT: "int",
    iceberg.LONG: "long",
    iceberg.FLOAT: "float",
    iceberg.DOUBLE: "double",
    iceberg.DATE: {"type": "int", "logicalType": "date"},
    iceberg.TIME: {"type": "long", "logicalType": "time-micros"},
    iceberg.TIMESTAMP: {**_TIMESTAMP, "adjust-to-utc": False},
    iceberg.TIMESTAMPTZ: {**_TIMESTAMP, "adjust-to-utc": True},
    iceberg.TIMESTAMP_NS: {**_TIMESTAMP_NS, "adjust-to-utc": False},
    iceberg.TIMESTAMPTZ_NS: {**_TIMESTAMP_NS, "adjust-to-utc": True},
    iceberg.STRING: "string",
    iceberg.BINARY: "bytes",
    iceberg.UNKNOWN: "null",
}
UUID_BYTES = 16


def avro_type(type_: iceberg.Type, field_id: int) -> str | Json:
    """The Avro type of a primitive; named types carry the field id, as a name may be defined only once."""
    match type_:
        case iceberg.Decimal(precision, scale):
            fixed = {"type": "fixed", "name": f"decimal_{precision}_{scale}_{field_id}"}
            size = decimal_bytes(precision)
            return {**fixed, "size": size, "logicalType": "decimal", "precision": precision, "scale": scale}
        case iceberg.Fixed(length):
            return {"type": "fixed", "name": f"fixed_{length}_{field_id}", "size": length}
        case iceberg.Primitive() if type_ == iceberg.UUID:
            return {"type": "fixed", "name": f"uuid_{field_id}", "size": UUID_BYTES, "logicalType": "uuid"}
        case iceberg.Primitive():
            return _AVRO[type_]
    raise InputError(f"type {type_} has no Avro form of its own", type=str(type_))


def avro_name(name: str) -> str:
    """A valid Avro name, escaped in the same way as by the Apache Iceberg libraries.

    >>> avro_name("9-id")
    '_9_x2Did'
    """
    escaped = "".join(c if re.match(r"[A-Za-z0-9_]", c) is not None else f"_x{ord(c):X}" for c in name)
    return f"_{escaped}" if escaped[:1].isdigit() else escaped


def avro_schema(schema: Schema) -> Json:
    """The Avro schema of files with these columns.

    >>> avro_schema(Schema(fields=(iceberg.Field(8, "l", iceberg.LONG),)))["fields"]
    [{'name': 'l', 'type': ['null', 'long'], 'default': None, 'field-id': 8}]
    """
    return avro_record(schema.fields, "table")


def avro_record(fields: tuple[iceberg.Field, ...], name: str) -> Json:
    """A record with these fields."""
    return {"type": "record", "name": name, "fields": iceberg.fold_type(iceberg.Struct(fields), _written)}


def _written(type_: iceberg.Type, inner: tuple[Any, ...]) -> Any:
    """A type with what was written for the types inside it; records and fixed types get their names from outside."""
    match type_:
        case iceberg.Struct(fields):
            return [_field(field, _named(field, made)) for field, made in zip(fields, inner, strict=True)]
        case iceberg.List():
            (element,) = iceberg.children(type_)
            return {"type": "array", "items": _value(element, _named(element, inner[0])), "element-id": element.id}
        case iceberg.Map():
            return _map(type_, inner)
        case _:
            return None


def _map(type_: iceberg.Map, inner: tuple[Any, ...]) -> Json:
    key, value = iceberg.children(type_)
    keys, values = _named(key, inner[0]), _named(value, inner[1])
    if type_.key == iceberg.STRING:
        return {"type": "map", "values": _value(value, values), "key-id": key.id, "value-id": value.id}
    entry = {"type": "record", "name": f"k{key.id}_v{value.id}", "fields": [_field(key, keys), _field(value, values)]}
    return {"type": "array", "logicalType": "map", "items": entry}


def _named(field: iceberg.Field, made: Any) -> Avro:
    """The Avro type of a field: a name in Avro may be defined only once, so names contain ids."""
    match field.type:
        case iceberg.Struct():
            return {"type": "record", "name": f"r{field.id}", "fields": made}
        case iceberg.List() | iceberg.Map():
            return made  # type: ignore[no-any-return]  # an object, made above
        case iceberg.Variant():
            parts = [{"name": part, "type": "bytes"} for part in ("metadata", "value")]
            return {"type": "record", "name": f"r{field.id}", "fields": parts, "logicalType": "variant"}
        case iceberg.Geometry() | iceberg.Geography():
            return "bytes"
        case _:
            return avro_type(field.type, field.id)


def _field(field: iceberg.Field, type_: Avro) -> Json:
    name = avro_name(field.name)
    written: Json = {"name": name, "type": _value(field, type_)}
    if not field.required:
        written["default"] = None
    written["field-id"] = field.id
    return written if name == field.name else {**written, _ORIGINAL_NAME: field.name}


def _value(field: iceberg.Field, type_: Avro) -> Avro:
    return type_ if field.required or type_ == "null" else ["null", type_]


def type_from_avro(value: object, path: str = "avro.schema") -> iceberg.Type:
    """The type of a primitive value, optional or not, by its Avro type.

    >>> str(type_from_avro(["null", {"type": "int", "logicalType": "date"}]))
    'date'
    """
    if isinstance(value, list):
        others = [branch for branch in value if branch != "null"]
        if len(value) != 2 or len(others) != 1:
            raise UnsupportedError(f"{path}: only unions of null and one type are read", field=path)
        (value,) = others
    while isinstance(value, dict) and isinstance(value.get("type"), dict):  # a type in a needless object
        value = value["type"]
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, dict):
        raise FormatError(f"{path}: expected an Avro type, got {value!r:.80}", field=path)
    return _fixed(value, path) if value.get("type") == "fixed" else _primitive(value, value.get("type"), path)


def _fixed(value: Json, path: str) -> iceberg.Type:
    size, logical = value.get("size"), value.get("logicalType")
    if not _is_count(size):
        raise FormatError(f"{path}.size: expected a number of bytes, got {size!r:.80}", field=path)
    if logical == "uuid" and size == UUID_BYTES:
        return iceberg.UUID
    if logical == "decimal":
        return _decimal(value, path)
    return iceberg.Fixed(size)


def _decimal(value: Json, path: str) -> iceberg.Decimal:
    precision, scale = value.get("precision"), value.get("scale", 0)
    if not _is_count(precision) or not _is_count(scale) or not scale <= precision <= iceberg.MAX_DECIMAL_PRECISION:
        raise FormatError(f"{path}: decimal of precision {precision!r:.40} and scale {scale!r:.40}", field=path)
    if precision == 0:
        raise FormatError(f"{path}: decimal of precision 0; it is 1 to {iceberg.MAX_DECIMAL_PRECISION}", field=path)
    return iceberg.Decimal(precision, scale)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _primitive(value: Json, kind: object, path: str) -> iceberg.Type:
    logical = value.get("logicalType")
    if kind == "long" and logical in _TIMESTAMPS:
        return _TIMESTAMPS[logical][1 if value.get("adjust-to-utc") is True else 0]
    if kind == "bytes" and logical == "decimal":
        return _decimal(value, path)
    type_ = _LOGICAL.get((str(kind), str(logical)), _PLAIN.get(str(kind)))
    if type_ is None:
        raise UnsupportedError(f"{path}: Avro type {kind!r:.80} has no counterpart in the format", field=path)
    return type_
