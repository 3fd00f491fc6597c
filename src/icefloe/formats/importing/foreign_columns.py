"""Checks the columns of a file that another program wrote against those of a table (spec: Column Projection).

If columns were matched by id alone, a file of another table could be added, and its rows would be wrong without any
error. So a column must have a name that its id has had in this table, and every column must be in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from icefloe.errors import InputError
from icefloe.formats.parquet.field_ids import field_id
from icefloe.formats.read.promotion import storage
from icefloe.model.arrow.schema_from_arrow import is_list
from icefloe.model.schema.name_mapping import MappedField, NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, walk

Names = Mapping[int, frozenset[str]]


def known_names(schemas: Iterable[Schema], mapping: NameMapping) -> Names:
    """All names of each field id: those in the table's schemas and those in its name mapping."""
    names_by_id: dict[int, set[str]] = {}
    for schema in schemas:
        for id_, column in schema.by_id.items():
            names_by_id.setdefault(id_, set()).add(column.name)
    pending: list[MappedField] = list(mapping.fields)
    for mapped in pending:  # grows during the loop
        if mapped.field_id is not None:
            names_by_id.setdefault(mapped.field_id, set()).update(mapped.names)
        pending.extend(mapped.fields)
    return {id_: frozenset(names) for id_, names in names_by_id.items()}


def check_columns(stored: pa.Schema, known: Names, location: str, mapping: NameMapping) -> None:
    """Refuse a file with a column that the table does not have, or has under another name.

    A file without ids may have columns that ``mapping`` lists without an id: they are not in the table on purpose.
    """
    left_out: set[tuple[str, ...]] = set()
    for path, column, is_named in _fields(stored, ()):
        id_, name, mapped = field_id(column), ".".join(path), mapping.find(path)
        if path[:-1] in left_out or (id_ is None and mapped is not None and mapped.field_id is None):
            left_out.add(path)
            continue
        if id_ is None and not is_named:
            continue  # elements, keys and values are matched by position
        if id_ is None:
            raise InputError(
                f"{location}: the table has no column {name!r}; add it to the table first, or leave it out of the file",
                location=location,
                field=name,
            )
        if id_ not in known:
            raise InputError(
                f"{location}: column {name!r} has field id {id_}, which no column of the table has",
                location=location,
                field=name,
            )
        if is_named and column.name not in known[id_]:
            raise InputError(
                f"{location}: column {name!r} has field id {id_}, which in the table is the id of"
                f" {' or '.join(sorted(known[id_]))!r}; the file was written for another table",
                location=location,
                field=name,
            )


def _fields(fields: Iterable[pa.Field], inside: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.Field, bool]]:
    """Every field at every depth with its path, and whether its own name identifies it."""
    for column in fields:
        yield (*inside, column.name), column, True
        yield from _inside(column.type, (*inside, column.name))


def _inside(type_: pa.DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.Field, bool]]:
    plain = storage(type_)
    if pa.types.is_struct(plain):
        yield from _fields(plain.fields, path)
        return
    parts: dict[str, pa.Field] = {}
    if pa.types.is_map(plain):
        parts = {"key": plain.key_field, "value": plain.item_field}
    elif is_list(plain):
        parts = {"element": plain.value_field}
    for role, column in parts.items():
        yield (*path, role), column, False
        yield from _inside(column.type, (*path, role))


def lax_columns(stored: pa.Schema, schema: Schema) -> tuple[Field, ...]:
    """The columns of the table that require a value, at any depth, where the file may lack it."""
    by_id = {field_id(column): column for column in stored}
    return tuple(
        column
        for column in schema.fields
        if column.id in by_id and any(inner.required for _, inner in walk((column,))) and _is_lax(by_id[column.id])
    )


def _is_lax(column: pa.Field) -> bool:
    return any(inner.nullable for _, inner, _ in _fields((column,), ()))
