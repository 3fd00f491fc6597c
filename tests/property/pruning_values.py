"""Values at the edges of every type, and the partition transforms of the specification in plain Python.

Nothing here uses the code under test beyond its names of types, so that a mistake would have to be made twice.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import struct
from typing import Any

import mmh3

from icefloe.model.schema.types import (
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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    Decimal,
    Fixed,
    Geometry,
)

EPOCH = dt.datetime(1970, 1, 1)
DAY0 = EPOCH.date()
MICRO = dt.timedelta(microseconds=1)
NAN = math.nan
POINT = Geometry()
NUMBERS = (INT, LONG, FLOAT, DOUBLE, Decimal(9, 2), Decimal(38, 10))
MOMENTS = (TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)
TYPES = (*NUMBERS, *MOMENTS, BOOLEAN, DATE, TIME, STRING, STRING, STRING, BINARY, UUID, Fixed(2), UNKNOWN, POINT)


def float32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


# -- values

_FLOATS = [-math.inf, -2.5, -1.0, -0.0, 0.0, 0.5, float32(0.1), 1.0, 2.0, math.inf, NAN, NAN]
# fmt: off
_STARTS = [dt.datetime(1968, 12, 31, 23), dt.datetime(1969, 12, 1), dt.datetime(1969, 12, 31), dt.datetime(1970, 1, 1),
           dt.datetime(1970, 1, 1, 1), dt.datetime(1970, 1, 2), dt.datetime(1970, 2, 1), dt.datetime(1971, 1, 1),
           dt.datetime(1969, 1, 1), dt.datetime(2024, 2, 29), dt.datetime(2024, 3, 1), dt.datetime(2025, 1, 1)]
# fmt: on
_TIMES = [start + step for start in _STARTS for step in (-MICRO, 0 * MICRO, MICRO, dt.timedelta(minutes=59))]
_ENDS = [dt.datetime.min, dt.datetime(1, 12, 31), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)]
_DAYS = [DAY0 + dt.timedelta(days=n) for n in range(-4, 5)] + [moment.date() for moment in (*_STARTS, *_ENDS)]
_CLOCK = [dt.time(), dt.time(0, 0, 0, 1), dt.time(12), dt.time(23, 59, 59, 999_999)]
_ALPHABET = "ab" * 4 + "\0\u00e9\ud7ff\uffff\U0001f600\U0010ffff"
_BYTES = [0, 1, 1, 2, 254, 255, 255]


def micros(moment: dt.datetime) -> int:
    return (moment.replace(tzinfo=None) - EPOCH) // MICRO


def _integer(rng: random.Random, bits: int) -> int:
    last = 2 ** (bits - 1)
    kind = rng.random()
    if kind < 0.75:
        return rng.randint(-12, 12)
    return rng.choice((-last, -last + 1, -last + rng.randrange(30), last - 1 - rng.randrange(30), -(2**31), 2**31 - 1))


def value(rng: random.Random, type_: Any) -> Any:
    """A value of a type, never null; few distinct ones, many at edges."""
    match type_:
        case _ if type_ == BOOLEAN:
            return rng.random() < 0.5
        case _ if type_ in (INT, LONG):
            return _integer(rng, 32 if type_ == INT else 64)
        case _ if type_ in (FLOAT, DOUBLE):
            return rng.choice(_FLOATS if type_ == FLOAT else [*_FLOATS, 0.1])
        case Decimal(precision, scale):
            unscaled = rng.choice((rng.randint(-150, 150), rng.randint(-150, 150), 10**precision - rng.randint(1, 60)))
            return decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=60))
        case _ if type_ == DATE:
            return rng.choice(_DAYS)
        case _ if type_ == TIME:
            return rng.choice(_CLOCK)
        case _ if type_ in (TIMESTAMP, TIMESTAMPTZ):
            moment = rng.choice(_ENDS if rng.random() < 0.03 else _TIMES)
            return moment if type_ == TIMESTAMP else moment.replace(tzinfo=dt.UTC)
        case _ if type_ in MOMENTS:
            if rng.random() < 0.03:
                return rng.choice((-(2**63), -(2**63) + 1, 2**63 - 1))
            return micros(rng.choice(_TIMES)) * 1000 + rng.choice((-1, 0, 0, 1, 999))
        case _ if type_ == STRING:
            return "".join(rng.choices(_ALPHABET, k=rng.choice((0, 1, 1, 2, 2, 3, 4))))
        case _ if type_ == UUID:
            return bytes([rng.choice((0, 1, 127, 128, 255))] * 16)
        case Fixed(length):
            return bytes(rng.choices(_BYTES, k=length))
        case _ if type_ == UNKNOWN:
            return None
    return bytes(rng.choices(_BYTES, k=rng.randint(0, 3)))


# -- transforms, from the specification

_UNITS = ("year", "month", "day", "hour")


def transforms(type_: Any) -> list[str]:
    """The legal transforms of a type other than void."""
    if type_ == POINT:
        return []
    found = ["identity"]
    if type_ not in (BOOLEAN, FLOAT, DOUBLE, UNKNOWN):
        found += ["bucket[2]", "bucket[5]"]
    if type_ in (INT, LONG, STRING, BINARY) or isinstance(type_, Decimal):
        found += ["truncate[1]", "truncate[2]", "truncate[3]", "truncate[10]"]
    if type_ in MOMENTS or type_ == DATE:
        found += _UNITS[: 4 if type_ in MOMENTS else 3]
    return found


def result_type(text: str, type_: Any) -> Any:
    if text == "day":
        return DATE
    return INT if text.startswith("bucket") or text in _UNITS else type_


def transformed(text: str, type_: Any, given: Any) -> Any:
    """The partition value of a value; integers below the lowest come out at the other end, as Java's do."""
    if given is None or text == "void":
        return None
    if text == "identity":
        return given
    if text in _UNITS:
        return _unit(text, type_, given)
    number = int(text[text.index("[") + 1 : -1])
    if text.startswith("bucket"):
        return (mmh3.hash(_hashed(type_, given)) & 0x7FFFFFFF) % number
    if isinstance(given, (str, bytes)):
        return given[:number]
    if isinstance(type_, Decimal):
        unscaled = int(given.scaleb(type_.scale, decimal.Context(prec=60)))
        return decimal.Decimal(unscaled - unscaled % number).scaleb(-type_.scale, decimal.Context(prec=60))
    half = 2**31 if type_ == INT else 2**63
    return (given - given % number + half) % (2 * half) - half


