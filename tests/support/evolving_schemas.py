"""Random schemas, their changes, and rows: projection by field id, defined in plain Python."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from icefloe.model.schema.types import DOUBLE, FLOAT, INT, LONG, STRING, Decimal, Field, List, Map, Struct, Type

PRIMITIVES: dict[Type, st.SearchStrategy[Any]] = {
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(width=32, allow_nan=False),
    DOUBLE: st.floats(allow_nan=False),
    STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    Decimal(9, 2): st.decimals(-1_000_000, 1_000_000, places=2),
    Decimal(20, 2): st.decimals(-(10**12), 10**12, places=2),
}
PROMOTED: dict[Type, Type] = {INT: LONG, FLOAT: DOUBLE, Decimal(9, 2): Decimal(20, 2)}

NewId = Callable[[], int]


def draw_type(draw: Any, new_id: NewId, depth: int) -> Type:
    kind = draw(st.sampled_from(["primitive", "primitive", "struct", "list", "map"] if depth > 0 else ["primitive"]))
    match kind:
        case "struct":
            return Struct(draw_fields(draw, new_id, depth - 1))
        case "list":
            return List(new_id(), draw_type(draw, new_id, depth - 1), draw(st.booleans()))
        case "map":
            return Map(new_id(), STRING, new_id(), draw_type(draw, new_id, depth - 1), draw(st.booleans()))
        case _:
            primitive: Type = draw(st.sampled_from(list(PRIMITIVES)))
            return primitive


def draw_fields(draw: Any, new_id: NewId, depth: int) -> tuple[Field, ...]:
    count = draw(st.integers(1, 3))
    return tuple(
        Field(id_ := new_id(), f"f{id_}", draw_type(draw, new_id, depth), draw(st.booleans())) for _ in range(count)
    )


def evolve(draw: Any, type_: Type, new_id: NewId) -> Type:
    match type_:
        case Struct(fields):
            return Struct(evolve_fields(draw, fields, new_id))
        case List():
            return replace(type_, element=evolve(draw, type_.element, new_id))
        case Map():
            return replace(type_, value=evolve(draw, type_.value, new_id))
        case _:
            return PROMOTED.get(type_, type_) if draw(st.booleans()) else type_


def evolve_fields(draw: Any, fields: tuple[Field, ...], new_id: NewId) -> tuple[Field, ...]:
    kept = [
        replace(f, type=evolve(draw, f.type, new_id), required=f.required and draw(st.booleans()))
        for f in fields
        if draw(st.integers(0, 3)) > 0
    ]
    if len(kept) == 0 or draw(st.booleans()):
        kept.append(new_field(draw, new_id, 1))
    shuffled = draw(st.permutations(kept))
    # New names are drawn from the old ones too, so that a name often means another column than before.
    new = (f"n{i}" for i in range(len(shuffled)))
    names = draw(st.permutations(list(dict.fromkeys([*(f.name for f in fields), *new]))))
    return tuple(replace(f, name=name) for f, name in zip(shuffled, names, strict=False))


def new_field(draw: Any, new_id: NewId, depth: int) -> Field:
    """A field that came later: with an initial default, which may make it required, or without."""
    id_, type_ = new_id(), draw_type(draw, new_id, depth)
    if isinstance(type_, Struct):
        type_ = Struct(tuple(replace(new_field(draw, new_id, 0), name=f"s{i}") for i in range(draw(st.integers(1, 2)))))
    field = Field(id_, f"f{id_}", type_)
    if isinstance(type_, (List, Map)) or draw(st.booleans()):
        return field
    default = (
        {}
        if isinstance(type_, Struct)
        else as_json(draw(PRIMITIVES[type_].filter(math.isfinite) if type_ in (FLOAT, DOUBLE) else PRIMITIVES[type_]))
    )
    return replace(field, initial_default=default, required=draw(st.booleans()))


def as_json(value: Any) -> Any:
    return str(value) if isinstance(value, decimal.Decimal) else value


def default_of(field: Field) -> Any:
    """The value of a field in rows that were written without it."""
    if field.initial_default is None:
        return None
    if isinstance(field.type, Struct):
        return {inner.name: default_of(inner) for inner in field.type.fields}
    return decimal.Decimal(field.initial_default) if isinstance(field.type, Decimal) else field.initial_default


def values(type_: Type, required: bool = False) -> st.SearchStrategy[Any]:
    """Values in which struct fields are named by id."""
    some: st.SearchStrategy[Any]
    match type_:
        case Struct(fields):
            some = st.fixed_dictionaries({f.id: values(f.type, f.required) for f in fields})
        case List():
            some = st.lists(values(type_.element, type_.element_required), max_size=3)
        case Map():
            pairs = st.tuples(PRIMITIVES[STRING], values(type_.value, type_.value_required))
            some = st.lists(pairs, max_size=2, unique_by=lambda pair: pair[0])
        case _:
            some = PRIMITIVES[type_]
    return some if required else st.none() | some


def rows_of(fields: tuple[Field, ...]) -> st.SearchStrategy[list[dict[int, Any]]]:
    """Rows whose columns are named by id."""
    return st.lists(st.fixed_dictionaries({f.id: values(f.type, f.required) for f in fields}), min_size=1, max_size=6)


def named(value: Any, type_: Type) -> Any:
    """The same value as a table of this type shows it."""
    if value is None:
        return None
    match type_:
        case Struct(fields):
            return {f.name: named(value[f.id], f.type) if f.id in value else default_of(f) for f in fields}
        case List():
            return [named(item, type_.element) for item in value]
        case Map():
            return [(key, named(item, type_.value)) for key, item in value]
        case _:
            return value
