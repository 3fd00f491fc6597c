"""The types of the format as values (spec: Schemas and Data Types).

A primitive is a name, a nested type is a tuple of fields with ids. Only ``parse_type`` and ``format_type`` define how a
primitive is spelled. ``fold_type`` computes a value from a type of any depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar, get_args

from icefloe.errors import FormatError


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


EdgeAlgorithm: TypeAlias = Literal["spherical", "vincenty", "thomas", "andoyer", "karney"]
DEFAULT_CRS = "OGC:CRS84"
DEFAULT_ALGORITHM: EdgeAlgorithm = "spherical"


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes on a plane, as well-known binary; ``crs`` names the coordinate reference system.

    >>> str(parse_type("geometry")), str(parse_type("geography"))  # all parameters, as Appendix C of the spec has them
    ('geometry(OGC:CRS84)', 'geography(OGC:CRS84, spherical)')
    """

    crs: str = DEFAULT_CRS

    def __str__(self) -> str:
        return f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class Geography:
    """Shapes on a globe, as well-known binary; ``algorithm`` says how edges run between points."""

    crs: str = DEFAULT_CRS
    algorithm: EdgeAlgorithm = DEFAULT_ALGORITHM

    def __str__(self) -> str:
        return f"geography({self.crs}, {self.algorithm})"


@dataclass(frozen=True, slots=True)
class Variant:
    """Values that carry their own type; neither primitive nor nested, because it has no fields with ids."""

    def __str__(self) -> str:
        return "variant"


Unknown: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A named, numbered slot of a struct; the id never changes, the name may.

    Defaults (format version 3 and later) are JSON values as the metadata holds them. ``extra`` are keys of its JSON
    object that this library does not know, each with its JSON text, so that changes of the field preserve them.
    """

    id: int
    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    # Defaults of structs are objects, which cannot be hashed.
    initial_default: Any = field(default=None, hash=False)
    write_default: Any = field(default=None, hash=False)
    extra: Unknown = ()


@dataclass(frozen=True, slots=True)
class Struct:
    """A tuple of typed fields."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return fold_type(self, _shown)


@dataclass(frozen=True, slots=True)
class List:
    """A list; its element has an id of its own."""

    element_id: int
    element: Type
    element_required: bool = False

    def __str__(self) -> str:
        return fold_type(self, _shown)


@dataclass(frozen=True, slots=True)
class Map:
    """A map; keys are always required."""

    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool = False

    def __str__(self) -> str:
        return fold_type(self, _shown)


PrimitiveType: TypeAlias = Primitive | Decimal | Fixed | Geometry | Geography
NestedType: TypeAlias = Struct | List | Map
Type: TypeAlias = PrimitiveType | Variant | NestedType

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
TIMESTAMP_NS = Primitive("timestamp_ns", 3)
TIMESTAMPTZ_NS = Primitive("timestamptz_ns", 3)
UNKNOWN = Primitive("unknown", 3)  # a column whose values are all null, until it is promoted
VARIANT = Variant()

NAMED: dict[str, Primitive | Variant] = {
    str(t): t
    for t in (
        *(BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, STRING, UUID, BINARY),
        *(TIMESTAMP_NS, TIMESTAMPTZ_NS, UNKNOWN, VARIANT),
    )
}
MAX_DECIMAL_PRECISION = 38

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d{1,9})\s*\]")
_GEOMETRY = re.compile(r"geometry(?:\(([^(),]+)\))?")
_GEOGRAPHY = re.compile(r"geography(?:\(([^(),]+)(?:,([^(),]+))?\))?")

T = TypeVar("T")


def parse_type(text: str) -> PrimitiveType | Variant:
    """Parse the name of a type that is not nested (spec: Appendix C, Schemas).

    >>> parse_type("decimal(9,2)")
    Decimal(precision=9, scale=2)
    >>> parse_type("geography(OGC:CRS84, karney)")
    Geography(crs='OGC:CRS84', algorithm='karney')
    """
    if (named := NAMED.get(text)) is not None:
        return named
    if (match := _DECIMAL.fullmatch(text)) is not None:
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
            raise FormatError(f"decimal({precision}, {scale}): precision is 1 to 38 and scale at most precision")
        return Decimal(precision, scale)
    if (match := _FIXED.fullmatch(text)) is not None:
        return Fixed(int(match[1]))
    if (match := _GEOMETRY.fullmatch(text)) is not None:
        return Geometry(_crs(match[1]))
    if (match := _GEOGRAPHY.fullmatch(text)) is not None:
        return Geography(_crs(match[1]), _algorithm(match[2]))
    raise FormatError(f"unknown type {text!r}", type=text)


