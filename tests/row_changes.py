"""New values for columns in SQL, and what they are for a row in plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from row_columns import VALUES, Column, Columns, Row, Value
from row_filters import literal, value_at


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A column and its new value; ``of`` says what it is for a row as it was."""

    key: int
    name: str
    text: str
    of: Callable[[Row], Value]


def draw_assignments(
    rng: random.Random, columns: Columns, fixed: tuple[str, ...], prefix: str = ""
) -> list[Assignment]:
    """New values for one or two columns, none of them ``fixed``; ``prefix`` stands before names in the values."""
    free = [column for column in columns if column.name not in fixed and column.kind.name in VALUES]
    return [_assignment(rng, column, prefix) for column in rng.sample(free, min(len(free), rng.choice((1, 1, 2))))]


def _assignment(rng: random.Random, column: Column, prefix: str) -> Assignment:
    text, of = rng.choice(list(_values(rng, column, prefix + column.name)))
    return Assignment(key=column.key, name=column.name, text=text, of=of)


def _values(rng: random.Random, column: Column, name: str) -> list[tuple[str, Callable[[Row], Value]]]:
    kind = column.kind.name

    def old(row: Row) -> Value:
        return value_at(row, (column,))

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
