"""Converts literals to the type of a column exactly: no row matches because of rounding.

A literal of another type may lie between two values of the column (1.5 among integers) or outside all of them (2^40
among ints). ``position_of`` returns its position among the values, and ``bind`` makes an exact comparison from it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from icefloe.expr.text.datetime_text import Nanos, from_micros, nanos, parse_date, parse_moment, parse_time
from icefloe.model.schema import types as iceberg
from icefloe.transforms import ResultNumbers, Transform

_BITS = {iceberg.INT: 32, iceberg.LONG: 64}
_FAR = 400  # decimal digits
_WIDE = decimal.Context(prec=100)
_ZONED = (iceberg.TIMESTAMPTZ, iceberg.TIMESTAMPTZ_NS)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Exact:
    """The literal is this value of the column's type."""

    value: object


@dataclass(frozen=True, slots=True)
class Gap:
    """The literal is between two neighbouring values; None: beyond the last one on that side."""

    below: object | None
    above: object | None


@dataclass(frozen=True, slots=True)
class After:
    """The literal is right after this value and before the next one, which need not be known."""

    value: object


@dataclass(frozen=True, slots=True)
class NotANumber:
    """The literal is NaN, which equals itself and is larger than every other value, as in Spark."""


Position = Exact | Gap | After | NotANumber


class JsonText(str):
    """A literal from JSON, where numbers, bytes and times may be strings: the type of the column decides."""

    __slots__ = ()


