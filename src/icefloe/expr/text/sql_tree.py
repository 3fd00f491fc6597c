"""Parses conditions and values in SQL with sqlglot, and converts literals to Python values.

Literals are numbers, strings, typed literals, and casts around them. A number without suffix is an int or a Decimal, so
that nothing is rounded before the type of the column is known. The meaning of a TIMESTAMP without offset depends on its
source, so the caller passes ``localize``.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from icefloe.expr.text.datetime_text import Nanos, from_micros, nanos, parse_date, parse_moment, parse_time

Localize: TypeAlias = Callable[[dt.datetime], dt.datetime]

_KIND = exp.DataType.Type
_INTEGER_BITS = {_KIND.TINYINT: 8, _KIND.SMALLINT: 16, _KIND.INT: 32, _KIND.BIGINT: 64}
_MOMENTS = (_KIND.TIMESTAMPTZ, _KIND.TIMESTAMPLTZ)
_CLOCKS = (_KIND.TIMESTAMP, _KIND.TIMESTAMPNTZ)
TRIPPED = (LookupError, AttributeError, TypeError)  # errors of sqlglot if a call lacks an argument, such as map('a')
NOT_SQL = (SqlglotError, *TRIPPED)


def sql_tree(text: str) -> Any:
    """The tree of a text in Spark SQL; ParseError also for other errors of the parser.

    >>> type(sql_tree("a + 1")).__name__
    'Add'
    """
    try:
        return sqlglot.parse_one(text, read="spark", into=exp.Condition)
    except TRIPPED as error:
        raise ParseError(f"the parser fails: {error}") from error


def sql_text(tree: Any) -> str:
    """The beginning of the SQL text of a tree, for messages."""
    return str(tree.sql("spark", unsupported_level=ErrorLevel.IGNORE))[:200]


def literal(node: Any, localize: Localize) -> object:
    """The value of a literal node, None for NULL; ValueError if it is no literal or not a valid one."""
    match node:
        case exp.Paren():
            return literal(node.this, localize)
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal():
            return _number(node.this)
        case exp.RawString():
            return str(node.this)
        case exp.Concat() if all(part.is_string for part in node.expressions):
            return "".join(part.this for part in node.expressions)
        case exp.HexString():
            return bytes.fromhex(node.this if len(node.this) % 2 == 0 else f"0{node.this}")
        case exp.Neg(this=exp.Cast(this=exp.Literal() as inner) as cast) if not inner.is_string:
            # The sign is part of the number: only with it is the smallest long in range.
            return _cast(_negative(literal(inner, localize)), cast.to, localize)
        case exp.Neg():
            return _negative(literal(node.this, localize))
        case exp.Cast():  # TryCast too
            return _cast(literal(node.this, localize), node.to, localize)
        case exp.Anonymous() if node.this.lower() == "timestamp_micros" and len(node.expressions) == 1:
            return from_micros(_integer(literal(node.expressions[0], localize), 64))
        case _:
            raise ValueError("it is not a literal")


def _number(text: str) -> int | float | decimal.Decimal:
    if text.isdecimal():
        return int(text)
    return float(text) if "e" in text.lower() else decimal.Decimal(text)


def _negative(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float, decimal.Decimal)):
        raise ValueError("only numbers can be negative")
    return value.copy_negate() if isinstance(value, decimal.Decimal) else -value


def _cast(value: object, to: Any, localize: Localize) -> object:
    """A cast of a literal that keeps its value exactly, or ValueError; to float and double it may round."""
    kind = to.this
    if value is None:
        return None
    if (bits := _INTEGER_BITS.get(kind)) is not None:
        return _integer(value, bits)
    match kind:
        case _KIND.DOUBLE:
            return _floating(value)
        case _KIND.FLOAT:
            return struct.unpack("<f", struct.pack("<f", _floating(value)))[0]
        case _KIND.DECIMAL:
            return _decimal(value, [int(param.this.this) for param in to.expressions])
        case _KIND.TEXT | _KIND.VARCHAR | _KIND.CHAR if isinstance(value, str):
            return value
        case _KIND.UUID if isinstance(value, str):
            return uuid.UUID(value)
        case _KIND.BOOLEAN if isinstance(value, bool):
            return value
        case _KIND.BINARY | _KIND.VARBINARY if isinstance(value, bytes):
            return value
        case _KIND.DATE if isinstance(value, str):
            return parse_date(value)
        case _KIND.TIME if isinstance(value, str):
            return parse_time(value)
        case _ if kind in _MOMENTS and isinstance(value, str):
            return _moment(value, localize)
        case _ if kind in _CLOCKS and isinstance(value, str):
            clock = parse_moment(value)
            if _has_offset(clock):
                raise ValueError("a timestamp without time zone has no offset")
            return clock
    raise ValueError(f"this cast to {kind.value} is not supported in a filter")


def _moment(text: str, localize: Localize) -> dt.datetime | Nanos:
    moment = parse_moment(text)
    if _has_offset(moment):
        return moment
    if isinstance(moment, dt.datetime):
        return localize(moment)
    whole = localize(from_micros(moment.count // 1000).replace(tzinfo=None))
    return Nanos(nanos(whole) + moment.count % 1000, _has_offset(whole))


def _has_offset(moment: dt.datetime | Nanos) -> bool:
    return moment.utc if isinstance(moment, Nanos) else moment.tzinfo is not None


def _integer(value: object, bits: int) -> int:
    number = _decimal(value, [])
    if number != number.to_integral_value() or not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{value} is not an integer of {bits} bits")
    return int(number)


def _floating(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, decimal.Decimal)):
        raise ValueError(f"{value!r} is not a number")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{value} is too large for a double") from error


def _decimal(value: object, parameters: list[int]) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, decimal.Decimal)):
        raise ValueError(f"{value!r} is not a number")
    try:
        number = decimal.Decimal(value)
    except decimal.InvalidOperation as error:
        raise ValueError(f"{value!r} is not a number") from error
    if not number.is_finite():
        raise ValueError(f"{value!r} is not a finite number")
    precision, scale = (*parameters, *(10, 0)[len(parameters) :]) if len(parameters) > 0 else (None, None)
    if precision is not None and scale is not None:
        scaled = number.scaleb(scale, decimal.Context(prec=100))
        if scaled != scaled.to_integral_value() or abs(scaled) >= 10**precision:
            raise ValueError(f"{value} does not fit decimal({precision}, {scale}) exactly")
    return number
