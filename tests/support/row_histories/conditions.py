"""Conditions on rows in SQL, and what they say of a row in plain Python: true, false, or none for unknown."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from support.row_histories.columns import COMPARED, VALUES, Column, Columns, Row, Value, flat, shown_value, value_in

Answer = bool | None
Test = Callable[[Row], Answer]


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition; ``of`` says what it is for a row."""

    text: str
    of: Test

    def holds(self, row: Row) -> bool:
        """Whether the row is chosen: unknown is not."""
        return self.of(row) is True


def draw_condition(
    rng: random.Random,
    columns: Columns,
    depth: int = 2,
    *,
    kinds: tuple[str, ...] = COMPARED,
    prefix: str = "",
) -> Condition:
    """A condition on columns that are there, of some types; ``prefix`` stands before their names."""
    kind = rng.random()
    if depth == 0 or kind < 0.55:
        return _leaf(rng, columns, kinds, prefix)
    one = draw_condition(rng, columns, depth - 1, kinds=kinds, prefix=prefix)
    if kind < 0.65:
        return Condition(text=f"not ({one.text})", of=lambda row: _not(one.of(row)))
    other = draw_condition(rng, columns, depth - 1, kinds=kinds, prefix=prefix)
    if kind < 0.83:
        return Condition(text=f"({one.text} and {other.text})", of=lambda row: _and(one.of(row), other.of(row)))
    return Condition(
        text=f"({one.text} or {other.text})", of=lambda row: _not(_and(_not(one.of(row)), _not(other.of(row))))
    )


def _not(answer: Answer) -> Answer:
    return None if answer is None else not answer


def _and(one: Answer, other: Answer) -> Answer:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def value_at(row: Row, path: tuple[Column, ...]) -> Value:
    """The value of a column inside structs; null where a struct is."""
    value: Value = row
    for column in path:
        if value is None:
            return None
        assert isinstance(value, dict)
        value = value_in(value, column)
    return shown_value(value, path[-1].kind)


def _leaf(rng: random.Random, columns: Columns, kinds: tuple[str, ...], prefix: str) -> Condition:
    path = rng.choice([path for path in flat(columns) if path[-1].kind.name in kinds])
    name, kind = prefix + ".".join(column.name for column in path), path[-1].kind.name
    verb = rng.choice(("=", "=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null"))
    if verb in ("is null", "is not null"):
        return Condition(text=f"{name} {verb}", of=lambda row: (value_at(row, path) is None) == (verb == "is null"))
    if kind in ("float", "double") and rng.random() < 0.15:
        return Condition(text=f"isnan({name})", of=lambda row: _is_nan(value_at(row, path)))
    if kind == "boolean":
        return Condition(text=f"{name} = true", of=lambda row: _answer("=", value_at(row, path), True))
    usable = [value for value in VALUES[kind] if not (isinstance(value, float) and not math.isfinite(value))]
    if verb in ("in", "not in"):
        chosen = rng.sample(usable, rng.randint(1, min(3, len(usable))))
        text = f"{name} {verb} ({', '.join(literal(value) for value in chosen)})"
        return Condition(text=text, of=lambda row: _among(verb, value_at(row, path), chosen))
    if kind == "string" and rng.random() < 0.2:
        start = rng.choice(("", "O", "Osl", "a t", "\u00f6"))
        return Condition(text=f"{name} like '{start}%'", of=lambda row: _starts(value_at(row, path), start))
    value = rng.choice(usable)
    return Condition(text=f"{name} {verb} {literal(value)}", of=lambda row: _answer(verb, value_at(row, path), value))


def literal(value: Value) -> str:
    """A value in SQL."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (dt.datetime, dt.date)):
        return f"'{value.isoformat()}'"
    return "null" if value is None else str(value)


def _is_nan(value: Value) -> Answer:
    return isinstance(value, float) and math.isnan(value)


def _starts(value: Value, start: str) -> Answer:
    return None if value is None else str(value).startswith(start)


def _among(verb: str, value: Value, chosen: list[Value]) -> Answer:
    found = None if value is None else any(_order(value, each) == 0 for each in chosen)
    return found if verb == "in" else _not(found)


def _answer(verb: str, value: Value, other: Value) -> Answer:
    if value is None:
        return None
    order = _order(value, other)
    return {"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[verb]


def _order(value: Value, other: Value) -> int:
    """How two values compare: NaN equals itself and is above all numbers, -0.0 equals 0.0."""
    keys = [
        (isinstance(v, float) and math.isnan(v), 0.0 if isinstance(v, float) and math.isnan(v) else v)
        for v in (value, other)
    ]
    return (keys[0] > keys[1]) - (keys[0] < keys[1])
