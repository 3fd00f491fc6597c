"""Locations: absolute URIs, and V4's locations relative to the table (V4 notes: relative paths).

Locations are compared only after resolving. Resolving joins with one slash and normalises nothing, so a location
with ``.`` or ``..`` segments is refused rather than interpreted.
"""

from __future__ import annotations

import re

from icefloe.errors import FormatError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DOTS = re.compile(r"(^|/)\.\.?(/|$)")


def is_absolute(location: str) -> bool:
    """Whether the location has a scheme or is an absolute file path."""
    return location.startswith("/") or _SCHEME.match(location) is not None


def resolve(location: str, table_location: str) -> str:
    """The absolute form of a location that a table's metadata holds.

    >>> resolve("metadata/root.parquet", "file:///wh/t")
    'file:///wh/t/metadata/root.parquet'
    """
    if is_absolute(location):
        return location
    if location == "" or _DOTS.search(location) is not None:
        raise FormatError(f"location {location!r} of table {table_location} is not a plain relative path")
    return f"{table_location}/{location}"


def relativize(location: str, table_location: str) -> str:
    """The form to store in V4: relative when it lies under the table, unchanged otherwise."""
    prefix = table_location + "/"
    return location[len(prefix) :] if location.startswith(prefix) else location