def _unit(text: str, type_: Any, given: Any) -> Any:
    if type_ == DATE:
        day, hour = given, 0
    else:
        hours = (given // 1000 if isinstance(given, int) else micros(given)) // 3_600_000_000
        day, hour = DAY0 + dt.timedelta(days=hours // 24), hours
    match text:
        case "hour":
            return hour
        case "day":
            return day
        case "month":
            return 12 * (day.year - 1970) + day.month - 1
    return day.year - 1970


def _hashed(type_: Any, given: Any) -> bytes:
    match given:
        case str():
            return given.encode()
        case bytes():
            return given
        case decimal.Decimal():
            unscaled = int(given.scaleb(type_.scale, decimal.Context(prec=60)))
            length = next(n for n in range(1, 17) if -(2 ** (8 * n - 1)) <= unscaled < 2 ** (8 * n - 1))
            return unscaled.to_bytes(length, "big", signed=True)
        case dt.datetime():
            return struct.pack("<q", micros(given))
        case dt.date():
            return struct.pack("<q", (given - DAY0).days)
        case dt.time():
            return struct.pack("<q", micros(dt.datetime.combine(DAY0, given)))
    return struct.pack("<q", given // 1000 if type_ in MOMENTS else given)


def rounded_late(text: str, type_: Any, given: Any, unit: Any) -> Any:
    """What the first writers stored: units before 1970 rounded towards it, unless nothing is cut off."""
    if given is None or text not in _UNITS or (text == "day" and type_ == DATE):
        return unit
    if given in (dt.date.min, dt.datetime.min, dt.datetime.min.replace(tzinfo=dt.UTC)):
        return unit
    before = given - (dt.timedelta(days=1) if type_ == DATE else 1 if isinstance(given, int) else MICRO)
    is_start = _unit(text, type_, before) != unit
    if text == "day":
        return unit if unit >= DAY0 or is_start else unit + dt.timedelta(days=1)
    return unit if unit >= 0 or is_start else unit + 1