class JsonNumber(float):
    """A literal from JSON, where 0.1 compared with a column of floats means the nearest float."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Grid:
    """The numbers of a type, or those that a transform gives: multiples of ``step`` in units of the last digit."""

    lowest: int
    highest: int
    step: int = 1
    scale: int | None = None  # of a decimal

    def within(self, numbers: ResultNumbers) -> _Grid:
        lowest = self.lowest if numbers.lowest is None else numbers.lowest
        highest = self.highest if numbers.highest is None else numbers.highest
        return replace(self, lowest=lowest, highest=highest, step=numbers.step)

    def value(self, units: int) -> object:
        return units if self.scale is None else decimal.Decimal(units).scaleb(-self.scale, _WIDE)


def position_of(literal: object, type_: iceberg.PrimitiveType) -> Position:
    """The position of a literal among the values of a type; ValueError if it cannot be compared with them.

    >>> position_of(decimal.Decimal("1.5"), iceberg.INT)
    Gap(below=1, above=2)
    """
    if (grid := _grid(type_)) is not None:
        return _among_numbers(literal, grid)
    if type_ in (iceberg.FLOAT, iceberg.DOUBLE):
        return _among_floats(literal, type_)
    return _among_others(literal, type_)


def position_among_results(
    literal: object, transform: Transform, source: iceberg.PrimitiveType, result: iceberg.PrimitiveType
) -> Position:
    """The position of a literal among the results of a transform, which may be only some values of the result type.

    >>> from icefloe.transforms import parse_transform
    >>> position_among_results(15, parse_transform("truncate[10]"), iceberg.LONG, iceberg.LONG)
    Gap(below=10, above=20)
    """
    if result == iceberg.DATE and isinstance(literal, int) and not isinstance(literal, bool):
        return Exact(_date_of_day(literal))
    if (grid := _grid(result)) is not None:
        return _among_numbers(literal, grid.within(transform.result_numbers))
    position, length = position_of(literal, result), transform.prefix_length(source)
    if length is None or not isinstance(position, Exact) or not isinstance(position.value, (str, bytes)):
        return position
    return position if len(position.value) <= length else After(position.value[:length])


def _grid(type_: iceberg.PrimitiveType) -> _Grid | None:
    if isinstance(type_, iceberg.Decimal):
        return _Grid(1 - 10**type_.precision, 10**type_.precision - 1, scale=type_.scale)
    bits = _BITS.get(type_) if isinstance(type_, iceberg.Primitive) else None
    return None if bits is None else _Grid(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _date_of_day(day: int) -> dt.date:
    """A day counted from 1970, as the specification stores partition values of days."""
    try:
        return dt.date.fromordinal(_EPOCH_DAY + day)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"day {day} from 1970 is outside the years 1 to 9999") from error


def _exact_number(literal: object) -> Fraction | float:
    """A numeric literal without rounding; infinities and NaN stay floats."""
    if isinstance(literal, JsonText):
        literal = _number_in_json(literal)
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


def _number_in_json(text: JsonText) -> decimal.Decimal:
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation as error:
        raise ValueError("a number is needed") from error


def _among_numbers(literal: object, grid: _Grid) -> Position:
    """Among ints, longs or decimals, all of which are integers after scaling."""
    number = _exact_number(literal)
    step = grid.step
    lowest, highest = -(-grid.lowest // step) * step, grid.highest // step * step
    if isinstance(number, float):  # NaN is above every number
        return Gap(None, grid.value(lowest)) if number == -math.inf else Gap(grid.value(highest), None)
    scaled = number * Fraction(10) ** (grid.scale or 0)
    if scaled < lowest:
        return Gap(None, grid.value(lowest))
    if scaled > highest:
        return Gap(grid.value(highest), None)
    floor = math.floor(scaled / step) * step
    return Exact(grid.value(floor)) if scaled == floor else Gap(grid.value(floor), grid.value(floor + step))


def _among_floats(literal: object, type_: iceberg.PrimitiveType) -> Position:
    if type_ == iceberg.FLOAT and isinstance(literal, JsonNumber):
        literal = _nearest_float(literal)
    if isinstance(literal, decimal.Decimal) and math.isfinite(double := float(literal)):
        literal = double  # 0.1 compared with a double means the nearest double
    number = _exact_number(literal)
    if isinstance(number, float):
        return NotANumber() if math.isnan(number) else Exact(number)
    kind = np.float32 if type_ == iceberg.FLOAT else np.float64
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


def _nearest_float(number: float) -> float:
    with np.errstate(over="ignore"):
        near = float(np.float32(number))
    return near if math.isfinite(near) else number


def _among_others(literal: object, type_: iceberg.PrimitiveType) -> Position:
    match type_:
        case _ if type_ == iceberg.BOOLEAN and isinstance(literal, bool):
            return Exact(literal)
        case _ if type_ == iceberg.STRING and isinstance(literal, str):
            literal.encode("utf-8")  # a lone surrogate is a ValueError
            return Exact(str(literal))
        case _ if type_ == iceberg.BINARY or isinstance(type_, iceberg.Fixed):
            return Exact(_bytes(literal, type_))
        case _ if type_ == iceberg.UUID:
            return Exact(_uuid(literal).bytes)
        case _ if type_ == iceberg.DATE:
            return _among_dates(literal)
        case _ if type_ == iceberg.TIME and isinstance(literal, (str, dt.time)):
            return Exact(_time(literal))
        case _ if type_ in (iceberg.TIMESTAMP, iceberg.TIMESTAMPTZ):
            return _among_micros(_count(literal, type_), type_)
        case _ if type_ in (iceberg.TIMESTAMP_NS, iceberg.TIMESTAMPTZ_NS):
            is_count = isinstance(literal, int) and not isinstance(literal, bool)
            return _among_numbers(literal if is_count else _count(literal, type_), _Grid(-(2**63), 2**63 - 1))
    raise ValueError(f"a {type_} is needed")


def _bytes(literal: object, type_: iceberg.PrimitiveType) -> bytes:
    if isinstance(literal, JsonText):
        literal = bytes.fromhex(literal)
    if not isinstance(literal, (bytes, bytearray)):
        raise ValueError(f"a {type_} is needed, written in hexadecimal digits as X'1F'")
    if isinstance(type_, iceberg.Fixed) and len(literal) != type_.length:
        raise ValueError(f"{type_.length} bytes are needed")
    return bytes(literal)


def _uuid(literal: object) -> uuid.UUID:
    match literal:
        case uuid.UUID():
            return literal
        case str():
            return uuid.UUID(literal)
        case bytes() if len(literal) == 16:
            return uuid.UUID(bytes=literal)
    raise ValueError("a UUID is needed")


def _among_dates(literal: object) -> Position:
    if isinstance(literal, str):
        in_json = isinstance(literal, JsonText) and len(literal.strip()) > len("YYYY-MM-DD")
        literal = parse_moment(literal) if in_json else parse_date(literal)
    if isinstance(literal, dt.datetime | Nanos):
        return _among_days(literal)
    if isinstance(literal, dt.date):
        return Exact(literal)
    raise ValueError("a date is needed, as DATE 'YYYY-MM-DD'")


def _among_days(moment: dt.datetime | Nanos) -> Position:
    if moment.utc if isinstance(moment, Nanos) else moment.tzinfo is not None:
        raise ValueError("a date has no time zone; compare with DATE 'YYYY-MM-DD'")
    days, rest = divmod(moment.count if isinstance(moment, Nanos) else nanos(moment), 86_400 * 10**9)
    day = _date_of_day(days)
    if rest == 0:
        return Exact(day)
    # Tables may store days after the last one of Python, so it has a next one too.
    return After(day) if day == dt.date.max else Gap(day, day + dt.timedelta(days=1))


def _time(literal: str | dt.time) -> dt.time:
    time = parse_time(literal) if isinstance(literal, str) else literal
    if time.tzinfo is not None:
        raise ValueError("a time has no time zone")
    return time


def _count(literal: object, type_: iceberg.PrimitiveType) -> int:
    """The nanoseconds of a literal for a column of timestamps, with or without time zone as the column is."""
    if isinstance(literal, str):
        literal = parse_moment(literal)
    elif isinstance(literal, dt.date) and not isinstance(literal, dt.datetime):
        literal = dt.datetime.combine(literal, dt.time())
    if not isinstance(literal, dt.datetime | Nanos):
        raise ValueError("a timestamp is needed")
    zoned = literal.utc if isinstance(literal, Nanos) else literal.tzinfo is not None
    if type_ in _ZONED and not zoned:
        raise ValueError(
            "the column has a time zone, so give the literal an offset: '2024-03-01T12:00:00Z' or '+01:00'"
        )
    if type_ not in _ZONED and zoned:
        raise ValueError("the column has no time zone, so give the literal without an offset")
    return literal.count if isinstance(literal, Nanos) else nanos(literal)


def _among_micros(count: int, type_: iceberg.PrimitiveType) -> Position:
    whole, rest = divmod(count, 1000)
    moment = from_micros(whole)
    value = moment if type_ == iceberg.TIMESTAMPTZ else moment.replace(tzinfo=None)
    return Exact(value) if rest == 0 else After(value)
