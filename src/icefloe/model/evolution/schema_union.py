"""The steps after which a table can store the columns of another schema, matched by name (spec: Schema Evolution)."""

from __future__ import annotations

from collections.abc import Iterator

from icefloe.errors import InputError
from icefloe.model.evolution.change_rules import promotes, promotion_problem
from icefloe.model.evolution.steps import AddColumn, MakeOptional, PromoteColumn, SchemaChange, SetDefault, SetDoc
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Struct, Type, children


def union_by_name(
    schema: Schema, other: Schema, *, format_version: int = DEFAULT_FORMAT_VERSION
) -> tuple[SchemaChange, ...]:
    """The steps after which every column of ``other`` fits one of the same name.

    Columns that only ``other`` has are added, with their defaults, as optional ones because written rows lack them.
    Types are promoted as the format version allows, required columns made optional, comments copied. A narrower
    type needs no step, an unrelated one is refused. Columns that both have keep their defaults. Names match by case.
    After the steps, a second union has none. Fields of inner structs come before those around them, the order in which
    Iceberg numbers.

    >>> from icefloe.model.schema.types import INT, LONG
    >>> union_by_name(Schema(fields=(Field(1, "a", INT),)), Schema(fields=(Field(1, "a", LONG),)))
    (PromoteColumn(column='a', type=Primitive(name='long', since=1)),)
    """
    return tuple(_Union(format_version).of_struct(schema.fields, other.fields, None))


class _Union:
    def __init__(self, format_version: int) -> None:
        self._version = format_version

    def of_struct(
        self, ours: tuple[Field, ...], theirs: tuple[Field, ...], parent: str | None
    ) -> Iterator[SchemaChange]:
        known = {field.name: field for field in ours}
        for field in theirs:
            if field.name in known:
                yield from self._inside(known[field.name], field, _join(parent, field.name))
        for field in theirs:
            if field.name in known:
                yield from self._own(known[field.name], field, _join(parent, field.name))
            else:
                yield from _added(field, parent)

    def _inside(self, ours: Field, theirs: Field, name: str) -> Iterator[SchemaChange]:
        if not _alike(ours.type, theirs.type):
            return  # no fields inside, or types that _own refuses
        if isinstance(ours.type, Struct):
            yield from self.of_struct(ours.type.fields, children(theirs.type), name)
            return
        pairs = list(zip(children(ours.type), children(theirs.type), strict=True))
        for our, their in pairs:
            yield from self._inside(our, their, f"{name}.{our.name}")
        for our, their in pairs:
            yield from self._own(our, their, f"{name}.{our.name}")

    def _own(self, ours: Field, theirs: Field, name: str) -> Iterator[SchemaChange]:
        if ours.required and not theirs.required:
            yield MakeOptional(column=name)
        both = (ours.type, theirs.type)
        if promotes(*both, self._version):
            yield PromoteColumn(column=name, type=theirs.type)
        elif not _alike(*both) and ours.type != theirs.type and not promotes(theirs.type, ours.type, self._version):
            reason = promotion_problem(*both, self._version)
            raise InputError(f"column {name!r} cannot hold {theirs.type}: {reason}", field=name)
        if theirs.doc is not None and theirs.doc != ours.doc:
            yield SetDoc(column=name, doc=theirs.doc)


def _added(field: Field, parent: str | None) -> Iterator[SchemaChange]:
    yield AddColumn(name=field.name, type=field.type, parent=parent, doc=field.doc, default=field.initial_default)
    if field.write_default != field.initial_default:
        yield SetDefault(column=_join(parent, field.name), default=field.write_default)


def _alike(ours: Type, theirs: Type) -> bool:
    """Whether both are structs, both lists or both maps, so that the fields inside decide."""
    return type(ours) is type(theirs) and len(children(ours)) > 0


def _join(parent: str | None, name: str) -> str:
    return name if parent is None else f"{parent}.{name}"
