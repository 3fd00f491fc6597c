"""Columns and values of a plain-Python table: what a row shows under a schema that has changed since it was written.

A column has a key that stays while its name, type and place change. A row holds values by key; what it does not hold
was written before the column was there, and shows the default that the column came with.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

Value = object
Row = dict[int, Value]
UTC = dt.UTC
LONG_TEXT = "a text that is longer than any bound"

VALUES: dict[str, tuple[Value, ...]] = {
    "boolean": (True, False),
    "int": (0, 1, 2, 7, -5, 2**31 - 1),
    "bigint": (0, 1, 2, 7, -5, 2**40),
    "float": (0.0, -0.0, 1.5, -2.25, math.nan, math.inf),
    "double": (0.0, -0.0, 1.5, -2.25, math.nan, -math.inf),
    "decimal(9,2)": (Decimal("0.00"), Decimal("1.50"), Decimal("-7.25")),
    "decimal(12,2)": (Decimal("0.00"), Decimal("1.50"), Decimal("-7.25"), Decimal("1234567890.12")),
    "date": (dt.date(1969, 12, 31), dt.date(2020, 2, 29), dt.date(2026, 11, 15)),
    "timestamp_ntz": (
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
        dt.datetime(2020, 2, 29),
        dt.datetime(2026, 1, 1, 5),
    ),
    "timestamp": (dt.datetime(1969, 12, 31, 1, tzinfo=UTC), dt.datetime(2026, 1, 1, 5, 0, 0, 1, UTC)),
    "string": ("", "a", "Oslo", "Osl", "\u00f6\U0001f600", LONG_TEXT),
    "binary": (b"", b"a", b"\xff\x00"),
}
WIDER = {"int": "bigint", "float": "double", "decimal(9,2)": "decimal(12,2)"}
COMPARED = tuple(kind for kind in VALUES if kind != "binary")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A type: a name of SQL; or a struct, with fields; or a list or a map from strings, with what is inside."""

    name: str
    fields: tuple[Column, ...] = ()
    inside: Kind | None = None

    def __str__(self) -> str:
        match self.name:
            case "struct":
                return f"struct<{', '.join(f'{field.name}: {field.kind}' for field in self.fields)}>"
            case "list":
                return f"array<{self.inside}>"
            case "map":
                return f"map<string, {self.inside}>"
        return self.name


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column or a field of a struct; ``initial`` is for rows that were there before, ``default`` for new ones."""

    key: int
    name: str
    kind: Kind
    initial: Value = None
    default: Value = None


Columns = tuple[Column, ...]


def plain(name: str) -> Kind:
    """A type without anything inside."""
    return Kind(name=name)


# -- values


def draw(rng: random.Random, kind: Kind, nulls: float = 0.2) -> Value:
    """A value of a type, by key where it has fields."""
    if rng.random() < nulls:
        return None
    match kind.name:
        case "struct":
            return {field.key: draw(rng, field.kind) for field in kind.fields}
        case "list":
            return [draw(rng, _inside(kind)) for _ in range(rng.randrange(3))]
        case "map":
            return [(key, draw(rng, _inside(kind))) for key in rng.sample(("k", "", "l"), rng.randrange(3))]
    return rng.choice(VALUES[kind.name])


def _inside(kind: Kind) -> Kind:
    assert kind.inside is not None
    return kind.inside


def value_in(row: Row, column: Column) -> Value:
    """What a row, or a struct, has for a column."""
    return row.get(column.key, column.initial)


def shown(row: Row, columns: Columns) -> dict[str, Value]:
    """A row as readers see it, by name."""
    return {column.name: shown_value(value_in(row, column), column.kind) for column in columns}


def shown_value(value: Value, kind: Kind) -> Value:
    """A value as readers see it."""
    if value is None:
        return None
    if kind.name == "struct":
        assert isinstance(value, dict)
        return shown(value, kind.fields)
    if kind.name == "list":
        return [shown_value(each, _inside(kind)) for each in value]  # type: ignore[attr-defined]
    if kind.name == "map":
        return [(key, shown_value(each, _inside(kind))) for key, each in value]  # type: ignore[attr-defined]
    if kind.name == "timestamp_ntz" and not isinstance(value, dt.datetime):
        assert isinstance(value, dt.date)
        return dt.datetime.combine(value, dt.time())
    return value


# -- schemas


def structs(columns: Columns, path: str = "") -> Iterator[tuple[str, Columns]]:
    """All structs, the whole row first, with the names that lead to them."""
    yield path, columns
    for column in columns:
        yield from _structs_in(column.kind, f"{path}.{column.name}" if path != "" else column.name)


def _structs_in(kind: Kind, path: str) -> Iterator[tuple[str, Columns]]:
    if kind.name == "struct":
        yield from structs(kind.fields, path)
    elif kind.inside is not None:
        yield from _structs_in(kind.inside, f"{path}.{'element' if kind.name == 'list' else 'value'}")


def flat(columns: Columns, path: tuple[Column, ...] = ()) -> Iterator[tuple[Column, ...]]:
    """The primitive columns that are not in lists or maps, each with the structs that lead to it."""
    for column in columns:
        if column.kind.name == "struct":
            yield from flat(column.kind.fields, (*path, column))
        elif column.kind.inside is None:
            yield (*path, column)


def changed(columns: Columns, path: str, change: Callable[[Columns], Columns]) -> Columns:
    """The columns with the struct at a path changed."""
    if path == "":
        return change(columns)
    head, _, rest = path.partition(".")
    return tuple(
        replace(column, kind=_changed(column.kind, rest, change)) if column.name == head else column
        for column in columns
    )


def _changed(kind: Kind, path: str, change: Callable[[Columns], Columns]) -> Kind:
    if kind.name == "struct":
        return replace(kind, fields=changed(kind.fields, path, change))
    return replace(kind, inside=_changed(_inside(kind), path.partition(".")[2], change))


def selected(columns: Columns, chosen: list[str]) -> Columns:
    """The columns that full names select: in the order of the names, and of structs what is named."""
    by_name = {column.name: column for column in columns}
    paths = [tuple(name.split(".")) for name in chosen]
    return tuple(_cut(by_name[first], paths) for first in dict.fromkeys(path[0] for path in paths))


def _cut(column: Column, paths: list[tuple[str, ...]]) -> Column:
    return replace(column, kind=_cut_kind(column.kind, [path[1:] for path in paths if path[0] == column.name]))


def _cut_kind(kind: Kind, paths: list[tuple[str, ...]]) -> Kind:
    if () in paths:
        return kind
    match kind.name:
        case "struct":
            named = {path[0] for path in paths}
            return replace(kind, fields=tuple(_cut(field, paths) for field in kind.fields if field.name in named))
        case "list":
            return replace(kind, inside=_cut_kind(_inside(kind), [path[1:] for path in paths]))
    below = [path[1:] for path in paths if path[0] == "value"]  # of a map; its keys come in any case
    return kind if len(below) == 0 else replace(kind, inside=_cut_kind(_inside(kind), below))


def in_order(rows: list[dict[str, Value]]) -> list[str]:
    """Rows sorted, as text: NaN equals NaN and -0.0 differs from 0.0."""
    return sorted(repr(_in_utc(list(row.values()))) for row in rows)


def _in_utc(value: Value) -> Value:
    """The same with one kind of time zone, of which Arrow and this module have different ones."""
    if isinstance(value, dict):
        return {name: _in_utc(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_in_utc(each) for each in value]
    if isinstance(value, tuple):
        return tuple(_in_utc(each) for each in value)
    return value.astimezone(UTC) if isinstance(value, dt.datetime) and value.tzinfo is not None else value
