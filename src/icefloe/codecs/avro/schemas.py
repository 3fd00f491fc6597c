"""Schemas as Avro schemas and back, for data files (spec: Appendix A, Avro).

Field ids are stored where the specification says: ``field-id`` on record fields, ``element-id`` on arrays, ``key-id``
and ``value-id`` on maps. Names that Avro does not allow are escaped, and kept in ``iceberg-field-name``.
"""

from __future__ import annotations

import re
from typing import Any, TypeGuard

from icefloe.codecs.json.records import join
from icefloe.codecs.manifest.value_sizes import decimal_bytes
from icefloe.errors import FormatError, InputError, LimitError, UnsupportedError
from icefloe.limits import DEFAULT, Limits
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_DECIMAL_PRECISION,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    Variant,
    children,
    fold_type,
)

Json = dict[str, Any]
Avro = str | Json | list[Any]

_ORIGINAL_NAME = "iceberg-field-name"
_PLAIN: dict[str, Type] = {
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BINARY,
    "null": UNKNOWN,
}
_LOGICAL: dict[tuple[str, str], Type] = {("int", "date"): DATE, ("long", "time-micros"): TIME}
_TIMESTAMPS = {"timestamp-micros": (TIMESTAMP, TIMESTAMPTZ), "timestamp-nanos": (TIMESTAMP_NS, TIMESTAMPTZ_NS)}


_TIMESTAMP = {"type": "long", "logicalType": "timestamp-micros"}
_TIMESTAMP_NS = {"type": "long", "logicalType": "timestamp-nanos"}
_AVRO: dict[Primitive, str | Json] = {
    BOOLEAN: "boolean",
    INT: "int",
    LONG: "long",
    FLOAT: "float",
    DOUBLE: "double",
    DATE: {"type": "int", "logicalType": "date"},
    TIME: {"type": "long", "logicalType": "time-micros"},
    TIMESTAMP: {**_TIMESTAMP, "adjust-to-utc": False},
    TIMESTAMPTZ: {**_TIMESTAMP, "adjust-to-utc": True},
    TIMESTAMP_NS: {**_TIMESTAMP_NS, "adjust-to-utc": False},
    TIMESTAMPTZ_NS: {**_TIMESTAMP_NS, "adjust-to-utc": True},
    STRING: "string",
    BINARY: "bytes",
    UNKNOWN: "null",
}
UUID_BYTES = 16


def avro_type(type_: Type, field_id: int) -> str | Json:
    """The Avro type of a primitive; named types carry the field id, as a name may be defined only once."""
    match type_:
        case Decimal(precision, scale):
            fixed = {"type": "fixed", "name": f"decimal_{precision}_{scale}_{field_id}"}
            size = decimal_bytes(precision)
            return {**fixed, "size": size, "logicalType": "decimal", "precision": precision, "scale": scale}
        case Fixed(length):
            return {"type": "fixed", "name": f"fixed_{length}_{field_id}", "size": length}
        case Primitive() if type_ == UUID:
            return {"type": "fixed", "name": f"uuid_{field_id}", "size": UUID_BYTES, "logicalType": "uuid"}
        case Primitive():
            return _AVRO[type_]
    raise InputError(f"type {type_} has no Avro form of its own", type=str(type_))


def avro_name(name: str) -> str:
    """A valid Avro name, escaped in the same way as by the Apache Iceberg libraries.

    >>> avro_name("9-id")
    '_9_x2Did'
    """
    escaped = "".join(c if re.match(r"[A-Za-z0-9_]", c) is not None else f"_x{ord(c):X}" for c in name)
    return f"_{escaped}" if escaped[:1].isdigit() else escaped


def avro_schema(schema: Schema, name: str = "table") -> Json:
    """The Avro schema of files with these columns.

    >>> avro_schema(Schema(fields=(Field(8, "l", LONG),)))["fields"]
    [{'name': 'l', 'type': ['null', 'long'], 'default': None, 'field-id': 8}]
    """
    return avro_record(schema.fields, name)


