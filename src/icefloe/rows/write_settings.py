"""What one write does otherwise than its table says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from icefloe.commit.conflicts import Isolation
from icefloe.model.metadata.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictsSince:
    """Conflicts that an overwrite looks for: with the commits after a snapshot, or after none, by an isolation level.

    ``snapshot`` conflicts with rows that were deleted from what is overwritten, ``serializable`` with added rows too.
    """

    snapshot_id: int | None
    isolation: Isolation


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """Properties of the table for one write, the partition spec of its files, keys for the summary, and its conflicts.

    None of them is stored in the table.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    spec_id: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    conflicts: ConflictsSince | None = None

    def applied(self, metadata: TableMetadata) -> TableMetadata:
        """The table for those that write files."""
        changed = replace(metadata, properties={**metadata.properties, **self.properties})
        return changed if self.spec_id is None else replace(changed, default_spec_id=self.spec_id)


AS_TABLE = WriteSettings()  # as the table says
