"""Timestamps of 96 bits, as old writers of Parquet left them (spec: Appendix A, Parquet).

They do not say whether they have a time zone, and are read with or without one, as the table has it. Microseconds are
kept of them, as in other readers: in 64 bits of nanoseconds, times before 1677 and after 2262 would turn into others.
"""

from __future__ import annotations

import pyarrow as pa

from icefloe.errors import UnsupportedError
from icefloe.formats.parquet.field_ids import field_id, width
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

UNIT = "us"
_STORED, _ZONED = pa.timestamp(UNIT), pa.timestamp(UNIT, "UTC")


def zoned(schema: pa.Schema, wanted: tuple[Field, ...], old: frozenset[int], location: str) -> pa.Schema:
    """The schema of a file, or of a batch of it, with the time zones that are wanted, at every depth.

    ``old`` are the places of timestamps of 96 bits among the primitive columns of ``schema``.
    """
    return pa.schema(_fields(list(schema), wanted, 0, _Old(old, location)), metadata=schema.metadata)


class _Old:
    """Which primitive columns of a file are of 96 bits."""

    def __init__(self, places: frozenset[int], location: str) -> None:
        self._places, self._location = places, location

    def type(self, stored: pa.DataType, target: Type, start: int, name: str) -> pa.DataType:
        """The type of a primitive column."""
        if start not in self._places:
            return stored
        if target in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
            raise UnsupportedError(
                f"{self._location}: column {name!r} has timestamps of 96 bits, which are read in microseconds, not as"
                f" {target}; write the file again with timestamps of 64 bits, or leave the column out",
                location=self._location,
                field=name,
            )
        return _ZONED if target == TIMESTAMPTZ and stored == _STORED else stored


def _fields(fields: list[pa.Field], wanted: tuple[Field, ...], start: int, old: _Old) -> list[pa.Field]:
    by_id: dict[int | None, Field] = {field.id: field for field in wanted}
    read_fields = []
    for field in fields:
        target = by_id.get(field_id(field))
        read_fields.append(field if target is None else _field(field, target.type, start, old))
        start += width(field.type)
    return read_fields


def _field(field: pa.Field, target: Type, start: int, old: _Old) -> pa.Field:
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