def avro_record(fields: tuple[Field, ...], name: str) -> Json:
    """A record with these fields."""
    return {"type": "record", "name": name, "fields": fold_type(Struct(fields), _written)}


def _written(type_: Type, inner: tuple[Any, ...]) -> Any:
    """A type with what was written for the types inside it; records and fixed types get their names from outside."""
    match type_:
        case Struct(fields):
            return [_field(field, _named(field, made)) for field, made in zip(fields, inner, strict=True)]
        case List():
            (element,) = children(type_)
            return {"type": "array", "items": _value(element, _named(element, inner[0])), "element-id": element.id}
        case Map():
            return _map(type_, inner)
        case _:
            return None


def _map(type_: Map, inner: tuple[Any, ...]) -> Json:
    key, value = children(type_)
    keys, values = _named(key, inner[0]), _named(value, inner[1])
    if type_.key == STRING:
        return {"type": "map", "values": _value(value, values), "key-id": key.id, "value-id": value.id}
    entry = {"type": "record", "name": f"k{key.id}_v{value.id}", "fields": [_field(key, keys), _field(value, values)]}
    return {"type": "array", "logicalType": "map", "items": entry}


def _named(field: Field, made: Any) -> Avro:
    """The Avro type of a field: a name in Avro may be defined only once, so names contain ids."""
    match field.type:
        case Struct():
            return {"type": "record", "name": f"r{field.id}", "fields": made}
        case List() | Map():
            return made  # type: ignore[no-any-return]  # an object, made above
        case Variant():
            parts = [{"name": part, "type": "bytes"} for part in ("metadata", "value")]
            return {"type": "record", "name": f"r{field.id}", "fields": parts, "logicalType": "variant"}
        case Geometry() | Geography():
            return "bytes"
        case _:
            return avro_type(field.type, field.id)


def _field(field: Field, type_: Avro) -> Json:
    name = avro_name(field.name)
    written: Json = {"name": name, "type": _value(field, type_)}
    if not field.required:
        written["default"] = None
    written["field-id"] = field.id
    return written if name == field.name else {**written, _ORIGINAL_NAME: field.name}


def _value(field: Field, type_: Avro) -> Avro:
    return type_ if field.required or type_ == "null" else ["null", type_]


def schema_from_avro(value: object, path: str = "avro.schema", *, limits: Limits = DEFAULT) -> Schema:
    """The columns of a file's Avro schema, which must have ids; a name mapping gives them to a file without.

    >>> field = {"name": "l", "type": ["null", "long"], "default": None, "field-id": 8}
    >>> schema_from_avro({"type": "record", "name": "table", "fields": [field]}).field("l")
    Field(id=8, name='l', type=Primitive(name='long', since=1), required=False, doc=None, initial_default=None, \
write_default=None, extra=())
    """
    whole = _read(value, path, limits.type_depth)
    if not isinstance(whole, Struct):
        raise FormatError(f"{path}: the schema of a data file is a record, not {whole}", field=path)
    return Schema(fields=whole.fields)


def type_from_avro(value: object, path: str = "avro.schema", *, limits: Limits = DEFAULT) -> Type:
    """The type of an Avro schema, optional or not.

    >>> str(type_from_avro(["null", {"type": "int", "logicalType": "date"}]))
    'date'
    """
    return _optional(value, path, limits.type_depth)[0]


