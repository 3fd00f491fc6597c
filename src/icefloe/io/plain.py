"""Locations as storage takes them: absolute, and without the segments that different readers resolve differently.

Parsing belongs to ``model.locations``. Here a location that no storage should touch becomes an ``InputError``.
"""

from __future__ import annotations

from icefloe.errors import FormatError, InputError
from icefloe.model.locations import Location, parse_location

_DOTS = frozenset({".", ".."})


def plain_location(location: str) -> Location:
    """The parts of an absolute location without ``.`` and ``..`` segments; nothing in it is decoded.

    >>> plain_location("s3://bucket/a%20b").path
    '/a%20b'
    """
    try:
        parsed = parse_location(location)
    except FormatError as error:
        raise InputError(str(error), location=location) from error
    if not _DOTS.isdisjoint(location.split("/")):
        raise InputError(f"{location!r} holds a '.' or '..' segment", location=location)
    return parsed
