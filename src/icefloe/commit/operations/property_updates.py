"""Changes the properties and the format version of a table (spec: Table Metadata)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe.commit.draft import Work
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.model.metadata.properties import FORMAT_VERSION, check_settable, version_asked
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.upgrade import upgraded
from icefloe.model.metadata.version_rules import check_writable


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperties(MetadataUpdate):
    """Sets and removes table properties. Setting the format version upgrades the table."""

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[str, ...] = ()
    name: str = "set properties"

    @property
    def upgrades_to(self) -> int | None:
        """The version that the properties set."""
        return version_asked(self.updates)

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the changed properties."""
        check_settable(self.updates)
        after, version = metadata.with_properties(self.updates, self.removals), version_asked(self.updates)
        if version is None:
            return after
        return Upgrade(version=version).change(after.with_properties({}, (FORMAT_VERSION.name,)), timestamp_ms, work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade(MetadataUpdate):
    """Upgrades the table to a later format version."""

    version: int
    name: str = "upgrade"

    @property
    def upgrades_to(self) -> int | None:
        """The later version."""
        return self.version

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The upgraded table."""
        check_writable(self.version)
        return upgraded(metadata, self.version, table_uuid=str(work.env.new_uuid()))
