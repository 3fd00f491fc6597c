"""Columns of a Parquet file by field id, at every depth (spec: Column Projection).

Columns are found by id, never by name or position. List elements, map keys and map values are found by structure, as
some writers give them no id. A file without any ids gets those of the table's name mapping; without a mapping, the
positions of its columns are their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from icefloe.errors import FormatError, UnsupportedError
from icefloe.formats.read.promotion import storage
from icefloe.model.arrow.conform import FIELD_ID
from icefloe.model.arrow.name_mapped import apply_mapping, has_ids
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, NameMapping
from icefloe.model.schema.types import (
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    Field,
    List,
    Map,
    Struct,
    Type,
    children,
)

INT96_UNIT = "us"  # in which timestamps of 96 bits are read
_INT96, _ZONED = pa.timestamp(INT96_UNIT), pa.timestamp(INT96_UNIT, "UTC")
_TEXT_WEIGHT = 1 << 10
_REPEATED_WEIGHT = 1 << 20
LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A primitive column of a file: its index among the file's Parquet columns and its Arrow type."""

    index: int
    type: pa.DataType


def field_id(field: pa.Field) -> int | None:
    """The id that a file gives to a field; none if it gives none."""
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None or not text.isdigit() else int(text)


def labelled(schema: pa.Schema, mapping: NameMapping | None, location: str) -> pa.Schema:
    """The schema of a file with ids: its own, or if it has none at all, those that the mapping has for its names."""
    if mapping is None or has_ids(schema):
        require_ids(schema, location)
        return schema
    with at_location(location):
        return apply_mapping(mapping, schema)


@contextmanager
def at_location(location: str) -> Iterator[None]:
    """Name the file in errors about its columns."""
    try:
        yield
    except FormatError as error:
        raise type(error)(f"{location}: {error}", **{**error.context, "location": location}) from error


def require_ids(schema: pa.Schema, location: str) -> None:
    """Refuse a file in which no column has an id."""
    if len(schema) > 0 and all(field_id(field) is None for field in schema):
        raise FormatError(
            f"{location}: no column has a field id, and the table has no name mapping; set its property "
            f"{NAME_MAPPING_PROPERTY!r}, or write the file with field ids",
            location=location,
        )


def inner_fields(type_: pa.DataType) -> list[pa.Field]:
    """The fields directly inside a type of a file: those of a struct, a list's element, a map's key and value."""
    plain = storage(type_)
    if isinstance(plain, pa.StructType):
        return [plain.field(i) for i in range(plain.num_fields)]
    if isinstance(plain, pa.MapType):
        return [plain.key_field, plain.item_field]
    return [plain.value_field] if isinstance(plain, LISTS) else []


def _is_plain(type_: pa.DataType) -> bool:
    """Whether a type has no fields inside."""
    return type_.num_fields == 0 and not isinstance(type_, pa.BaseExtensionType)


def width(type_: pa.DataType) -> int:
    """How many Parquet columns a field of this type has."""
    if _is_plain(type_):
        return 1
    inner = inner_fields(type_)
    return sum(width(child.type) for child in inner) if len(inner) > 0 else 1


