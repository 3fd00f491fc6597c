"""One value as bytes: bounds and partition summaries of v1-v3 manifests (spec: Binary single-value serialization).

``bounds`` does the same for whole columns, with the same results. A value that was stored before its column was
promoted is read as the present type of the column.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as PyDecimal
from typing import Any

from icefloe.errors import FormatError, InputError
from icefloe.model.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    Decimal,
    Fixed,
    Geography,
    Geometry,
    Primitive,
    Type,
)

Value = bool | int | float | str | bytes | date | time | datetime | PyDecimal | uuid.UUID

FORMATS: Mapping[Type, str] = {
    INT: "<i4",
    LONG: "<i8",
    FLOAT: "<f4",
    DOUBLE: "<f8",
    DATE: "<i4",
    TIME: "<i8",
    TIMESTAMP: "<i8",
    TIMESTAMPTZ: "<i8",
    TIMESTAMP_NS: "<i8",
    TIMESTAMPTZ_NS: "<i8",
}
# Bounds written before a column was promoted keep the bytes of the former type (spec: Schema Evolution).
FORMER: Mapping[Type, Primitive] = {LONG: INT, DOUBLE: FLOAT, TIMESTAMP: DATE, TIMESTAMP_NS: DATE}
UNITS_PER_DAY: Mapping[Type, int] = {TIMESTAMP: 86_400_000_000, TIMESTAMP_NS: 86_400_000_000_000}
MAX_LONG = 2**63 - 1
DECIMAL_BYTES = 16

_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = timedelta(microseconds=1)
_STRUCTS = {
    "<i4": struct.Struct("<i"),
    "<i8": struct.Struct("<q"),
    "<f4": struct.Struct("<f"),
    "<f8": struct.Struct("<d"),
}


def encode_value(value: Value, type_: Type) -> bytes:
    """The bytes of one value; dates, times and timestamps may also be passed as their stored numbers.

    >>> encode_value(PyDecimal("14.20"), Decimal(9, 2)).hex()
    '058c'
    """
    try:
        return _encode(value, type_)
    except (TypeError, ValueError, ArithmeticError, struct.error) as error:
        raise InputError(f"{value!r} is no value of type {type_}: {error}", type=str(type_)) from error


def _encode(value: Any, type_: Type) -> bytes:
    match type_:
        case Decimal():
            return _minimal(_unscaled(value, type_))
        case Fixed(length):
            return _sized(_bytes(value), length)
        case Geometry() | Geography() | Primitive(name="binary"):
            return _bytes(value)
        case Primitive(name="boolean"):
            return b"\x01" if _is(value, bool) else b"\x00"
        case Primitive(name="string"):
            return bytes(_is(value, str).encode())
        case Primitive(name="uuid"):
            return _sized(value.bytes if isinstance(value, uuid.UUID) else _bytes(value), 16)
        case Primitive() if type_ != UNKNOWN:
            return _STRUCTS[FORMATS[type_]].pack(_number(value, type_))
    raise TypeError("the type has no single-value form")


def _is(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("expected bytes")
    return bytes(value)


def _sized(data: bytes, length: int) -> bytes:
    if len(data) != length:
        raise ValueError(f"expected {length} bytes, got {len(data)}")
    return data


def _number(value: Any, type_: Primitive) -> Any:
    """The number that is stored for a value of a fixed-width type."""
    if isinstance(value, bool):
        raise TypeError("expected a number")
    if type_ in (FLOAT, DOUBLE) or isinstance(value, int):
        return value
    if type_ in (TIMESTAMP, TIMESTAMP_NS) and _is(value, datetime).tzinfo is not None:
        raise ValueError("a time zone does not belong here")
    if type_ in (TIMESTAMPTZ, TIMESTAMPTZ_NS) and _is(value, datetime).tzinfo is None:
        raise ValueError("a time zone is missing")
    if type_ in (TIMESTAMP, TIMESTAMPTZ):
        return _micros(value)
    if type_ in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
        return _micros(value) * 1000
    if type_ == TIME:
        clock = _is(value, time)
        return ((clock.hour * 60 + clock.minute) * 60 + clock.second) * 1_000_000 + clock.microsecond
    if type_ == DATE:
        return _is(value, date).toordinal() - _EPOCH_DAY
    raise TypeError("expected a whole number")


def _micros(value: datetime) -> int:
    plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return (plain - _EPOCH) // _MICROSECOND


def _unscaled(value: Any, type_: Decimal) -> int:
    sign, digits, exponent = PyDecimal(value).as_tuple()
    if not isinstance(exponent, int):
        raise ValueError("expected a finite number")
    shift = exponent + type_.scale
    number = int("".join(map(str, digits)))
    if number == 0:
        return 0
    if len(digits) + shift > type_.precision:
        raise ValueError("too many digits")
    up: int = 10 ** max(shift, 0)
    down: int = 10 ** min(max(-shift, 0), len(digits))
    whole, rest = divmod(number * up, down)
    if rest != 0:
        raise ValueError(f"more than {type_.scale} digits after the decimal point")
    return -whole if sign == 1 else whole


def _minimal(number: int) -> bytes:
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def decode_value(data: bytes, type_: Type, *, where: str = "single value") -> Value:
    """The value of some bytes: what Arrow gives for the type, nanoseconds since 1970 for timestamps that count them.

    A bound of a ``fixed`` column may have been truncated; it is filled up with zeros and still is a bound. A date that
    a 64-bit timestamp cannot represent is clamped to its range.

    >>> decode_value(bytes.fromhex("058c"), Decimal(9, 2))
    Decimal('14.20')
    """
    try:
        return _decode(data, type_)
    except (ValueError, TypeError, struct.error, OverflowError) as error:
        raise FormatError(f"{where}: {data[:32].hex()} is no {type_}: {error}", where=where, type=str(type_)) from error


def _decode(data: bytes, type_: Type) -> Value:
    match type_:
        case Decimal():
            return _decimal(data, type_)
        case Fixed(length):
            return _sized(data.ljust(length, b"\0"), length)
        case Geometry() | Geography() | Primitive(name="binary"):
            return data
        case Primitive(name="boolean"):
            return _sized(data, 1) != b"\x00"
        case Primitive(name="string"):
            return data.decode()
        case Primitive(name="uuid"):
            return _sized(data, 16)
        case Primitive() if type_ != UNKNOWN:
            return _value(_stored_number(data, type_), type_)
    raise TypeError("the type has no single-value form")


def _decimal(data: bytes, type_: Decimal) -> PyDecimal:
    if not 1 <= len(data) <= DECIMAL_BYTES:
        raise ValueError(f"expected 1 to {DECIMAL_BYTES} bytes, got {len(data)}")
    unscaled = int.from_bytes(data, "big", signed=True)
    if abs(unscaled) >= 10**type_.precision:
        raise ValueError(f"more than {type_.precision} digits")
    return PyDecimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -type_.scale))


def _stored_number(data: bytes, type_: Primitive) -> Any:
    shape = _STRUCTS[FORMATS[type_]]
    former = FORMER.get(type_)
    if former is None or len(data) == shape.size:
        return shape.unpack(data)[0]
    number = _STRUCTS[FORMATS[former]].unpack(data)[0]
    if former != DATE:
        return number
    return max(-MAX_LONG - 1, min(MAX_LONG, number * UNITS_PER_DAY[type_]))


def _value(number: Any, type_: Primitive) -> Value:
    match type_.name:
        case "date":
            return date.fromordinal(number + _EPOCH_DAY)
        case "time":
            if not 0 <= number < UNITS_PER_DAY[TIMESTAMP]:
                raise ValueError("not a time of day")
            return (_EPOCH + timedelta(microseconds=number)).time()
        case "timestamp":
            return _EPOCH + timedelta(microseconds=number)
        case "timestamptz":
            return (_EPOCH + timedelta(microseconds=number)).replace(tzinfo=UTC)
        case _:
            return number  # type: ignore[no-any-return]  # struct gives int or float, as the format says
