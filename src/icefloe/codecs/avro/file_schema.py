"""The schema of any Avro data file: as Arrow columns, and in a plain form for decoders (spec: Appendix A, Avro).

The plain form has no logical types, no references to named types and no names from the file: fields are ``f0``, ``f1``
and so on, and a map is an array of pairs, as it is encoded. The Arrow schema has the types, names and field ids; files
of other programs have no ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from icefloe.codecs.avro.schemas import UUID_BYTES
from icefloe.codecs.json.record_shapes import join
from icefloe.errors import FormatError, LimitError, UnsupportedError
from icefloe.limits import DEFAULT, MIB, Limits
from icefloe.model.arrow.arrow_types import VARIANT_PARTS
from icefloe.model.arrow.field_metadata import FIELD_ID
from icefloe.model.schema.types import MAX_DECIMAL_PRECISION

Plain: TypeAlias = Any  # an Avro schema
Made: TypeAlias = tuple[Plain, pa.DataType, bool]  # with what it is in Arrow, and whether it may be null

MAX_FIXED_BYTES = 16 * MIB
_MAX_NODES = 20_000  # types that refer to types can double at each step
_MAX_ID = 2**31 - 1
PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_INSTANTS = {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchema:
    """The columns of a file: in plain form, and in Arrow with names and ids."""

    plain: Plain
    arrow: pa.Schema


def stored_schema(value: object, *, where: str, limits: Limits = DEFAULT) -> StoredSchema:
    """The schema of a file from its header.

    >>> field = {"name": "d", "type": ["null", {"type": "int", "logicalType": "date"}], "field-id": 8}
    >>> schema = stored_schema({"type": "record", "name": "table", "fields": [field]}, where="file")
    >>> schema.plain["fields"], schema.arrow.field("d").type
    ([{'name': 'f0', 'type': ['null', 'int']}], DataType(date32[day]))
    """
    plain, type_, nullable = _Walk().type(value, where, limits.type_depth, "")
    if nullable or not pa.types.is_struct(type_):
        raise FormatError(f"{where}: the Avro schema of a data file is a record, not {type_}", location=where)
    return StoredSchema(plain=plain, arrow=pa.schema(list(type_)))


class _Walk:
    """Converts one schema; collects the named types that are defined in it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[dict[str, Any], str]] = {}  # with the namespace around each
        self._open: set[str] = set()  # named types that enclose the present one
        self._nodes = 0

    def type(self, value: object, path: str, depth: int, space: str) -> Made:
        """A type of any kind."""
        self._nodes += 1
        if depth <= 0 or self._nodes > _MAX_NODES:
            raise LimitError(f"{path}: types are nested too deeply", field=path)
        if isinstance(value, list):
            return self._optional(value, path, depth, space)
        if isinstance(value, str):
            value = {"type": value}
        if not isinstance(value, dict):
            raise FormatError(f"{path}: expected an Avro type, got {value!r:.80}", field=path)
        match value.get("type"):
            case dict() | list() as inner:  # a type in a needless object
                return self.type(inner, path, depth - 1, space)
            case "record" | "error" | "fixed" | "enum" as kind:
                return self._named(kind, value, path, depth, space)
            case "array":
                return self._array(value, path, depth, space)
            case "map":
                return self._map(value, path, depth, space)
            case str(name) if name in PRIMITIVES:
                return _primitive(value, name, path)
            case str(name):
                return self._reference(name, path, depth, space)
            case other:
                raise FormatError(f"{path}: expected an Avro type, got {other!r:.80}", field=path)

    def _optional(self, value: list[Any], path: str, depth: int, space: str) -> Made:
        kept = [branch for branch in value if not _is_null(branch)]
        if len(value) != 2 or len(kept) != 1 or isinstance(kept[0], list):
            raise UnsupportedError(f"{path}: only unions of null and one type are read", field=path)
        plain, type_, _ = self.type(kept[0], path, depth - 1, space)
        return (["null", plain] if _is_null(value[0]) else [plain, "null"]), type_, True

    def _named(self, kind: str, value: dict[str, Any], path: str, depth: int, space: str) -> Made:
        full, inside = _full_name(value, path, space)
        if full in self._open:
            raise UnsupportedError(f"{path}: the type {full!r} contains itself", field=path)
        self._known[full] = (value, space)
        if kind == "enum":
            raise UnsupportedError(f"{path}: Avro type 'enum' has no counterpart in the format", field=path)
        if kind == "fixed":
            return self._fixed(value, path)
        self._open.add(full)
        made = self._record(value, path, depth, inside)
        self._open.discard(full)
        return made

    def _reference(self, name: str, path: str, depth: int, space: str) -> Made:
        for full in (name, f"{space}.{name}"):
            if full in self._known:
                definition, around = self._known[full]
                return self.type(definition, path, depth - 1, around)
        raise FormatError(f"{path}: Avro type {name!r:.80} is not known", field=path)

    def _record(self, value: dict[str, Any], path: str, depth: int, space: str) -> Made:
        listed = value.get("fields")
        if not isinstance(listed, list):
            raise FormatError(f"{path}.fields: expected a list of fields", field=path)
        number, plains, fields = self._nodes, [], []
        for index, field in enumerate(listed):
            here = f"{path}.fields[{index}]"
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise FormatError(f"{here}: expected a field with a name", field=here)
            plain, type_, nullable = self.type(field.get("type"), join(here, "type"), depth - 1, space)
            plains.append({"name": f"f{index}", "type": plain})
            fields.append(
                _field(str(field.get("iceberg-field-name", field["name"])), field, "field-id", type_, nullable, here)
            )
        ids = [mark for field in fields if (mark := (field.metadata or {}).get(FIELD_ID)) is not None]
        if len(set(ids)) < len(ids):
            raise FormatError(f"{path}: two fields have the same id", field=path)
        if value.get("logicalType") == "variant":
            fields = _variant(fields, path)
        return {"type": "record", "name": f"r{number}", "fields": plains}, pa.struct(fields), False

    def _array(self, value: dict[str, Any], path: str, depth: int, space: str) -> Made:
        plain, type_, nullable = self.type(value.get("items"), join(path, "items"), depth - 1, space)
        if takes_nothing(plain):
            # It could have any number of items in no bytes.
            raise UnsupportedError(f"{path}: an array of nothing", field=path)
        if value.get("logicalType") == "map":
            if nullable or not pa.types.is_struct(type_) or type_.num_fields != 2:
                raise FormatError(f"{path}.items: a map is stored as records of a key and a value", field=path)
            key, entry = type_.field(0).with_name("key"), type_.field(1).with_name("value")
            return {"type": "array", "items": plain}, pa.map_(key.with_nullable(False), entry), False
        element = _field("element", value, "element-id", type_, nullable, path)
        return {"type": "array", "items": plain}, pa.list_(element), False

    def _map(self, value: dict[str, Any], path: str, depth: int, space: str) -> Made:
        self._nodes += 1
        number = self._nodes
        plain, type_, nullable = self.type(value.get("values"), join(path, "values"), depth - 1, space)
        pair = [{"name": "f0", "type": "string"}, {"name": "f1", "type": plain}]
        items = {"type": "record", "name": f"r{number}", "fields": pair}
        key = _field("key", value, "key-id", pa.string(), False, path)
        return (
            {"type": "array", "items": items},
            pa.map_(key, _field("value", value, "value-id", type_, nullable, path)),
            False,
        )

    def _fixed(self, value: dict[str, Any], path: str) -> Made:
        size, logical = value.get("size"), value.get("logicalType")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise FormatError(f"{path}.size: expected a number of bytes, got {size!r:.80}", field=path)
        if size > MAX_FIXED_BYTES:
            raise LimitError(f"{path}.size: {size} bytes, limit {MAX_FIXED_BYTES}", field=path)
        plain = {"type": "fixed", "name": f"x{self._nodes}", "size": size}
        if logical == "decimal":
            return plain, _decimal(value, path), False
        return plain, pa.binary(UUID_BYTES if logical == "uuid" and size == UUID_BYTES else size), False


