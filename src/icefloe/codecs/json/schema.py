"""Schemas and types as JSON (spec: Appendix C: JSON serialization, Schemas).

Table metadata and the key-value metadata of Avro manifests store the same objects.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import msgspec

from icefloe.codecs.json.input import Extensible, Int, Reading, convert_extensible, with_unknown
from icefloe.codecs.json.record_shapes import join
from icefloe.errors import FormatError, LimitError, UnsupportedError
from icefloe.limits import DEFAULT, Limits
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, List, Map, Struct, Type, Unknown, format_type, parse_type, since

_TYPE = "type"
_WITH_CRS = ("geometry(", "geography(")
_OWN = ""
_KEYS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ListRecord(Extensible, frozen=True, tag="list"):
    """A list type."""

    element_id: Int
    element: str | StructRecord | ListRecord | MapRecord
    element_required: bool


class MapRecord(Extensible, frozen=True, tag="map"):
    """A map type."""

    key_id: Int
    key: str | StructRecord | ListRecord | MapRecord
    value_id: Int
    value: str | StructRecord | ListRecord | MapRecord
    value_required: bool


class FieldRecord(Extensible, frozen=True):
    """A column or a field of a struct."""

    id: Int
    name: str
    type: str | StructRecord | ListRecord | MapRecord
    required: bool
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None


class StructRecord(Extensible, frozen=True, tag="struct"):
    """A struct type."""

    fields: list[FieldRecord]


class SchemaRecord(Extensible, frozen=True):
    """A schema: a struct type with an id."""

    type: Literal["struct"]
    fields: list[FieldRecord]
    schema_id: Int = 0
    identifier_field_ids: list[Int] | None = None


TypeRecord = str | StructRecord | ListRecord | MapRecord


def schema_from_json(value: object, path: str = "schema", *, limits: Limits = DEFAULT) -> Schema:
    """The schema of a parsed JSON object; ``path`` is its position in the document, for errors."""
    record, extras = convert_extensible(value, SchemaRecord, path)
    return schema_from_record(record, path, Reading(extras=extras, limits=limits))


def schema_from_record(record: SchemaRecord, path: str, reading: Reading) -> Schema:
    """The schema of a decoded record."""
    try:
        return Schema(
            fields=_fields(record.fields, join(path, "fields"), reading.limits.type_depth, reading),
            schema_id=record.schema_id,
            identifier_field_ids=tuple(record.identifier_field_ids or ()),
            extra=reading.unknown(path),
        )
    except FormatError as error:
        if str(error).startswith(path):
            raise
        raise FormatError(f"{path}: {error}", **{**error.context, "field": path}) from error


def _fields(records: list[FieldRecord], path: str, depth: int, reading: Reading) -> tuple[Field, ...]:
    return tuple(_field(record, f"{path}[{index}]", depth, reading) for index, record in enumerate(records))


def _field(record: FieldRecord, path: str, depth: int, reading: Reading) -> Field:
    return Field(
        record.id,
        record.name,
        _type(record.type, f"{path}.type", record.name, depth, reading),
        record.required,
        record.doc,
        record.initial_default,
        record.write_default,
        () if len(reading.extras) == 0 else _unknown_of_field(record, path, reading),
    )


def _type(record: TypeRecord, path: str, name: str, depth: int, reading: Reading) -> Type:
    if depth <= 0:
        raise LimitError(f"{path}: types are nested too deeply", field=path)
    match record:
        case StructRecord():
            return Struct(_fields(record.fields, join(path, "fields"), depth - 1, reading))
        case ListRecord():
            element = _type(record.element, join(path, "element"), name, depth - 1, reading)
            return List(record.element_id, element, record.element_required)
        case MapRecord():
            key = _type(record.key, join(path, "key"), name, depth - 1, reading)
            value = _type(record.value, join(path, "value"), name, depth - 1, reading)
            return Map(record.key_id, key, record.value_id, value, record.value_required)
        case _:
            return _named(record, path, name, reading.version)


def _named(text: str, path: str, name: str, version: int) -> Type:
    try:
        type_, first = _known(text)
    except (FormatError, UnsupportedError) as error:
        raise type(error)(f"{path}: {error}", **{**error.context, "field": path}) from error
    if first > version:
        reason = f"column {name!r} has type {type_} of format version {first}, but the table has version {version}"
        raise FormatError(f"{path}: {reason}", field=path, type=text, version=version)
    return type_


@lru_cache(maxsize=256)
def _known(text: str) -> tuple[Type, int]:
    """A type by its name, and the first version that has it. Cached: few names repeat in many columns and schemas.

    Names are case-insensitive, as in Apache Iceberg, except for the name of a coordinate reference system.
    """
    type_ = parse_type(text if text.startswith(_WITH_CRS) else text.lower())
    return type_, since(type_)


def _unknown_of_field(record: FieldRecord, path: str, reading: Reading) -> Unknown:
    """The unknown keys of a field, and those of its type as one entry under a key that is known.

    Values for lists, maps and structs have no unknown keys, so the field with such a type keeps them.
    """
    inner = _unknown_of_type(record.type, join(path, _TYPE), reading)
    boxed = () if len(inner) == 0 else ((_TYPE, msgspec.json.encode(inner).decode()),)
    return (*reading.unknown(path), *boxed)


def _unknown_of_type(record: TypeRecord, path: str, reading: Reading) -> dict[str, Any]:
    """The unknown keys of a type and of the types nested in it; struct fields store their own unknown keys."""
    own = with_unknown({}, reading.unknown(path))
    unknown: dict[str, Any] = {} if len(own) == 0 else {_OWN: own}
    for place in _places(record):
        inner = _unknown_of_type(getattr(record, place), join(path, place), reading)
        if len(inner) > 0:
            unknown[place] = inner
    return unknown


def _places(record: TypeRecord) -> tuple[str, ...]:
    match record:
        case ListRecord():
            return ("element",)
        case MapRecord():
            return ("key", "value")
        case _:
            return ()


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """A schema as a JSON object, for msgspec to encode.

    >>> from icefloe.model.schema.types import LONG
    >>> schema_to_json(Schema(fields=(Field(1, "id", LONG),)))["fields"]
    [{'id': 1, 'name': 'id', 'required': False, 'type': 'long'}]
    """
    head: dict[str, Any] = {_TYPE: "struct", "schema-id": schema.schema_id}
    if len(schema.identifier_field_ids) > 0:
        head["identifier-field-ids"] = list(schema.identifier_field_ids)
    return with_unknown({**head, "fields": [_field_to_json(field) for field in schema.fields]}, schema.extra)


def _field_to_json(field: Field) -> dict[str, Any]:
    written: dict[str, Any] = {"id": field.id, "name": field.name, "required": field.required}
    written[_TYPE] = type_to_json(field.type)
    if field.doc is not None:
        written["doc"] = field.doc
    if field.initial_default is not None:
        written["initial-default"] = field.initial_default
    if field.write_default is not None:
        written["write-default"] = field.write_default
    return written if len(field.extra) == 0 else _with_unknown_of_type(written, field.extra)


def _with_unknown_of_type(written: dict[str, Any], unknown: Unknown) -> dict[str, Any]:
    boxed = dict(unknown).get(_TYPE)
    if boxed is not None:
        _merge(written[_TYPE], msgspec.Raw(boxed.encode()))
    return with_unknown(written, unknown)


def _merge(written: object, boxed: msgspec.Raw) -> None:
    """Put the unknown keys of a type back into its JSON, as far as it still has the same objects."""
    if not isinstance(written, dict):
        return
    for place, text in _KEYS.decode(boxed).items():
        if place != _OWN:
            _merge(written.get(place), text)
        else:
            written.update((key, value) for key, value in _KEYS.decode(text).items() if key not in written)


def type_to_json(type_: Type) -> str | dict[str, Any]:
    """A type as JSON: a name, or an object for a nested type."""
    match type_:
        case Struct(fields):
            return {"type": "struct", "fields": [_field_to_json(field) for field in fields]}
        case List():
            return {
                "type": "list",
                "element-id": type_.element_id,
                "element": type_to_json(type_.element),
                "element-required": type_.element_required,
            }
        case Map():
            return {
                "type": "map",
                "key-id": type_.key_id,
                "key": type_to_json(type_.key),
                "value-id": type_.value_id,
                "value": type_to_json(type_.value),
                "value-required": type_.value_required,
            }
        case _:
            return format_type(type_)
