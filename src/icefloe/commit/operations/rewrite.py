"""Writes the same rows to other data files, and the same entries to other manifests (spec: Snapshots, Manifests)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icefloe.commit.conflicts import ConflictCheck
from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.snapshot_operation import PlannedOperation, SnapshotOperation
from icefloe.model.entries import put
from icefloe.model.metadata.snapshots import Operation
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteFiles(PlannedOperation):
    """Replaces data files by files with the same rows (compaction).

    ``sequence_number`` is that of the snapshot that was read, for the new files: equality deletes that were added since
    then apply to them. Without it such deletes would no longer apply, so they are a conflict.
    """

    sequence_number: int | None = None
    operation: Operation = Operation.REPLACE

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The changes, if the replaced files are live and no rows of them were deleted."""
        conflicts = ConflictCheck(draft, work, self.branch, self.read)
        conflicts.check_files_live(self.changes.removed["location"].combine_chunks())
        conflicts.check_no_deletes_of(self.changes.removed, equality=self.sequence_number is None)
        if self.sequence_number is None or not draft.metadata.rules.sequence_numbers:
            return self.changes
        return replace(self.changes, added=put(self.changes.added, "sequence_number", self.sequence_number))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteManifests(SnapshotOperation):
    """Rewrites all manifests, sorted by partition, in the target size of the table. Adds and removes no files."""

    operation: Operation = Operation.REPLACE

    def resolve(self, draft: Draft, work: Work) -> None:
        """Nothing: files do not change."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with a snapshot of the same files."""
        return draft if draft.head(self.branch) is None else self.with_snapshot(draft, work, None)