def _is_null(value: object) -> bool:
    return value == "null" or (isinstance(value, dict) and value.get("type") == "null")


def _full_name(value: dict[str, Any], path: str, space: str) -> tuple[str, str]:
    """The full name of a type, and the namespace for the names in it."""
    name, own = value.get("name"), value.get("namespace", space)
    if not isinstance(name, str) or not isinstance(own, str):
        raise FormatError(f"{path}: a type without a name", field=path)
    if "." in name:
        return name, name.rpartition(".")[0]
    return (f"{own}.{name}" if own != "" else name), own


def _field(name: str, holder: dict[str, Any], key: str, type_: pa.DataType, nullable: bool, path: str) -> pa.Field:
    """A field with the id that its holder gives to it, if any."""
    id_ = holder.get(key)
    if isinstance(id_, str) and id_.isdecimal():
        id_ = int(id_)
    if id_ is not None and (not isinstance(id_, int) or isinstance(id_, bool) or not 0 <= id_ <= _MAX_ID):
        raise FormatError(f"{path}: {key} {id_!r:.40} is not an id", field=join(path, key))
    metadata = None if id_ is None else {FIELD_ID: str(id_).encode()}
    return pa.field(name, type_, nullable=nullable or pa.types.is_null(type_), metadata=metadata)


def _variant(fields: list[pa.Field], path: str) -> list[pa.Field]:
    if [(field.name, field.type) for field in fields] != [(part.name, part.type) for part in VARIANT_PARTS]:
        raise FormatError(f"{path}: a variant is stored as metadata and value, both bytes", field=path)
    return list(VARIANT_PARTS)


def takes_nothing(plain: Plain) -> bool:
    """Whether values of this type are encoded in zero bytes."""
    match plain:
        case "null":
            return True
        case {"type": "record", "fields": fields}:
            return all(takes_nothing(field["type"]) for field in fields)
        case {"type": "fixed", "size": size}:
            return bool(size == 0)
        case _:
            return False


def _primitive(value: dict[str, Any], name: str, path: str) -> Made:
    logical = str(value.get("logicalType"))
    if name == "long" and logical in _INSTANTS:
        # Without adjust-to-utc it is a local time, as in other Iceberg libraries.
        adjusted = value.get("adjust-to-utc") is True or str(value.get("adjust-to-utc")).lower() == "true"
        return name, pa.timestamp(_INSTANTS[logical], tz="UTC" if adjusted else None), False
    if name == "bytes" and logical == "decimal":
        return name, _decimal(value, path), False
    return name, _LOGICAL.get((name, logical), PRIMITIVES[name]), name == "null"


def _decimal(value: dict[str, Any], path: str) -> pa.DataType:
    match value.get("precision"), value.get("scale", 0):
        case int(precision), int(scale) if 1 <= precision <= MAX_DECIMAL_PRECISION and 0 <= scale <= precision:
            return pa.decimal128(precision, scale)
        case precision, scale:
            raise FormatError(f"{path}: decimal of precision {precision!r:.40} and scale {scale!r:.40}", field=path)
