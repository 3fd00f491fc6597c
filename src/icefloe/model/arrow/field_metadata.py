"""The metadata of Arrow fields: ids, comments, defaults, and types that Arrow lacks (spec: Schemas and Data Types).

Ids are stored under the key of Parquet readers and writers, comments under that of pyiceberg. Shapes and variants have
the extension names of GeoArrow and of Arrow. A mark distinguishes uuid from ``fixed[16]``.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from icefloe.errors import FormatError, InputError
from icefloe.model.schema.types import UUID, VARIANT, Field, Geography, Geometry, Type, parse_type

FIELD_ID = b"PARQUET:field_id"

_DOC = b"doc"
_TYPE = b"iceberg.type"
_INITIAL_DEFAULT = b"iceberg.initial-default"
_WRITE_DEFAULT = b"iceberg.write-default"
_EXTENSION = b"ARROW:extension:name"
_PARAMETERS = b"ARROW:extension:metadata"
_SHAPE = b"geoarrow.wkb"
_VARIANT = b"arrow.parquet.variant"
_PANDAS = b"pandas"
_INDEX_LEVEL = re.compile(r"__index_level_\d+__")


def field_marks(field: Field) -> dict[bytes, bytes]:
    """The metadata of the Arrow field that represents a field."""
    marks = {FIELD_ID: str(field.id).encode(), **_type_marks(field.type)}
    if field.doc is not None:
        marks[_DOC] = field.doc.encode()
    for key, default in ((_INITIAL_DEFAULT, field.initial_default), (_WRITE_DEFAULT, field.write_default)):
        if default is not None:
            marks[key] = json.dumps(default).encode()
    return marks


def _type_marks(type_: Type) -> dict[bytes, bytes]:
    if type_ == UUID:
        return {_TYPE: str(type_).encode()}
    if type_ == VARIANT:
        return {_EXTENSION: _VARIANT, _PARAMETERS: b""}
    if isinstance(type_, (Geometry, Geography)):
        edges = {"edges": type_.algorithm} if isinstance(type_, Geography) else {}
        return {_EXTENSION: _SHAPE, _PARAMETERS: json.dumps({"crs": type_.crs, **edges}).encode()}
    return {}


def marked_id(field: pa.Field) -> int | None:
    """The id of an Arrow field."""
    text = _marks(field).get(FIELD_ID)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"column {field.name!r}: field id {text!r} is not a number", field=field.name) from error


def marked_doc(field: pa.Field) -> str | None:
    """The comment on an Arrow field."""
    text = _marks(field).get(_DOC)
    return None if text is None else text.decode(errors="replace")


def marked_defaults(field: pa.Field, name: str) -> tuple[Any, Any]:
    """The initial and the write default of an Arrow field, as JSON values; ``name`` is its full name, for errors."""
    marks = _marks(field)
    initial, write = (_json(marks.get(key), name) for key in (_INITIAL_DEFAULT, _WRITE_DEFAULT))
    return initial, write


def marked_type(field: pa.Field, name: str) -> Type | None:
    """The type recorded in an Arrow field's metadata, if any; ``name`` is its full name, for errors."""
    if isinstance(field.type, pa.UuidType):
        return UUID
    marks = _marks(field)
    if marks.get(_TYPE) == str(UUID).encode() and field.type == pa.binary(16):
        return UUID
    extension, parameters = marks.get(_EXTENSION), marks.get(_PARAMETERS)
    if isinstance(field.type, pa.BaseExtensionType):  # the extension type is registered
        extension = field.type.extension_name.encode()
        parameters = field.type.__arrow_ext_serialize__() if isinstance(field.type, pa.ExtensionType) else None
    if extension == _VARIANT:
        return VARIANT
    return _shape(parameters, name) if extension == _SHAPE else None


def _shape(parameters: bytes | None, name: str) -> Type:
    """The type of a GeoArrow column: geography if its metadata has non-planar edges, else geometry."""
    parsed = _json(parameters, name)
    parsed = parsed if isinstance(parsed, dict) else {}
    crs, edges = _crs(parsed.get("crs")), parsed.get("edges")
    if crs is None:
        raise InputError(f"column {name!r}: its GeoArrow metadata has no crs; set one, such as OGC:CRS84", field=name)
    try:
        return parse_type(f"geometry({crs})" if edges in (None, "planar") else f"geography({crs}, {edges})")
    except FormatError as error:
        raise InputError(f"column {name!r}: {error}", field=name) from error


def _crs(value: object) -> str | None:
    """The name of a reference system: a text, or the authority and code that a PROJJSON object ends with."""
    if isinstance(value, str):
        return value
    identity = value.get("id") if isinstance(value, dict) else None
    if not isinstance(identity, dict) or "authority" not in identity or "code" not in identity:
        return None
    return f"{identity['authority']}:{identity['code']}"


def _json(text: bytes | None, name: str) -> Any:
    if text is None or text == b"":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"column {name!r}: metadata {text[:60]!r} is not JSON", field=name) from error


def _marks(field: pa.Field) -> dict[bytes, bytes]:
    return {} if field.metadata is None else field.metadata


def unnamed_index(schema: pa.Schema) -> frozenset[str]:
    """The columns of a pandas frame that hold an index without a name, which are not columns of the rows.

    >>> unnamed_index(pa.schema({"id": pa.int64(), "__index_level_0__": pa.int64()}, metadata={"pandas": "{}"}))
    frozenset({'__index_level_0__'})
    """
    if schema.metadata is None or _PANDAS not in schema.metadata:
        return frozenset()
    return frozenset(name for name in schema.names if _INDEX_LEVEL.fullmatch(name) is not None)
