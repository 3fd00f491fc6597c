"""Column defaults as SQL literals: the text after ``DEFAULT``, and in Spark's field metadata (spec: Default values).

A default is a JSON value; in SQL it is a literal whose spelling shows its type (``DATE '2026-01-01'``, ``X'00ff'``).
Only constants are defaults of the format: a call such as ``current_date()`` is refused.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icefloe.errors import FormatError, InputError, UnsupportedError
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.json_values import value_from_json, value_to_json
from icefloe.model.text.sql_tokens import Tokens, quoted_text

_TAGS: Mapping[iceberg.Type, str] = {
    iceberg.DATE: "DATE",
    iceberg.TIME: "TIME",
    iceberg.TIMESTAMP: "TIMESTAMP_NTZ",
    iceberg.TIMESTAMPTZ: "TIMESTAMP",
    iceberg.TIMESTAMP_NS: "TIMESTAMP_NS",
    iceberg.TIMESTAMPTZ_NS: "TIMESTAMPTZ_NS",
    iceberg.UUID: "UUID",
    iceberg.BINARY: "X",
}
_NUMBERS = (iceberg.INT, iceberg.LONG, iceberg.FLOAT, iceberg.DOUBLE)
_STAMPS = (iceberg.TIMESTAMP, iceberg.TIMESTAMPTZ, iceberg.TIMESTAMP_NS, iceberg.TIMESTAMPTZ_NS)
_SUFFIXES: Mapping[iceberg.Type, str] = {iceberg.FLOAT: "F", iceberg.DOUBLE: "D"}


def sql_literal(value: Any, type_: iceberg.Type, name: str) -> str:
    """A default as SQL text; ``name`` is the column's, for errors.

    >>> sql_literal("2026-01-01", iceberg.DATE, "day")
    "DATE '2026-01-01'"
    """
    if value is None:
        return "NULL"
    if not iceberg.is_primitive(type_):
        raise UnsupportedError(f"column {name!r}: the default of a {type_} has no spelling in SQL", field=name)
    written: Any = value_to_json(value_from_json(value, type_, name), type_, name)
    match type_:
        case iceberg.Decimal():
            return f"{written}BD"
        case iceberg.Fixed():
            return f"X{quoted_text(written)}"
        case iceberg.Primitive() if type_ in _TAGS:
            return f"{_TAGS[type_]} {quoted_text(written)}" if type_ != iceberg.BINARY else f"X{quoted_text(written)}"
    if type_ == iceberg.STRING:
        return quoted_text(written)
    return str(written).lower() if type_ == iceberg.BOOLEAN else f"{written!r}{_SUFFIXES.get(type_, '')}"


def parse_literal(text: str, type_: iceberg.Type, name: str) -> Any:
    """The default, as a JSON value, that a SQL text gives to a column.

    >>> parse_literal("DATE '2026-01-01'", iceberg.DATE, "day")
    '2026-01-01'
    """
    tokens = Tokens(text, f"the default of column {name!r}")
    value = take_literal(tokens, type_, name)
    tokens.end()
    return value


def take_literal(tokens: Tokens, type_: iceberg.Type, name: str) -> Any:
    """The default, as a JSON value, of the literal that comes next."""
    if not tokens.skip("cast", "("):
        return _constant(tokens, type_, name)
    value = _constant(tokens, type_, name)
    tokens.expect("as")
    tokens.take()
    if tokens.skip("("):  # Spark writes the precision of a decimal; the column's own type decides
        while tokens.peek().kind == "number" or tokens.peek().key == ",":
            tokens.take()
        tokens.expect(")")
    tokens.expect(")")
    return value


def _constant(tokens: Tokens, type_: iceberg.Type, name: str) -> Any:
    literal = _taken(tokens)
    try:
        return _as_json(literal, type_)
    except (FormatError, UnsupportedError, ValueError, ArithmeticError) as error:
        raise InputError(f"column {name!r}: {literal.text} is no default of a {type_}: {error}", field=name) from error


@dataclass(frozen=True, slots=True)
class _Literal:
    """A literal: its value, and the word before a string that gives its type (``date``, ``x``)."""

    value: bool | str | None
    tag: str = ""
    number: bool = False

    @property
    def text(self) -> str:
        return f"{self.tag} {self.value!r}".strip()


def _taken(tokens: Tokens) -> _Literal:
    sign = "-" if tokens.skip("-") else ""
    if sign == "":
        tokens.skip("+")
    token = tokens.take()
    if token.kind == "number":
        return _Literal(sign + token.text.rstrip("bBdDyYsSlLfF"), number=True)
    if sign == "" and token.kind == "text":
        return _Literal(token.text)
    if sign == "" and token.kind == "word" and tokens.peek().kind == "text":
        return _Literal(tokens.take().text, token.key)
    if sign == "" and token.key in ("true", "false", "null"):
        return _Literal(None if token.key == "null" else token.key == "true")
    raise tokens.wrong("a constant such as 5, 'text' or DATE '2026-01-01'", token)


def _as_json(literal: _Literal, type_: iceberg.Type) -> Any:
    value = literal.value
    if value is None:
        return None
    if isinstance(value, bool):
        return value_to_json(value, type_)
    wants_number = type_ in _NUMBERS or isinstance(type_, iceberg.Decimal)
    if literal.number or (wants_number and literal.tag == ""):
        return value_to_json(_number(value, type_), type_)
    _check_tag(literal, type_)
    if type_ in _STAMPS:
        value = value.replace(" ", "T", 1)
        value = f"{value[:-1]}+00:00" if value.endswith("Z") else value
    return value_to_json(value_from_json(value, type_), type_)


def _number(text: str, type_: iceberg.Type) -> int | float | decimal.Decimal:
    if isinstance(type_, iceberg.Decimal):
        return decimal.Decimal(text)
    if type_ in (iceberg.FLOAT, iceberg.DOUBLE):
        return float(text)
    return int(text)


def _check_tag(literal: _Literal, type_: iceberg.Type) -> None:
    """The type of a string is that of the column unless a tag states it; bytes always have a tag."""
    tags = {"x"} if isinstance(type_, iceberg.Fixed) else {_TAGS[type_].lower()} if type_ in _TAGS else set()
    if type_ == iceberg.TIMESTAMPTZ:
        tags.add("timestamp_ltz")
    if literal.tag not in tags and (literal.tag != "" or "x" in tags):
        raise ValueError(f"expected {' or '.join(sorted(tags)) or 'a plain'} '...'")
