"""Removes snapshots, and sets and removes their statistics files (spec: Table Metadata, Table statistics)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.commit.draft import Work
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.model.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from icefloe.model.metadata.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveSnapshots(MetadataUpdate):
    """Removes snapshots that no branch or tag references; deletes no files."""

    snapshot_ids: frozenset[int]
    name: str = "remove snapshots"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table without the snapshots."""
        return metadata.without_snapshots(self.snapshot_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatistics(MetadataUpdate):
    """Adds statistics files; each replaces the existing file of its snapshot."""

    files_of_snapshots: tuple[StatisticsFile | PartitionStatisticsFile, ...]
    name: str = "set statistics"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the statistics files."""
        for file in self.files_of_snapshots:
            if isinstance(file, StatisticsFile):
                metadata = metadata.with_statistics(file)
            else:
                metadata = metadata.with_partition_statistics(file)
        return metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveStatistics(MetadataUpdate):
    """Removes the statistics files of a snapshot."""

    snapshot_id: int
    name: str = "remove statistics"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table without the statistics files."""
        return metadata.without_statistics(self.snapshot_id).without_partition_statistics(self.snapshot_id)
