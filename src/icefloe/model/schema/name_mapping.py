"""Name mappings: ids for the columns of files that were written without ids (spec: Column Projection).

A mapping is a tree of fields, each with the names it has in files. Names are literal, dots included. List elements and
map entries have the names of the spec, ``element``, ``key`` and ``value``, in every file format. The mapping of
a table is its property ``schema.name-mapping.default``, which ``icefloe.codecs.json.name_mapping`` reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from icefloe.errors import FormatError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, children

NAME_MAPPING_PROPERTY = "schema.name-mapping.default"


@dataclass(frozen=True, kw_only=True)
class MappedField:
    """A field and its names in files; without an id it is in files only, without names in the table only."""

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, MappedField]:
        """The fields directly inside, by each of their names."""
        return _by_name(self.fields)


@dataclass(frozen=True, kw_only=True)
class NameMapping:
    """The mapping of a table; a name identifies one field of its struct, an id one field of the table.

    If a table has no mapping, files are read with one of its current names, which is marked ``assumed``.

    >>> NameMapping(fields=(MappedField(names=("id", "record_id"), field_id=1),)).by_name["record_id"].field_id
    1
    """

    fields: tuple[MappedField, ...] = ()
    assumed: bool = False

    def __post_init__(self) -> None:
        ids: set[int] = set()
        pending = [("", self.fields)]
        for path, fields in pending:  # grows during the loop
            names: set[str] = set()
            for field in fields:
                own = f"{path}{field.names[0] if len(field.names) > 0 else field.field_id}"
                repeated = [name for i, name in enumerate(field.names) if name in names or name in field.names[:i]]
                if len(repeated) > 0:
                    raise FormatError(f"name mapping: {own}: the name {repeated[0]!r} is given twice", field=own)
                if field.field_id is not None and field.field_id in ids:
                    raise FormatError(f"name mapping: {own}: the id {field.field_id} is given twice", field=own)
                names.update(field.names)
                ids.update(() if field.field_id is None else (field.field_id,))
                pending.append((f"{own}.", field.fields))

    @cached_property
    def by_name(self) -> Mapping[str, MappedField]:
        """The top-level fields, by each of their names."""
        return _by_name(self.fields)

    @cached_property
    def ids(self) -> frozenset[int]:
        """Every id that some name may lead to."""
        return frozenset(field.field_id for field in _walk(self.fields) if field.field_id is not None)

    def find(self, path: Iterable[str]) -> MappedField | None:
        """The field at a path of names in a file; none if the mapping does not know it."""
        here: NameMapping | MappedField | None = self
        for name in path:
            here = None if here is None else here.by_name.get(name)
        return here if isinstance(here, MappedField) else None


def assumed_mapping(schema: Schema) -> NameMapping:
    """The mapping for ORC and Avro files without ids in a table without a mapping, as in Apache Iceberg: current names.

    Columns of Parquet files are identified by position, see ``by_position``.
    """
    return NameMapping(fields=_mapped(schema.fields), assumed=True)


def by_position(mapping: NameMapping, names: Iterable[str]) -> NameMapping:
    """The mapping of a file with these columns: the first one has the id 1, the second one the id 2, and so on.

    Only ids of columns in ``mapping`` are assigned. Nested fields get no id.

    >>> mapping = NameMapping(fields=(MappedField(names=("id",), field_id=1), MappedField(names=("b",), field_id=3)))
    >>> [(field.names, field.field_id) for field in by_position(mapping, ["x", "y", "z"]).fields]
    [(('x',), 1), (('z',), 3)]
    """
    known = {field.field_id for field in mapping.fields}
    numbered = ((number, name) for number, name in enumerate(names, start=1) if number in known)
    return NameMapping(fields=tuple(MappedField(names=(name,), field_id=number) for number, name in numbered))


def mapping_of(schema: Schema) -> NameMapping:
    """The mapping of a table whose files have the columns of the schema, by its names.

    >>> from icefloe.model.schema.types import LONG, List
    >>> mapping_of(Schema(fields=(Field(1, "sizes", List(2, LONG)),))).by_name["sizes"].by_name["element"].field_id
    2
    """
    return NameMapping(fields=_mapped(schema.fields))


def updated_mapping(mapping: NameMapping, before: Schema, after: Schema) -> NameMapping:
    """The mapping after a schema changed, so that files with the new names are read too.

    A renamed field gets its new name beside the old ones, a new field gets its name. A name belongs to one field of a
    struct, the one that got it last: other fields lose the name, and a field without names is removed from the mapping.
    A dropped field keeps its names, so a column of that name that is added later takes them and reads the values of old
    files. Fields inside a field that is not in the mapping are left out.
    """
    fields = tuple(_updated(field, mapping, before, after) for field in mapping.fields)
    return NameMapping(fields=_settled(fields, after.fields, mapping, before, after))


def _updated(field: MappedField, mapping: NameMapping, before: Schema, after: Schema) -> MappedField:
    if field.field_id is None:
        return field
    now = after.by_id.get(field.field_id)
    inner = tuple(_updated(child, mapping, before, after) for child in field.fields)
    if now is None:
        return replace(field, fields=inner)
    names = field.names
    if _is_renamed(now, before) and now.name not in names:
        names = (*names, now.name)
    return replace(field, names=names, fields=_settled(inner, children(now.type), mapping, before, after))


def _settled(
    fields: tuple[MappedField, ...], columns: tuple[Field, ...], mapping: NameMapping, before: Schema, after: Schema
) -> tuple[MappedField, ...]:
    """The fields of one struct with its new columns, every name with the field that took it last."""
    new = [column for column in columns if column.id not in before.by_id and column.id not in mapping.ids]
    here = {field.field_id for field in fields}
    renamed = [column for column in columns if column.id in here and _is_renamed(column, before)]
    taken = {column.name: column.id for column in (*renamed, *new)}
    kept = (_without(field, taken) for field in fields)
    # Ids grow with every column, so this is the order in which they were added.
    added = _mapped(tuple(sorted(new, key=lambda column: column.id)))
    return (*(field for field in kept if field is not None), *added)


def _without(field: MappedField, taken: Mapping[str, int]) -> MappedField | None:
    left = tuple(name for name in field.names if taken.get(name, field.field_id) == field.field_id)
    if len(left) == len(field.names):
        return field
    return replace(field, names=left) if len(left) > 0 else None


def _is_renamed(column: Field, before: Schema) -> bool:
    former = before.by_id.get(column.id)
    return former is not None and former.name != column.name


def _mapped(fields: tuple[Field, ...]) -> tuple[MappedField, ...]:
    return tuple(
        MappedField(names=(field.name,), field_id=field.id, fields=_mapped(children(field.type))) for field in fields
    )


def _by_name(fields: tuple[MappedField, ...]) -> Mapping[str, MappedField]:
    return {name: field for field in fields for name in field.names}


def _walk(fields: tuple[MappedField, ...]) -> list[MappedField]:
    mapped = list(fields)
    for field in mapped:  # grows during the loop
        mapped.extend(field.fields)
    return mapped
