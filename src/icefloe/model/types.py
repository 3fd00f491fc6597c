"""The types of the format as values (spec: Schemas and Data Types).

A primitive is a name, a nested type is a tuple of fields with ids. ``parse_type`` and ``format_type`` are the only
places that know how a primitive is spelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from icefloe.errors import FormatError, UnsupportedError


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type without parameters; ``since`` is the first format version that may store it."""

    name: str
    since: int = 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """Fixed-point number of ``precision`` digits, ``scale`` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Fixed:
    """Byte string of exactly ``length`` bytes."""

    length: int

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class Field:
    """A named, numbered slot of a struct; the id never changes, the name may.

    Defaults (format version 3 and later) are JSON values as the metadata holds them.
    """

    id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None


@dataclass(frozen=True, slots=True)
class Struct:
    """A tuple of typed fields."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return "struct<" + ", ".join(f"{f.id}: {f.name}: {f.type}" for f in self.fields) + ">"


@dataclass(frozen=True, slots=True)
class List:
    """A list; its element has an id of its own."""

    element_id: int
    element: Type
    element_required: bool = False

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """A map; keys are always required."""

    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool = False

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


PrimitiveType: TypeAlias = Primitive | Decimal | Fixed
Type: TypeAlias = Primitive | Decimal | Fixed | Struct | List | Map

BOOLEAN = Primitive("boolean")
INT = Primitive("int")
LONG = Primitive("long")
FLOAT = Primitive("float")
DOUBLE = Primitive("double")
DATE = Primitive("date")
TIME = Primitive("time")
TIMESTAMP = Primitive("timestamp")
TIMESTAMPTZ = Primitive("timestamptz")
STRING = Primitive("string")
UUID = Primitive("uuid")
BINARY = Primitive("binary")

NAMED = {
    t.name: t for t in (BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, STRING, UUID, BINARY)
}
LATER_TYPES = frozenset({"timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography"})
MAX_DECIMAL_PRECISION = 38

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_FIXED = re.compile(r"fixed\[(\d{1,9})\]")


def parse_type(text: str) -> PrimitiveType:
    """Parse the name of a primitive type (spec: Appendix C, Schemas).

    >>> parse_type("decimal(9,2)")
    Decimal(precision=9, scale=2)
    """
    if (named := NAMED.get(text)) is not None:
        return named
    if (found := _DECIMAL.fullmatch(text)) is not None:
        precision, scale = int(found[1]), int(found[2])
        if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
            raise FormatError(f"decimal({precision}, {scale}): precision is 1 to 38 and scale at most precision")
        return Decimal(precision, scale)
    if (found := _FIXED.fullmatch(text)) is not None:
        return Fixed(int(found[1]))
    if re.split(r"[(\[]", text, maxsplit=1)[0] in LATER_TYPES:
        raise UnsupportedError(f"type {text!r} belongs to format version 3, which is not handled yet", type=text)
    raise FormatError(f"unknown type {text!r}", type=text)


def format_type(type_: PrimitiveType) -> str:
    """The spelling that ``parse_type`` reads."""
    return str(type_)


def is_primitive(type_: Type) -> bool:
    """Whether the type has no fields of its own."""
    return isinstance(type_, (Primitive, Decimal, Fixed))


def children(type_: Type) -> tuple[Field, ...]:
    """The fields directly inside a type; list elements and map entries count as fields with the spec's names."""
    match type_:
        case Struct(fields):
            return fields
        case List():
            return (Field(type_.element_id, "element", type_.element, type_.element_required),)
        case Map():
            return (
                Field(type_.key_id, "key", type_.key, True),
                Field(type_.value_id, "value", type_.value, type_.value_required),
            )
        case _:
            return ()


def walk(fields: tuple[Field, ...]) -> Iterator[tuple[str, Field]]:
    """Every field at every depth with its full dotted name, parents first, without recursion."""
    pending = [(field.name, field) for field in reversed(fields)]
    while len(pending) > 0:
        name, field = pending.pop()
        yield name, field
        pending.extend((f"{name}.{child.name}", child) for child in reversed(children(field.type)))
