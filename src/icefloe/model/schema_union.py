"""The steps that make a table able to hold what another schema holds, matched by name (spec: Schema Evolution)."""

from __future__ import annotations

from collections.abc import Iterator

from icefloe.errors import InputError
from icefloe.model.changes import AddColumn, MakeOptional, PromoteColumn, SchemaChange, SetDoc
from icefloe.model.evolution_rules import promotes, promotion_problem
from icefloe.model.schema import Schema
from icefloe.model.types import Decimal, Field, Fixed, Primitive, Struct, children


def union_by_name(schema: Schema, other: Schema) -> tuple[SchemaChange, ...]:
    """The steps after which every column of ``other`` fits one of the same name.

    Columns that only ``other`` has are added, as optional ones because written rows lack them. Types are promoted,
    required columns made optional, comments taken over. A narrower type needs no step, an unrelated one is refused.
    Names match by case. Fields of inner structs come before those around them, the order in which Iceberg numbers.

    >>> from icefloe.model.types import INT, LONG
    >>> union_by_name(Schema(fields=(Field(1, "a", INT),)), Schema(fields=(Field(1, "a", LONG),)))
    (PromoteColumn(column='a', type=Primitive(name='long', since=1)),)
    """
    return tuple(_struct_steps(schema.fields, other.fields, None))


def _struct_steps(ours: tuple[Field, ...], theirs: tuple[Field, ...], parent: str | None) -> Iterator[SchemaChange]:
    known = {field.name: field for field in ours}
    for field in theirs:
        if field.name in known:
            yield from _inner_steps(known[field.name], field, _join(parent, field.name))
    for field in theirs:
        if field.name in known:
            yield from _own_steps(known[field.name], field, _join(parent, field.name))
        else:
            yield AddColumn(
                name=field.name, type=field.type, parent=parent, doc=field.doc, default=field.initial_default
            )


def _inner_steps(ours: Field, theirs: Field, name: str) -> Iterator[SchemaChange]:
    if type(ours.type) is not type(theirs.type):
        return  # primitives of two classes, or a misfit that the step of the field itself reports
    if isinstance(ours.type, Struct):
        yield from _struct_steps(ours.type.fields, children(theirs.type), name)
        return
    pairs = list(zip(children(ours.type), children(theirs.type), strict=True))
    for our, their in pairs:
        yield from _inner_steps(our, their, f"{name}.{our.name}")
    for our, their in pairs:
        yield from _own_steps(our, their, f"{name}.{our.name}")


def _own_steps(ours: Field, theirs: Field, name: str) -> Iterator[SchemaChange]:
    if ours.required and not theirs.required:
        yield MakeOptional(column=name)
    both = (ours.type, theirs.type)
    if isinstance(theirs.type, (Primitive, Decimal, Fixed)) and promotes(*both):
        yield PromoteColumn(column=name, type=theirs.type)
    elif type(ours.type) is not type(theirs.type) or _unrelated(ours, theirs):
        raise InputError(f"column {name!r} cannot hold {theirs.type}: {promotion_problem(*both)}", field=name)
    if theirs.doc is not None and theirs.doc != ours.doc:
        yield SetDoc(column=name, doc=theirs.doc)


def _unrelated(ours: Field, theirs: Field) -> bool:
    if not isinstance(ours.type, (Primitive, Decimal, Fixed)):
        return False
    return ours.type != theirs.type and not promotes(theirs.type, ours.type)


def _join(parent: str | None, name: str) -> str:
    return name if parent is None else f"{parent}.{name}"
