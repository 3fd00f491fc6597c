"""Schemas: named and numbered columns (spec: Schemas and Data Types)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from typing import Any

from icefloe.errors import FormatError, InputError
from icefloe.model.schema.types import (
    Field,
    List,
    Map,
    Struct,
    Type,
    Unknown,
    children,
    fold_type,
    is_primitive,
    walk,
    with_children,
)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table.

    >>> from icefloe.model.schema.types import LONG
    >>> Schema(fields=(Field(1, "id", LONG),)).field("id").id
    1
    """

    fields: tuple[Field, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()
    extra: Unknown = ()

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
        measured: dict[int, Field] = {}
        pending = list(reversed(self.fields))
        while len(pending) > 0:
            field = pending.pop()
            if isinstance(field.type, Struct):
                pending.extend(reversed(field.type.fields))
            elif is_primitive(field.type):
                measured[field.id] = field
        return measured

    @cached_property
    def _by_lower_name(self) -> Mapping[str, tuple[str, ...]]:
        """Full names by their lower-case form, which several may share."""
        by_lower_name: dict[str, tuple[str, ...]] = {}
        for name in self.by_name:
            by_lower_name[name.lower()] = (*by_lower_name.get(name.lower(), ()), name)
        return by_lower_name

    def field(self, name: str) -> Field:
        """The field of this full name; the error lists all names."""
        field = self.by_name.get(name)
        if field is None:
            raise InputError(f"no column {name!r}; the table has: {', '.join(self.by_name)}", field=name)
        return field

    def find(self, name: str, *, case_sensitive: bool = True) -> Field:
        """The field of this full name; without case, a name that fits several columns is refused.

        >>> from icefloe.model.schema.types import LONG
        >>> Schema(fields=(Field(1, "Id", LONG),)).find("ID", case_sensitive=False).name
        'Id'
        """
        alike = () if case_sensitive else self._by_lower_name.get(name.lower(), ())
        if len(alike) > 1:
            both = " and ".join(repr(known) for known in alike)
            raise InputError(f"column {name!r} may be {both}; match names with case, or rename one", field=name)
        return self.field(name if len(alike) == 0 else alike[0])

    def select(self, names: tuple[str, ...]) -> Schema:
        """The top-level columns of these names, in this order."""
        _refuse_repeated(names)
        chosen = tuple(self.field(name) for name in names)
        missing = [field.name for field in chosen if field not in self.fields]
        if len(missing) > 0:
            raise InputError(f"only top-level columns can be selected, not {', '.join(missing)}", field=missing[0])
        return Schema(fields=chosen, schema_id=self.schema_id)

    def prune(self, names: tuple[str, ...]) -> Schema:
        """The schema with only the columns of these full names, at any depth, inside their parent columns.

        Ids and the order of the schema stay. A named column keeps all its fields; a map keeps its keys.

        >>> from icefloe.model.schema.types import LONG, STRING
        >>> wide = Schema(fields=(Field(1, "s", Struct((Field(2, "a", LONG), Field(3, "b", STRING)))),))
        >>> str(wide.prune(("s.b",)).field("s").type)
        'struct<3: b: string>'
        """
        _refuse_repeated(names)
        wanted = frozenset(self.field(name).id for name in names)
        return Schema(fields=_pruned_fields(self.fields, wanted), schema_id=self.schema_id)

    def project(self, names: tuple[str, ...], *, table: str | None = None) -> Schema:
        """What a scan of these full names returns: like ``prune``, with columns in the order of their first names.

        An error names the path that does not exist, its sibling fields and the ``table``, if any.

        >>> from icefloe.model.schema.types import LONG, STRING
        >>> inner = Struct((Field(3, "a", LONG), Field(4, "b", STRING)))
        >>> wide = Schema(fields=(Field(1, "id", LONG), Field(2, "s", inner)))
        >>> [str(field.type) for field in wide.project(("s.b", "id")).fields]
        ['struct<4: b: string>', 'long']
        >>> wide.project(("s.c",), table="db.t")
        Traceback (most recent call last):
        icefloe.errors.InputError: no column 's.c' in table db.t; struct 's' has fields a, b
        """
        _refuse_repeated(names)
        for name in names:
            if name not in self.by_name:
                where = "" if table is None else f" in table {table}"
                raise InputError(f"no column {name!r}{where}; {self._beside(name)}", field=name)
        wanted = frozenset(self.by_name[name].id for name in names)
        columns = dict.fromkeys(self._column_of[name] for name in names)
        return Schema(fields=_pruned_fields(tuple(columns), wanted), schema_id=self.schema_id)

    @cached_property
    def _column_of(self) -> Mapping[str, Field]:
        """The top-level column of each full name."""
        return {name: column for column in self.fields for name, _ in walk((column,))}

    def _beside(self, name: str) -> str:
        """The columns that are nearest to where a full name, which does not exist, would be."""
        path = name
        while "." in path:
            path = path.rpartition(".")[0]
            if path in self.by_name:
                type_ = self.by_name[path].type
                inside = [field.name for field in children(type_)]
                if isinstance(type_, (Struct, List, Map)):
                    noun = "field" if len(inside) == 1 else "fields"
                    return f"{type(type_).__name__.lower()} {path!r} has {noun} {', '.join(inside)}"
                return f"column {path!r} is of type {type_} and has no fields"
        return f"the table has: {', '.join(field.name for field in self.fields)}"


def repeated(names: Iterable[str]) -> list[str]:
    """The names that come more than once, in order.

    >>> repeated(["b", "a", "b", "c", "a"])
    ['a', 'b']
    """
    return sorted(name for name, times in Counter(names).items() if times > 1)


def _refuse_repeated(names: tuple[str, ...]) -> None:
    twice = repeated(names)
    if len(twice) > 0:
        raise InputError(f"column {twice[0]!r} is selected twice", field=twice[0])


def _pruned_fields(fields: tuple[Field, ...], wanted: frozenset[int]) -> tuple[Field, ...]:
    """The fields with only the wanted ids, at any depth, inside their parent fields."""
    left = fold_type(Struct(fields), lambda type_, below: _pruned(type_, below, wanted))
    return () if left is None else children(left)


def _pruned(type_: Type, below: tuple[Type | None, ...], wanted: frozenset[int]) -> Type | None:
    """A type with only the wanted fields, from the pruned types ``below`` it; none if no field inside is wanted."""
    inner = children(type_)
    left = {
        child.id: child if child.id in wanted or rest is None else replace(child, type=rest)
        for child, rest in zip(inner, below, strict=True)
        if child.id in wanted or rest is not None
    }
    if len(left) == 0:
        return None
    if isinstance(type_, Map):
        return with_children(type_, (inner[0], left.get(type_.value_id, inner[1])))
    return with_children(type_, tuple(left.values()))


def merged_fields(*several: tuple[Field, ...]) -> tuple[Field, ...]:
    """The columns of several schemas together, each id once; structs have the fields of all.

    Returns fields, not a schema: different columns of older and newer schemas can have the same name.
    """
    by_id: dict[int, Field] = {}
    for field in chain.from_iterable(several):
        known = by_id.get(field.id)
        by_id[field.id] = field if known is None else replace(known, type=_merged(known.type, field.type))
    return tuple(by_id.values())


def _merged(one: Type, other: Type) -> Type:
    if isinstance(one, Struct) and isinstance(other, Struct):
        return Struct(merged_fields(one.fields, other.fields))
    if not isinstance(one, (List, Map)) or type(one) is not type(other):
        return one
    pairs = zip(children(one), children(other), strict=True)
    return with_children(one, tuple(replace(mine, type=_merged(mine.type, theirs.type)) for mine, theirs in pairs))


def fresh_ids(fields: tuple[Field, ...], start: int = 1) -> tuple[Field, ...]:
    """The fields with new ids: all fields of a level are numbered before the fields inside them, as Iceberg does."""
    counter = count(start)
    pending: list[Type] = [Struct(fields)]
    numbered: list[tuple[Type, tuple[int, ...]]] = []  # parents first, each with the ids of the fields inside
    while len(pending) > 0:
        type_ = pending.pop()
        inner = children(type_)
        numbered.append((type_, tuple(next(counter) for _ in inner)))
        pending.extend(child.type for child in reversed(inner))
    done: list[Type] = []
    for type_, ids in reversed(numbered):
        pairs = zip(ids, children(type_), strict=True)
        done.append(with_children(type_, tuple(replace(field, id=id_, type=done.pop()) for id_, field in pairs)))
    return children(done[0])


def assign_ids(schema: Schema, start: int = 1) -> Schema:
    """The same schema with fresh ids; identifier fields stay the same columns."""
    fresh = Schema(fields=fresh_ids(schema.fields, start), schema_id=schema.schema_id)
    identifiers = {schema.names[i] for i in schema.identifier_field_ids}
    return replace(fresh, identifier_field_ids=tuple(i for i, name in fresh.names.items() if name in identifiers))


def as_first(schema: Schema) -> Schema:
    """The schema of a new table: without initial defaults, because no rows were written before its columns existed.

    >>> from icefloe.model.schema.types import LONG
    >>> as_first(Schema(fields=(Field(1, "n", LONG, initial_default=5, write_default=5),))).field("n").initial_default
    """

    def first(type_: Type, inner: tuple[Type, ...]) -> Type:
        pairs = zip(children(type_), inner, strict=True)
        return with_children(type_, tuple(replace(field, type=made, initial_default=None) for field, made in pairs))

    fields = children(fold_type(Struct(schema.fields), first))
    return replace(schema, fields=fields)


def derived(schema: Schema, name: str, make: Callable[[Schema], Any]) -> Any:
    """A value computed from a schema alone: computed once for each ``name``, and cached in the schema."""
    kept = vars(schema).setdefault("_derived", {})
    if name not in kept:
        kept[name] = make(schema)
    return kept[name]
