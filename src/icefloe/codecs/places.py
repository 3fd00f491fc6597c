"""How a document stores locations: as they are, or relative to the table (V4 proposal: relative locations)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.model.locations import relativize, resolve
from icefloe.model.version_rules import VersionRules


@dataclass(frozen=True, slots=True)
class Places:
    """Both directions for the locations of one table; without a base nothing is relative.

    >>> Places("s3://b/t").absolute("metadata/a.parquet"), Places(None).absolute("metadata/a.avro")
    ('s3://b/t/metadata/a.parquet', 'metadata/a.avro')
    """

    base: str | None

    @classmethod
    def of(cls, location: str, rules: VersionRules) -> Places:
        """The places of a table at this location, by the rules of its version."""
        return cls(location if rules.relative_locations else None)

    def absolute(self, stored: str) -> str:
        """The absolute form of a stored location."""
        return stored if self.base is None else resolve(stored, self.base)

    def stored(self, location: str) -> str:
        """The form of an absolute location to store."""
        return location if self.base is None else relativize(location, self.base)