def _crs(text: str | None) -> str:
    if text is None:
        return DEFAULT_CRS
    if text.strip() == "":
        raise FormatError("the coordinate reference system of a geometry or geography has no name")
    return text.strip()


def _algorithm(text: str | None) -> EdgeAlgorithm:
    if text is None:
        return DEFAULT_ALGORITHM
    for known in get_args(EdgeAlgorithm):
        if text.strip().lower() == known:
            return known  # type: ignore[no-any-return]  # one of the literals
    raise FormatError(f"geography: {text.strip()!r} is not one of {', '.join(get_args(EdgeAlgorithm))}")


def format_type(type_: PrimitiveType | Variant) -> str:
    """The spelling that ``parse_type`` reads."""
    return str(type_)


def is_primitive(type_: Type) -> TypeGuard[PrimitiveType]:
    """Whether the type is one of the spec's primitive types: it has no fields of its own and is no variant."""
    return isinstance(type_, (Primitive, Decimal, Fixed, Geometry, Geography))


def is_shape(type_: Type) -> bool:
    """Whether values are shapes, whose bounds are the corners of a box."""
    return isinstance(type_, (Geometry, Geography))


def has_value_sizes(type_: Type) -> bool:
    """Whether values of a primitive type have different sizes, so that statistics record their average size."""
    return type_ in (STRING, BINARY) or is_shape(type_)


def has_nan(type_: Type) -> bool:
    """Whether values of the type can be NaN."""
    return type_ in (FLOAT, DOUBLE)


def since(type_: Type) -> int:
    """The first format version whose tables may have a column of the type.

    >>> since(LONG), since(List(1, Struct((Field(2, "at", TIMESTAMP_NS),))))
    (1, 3)
    """

    def own(type_: Type, inner: tuple[int, ...]) -> int:
        if isinstance(type_, (Geometry, Geography, Variant)):
            return 3
        return max(type_.since if isinstance(type_, Primitive) else 1, *inner, 1)

    return fold_type(type_, own)


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


def with_children(type_: Type, inner: tuple[Field, ...]) -> Type:
    """A nested type of the same kind with other fields inside, in the order of ``children``.

    >>> str(with_children(List(1, LONG), (Field(1, "element", STRING),)))
    'list<string>'
    """
    match type_:
        case Struct():
            return Struct(inner)
        case List():
            (element,) = inner
            return List(element.id, element.type, element.required)
        case Map():
            key, value = inner
            return Map(key.id, key.type, value.id, value.type, value.required)
        case _:
            return type_


def walk(fields: tuple[Field, ...]) -> Iterator[tuple[str, Field]]:
    """Every field at every depth with its full dotted name, parents first, without recursion."""
    pending = [(field.name, field) for field in reversed(fields)]
    while len(pending) > 0:
        name, field = pending.pop()
        yield name, field
        pending.extend((f"{name}.{child.name}", child) for child in reversed(children(field.type)))


def fold_type(type_: Type, combine: Callable[[Type, tuple[T, ...]], T]) -> T:
    """Fold a type bottom-up without recursion: ``combine`` gets a type and its results for the types directly inside.

    >>> fold_type(List(1, List(2, LONG)), lambda type_, inner: 1 + sum(inner))
    3
    """
    pending: list[tuple[Type, bool]] = [(type_, False)]
    done: list[T] = []
    while len(pending) > 0:
        current, expanded = pending.pop()
        inner = children(current)
        if expanded or len(inner) == 0:
            first = len(done) - len(inner)
            value = combine(current, tuple(done[first:]))
            done[first:] = [value]
        else:
            pending.append((current, True))
            pending.extend((field.type, False) for field in reversed(inner))
    return done[0]


def _shown(type_: Type, inner: tuple[str, ...]) -> str:
    match type_:
        case Struct(fields):
            named = (f"{field.id}: {field.name}: {text}" for field, text in zip(fields, inner, strict=True))
            return f"struct<{', '.join(named)}>"
        case List():
            return f"list<{inner[0]}>"
        case Map():
            return f"map<{inner[0]}, {inner[1]}>"
        case _:
            return str(type_)
