"""Checks locations before storage is used; the schemes and settings of each kind of object store.

``model.locations`` parses locations. Here an invalid or ambiguous location is an ``InputError``.
"""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.errors import FormatError, InputError
from icefloe.model.locations import S3, Location, parse_location

GS = frozenset({"gs", "gcs"})
ABFS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
OBJECT_STORES = (S3, GS, ABFS)

_PREFIXES = ("s3.", "client.", "gcs.", "adls.")
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


def scheme_family(scheme: str) -> frozenset[str]:
    """The schemes of the object store that one of them names; empty for other storage.

    >>> sorted(scheme_family("s3a")), sorted(scheme_family("file"))
    (['s3', 's3a', 's3n'], [])
    """
    return next((family for family in OBJECT_STORES if scheme in family), frozenset())


def storage_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that say how to reach storage; the others are not its concern.

    >>> storage_properties({"warehouse": "s3://b/wh", "s3.region": "eu-west-1"})
    {'s3.region': 'eu-west-1'}
    """
    return {name: value for name, value in properties.items() if name.startswith(_PREFIXES)}
