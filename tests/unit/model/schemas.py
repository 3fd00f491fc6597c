"""Random schemas of every type and nesting, with comments and defaults, for the laws of conversions."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable

from hypothesis import assume
from hypothesis import strategies as st

from icefloe.errors import FormatError
from icefloe.model.schema.json_values import value_to_json
from icefloe.model.schema.schema import Schema, fresh_ids
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NAMED,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
)

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
NAMES = TEXT.filter(lambda name: name != "") | st.sampled_from(
    ["a", "B", "odd name", "tick`", "not", "struct", "1", "é"]
)
LEAVES: tuple[Type, ...] = (
    *NAMED.values(),
    *(Decimal(9, 2), Decimal(38, 38), Decimal(5, 0), Fixed(1), Fixed(16)),
    *(Geometry(), Geometry("EPSG:3857"), Geometry("it's \\ odd"), Geography(), Geography("EPSG:4979", "karney")),
    Geography("OGC:CRS84", "vincenty"),
)
LONGS = st.integers(-(2**63), 2**63 - 1)
VALUES: dict[Type, st.SearchStrategy[object]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: LONGS,
    FLOAT: st.floats(width=32, allow_nan=False, allow_infinity=False),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    DATE: st.dates(),
    TIME: st.times(),
    TIMESTAMP: st.datetimes(),
    TIMESTAMPTZ: st.datetimes(timezones=st.just(dt.UTC)),
    TIMESTAMP_NS: LONGS,
    TIMESTAMPTZ_NS: LONGS,
    STRING: TEXT,
    UUID: st.uuids().map(lambda value: value.bytes),
    BINARY: st.binary(max_size=4),
}


def values(type_: Type) -> st.SearchStrategy[object] | None:
    """Values of a type that a default may have; none for types that default to null."""
    match type_:
        case Decimal(precision, scale):
            top = 10**precision - 1
            return st.integers(-top, top).map(lambda number: decimal.Decimal(number).scaleb(-scale, _WIDE))
        case Fixed(length):
            return st.binary(min_size=length, max_size=length)
        case _:
            return VALUES.get(type_)


_WIDE = decimal.Context(prec=60)


@st.composite
def fields(draw: st.DrawFn, name: str, type_: Type) -> Field:
    """A column of a type; both its defaults are the same, as those of a new column are."""
    known = values(type_)
    default = None if known is None else draw(st.none() | known.map(lambda value: value_to_json(value, type_)))
    return Field(
        *(0, name, type_, draw(st.booleans()) and type_ != UNKNOWN),
        doc=draw(st.none() | TEXT),
        initial_default=default,
        write_default=default,
    )


def columns(types: st.SearchStrategy[Type], least: int) -> st.SearchStrategy[tuple[Field, ...]]:
    """Columns of some types, with names of their own."""
    pairs = st.lists(st.tuples(NAMES, types), min_size=least, max_size=4, unique_by=lambda pair: pair[0])
    return pairs.flatmap(lambda chosen: st.tuples(*(fields(name, type_) for name, type_ in chosen)))


def nested(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    """Structs, lists and maps of some types."""
    slots = st.tuples(inner, st.booleans()).map(lambda slot: (slot[0], slot[1] and slot[0] != UNKNOWN))
    keys = inner.filter(lambda type_: type_ != UNKNOWN)
    return (
        columns(inner, 0).map(Struct)
        | slots.map(lambda slot: List(0, *slot))
        | st.tuples(keys, slots).map(lambda parts: Map(0, parts[0], 0, *parts[1]))
    )


@st.composite
def schemas(draw: st.DrawFn, leaves: Iterable[Type] = LEAVES) -> Schema:
    """A schema with ids; names with dots can be those of two columns at once, and then there is no such schema."""
    types = st.recursive(st.sampled_from(tuple(leaves)), nested, max_leaves=6)
    try:
        return Schema(fields=fresh_ids(draw(columns(types, 1)), draw(st.integers(1, 1_000))))
    except FormatError:
        assume(False)
        raise


def nest(type_: Type, depth: int, around: Callable[[Type], Type] = lambda inner: List(1, inner)) -> Type:
    """A type inside as many others as asked for."""
    for _ in range(depth):
        type_ = around(type_)
    return type_
