"""Locations: absolute URIs and file paths, and V4's locations relative to the table (V4 proposal).

Several texts may name the same file, so locations are compared as parsed values, by scheme, authority and path
segments, never by prefix. Nothing is decoded or normalised: a percent sign is a
character like others, and a location with ``.`` or ``..`` segments is refused rather than interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from icefloe.errors import FormatError

FILE = "file"
S3 = frozenset({"s3", "s3a", "s3n"})  # one store under the names of different clients

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_DOTS = re.compile(r"(?:\.|%2[eE]){1,2}")  # some clients decode a percent sign before they look for dots


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A parsed absolute location. Only the scheme and the local host are normalised for comparison."""

    scheme: str
    authority: str
    path: str

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path: empty ones count in object stores, where they make another key, but not in files."""
        parts = self.path.removeprefix("/").split("/")
        return tuple(part for part in parts if part != "") if self.scheme == FILE else tuple(parts)

    @property
    def is_plain(self) -> bool:
        """Whether no segment is ``.`` or ``..``."""
        return all(_DOTS.fullmatch(segment) is None for segment in self.segments)


def parse_location(text: str) -> Location:
    """The parts of an absolute location; a plain path has the scheme ``file``.

    >>> parse_location("s3://bucket/wh/t")
    Location(scheme='s3', authority='bucket', path='/wh/t')
    >>> parse_location("/wh/t") == parse_location("file:/wh/t") == parse_location("file:///wh/t")
    True
    """
    match = _SCHEME.match(text)
    scheme = FILE if match is None else match[1].lower()
    rest = text if match is None else text[match.end() :]
    authority = ""
    if match is not None and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
    if scheme == FILE and authority.lower() == "localhost":
        authority = ""
    if not (rest.startswith("/") or (rest == "" and authority != "")):
        raise FormatError(f"location {text!r} is not absolute; write file:///path or scheme://name/path", location=text)
    if "\0" in text:
        raise FormatError(f"location {text!r} holds a NUL character", location=text)
    return Location(scheme=scheme, authority=authority, path=rest)


def same_location(a: str, b: str, *, same_schemes: Collection[str] = ()) -> bool:
    """Whether two absolute locations name the same file; ``same_schemes`` are schemes of one and the same store.

    >>> same_location("file:/wh/t", "/wh/t"), same_location("s3a://b/k", "s3://b/k"), same_location("s3a://b/k",
    ...     "s3://b/k", same_schemes=S3)
    (True, False, True)
    """
    first, second = parse_location(a), parse_location(b)
    return _same_store(first, second, same_schemes) and first.segments == second.segments


def contains(root: str, location: str, *, same_schemes: Collection[str] = ()) -> bool:
    """Whether an absolute location is inside the folder ``root``; a folder is not inside itself.

    False for locations with ``.`` or ``..`` segments, which programs resolve differently.

    >>> contains("s3://b/t", "s3://b/t/x"), contains("s3://b/t", "s3://b/t2/x"), contains("s3://b/t", "s3://b/t/../x")
    (True, False, False)
    """
    folder, inner = parse_location(root), parse_location(location)
    if not (_same_store(folder, inner, same_schemes) and folder.is_plain and inner.is_plain):
        return False
    around, segments = _folder_segments(folder), inner.segments
    return segments[: len(around)] == around and any(part != "" for part in segments[len(around) :])


def _folder_segments(folder: Location) -> tuple[str, ...]:
    """The segments of a folder, which may be written with a slash at its end."""
    segments = folder.segments
    return segments[:-1] if segments[-1:] == ("",) else segments


def _same_store(a: Location, b: Location, same_schemes: Collection[str]) -> bool:
    same = a.scheme == b.scheme or (a.scheme in same_schemes and b.scheme in same_schemes)
    return same and a.authority == b.authority


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
    return f"{table_location.removesuffix('/')}/{location}"


def relativize(location: str, table_location: str) -> str:
    """The form to store in V4: relative if it is under the table location and resolves to itself, else unchanged.

    >>> relativize("file:///wh/t/data/a.parquet", "file:///wh/t")
    'data/a.parquet'
    """
    prefix = table_location.removesuffix("/") + "/"
    if not location.startswith(prefix):
        return location
    inner = location[len(prefix) :]
    return inner if _is_plain(inner) and not is_absolute(inner) else location


def _is_plain(location: str) -> bool:
    return location != "" and not any(segment in (".", "..") for segment in location.split("/"))


def spellings(location: str) -> tuple[str, ...]:
    """The spellings that programs use for one location.

    >>> spellings("file:/wh/a.parquet")
    ('file:/wh/a.parquet', '/wh/a.parquet', 'file:///wh/a.parquet')
    >>> "/wh/a.parquet" in spellings("file:///wh//a.parquet")
    True
    >>> spellings("s3a://b/k")
    ('s3a://b/k', 's3n://b/k', 's3://b/k')
    """
    parsed = parse_location(location)
    others: tuple[str, ...] = ()
    if parsed.scheme == FILE and parsed.authority == "":
        paths = (parsed.path, "/" + "/".join(parsed.segments))
        others = tuple(form + path for path in paths for form in ("", "file:", "file://"))
    elif parsed.scheme in S3:
        others = tuple(f"{scheme}://{parsed.authority}{parsed.path}" for scheme in sorted(S3, reverse=True))
    return tuple(dict.fromkeys((location, *others)))
