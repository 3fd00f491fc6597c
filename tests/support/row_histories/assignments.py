"""New values for columns in SQL, and what they are for a row in plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from support.row_histories.columns import VALUES, Column, Columns, Row, Value, flat, value_in
from support.row_histories.conditions import literal, value_at


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A column, or a field inside of it, and its new value; ``of`` computes it from the former row."""

    key: int
    name: str
    text: str
    of: Callable[[Row], Value]


def draw_assignments(
    rng: random.Random, columns: Columns, fixed: tuple[str, ...], prefix: str = ""
) -> list[Assignment]:
    """New values for one or two columns, none of them ``fixed``; ``prefix`` stands before names in the values."""
    settable = {column.key: [path for path in flat((column,)) if path[-1].kind.name in VALUES] for column in columns}
    free = [column for column in columns if column.name not in fixed and len(settable[column.key]) > 0]
    chosen = rng.sample(free, min(len(free), rng.choice((1, 1, 2))))
    return [_assignment(rng, rng.choice(settable[column.key]), prefix) for column in chosen]


def _assignment(rng: random.Random, path: tuple[Column, ...], prefix: str) -> Assignment:
    """A new value of a column, or of a field inside its structs, which makes structs that are null be there."""
    name = ".".join(column.name for column in path)
    text, of = rng.choice(list(_values(rng, path, prefix + name)))
    return Assignment(key=path[0].key, name=name, text=text, of=lambda row: _set(value_in(row, path[0]), path, of(row)))


def _set(old: Value, path: tuple[Column, ...], new: Value) -> Value:
    """What the first column of a path has when the last one is set."""
    if len(path) == 1:
        return new
    assert old is None or isinstance(old, dict)
    struct = {field.key: None for field in path[0].kind.fields} if old is None else old
    return {**struct, path[1].key: _set(value_in(struct, path[1]), path[1:], new)}


def _values(rng: random.Random, path: tuple[Column, ...], name: str) -> list[tuple[str, Callable[[Row], Value]]]:
    kind = path[-1].kind.name

    def old(row: Row) -> Value:
        return value_at(row, path)

    found: list[tuple[str, Callable[[Row], Value]]] = [("null", lambda row: None), (name, old)]
    values = [value for value in VALUES[kind] if not (isinstance(value, float) and not _written(value))]
    value = rng.choice(values)
    if kind not in ("binary", "boolean"):
        text = literal(value)
        text = f"cast({text} as {kind})" if kind in ("date", "timestamp", "timestamp_ntz") else text
        found.append((text, lambda row: value))
        found.append((f"coalesce({name}, {text})", lambda row: value if old(row) is None else old(row)))
    if kind in ("int", "bigint"):
        found.append((f"{name} - 1", lambda row: _with(old(row), lambda number: number - 1)))
    if kind in ("float", "double"):
        found.append((f"{name} * 2", lambda row: _with(old(row), lambda number: number * 2)))
    if kind == "string":
        found.append((f"upper({name}) || '!'", lambda row: _with(old(row), lambda text: text.upper() + "!")))
    if kind.startswith("decimal"):
        found.append((f"abs({name})", lambda row: _with(old(row), _positive)))
    return found


def _written(value: float) -> bool:
    """Whether SQL has a literal for a number: -0.0 is a decimal there, which has no such zero."""
    return math.isfinite(value) and math.copysign(1.0, value) > 0


def _positive(value: Decimal) -> Decimal:
    return abs(value)


def _with(value: Value, act: Callable[[Any], Value]) -> Value:
    return None if value is None else act(value)