class StoredColumns:
    """The columns of a file by id, indexed once, as a file may have thousands of columns."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._starts: list[int] = []  # the first Parquet column of each top-level column
        self._ids: dict[int, int] = {}  # the position of each top-level column, by field id
        self._again: dict[int, list[int]] = {}  # positions of columns with a repeated id: reading them raises an error
        start = 0
        for index, field in enumerate(schema):
            if (id_ := field_id(field)) is not None and self._ids.setdefault(id_, index) != index:
                self._again.setdefault(id_, []).append(index)
            self._starts.append(start)
            start += width(field.type)

    @property
    def ids(self) -> Collection[int]:
        """The ids of all columns, but not of fields inside of them."""
        return self._ids.keys()

    def _stored(self, wanted: tuple[Field, ...]) -> Iterator[tuple[Field, pa.Field, int]]:
        """The fields that the file has, with their Arrow fields in the file and the first Parquet column of each."""
        for field in wanted:
            if field.id in self._ids:
                for index in (self._ids[field.id], *self._again.get(field.id, ())):
                    yield field, self._schema.field(index), self._starts[index]

    def leaves(self, wanted: tuple[Field, ...]) -> list[int]:
        """The Parquet columns to read for these fields, in the order of the file.

        For a struct without any of the fields, the column inside that is read fastest.
        """
        stored = self._stored(wanted)
        return sorted(leaf for target, field, at in stored for leaf in _type_leaves(field.type, target.type, at))

    def measured(self, wanted: tuple[Field, ...]) -> Mapping[int, Leaf]:
        """The primitive columns at or inside of these fields that are not inside a list or a map, by field id."""
        return {id_: leaf for _, field, at in self._stored(wanted) for id_, leaf in _measured([field], at)}


def struct_ids(schema: pa.Schema) -> frozenset[int]:
    """The ids of columns and of fields inside structs, at any depth."""
    ids, pending = set(), list(schema)
    while len(pending) > 0:
        field = pending.pop()
        ids.add(field_id(field))
        if isinstance(plain := storage(field.type), pa.StructType):
            pending.extend(inner_fields(plain))
    return frozenset(id_ for id_ in ids if id_ is not None)


def measured_leaves(schema: pa.Schema) -> Mapping[int, Leaf]:
    """The primitive columns that are not inside a list or a map, by field id."""
    return dict(_measured(list(schema), 0))


def _measured(fields: list[pa.Field], start: int) -> Iterator[tuple[int, Leaf]]:
    for field in fields:
        plain, id_ = storage(field.type), field_id(field)
        if isinstance(plain, pa.StructType):
            yield from _measured(inner_fields(plain), start)
        elif len(inner_fields(plain)) == 0 and id_ is not None:
            yield id_, Leaf(index=start, type=plain)
        start += width(field.type)


def _struct_leaves(fields: list[pa.Field], wanted: tuple[Field, ...], start: int) -> list[int]:
    by_id: dict[int | None, Field] = {field.id: field for field in wanted}
    leaves: list[int] = []
    for field in fields:
        target = by_id.get(field_id(field))
        if target is not None:
            leaves.extend(_type_leaves(field.type, target.type, start))
        start += width(field.type)
    return leaves


def weight(type_: pa.DataType) -> int:
    """The relative time to read values of a type: values of fixed width are faster than texts and lists.

    >>> weight(pa.bool_()) < weight(pa.int64()) < weight(pa.string()) < weight(pa.list_(pa.bool_()))
    True
    """
    plain = storage(type_)
    if len(inner_fields(plain)) > 0:
        return _REPEATED_WEIGHT
    try:
        return int(plain.bit_width)
    except ValueError:
        return _TEXT_WEIGHT


def _lightest(fields: list[pa.Field], start: int) -> int:
    """The Parquet column inside of a struct that is read fastest."""
    _, index = min(_weights(fields, start), default=(0, start))
    return index


def _weights(fields: list[pa.Field], start: int) -> Iterator[tuple[int, int]]:
    for field in fields:
        plain = storage(field.type)
        if isinstance(plain, pa.StructType):
            yield from _weights(inner_fields(plain), start)
        else:
            yield weight(plain), start
        start += width(field.type)


def _type_leaves(type_: pa.DataType, target: Type, start: int) -> list[int]:
    if _is_plain(type_):
        return [start]
    inner = inner_fields(type_)
    match target:
        case Struct(fields) if isinstance(storage(type_), pa.StructType):
            # Some column inside must be read to know which structs are null.
            return _struct_leaves(inner, fields, start) or [_lightest(inner, start)]
        case List(element=element) if isinstance(storage(type_), LISTS):
            return _type_leaves(inner[0].type, element, start)
        case Map(key=key, value=value) if isinstance(storage(type_), pa.MapType):
            keys = _type_leaves(inner[0].type, key, start)
            return keys + _type_leaves(inner[1].type, value, start + width(inner[0].type))
        case _:
            return list(range(start, start + width(type_)))


def with_time_zones(schema: pa.Schema, wanted: tuple[Field, ...], old: frozenset[int], location: str) -> pa.Schema:
    """The schema of a file, or of a batch of it, with the time zones that are wanted, at every depth.

    Timestamps of 96 bits, which old writers use, do not record whether they have a time zone. They are read in
    microseconds, as other readers do: times before 1677 and after 2262 do not fit 64 bits of nanoseconds. ``old`` are
    the indices of timestamps of 96 bits among the primitive columns of ``schema``.
    """
    return pa.schema(_fields(list(schema), wanted, 0, _Int96Columns(old, location)), metadata=schema.metadata)


class _Int96Columns:
    """Knows which primitive columns of a file have timestamps of 96 bits."""

    def __init__(self, indices: frozenset[int], location: str) -> None:
        self._indices, self._location = indices, location

    def type(self, stored: pa.DataType, target: Type, start: int, name: str) -> pa.DataType:
        """The type of a primitive column."""
        if start not in self._indices:
            return stored
        if target in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
            raise UnsupportedError(
                f"{self._location}: column {name!r} has timestamps of 96 bits, which are read in microseconds, not as"
                f" {target}; write the file again with timestamps of 64 bits, or leave the column out",
                location=self._location,
                field=name,
            )
        return _ZONED if target == TIMESTAMPTZ and stored == _INT96 else stored


def _fields(fields: list[pa.Field], wanted: tuple[Field, ...], start: int, old: _Int96Columns) -> list[pa.Field]:
    by_id: dict[int | None, Field] = {field.id: field for field in wanted}
    read_fields = []
    for field in fields:
        target = by_id.get(field_id(field))
        read_fields.append(field if target is None else _field(field, target.type, start, old))
        start += width(field.type)
    return read_fields


def _field(field: pa.Field, target: Type, start: int, old: _Int96Columns) -> pa.Field:
    type_ = field.type
    match target:
        case Struct(fields) if isinstance(type_, pa.StructType):
            type_ = pa.struct(_fields(list(type_), fields, start, old))
        case List() if isinstance(type_, pa.ListType):
            type_ = pa.list_(_field(type_.value_field, target.element, start, old))
        case Map() if isinstance(type_, pa.MapType):
            key = _field(type_.key_field, target.key, start, old)
            value = _field(type_.item_field, target.value, start + width(type_.key_type), old)
            type_ = pa.map_(key, value)
        case _ if len(children(target)) == 0:
            type_ = old.type(type_, target, start, field.name)
    return field.with_type(type_)
