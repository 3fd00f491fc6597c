"""Rows that several programs read, in one form: plain Python values in one order, whatever Arrow types they had."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa

Row = dict[str, object]


def plain(table: pa.Table) -> list[str]:
    """The rows of a table as texts, in an order of their own; columns are told by name."""
    return as_texts(table.to_pylist(maps_as_pydicts="strict"))


def as_texts(rows: Iterable[Row]) -> list[str]:
    return sorted(repr({name: _plain(row[name]) for name in sorted(row)}) for row in rows)


def _plain(value: object) -> object:
    match value:
        case dict():
            return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
        case list() | tuple():
            return [_plain(item) for item in value]
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).isoformat()
        case dt.date() | dt.time():
            return value.isoformat()
        case Decimal():
            return str(value.normalize())
        case uuid.UUID():
            return value.bytes
        case _:
            return value
