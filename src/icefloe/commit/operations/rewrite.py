"""Writes the same rows to other data files, and the same entries to other manifests (spec: Snapshots, Manifests)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from icefloe.commit.conflicts import Since
from icefloe.commit.draft import Draft, State, Work
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.commit.resolved import Resolved
from icefloe.commit.stage import Purpose, make_snapshot
from icefloe.model.entries import empty, put
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.scan.tasks import TASK


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteFiles(SnapshotOperation):
    """Write the same rows into other files (compaction).

    With ``sequence_number``, that of the snapshot which was read, equality deletes that came since go on to apply to
    the new files; without it they would be lost, so then they are a conflict.
    """

    added: pa.Table
    removed: pa.Table = field(default_factory=TASK.empty_table)
    dropped: pa.Table = field(default_factory=empty)  # delete files that no longer apply to anything
    read: Snapshot | None
    sequence_number: int | None = None
    operation: Operation = Operation.REPLACE

    @property
    def files(self) -> tuple[str, ...]:
        """The new files."""
        return file_locations(self.added)

    def resolve(self, state: State) -> Resolved:
        """The files that were read are all there, and lost no rows since."""
        since = Since(state, self.read)
        since.check_files_live(self.removed["location"].combine_chunks())
        since.check_no_deletes_on(self.removed, equality=self.sequence_number is None)
        added = self.added
        if self.sequence_number is not None and state.metadata.rules.sequence_numbers:
            added = put(added, "sequence_number", self.sequence_number)
        return Resolved(added=added, removed=self.removed, dropped=self.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteManifests(SnapshotOperation):
    """Write all manifests again, sorted by partition and of the size that the table asks for; no file changes."""

    operation: Operation = Operation.REPLACE

    def resolve(self, state: State) -> Resolved | None:
        """There is nothing to resolve: the leaves of any base can be written again."""
        return None

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with a snapshot of the same files."""
        if draft.head(self.branch) is None:
            return draft
        purpose = Purpose(
            operation=self.operation, properties=tuple(self.properties.items()), branch=self.branch, staged=self.staged
        )
        return make_snapshot(draft, work, purpose, None)
