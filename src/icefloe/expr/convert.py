"""Literals placed in the domain of a column's type, exactly: nothing is rounded into a match.

A literal of another type may fall between two values of the column (1.5 among integers) or outside all of them (2^40
among ints). ``place`` says where it falls, and ``bind`` turns comparisons with such a place into exact ones.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from icefloe.expr.temporal import parse_date, parse_time, parse_timestamp
from icefloe.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Fixed,
    PrimitiveType,
)

_BITS = {INT: 32, LONG: 64}
_FAR = 400  # decimal digits
_WIDE = decimal.Context(prec=100)


@dataclass(frozen=True, slots=True)
class Exact:
    """The literal is this value of the column's type."""

    value: object


@dataclass(frozen=True, slots=True)
class Gap:
    """The literal lies between two neighbouring values; None: beyond the last one on that side."""

    below: object | None
    above: object | None


@dataclass(frozen=True, slots=True)
class NotANumber:
    """The literal is NaN, which equals itself and is larger than every other value, as in Spark."""


Place = Exact | Gap | NotANumber


def place(literal: object, type_: PrimitiveType) -> Place:
    """Where a literal falls among the values of a type; ValueError says why it cannot be compared with them.

    >>> place(decimal.Decimal("1.5"), INT)
    Gap(below=1, above=2)
    """
    if type_ in (INT, LONG) or isinstance(type_, Decimal):
        return _among_numbers(literal, type_)
    if type_ in (FLOAT, DOUBLE):
        return _among_floats(literal, type_)
    return _among_others(literal, type_)


def _exact_number(literal: object) -> Fraction | float:
    """A numeric literal without rounding; infinities and NaN stay floats."""
    if isinstance(literal, bool) or not isinstance(literal, (int, float, decimal.Decimal)):
        raise ValueError("a number is needed")
    if isinstance(literal, int):
        return Fraction(literal)
    if not (math.isfinite(literal) if isinstance(literal, float) else literal.is_finite()):
        return float(literal)
    if isinstance(literal, decimal.Decimal) and literal != 0 and abs(literal.adjusted()) > _FAR:
        # Beyond all values of all types, or closer to zero than any: exact digits would only cost memory.
        literal = decimal.Decimal(1).scaleb(int(math.copysign(_FAR, literal.adjusted()))).copy_sign(literal)
    elif isinstance(literal, decimal.Decimal) and literal == 0:
        literal = 0
    return Fraction(literal)


def _among_numbers(literal: object, type_: PrimitiveType) -> Place:
    """Among ints, longs or decimals, all of which are integers after scaling."""
    number = _exact_number(literal)
    scale = type_.scale if isinstance(type_, Decimal) else 0
    if isinstance(type_, Decimal):
        largest = 10**type_.precision - 1
        smallest = -largest
    else:
        bits = _BITS[type_]  # type: ignore[index]
        smallest, largest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def value(unscaled: int) -> object:
        return decimal.Decimal(unscaled).scaleb(-scale, _WIDE) if isinstance(type_, Decimal) else unscaled

    if isinstance(number, float):  # NaN is above every number
        return Gap(None, value(smallest)) if number == -math.inf else Gap(value(largest), None)
    scaled = number * 10**scale
    if scaled < smallest:
        return Gap(None, value(smallest))
    if scaled > largest:
        return Gap(value(largest), None)
    floor = math.floor(scaled)
    return Exact(value(floor)) if scaled == floor else Gap(value(floor), value(floor + 1))


def _among_floats(literal: object, type_: PrimitiveType) -> Place:
    number = _exact_number(literal)
    if isinstance(number, float):
        return NotANumber() if math.isnan(number) else Exact(number)
    kind = np.float32 if type_ == FLOAT else np.float64
    largest = float(np.finfo(kind).max)
    if abs(number) > Fraction(largest):
        return Gap(largest, math.inf) if number > 0 else Gap(-math.inf, -largest)
    with np.errstate(over="ignore", under="ignore"):
        near = kind(float(number))
        if not np.isfinite(near):
            near = kind(math.copysign(largest, near))
        exact = Fraction(float(near))
        if exact == number:
            return Exact(float(near) + 0.0)  # one zero only
        toward = kind(math.inf if exact < number else -math.inf)
        beside = float(np.nextafter(near, toward))
    return Gap(*sorted((float(near) + 0.0, beside + 0.0)))


def _among_others(literal: object, type_: PrimitiveType) -> Place:
    match type_:
        case _ if type_ == BOOLEAN and isinstance(literal, bool):
            return Exact(literal)
        case _ if type_ == STRING and isinstance(literal, str):
            literal.encode("utf-8")  # a lone surrogate is a ValueError
            return Exact(literal)
        case _ if type_ == BINARY and isinstance(literal, (bytes, bytearray)):
            return Exact(bytes(literal))
        case Fixed(length) if isinstance(literal, (bytes, bytearray)):
            if len(literal) != length:
                raise ValueError(f"{length} bytes are needed")
            return Exact(bytes(literal))
        case _ if type_ == UUID:
            return Exact(_uuid(literal).bytes)
        case _ if type_ == DATE:
            return _among_dates(literal)
        case _ if type_ == TIME and isinstance(literal, (str, dt.time)):
            return Exact(_time(literal))
        case _ if type_ in (TIMESTAMP, TIMESTAMPTZ):
            return Exact(_timestamp(literal, type_))
    raise ValueError(f"a {type_} is needed")


def _uuid(literal: object) -> uuid.UUID:
    match literal:
        case uuid.UUID():
            return literal
        case str():
            return uuid.UUID(literal)
        case bytes() if len(literal) == 16:
            return uuid.UUID(bytes=literal)
    raise ValueError("a UUID is needed")


def _among_dates(literal: object) -> Place:
    if isinstance(literal, str):
        literal = parse_date(literal)
    if isinstance(literal, dt.datetime):
        if literal.tzinfo is not None:
            raise ValueError("a date has no time zone; compare with DATE 'YYYY-MM-DD'")
        day = literal.date()
        if literal.time() == dt.time():
            return Exact(day)
        return Gap(day, None if day == dt.date.max else day + dt.timedelta(days=1))
    if isinstance(literal, dt.date):
        return Exact(literal)
    raise ValueError("a date is needed, as DATE 'YYYY-MM-DD'")


def _time(literal: str | dt.time) -> dt.time:
    time = parse_time(literal) if isinstance(literal, str) else literal
    if time.tzinfo is not None:
        raise ValueError("a time has no time zone")
    return time


def _timestamp(literal: object, type_: PrimitiveType) -> dt.datetime:
    if isinstance(literal, str):
        literal = parse_timestamp(literal)
    elif isinstance(literal, dt.date) and not isinstance(literal, dt.datetime):
        literal = dt.datetime.combine(literal, dt.time())
    if not isinstance(literal, dt.datetime):
        raise ValueError("a timestamp is needed")
    if type_ == TIMESTAMPTZ and literal.tzinfo is None:
        raise ValueError(
            "the column has a time zone, so give the literal an offset: '2024-03-01T12:00:00Z' or '+01:00'"
        )
    if type_ == TIMESTAMP and literal.tzinfo is not None:
        raise ValueError("the column has no time zone, so give the literal without an offset")
    return literal.replace(fold=0) if literal.tzinfo is None else literal.astimezone(dt.UTC)
