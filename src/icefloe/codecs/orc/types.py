"""Schemas as ORC types with attributes, and back (spec: Appendix A, ORC).

ORC finds columns by name, the format by id: ``reader_type`` gives the names under which a file has the columns that a
schema asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe.errors import FormatError, LimitError, UnsupportedError
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
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
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
    parse_type,
)

ID, REQUIRED = "iceberg.id", "iceberg.required"
LONG_TYPE, BINARY_TYPE, LENGTH = "iceberg.long-type", "iceberg.binary-type", "iceberg.length"
TIMESTAMP_UNIT = "iceberg.timestamp-unit"
STRUCT_TYPE = "iceberg.struct-type"
_VARIANT_PARTS = ("metadata", "value")  # of a variant's struct; both are binary and have no ids


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcType:
    """A type of an ORC file; ``names`` are those of a struct's fields, ``inside`` are their types."""

    kind: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    inside: tuple[OrcType, ...] = ()

    def __str__(self) -> str:
        if len(self.inside) == 0 and self.kind != "struct":
            return self.kind
        parts = [str(child) for child in self.inside]
        if self.kind == "struct":
            parts = [f"{name}:{part}" for name, part in zip(self.names, parts, strict=True)]
        return f"{self.kind}<{','.join(parts)}>"


_KINDS: dict[Primitive, str] = {
    BOOLEAN: "boolean",
    INT: "int",
    LONG: "long",
    FLOAT: "float",
    DOUBLE: "double",
    DATE: "date",
    TIME: "long",
    TIMESTAMP: "timestamp",
    TIMESTAMPTZ: "timestamp_instant",
    TIMESTAMP_NS: "timestamp",
    TIMESTAMPTZ_NS: "timestamp_instant",
    STRING: "string",
    UUID: "binary",
    BINARY: "binary",
}
_MARKS: dict[Primitive, dict[str, str]] = {
    TIME: {LONG_TYPE: "TIME"},
    UUID: {BINARY_TYPE: "UUID"},
    TIMESTAMP_NS: {TIMESTAMP_UNIT: "NANOS"},
    TIMESTAMPTZ_NS: {TIMESTAMP_UNIT: "NANOS"},
}
_READ: dict[str, Type] = {
    **dict.fromkeys(("tinyint", "smallint", "int"), INT),
    **dict.fromkeys(("long", "bigint"), LONG),
    **dict.fromkeys(("string", "char", "varchar"), STRING),
    **dict.fromkeys(("timestamp_instant", "timestamp with local time zone"), TIMESTAMPTZ),
    "boolean": BOOLEAN,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "binary": BINARY,
    "timestamp": TIMESTAMP,
}
_NANOSECONDS: dict[Type, Type] = {TIMESTAMP: TIMESTAMP_NS, TIMESTAMPTZ: TIMESTAMPTZ_NS}


def orc_schema(schema: Schema) -> OrcType:
    """The ORC type of files with these columns.

    >>> str(orc_schema(Schema(fields=(Field(1, "a", INT), Field(2, "b", List(3, TIME))))))
    'struct<a:int,b:array<long>>'
    """
    return fold_type(Struct(schema.fields), _written)


def _written(type_: Type, inner: tuple[OrcType, ...]) -> OrcType:
    inside = tuple(_with_id(made, child) for made, child in zip(inner, children(type_), strict=True))
    match type_:
        case Struct(fields):
            return OrcType(kind="struct", names=tuple(member.name for member in fields), inside=inside)
        case List():
            return OrcType(kind="array", inside=inside)
        case Map():
            return OrcType(kind="map", inside=inside)
        case Decimal(precision, scale):
            return OrcType(kind=f"decimal({precision},{scale})")
        case Fixed(length):
            return OrcType(kind="binary", attributes={BINARY_TYPE: "FIXED", LENGTH: str(length)})
        case Geometry() | Geography():
            return OrcType(kind="binary", attributes={BINARY_TYPE: type(type_).__name__.upper()})
        case Variant():
            parts = (OrcType(kind="binary"),) * len(_VARIANT_PARTS)
            return OrcType(kind="struct", attributes={STRUCT_TYPE: "VARIANT"}, names=_VARIANT_PARTS, inside=parts)
        case Primitive() if type_ in _KINDS:
            return OrcType(kind=_KINDS[type_], attributes=_MARKS.get(type_, {}))
    raise UnsupportedError(f"ORC files cannot hold columns of type {type_}", type=str(type_))


def _with_id(made: OrcType, child: Field) -> OrcType:
    ids = {ID: str(child.id), REQUIRED: "true" if child.required else "false"}
    return OrcType(kind=made.kind, attributes={**made.attributes, **ids}, names=made.names, inside=made.inside)


