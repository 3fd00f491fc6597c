"""Converts locations to and from the form in metadata: absolute, or relative to the table (V4 proposal)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from icefloe.codecs.json.input import missing
from icefloe.errors import UnsupportedError
from icefloe.model.locations import relativize, resolve
from icefloe.model.metadata.version_rules import VersionRules

_FOLDER = "/metadata/"


@dataclass(frozen=True, slots=True)
class TableLocations:
    """Converts the locations of one table in both directions; without a base no location is relative.

    >>> TableLocations("s3://b/t").absolute("metadata/a.parquet"), TableLocations(None).absolute("metadata/a.avro")
    ('s3://b/t/metadata/a.parquet', 'metadata/a.avro')
    """

    base: str | None

    @classmethod
    def of(cls, location: str, rules: VersionRules) -> TableLocations:
        """The converter for a table at this location, by the rules of its version."""
        return cls(location if rules.relative_locations else None)

    def absolute(self, stored: str) -> str:
        """The absolute form of a stored location."""
        return stored if self.base is None else resolve(stored, self.base)

    def stored(self, location: str) -> str:
        """The form of an absolute location to store."""
        return location if self.base is None else _relativized(location, self.base)


@lru_cache(maxsize=4096)  # the log of metadata files is written again by every commit
def _relativized(location: str, base: str) -> str:
    return relativize(location, base)


def table_location_of(stated: str | None, rules: VersionRules, *, where: str, at: str | None = None) -> str:
    """The location of a metadata file's table: ``at`` if known, else as stated, else the folder above ``metadata``.

    Before V4, metadata has absolute locations, so a table can only be at the stated location.
    """
    if at is not None and stated is not None and not rules.relative_locations:
        raise UnsupportedError(
            f"its table is at {stated}, not at {at}. Format version {rules.version} names files by absolute locations,"
            f" so a copy would be read from {stated} all the same; open the table there, or say so with table_location",
            location=stated,
        )
    if at is not None or stated is not None:
        return _without_slash(at if at is not None else str(stated))
    folder = folder_around(where)
    if folder is None:
        raise missing("", "location")
    return folder


def folder_around(metadata_location: str) -> str | None:
    """The folder whose ``metadata`` folder holds a metadata file; none if it is in another folder.

    >>> folder_around("s3://b/t/metadata/00001.metadata.json"), folder_around("/tmp/00001.metadata.json")
    ('s3://b/t', None)
    """
    folder, _, name = metadata_location.rpartition(_FOLDER)
    return None if folder == "" or "/" in name else folder


def _without_slash(location: str) -> str:
    while len(location) > 1 and location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location
