"""Primitive values as JSON values, a reader and a writer for each type (spec: JSON single-value serialization).

Readers raise ValueError with what they expected, writers with what is wrong. ``json_values`` adds the path.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping

import numpy as np

from icefloe.model.schema import types as iceberg

_EPOCH = dt.datetime(1970, 1, 1)
_SECOND = dt.timedelta(seconds=1)
_NANOS = 1_000_000_000
_UTC = "+00:00"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_DATE = re.compile(_DAY)
# Zeros at the end of a fraction may be left out, as Java's printers of ISO 8601 do.
_TIME = re.compile(rf"({_CLOCK})(?:\.([0-9]{{1,6}}))?")
_MICRO_STAMP = re.compile(rf"({_DAY}T{_CLOCK})(?:\.([0-9]{{1,6}}))?(.*)")
_NANO_STAMP = re.compile(rf"({_DAY}T{_CLOCK})(?:\.([0-9]{{1,9}}))?(.*)")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"([0-9a-fA-F]{2})*")
_PLAIN = re.compile(r"(-?)([0-9]{1,76})(?:\.([0-9]{1,76}))?")
_SCIENTIFIC = re.compile(r"(-?)([0-9]{1,76})(?:\.([0-9]{1,76}))?E\+?([0-9]{1,9})")
_WIDE = decimal.Context(prec=100, traps=[decimal.InvalidOperation, decimal.Inexact])

Reader = Callable[[object], object]
Writer = Callable[[object], object]


def _as_read(reader: Reader) -> Writer:
    """The writer of a type whose values are JSON values already."""

    def write(value: object) -> object:
        try:
            return reader(value)
        except ValueError as error:
            raise ValueError(f"expected {error}") from error

    return write


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("a boolean")
    return value


def _whole(bits: int, name: str) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(name)
        return value

    return check


def _read_double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a number")
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError("a number in the range of a double") from error
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _read_float(value: object) -> float:
    try:
        number: float = struct.unpack("<f", struct.pack("<f", _read_double(value)))[0]
    except OverflowError as error:
        raise ValueError("a number in the range of a float") from error
    return number


def _write_double(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("expected a number")
    number = float(value)
    if not math.isfinite(number):
        name = "NaN" if math.isnan(number) else "Infinity"
        raise ValueError(f"JSON has no number {name}")
    return number


def _write_float(value: object) -> float:
    single = struct.unpack("<f", struct.pack("<f", _write_double(value)))[0]
    # The fewest digits that are read back as the same float: 0.1, and not 0.10000000149011612.
    return float(str(np.float32(single)))


def _text(value: object, expected: str) -> str:
    if not isinstance(value, str):
        raise ValueError(expected)
    return value


def _string(value: object) -> str:
    text = _text(value, "a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("a string of Unicode characters") from error
    return text


def _read_date(value: object) -> dt.date:
    expected = "a date such as 2017-11-16"
    text = _text(value, expected)
    if _DATE.fullmatch(text) is None:
        raise ValueError(expected)
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise ValueError("a date of the calendar, year 1 to 9999") from error


def _write_date(value: object) -> str:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise ValueError("expected a date")
    return value.isoformat()


def _read_time(value: object) -> dt.time:
    expected = "a time such as 22:31:08.123456"
    match = _TIME.fullmatch(_text(value, expected))
    if match is None:
        raise ValueError(expected)
    try:
        return dt.time.fromisoformat(f"{match[1]}.{_fraction(match[2], 6):06}")
    except ValueError as error:
        raise ValueError("a time of day") from error


def _write_time(value: object) -> str:
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        raise ValueError("expected a time without zone")
    return value.isoformat(timespec="microseconds")


def _fraction(digits: str | None, places: int) -> int:
    return 0 if digits is None else int(digits.ljust(places, "0"))


def _stamp(value: object, pattern: re.Pattern[str], zone: str, places: int) -> tuple[dt.datetime, int]:
    """The second of a timestamp and its fraction in units of the last digit."""
    example = f"2017-11-16T22:31:08.{'123456789'[:places]}{zone}"
    expected = f"a timestamp {'in UTC' if zone == _UTC else 'without zone'} such as {example}"
    match = pattern.fullmatch(_text(value, expected))
    if match is None or match[3] != zone:
        raise ValueError(expected)
    try:
        return dt.datetime.fromisoformat(match[1]), _fraction(match[2], places)
    except ValueError as error:
        raise ValueError("a timestamp in the years 1 to 9999") from error


def _read_timestamp(value: object) -> dt.datetime:
    second, micros = _stamp(value, _MICRO_STAMP, "", 6)
    return second.replace(microsecond=micros)


def _read_timestamptz(value: object) -> dt.datetime:
    second, micros = _stamp(value, _MICRO_STAMP, _UTC, 6)
    return second.replace(microsecond=micros, tzinfo=dt.UTC)


def _write_timestamp(value: object) -> str:
    if not isinstance(value, dt.datetime) or value.tzinfo is not None:
        raise ValueError("expected a datetime without time zone")
    return value.isoformat(timespec="microseconds")


def _write_timestamptz(value: object) -> str:
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        raise ValueError("expected a datetime with time zone")
    return value.astimezone(dt.UTC).isoformat(timespec="microseconds")


def _nano_reader(zone: str) -> Reader:
    def read(value: object) -> int:
        second, nanos = _stamp(value, _NANO_STAMP, zone, 9)
        number = (second - _EPOCH) // _SECOND * _NANOS + nanos
        if not -(2**63) <= number < 2**63:
            raise ValueError("a timestamp that 64 bits of nanoseconds can represent, year 1677 to 2262")
        return number

    return read


def _nano_writer(zone: str) -> Writer:
    whole = _whole(64, "expected nanoseconds since 1970 in 64 bits")

    def write(value: object) -> str:
        seconds, nanos = divmod(whole(value), _NANOS)
        return f"{(_EPOCH + seconds * _SECOND).isoformat()}.{nanos:09}{zone}"

    return write


def _read_uuid(value: object) -> bytes:
    expected = "a uuid such as f79c3e09-677c-4bbd-a479-3f349cb785e7"
    text = _text(value, expected)
    if _UUID.fullmatch(text) is None:
        raise ValueError(expected)
    return uuid.UUID(text).bytes


def _write_uuid(value: object) -> str:
    if isinstance(value, uuid.UUID):
        return str(value)
    if not isinstance(value, bytes) or len(value) != 16:
        raise ValueError("expected 16 bytes or a UUID")
    return str(uuid.UUID(bytes=value))


def _read_unknown(value: object) -> None:
    raise ValueError("null")


def _write_unknown(value: object) -> None:
    raise ValueError("only None is")


def hex_from_json(value: object, length: int | None = None) -> bytes:
    """Bytes from hexadecimal digits of either case; with ``length``, exactly that many. ValueError otherwise."""
    expected = "hexadecimal digits in pairs" if length is None else f"{length} bytes as hexadecimal digits"
    text = _text(value, expected)
    if _HEX.fullmatch(text) is None or (length is not None and len(text) != 2 * length):
        raise ValueError(expected)
    return bytes.fromhex(text)


def hex_to_json(value: object, length: int | None = None) -> str:
    """Bytes as lower-case hexadecimal digits; ValueError if there are not ``length`` of them."""
    if not isinstance(value, bytes) or (length is not None and len(value) != length):
        raise ValueError("expected bytes" if length is None else f"expected {length} bytes")
    return value.hex()


def decimal_from_json(value: object, precision: int, scale: int) -> decimal.Decimal:
    """A decimal whose text shows exactly the scale of its type: by digits after the decimal point, or by an exponent.

    Raises ValueError for any other text.

    >>> decimal_from_json("2E+20", 9, -20)
    Decimal('2E+20')
    """
    example = (
        f"decimal with {scale} digits after the decimal point" if scale >= 0 else f"number times 10 as ...E+{-scale}"
    )
    text = _text(value, f"a string with a {example}")
    match = (_PLAIN if scale >= 0 else _SCIENTIFIC).fullmatch(text)
    decimals = "" if match is None or match[3] is None else match[3]
    if match is None or len(decimals) - (int(match[4]) if scale < 0 else 0) != scale:
        raise ValueError(f"a string with a {example}")
    unscaled = int(f"{match[1]}{match[2]}{decimals}")
    if abs(unscaled) >= 10**precision:
        raise ValueError(f"at most {precision} digits")
    return decimal.Decimal(unscaled).scaleb(-scale, _WIDE)


def decimal_to_json(value: object, precision: int, scale: int) -> str:
    """A decimal as text that shows the scale of its type; ValueError if it would have to be rounded."""
    if isinstance(value, bool) or not isinstance(value, (int, decimal.Decimal)):
        raise ValueError("expected a Decimal")
    problem = f"it takes at most {precision} digits, {scale} of them after the decimal point"
    try:
        scaled = decimal.Decimal(value).scaleb(scale, _WIDE)
    except ArithmeticError as error:
        raise ValueError(problem) from error
    if not scaled.is_finite() or scaled != scaled.to_integral_value() or scaled.copy_abs() >= 10**precision:
        raise ValueError(problem)
    unscaled = int(scaled)
    if scale < 0:
        return f"{unscaled}E+{-scale}"
    return f"{decimal.Decimal(unscaled).scaleb(-scale, _WIDE):f}"


READERS: Mapping[iceberg.Primitive, Reader] = {
    iceberg.BOOLEAN: _bool,
    iceberg.INT: _whole(32, "an int"),
    iceberg.LONG: _whole(64, "a long"),
    iceberg.FLOAT: _read_float,
    iceberg.DOUBLE: _read_double,
    iceberg.DATE: _read_date,
    iceberg.TIME: _read_time,
    iceberg.TIMESTAMP: _read_timestamp,
    iceberg.TIMESTAMPTZ: _read_timestamptz,
    iceberg.TIMESTAMP_NS: _nano_reader(""),
    iceberg.TIMESTAMPTZ_NS: _nano_reader(_UTC),
    iceberg.STRING: _string,
    iceberg.UUID: _read_uuid,
    iceberg.BINARY: hex_from_json,
    iceberg.UNKNOWN: _read_unknown,
}
WRITERS: Mapping[iceberg.Primitive, Writer] = {
    iceberg.BOOLEAN: _as_read(_bool),
    iceberg.INT: _as_read(_whole(32, "an int of 32 bits")),
    iceberg.LONG: _as_read(_whole(64, "an int of 64 bits")),
    iceberg.FLOAT: _write_float,
    iceberg.DOUBLE: _write_double,
    iceberg.DATE: _write_date,
    iceberg.TIME: _write_time,
    iceberg.TIMESTAMP: _write_timestamp,
    iceberg.TIMESTAMPTZ: _write_timestamptz,
    iceberg.TIMESTAMP_NS: _nano_writer(""),
    iceberg.TIMESTAMPTZ_NS: _nano_writer(_UTC),
    iceberg.STRING: _as_read(_string),
    iceberg.UUID: _write_uuid,
    iceberg.BINARY: hex_to_json,
    iceberg.UNKNOWN: _write_unknown,
}
