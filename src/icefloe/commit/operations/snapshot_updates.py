"""Expires snapshots, and sets their statistics files (spec: Table Metadata, Table statistics)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.commit.draft import Work
from icefloe.commit.idempotency import record_in
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.model.metadata.retention import ExpirePolicy, apply_policy
from icefloe.model.metadata.statistics_files import PartitionStatisticsFile, StatisticsFile
from icefloe.model.metadata.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireSnapshots(MetadataUpdate):
    """Removes planned snapshots and refs that the policy still expires on the table of the attempt; deletes no files.

    What a concurrent commit needs now is kept: a snapshot with a new branch or tag, or a ref that was moved.
    """

    policy: ExpirePolicy
    snapshot_ids: frozenset[int]
    ref_names: frozenset[str] = frozenset()
    name: str = "expire snapshots"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table without the snapshots and refs."""
        return self.expired(metadata)

    def expired(self, metadata: TableMetadata) -> TableMetadata:
        """The table without the snapshots and refs."""
        retained = apply_policy(metadata, self.policy, record_in)
        refs = self.ref_names & retained.expired_refs.keys()
        for name in sorted(refs):
            metadata = metadata.without_ref(name)
        ids = self.snapshot_ids & retained.expired.keys()
        if refs != retained.expired_refs.keys():  # a ref that was not planned to go keeps its snapshots
            kept = apply_policy(metadata, self.policy, record_in, keep_refs=True)
            ids &= kept.expired.keys()
        return metadata.without_snapshots(ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatistics(MetadataUpdate):
    """Adds statistics files; each replaces the existing file of its snapshot. If it fails, the files are deleted."""

    files_of_snapshots: tuple[StatisticsFile | PartitionStatisticsFile, ...]
    name: str = "set statistics"

    @property
    def files(self) -> tuple[str, ...]:
        """The locations of the files."""
        return tuple(file.statistics_path for file in self.files_of_snapshots)

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the statistics files."""
        for file in self.files_of_snapshots:
            if isinstance(file, StatisticsFile):
                metadata = metadata.with_statistics(file)
            else:
                metadata = metadata.with_partition_statistics(file)
        return metadata