def _read(value: object, path: str, depth: int) -> Type:
    if depth <= 0:
        raise LimitError(f"{path}: types are nested too deeply", field=path)
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, dict):
        raise FormatError(f"{path}: expected an Avro type, got {value!r:.80}", field=path)
    match value.get("type"):
        case "record" if value.get("logicalType") == "variant":
            return VARIANT
        case "record":
            return Struct(_fields(value, path, depth))
        case "array" if value.get("logicalType") == "map":
            return _entries(value, path, depth)
        case "array":
            element, required = _optional(value.get("items"), join(path, "items"), depth)
            return List(_id(value, "element-id", path), element, required)
        case "map":
            entry, required = _optional(value.get("values"), join(path, "values"), depth)
            return Map(_id(value, "key-id", path), STRING, _id(value, "value-id", path), entry, required)
        case "fixed":
            return _fixed(value, path)
        case dict() as inner:  # a type in a needless object
            return _read(inner, path, depth - 1)
        case kind:
            return _primitive(value, kind, path)


def _fields(record: Json, path: str, depth: int) -> tuple[Field, ...]:
    fields = record.get("fields")
    if not isinstance(fields, list):
        raise FormatError(f"{path}.fields: expected a list of fields", field=path)
    return tuple(_field_of(field, f"{path}.fields[{index}]", depth) for index, field in enumerate(fields))


def _field_of(value: object, path: str, depth: int) -> Field:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise FormatError(f"{path}: expected a field with a name", field=path)
    type_, required = _optional(value.get("type"), join(path, "type"), depth)
    name = value.get(_ORIGINAL_NAME, value["name"])
    return Field(_id(value, "field-id", path), str(name), type_, required and type_ != UNKNOWN)


def _entries(value: Json, path: str, depth: int) -> Map:
    items = value.get("items")
    fields = _fields(items, join(path, "items"), depth) if isinstance(items, dict) else ()
    if len(fields) != 2:
        raise FormatError(f"{path}.items: a map is stored as records of a key and a value", field=path)
    key, entry = fields
    return Map(key.id, key.type, entry.id, entry.type, entry.required)


def _optional(value: object, path: str, depth: int) -> tuple[Type, bool]:
    """A type and whether it is required. Unions with null are the only unions allowed in data files."""
    if not isinstance(value, list):
        return _read(value, path, depth - 1), True
    others = [branch for branch in value if branch != "null"]
    if len(value) != 2 or len(others) != 1:
        raise UnsupportedError(f"{path}: only unions of null and one type are read", field=path)
    return _read(others[0], path, depth - 1), False


def _id(value: Json, key: str, path: str) -> int:
    id_ = value.get(key)
    if not isinstance(id_, int) or isinstance(id_, bool):
        raise FormatError(f"{path}: missing {key}", field=join(path, key))
    return id_


def _fixed(value: Json, path: str) -> Type:
    size, logical = value.get("size"), value.get("logicalType")
    if not _is_count(size):
        raise FormatError(f"{path}.size: expected a number of bytes, got {size!r:.80}", field=path)
    if logical == "uuid" and size == UUID_BYTES:
        return UUID
    if logical == "decimal":
        return _decimal(value, path)
    return Fixed(size)


def _decimal(value: Json, path: str) -> Decimal:
    precision, scale = value.get("precision"), value.get("scale", 0)
    if not _is_count(precision) or not _is_count(scale) or not scale <= precision <= MAX_DECIMAL_PRECISION:
        raise FormatError(f"{path}: decimal of precision {precision!r:.40} and scale {scale!r:.40}", field=path)
    if precision == 0:
        raise FormatError(f"{path}: decimal of precision 0; it is 1 to {MAX_DECIMAL_PRECISION}", field=path)
    return Decimal(precision, scale)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _primitive(value: Json, kind: object, path: str) -> Type:
    logical = value.get("logicalType")
    if kind == "long" and logical in _TIMESTAMPS:
        return _TIMESTAMPS[logical][1 if value.get("adjust-to-utc") is True else 0]
    if kind == "bytes" and logical == "decimal":
        return _decimal(value, path)
    type_ = _LOGICAL.get((str(kind), str(logical)), _PLAIN.get(str(kind)))
    if type_ is None:
        raise UnsupportedError(f"{path}: Avro type {kind!r:.80} has no counterpart in the format", field=path)
    return type_
