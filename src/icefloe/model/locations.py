"""Locations: absolute URIs, and V4's locations relative to the table (V4 proposal: relative locations).

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
    if not _is_plain(location):
        raise FormatError(f"location {location!r} of table {table_location} is not a plain relative path")
    return f"{table_location}/{location}"


def relativize(location: str, table_location: str) -> str:
    """The form to store in V4: relative when it lies under the table and reads back as itself, else unchanged.

    >>> relativize("file:///wh/t/data/a.parquet", "file:///wh/t")
    'data/a.parquet'
    """
    prefix = table_location + "/"
    if not location.startswith(prefix):
        return location
    inner = location[len(prefix) :]
    return inner if _is_plain(inner) and not is_absolute(inner) else location


def _is_plain(location: str) -> bool:
    return location != "" and _DOTS.search(location) is None
