"""Strictly parses dates, times and timestamps from text; ambiguous text is refused.

A timestamp with an offset is an instant (a datetime in UTC), one without is a local time (a naive datetime); the two
are never converted into each other here. A timestamp with digits beyond the microsecond is a ``Nanos``.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"(\d{2}:\d{2})(:\d{2})?(?:\.(\d{1,6})0*)?")
_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?) ?(Z|UTC|[+-]\d{2}:\d{2})?)?")
_BELOW_MICROS = re.compile(r"(\.\d{6})(\d{1,3})0*(?!\d)")
EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_NANOS = 1000  # in a microsecond


@dataclass(frozen=True, slots=True)
class Nanos:
    """A timestamp in nanoseconds from 1970: with an offset (``utc``) an instant, else a local date and time."""

    count: int
    utc: bool

    def __str__(self) -> str:
        moment = from_micros(self.count // _NANOS).replace(tzinfo=None)
        offset = "+00:00" if self.utc else ""
        return f"{moment.isoformat(timespec='microseconds')}{self.count % _NANOS:03d}{offset}"


def parse_date(text: str) -> dt.date:
    """A date written YYYY-MM-DD; ValueError otherwise."""
    if _DATE.fullmatch(text.strip()) is None:
        raise ValueError("a date is written YYYY-MM-DD")
    return dt.date.fromisoformat(text.strip())


def parse_time(text: str) -> dt.time:
    """A time written HH:MM[:SS[.ffffff]]; ValueError otherwise."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError("a time is written HH:MM:SS, in a timestamp with at most nanoseconds, else microseconds")
    return dt.time.fromisoformat(f"{match[1]}{match[2] or ':00'}.{(match[3] or '').ljust(6, '0')}")


def parse_timestamp(text: str) -> dt.datetime:
    """Parse a timestamp: in UTC if the text has an offset or Z, else naive; ValueError if it is invalid.

    >>> parse_timestamp("2024-03-01 12:00:00")
    datetime.datetime(2024, 3, 1, 12, 0)
    >>> parse_timestamp("2024-03-01T12:00:00+01:00")
    datetime.datetime(2024, 3, 1, 11, 0, tzinfo=datetime.timezone.utc)
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError("a timestamp is written YYYY-MM-DD HH:MM:SS, with an offset such as Z or +01:00 if it has one")
    naive = dt.datetime.combine(parse_date(match[1]), parse_time(match[2] or "00:00"))
    if match[3] is None:
        return naive
    if match[3] in ("Z", "UTC"):
        return naive.replace(tzinfo=dt.UTC)
    hours, minutes = int(match[3][1:3]), int(match[3][4:])
    if hours > 18 or minutes > 59:
        raise ValueError(f"{match[3]} is not an offset")
    offset = dt.timedelta(hours=hours, minutes=minutes)
    try:
        return (naive + offset if match[3][0] == "-" else naive - offset).replace(tzinfo=dt.UTC)
    except OverflowError as error:
        raise ValueError("the timestamp is outside the years 1 to 9999") from error


def parse_moment(text: str) -> dt.datetime | Nanos:
    """Like ``parse_timestamp``, with up to nine digits after the second.

    >>> str(parse_moment("2024-03-01 12:00:00.123456789Z"))
    '2024-03-01T12:00:00.123456789+00:00'
    """
    match = _BELOW_MICROS.search(text)
    if match is None or int(match[2]) == 0:
        return parse_timestamp(text)
    whole = parse_timestamp(text[: match.start()] + match[1] + text[match.end() :])
    return Nanos(micros(whole) * _NANOS + int(match[2].ljust(3, "0")), whole.tzinfo is not None)


def nanos(value: dt.datetime) -> int:
    """Nanoseconds since 1970, as ``micros``; those of a datetime that counts them, as pandas' does, are kept."""
    return micros(value) * _NANOS + int(getattr(value, "nanosecond", 0))


def micros(value: dt.datetime) -> int:
    """Microseconds since 1970, of a naive datetime as it reads, of another in UTC."""
    offset = value.utcoffset() or dt.timedelta()
    return (value.replace(tzinfo=None) - EPOCH - offset) // _MICROSECOND


def from_micros(value: int) -> dt.datetime:
    """The instant this many microseconds after 1970, in UTC; ValueError outside the years 1 to 9999."""
    try:
        return (EPOCH + value * _MICROSECOND).replace(tzinfo=dt.UTC)
    except OverflowError as error:
        raise ValueError("the timestamp is outside the years 1 to 9999") from error