def schema_from_orc(type_: OrcType, path: str = "orc", *, limits: Limits = DEFAULT) -> Schema:
    """The columns of a file's ORC type, which must have ids; a name mapping gives them to a file without."""
    whole = _read(type_, path, limits.type_depth)
    if not isinstance(whole, Struct):
        raise FormatError(f"{path}: the type of a data file is a struct, not {whole}", field=path)
    return Schema(fields=whole.fields)


def _read(type_: OrcType, path: str, depth: int) -> Type:
    if depth <= 0:
        raise LimitError(f"{path}: types are nested too deeply", field=path)
    if type_.kind == "struct" and type_.attributes.get(STRUCT_TYPE) == "VARIANT":
        return VARIANT
    names = type_.names if type_.kind == "struct" else {"array": ("element",), "map": ("key", "value")}.get(type_.kind)
    if names is None:
        return _read_primitive(type_, path)
    if len(names) != len(type_.inside):
        raise FormatError(f"{path}: a {type_.kind} has {len(names)} fields, not {len(type_.inside)}", field=path)
    fields = tuple(
        _field(name, child, f"{path}.{name}", depth) for name, child in zip(names, type_.inside, strict=True)
    )
    match type_.kind:
        case "array":
            return List(fields[0].id, fields[0].type, fields[0].required)
        case "map":
            return Map(fields[0].id, fields[0].type, fields[1].id, fields[1].type, fields[1].required)
        case _:
            return Struct(fields)


def _field(name: str, type_: OrcType, path: str, depth: int) -> Field:
    field_id = type_.attributes.get(ID, "")
    if not field_id.isascii() or not field_id.isdigit():
        raise FormatError(f"{path}: missing {ID}", field=path)
    return Field(int(field_id), name, _read(type_, path, depth - 1), type_.attributes.get(REQUIRED) == "true")


def _read_primitive(type_: OrcType, path: str) -> Type:
    marks = type_.attributes
    kind, _, _ = type_.kind.partition("(")
    if kind == "decimal":
        try:
            return parse_type(type_.kind)
        except FormatError as error:
            raise FormatError(f"{path}: {error}", **{**error.context, "field": path}) from error
    base = _READ.get(kind)
    if base == LONG and marks.get(LONG_TYPE) == "TIME":
        return TIME
    if base == BINARY:
        return _read_binary(marks, path)
    if base in _NANOSECONDS and marks.get(TIMESTAMP_UNIT) == "NANOS":
        return _NANOSECONDS[base]
    if base is None:
        raise UnsupportedError(f"{path}: ORC type {type_.kind!r:.80} has no counterpart in the format", field=path)
    return base


def _read_binary(marks: Mapping[str, str], path: str) -> Type:
    match marks.get(BINARY_TYPE):
        case "UUID":
            return UUID
        case "FIXED":
            length = marks.get(LENGTH, "")
            if not length.isascii() or not length.isdigit():
                raise FormatError(f"{path}: missing {LENGTH}", field=path)
            return Fixed(int(length))
        case "GEOMETRY":
            return Geometry()
        case "GEOGRAPHY":
            return Geography()
        case _:
            return BINARY


def reader_type(file: OrcType, schema: Schema) -> OrcType:
    """The names to read from a file for the columns of a schema, matched by id.

    A column that is absent from the file keeps its name, or gets an unused one if the file has another column of that
    name. ORC then reads it as null.
    """
    return _asked(file, orc_schema(schema))


def _asked(file: OrcType, wanted: OrcType) -> OrcType:
    if file.kind != wanted.kind or len(wanted.inside) == 0:
        return wanted
    if wanted.kind != "struct":
        inside = tuple(_asked(stored, child) for stored, child in zip(file.inside, wanted.inside, strict=True))
        return OrcType(kind=wanted.kind, attributes=wanted.attributes, inside=inside)
    there = {child.attributes.get(ID): (name, child) for name, child in zip(file.names, file.inside, strict=True)}
    names, inside_ = [], []
    for name, child in zip(wanted.names, wanted.inside, strict=True):
        entry = there.get(child.attributes[ID])
        names.append(entry[0] if entry is not None else _unused(name, child, file.names))
        inside_.append(child if entry is None else _asked(entry[1], child))
    return OrcType(kind="struct", attributes=wanted.attributes, names=tuple(names), inside=tuple(inside_))


def _unused(name: str, type_: OrcType, taken: tuple[str, ...]) -> str:
    return f"{name}_r{type_.attributes[ID]}" if name in taken else name
