"""Schemas: named and numbered columns (spec: Schemas and Data Types)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from icefloe.errors import FormatError, InputError
from icefloe.model.types import Field, List, Map, Struct, Type, is_primitive, walk


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table.

    >>> from icefloe.model.types import LONG
    >>> Schema(fields=(Field(1, "id", LONG),)).field("id").id
    1
    """

    fields: tuple[Field, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        names: set[str] = set()
        ids: set[int] = set()
        for name, field in walk(self.fields):
            if name in names:
                raise FormatError(f"schema {self.schema_id}: two fields are named {name!r}", field=name)
            if field.id in ids:
                raise FormatError(f"schema {self.schema_id}: two fields have id {field.id}", field=name)
            names.add(name)
            ids.add(field.id)
        unknown = [i for i in self.identifier_field_ids if i not in ids]
        if len(unknown) > 0:
            raise FormatError(f"schema {self.schema_id}: identifier field {unknown[0]} does not exist")

    @cached_property
    def by_id(self) -> Mapping[int, Field]:
        """Every field at every depth, by id."""
        return {field.id: field for _, field in walk(self.fields)}

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """Every field at every depth, by full dotted name."""
        return dict(walk(self.fields))

    @cached_property
    def names(self) -> Mapping[int, str]:
        """Full dotted names, by id."""
        return {field.id: name for name, field in walk(self.fields)}

    @cached_property
    def highest_id(self) -> int:
        """The largest field id in use; 0 for a schema without fields."""
        return max(self.by_id, default=0)

    @cached_property
    def measured(self) -> Mapping[int, Field]:
        """Primitive fields that are not inside a list or a map: those that may have statistics."""
        found: dict[int, Field] = {}
        pending = list(reversed(self.fields))
        while len(pending) > 0:
            field = pending.pop()
            if isinstance(field.type, Struct):
                pending.extend(reversed(field.type.fields))
            elif is_primitive(field.type):
                found[field.id] = field
        return found

    def field(self, name: str) -> Field:
        """The field of this full name; the error lists what there is."""
        found = self.by_name.get(name)
        if found is None:
            raise InputError(f"no column {name!r}; the table has: {', '.join(self.by_name)}", field=name)
        return found

    def select(self, names: tuple[str, ...]) -> Schema:
        """The top-level columns of these names, in this order."""
        repeated = [name for name in names if names.count(name) > 1]
        if len(repeated) > 0:
            raise InputError(f"column {repeated[0]!r} is selected twice", field=repeated[0])
        chosen = tuple(self.field(name) for name in names)
        missing = [field.name for field in chosen if field not in self.fields]
        if len(missing) > 0:
            raise InputError(f"only top-level columns can be selected, not {', '.join(missing)}", field=missing[0])
        return Schema(fields=chosen, schema_id=self.schema_id)


def fresh_ids(fields: tuple[Field, ...], start: int = 1) -> tuple[Field, ...]:
    """The same fields numbered afresh: all fields of a level before the fields inside them, as Iceberg does."""
    counter = count(start)

    def numbered(fields: tuple[Field, ...]) -> tuple[Field, ...]:
        ids = [next(counter) for _ in fields]
        return tuple(replace(f, id=i, type=number(f.type)) for i, f in zip(ids, fields, strict=True))

    def number(type_: Type) -> Type:
        match type_:
            case Struct(inner):
                return Struct(numbered(inner))
            case List():
                return List(next(counter), number(type_.element), type_.element_required)
            case Map():
                key_id, value_id = next(counter), next(counter)
                return Map(key_id, number(type_.key), value_id, number(type_.value), type_.value_required)
            case _:
                return type_

    return numbered(fields)


def assign_ids(schema: Schema, start: int = 1) -> Schema:
    """The same schema with fresh ids; identifier fields stay the same columns."""
    fresh = Schema(fields=fresh_ids(schema.fields, start), schema_id=schema.schema_id)
    identifiers = {schema.names[i] for i in schema.identifier_field_ids}
    return replace(fresh, identifier_field_ids=tuple(i for i, name in fresh.names.items() if name in identifiers))
