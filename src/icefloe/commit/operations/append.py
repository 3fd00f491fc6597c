"""Adds data files to a table (spec: Snapshots)."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.snapshot_operation import AddingOperation
from icefloe.model.metadata.snapshots import Operation
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(AddingOperation):
    """Adds data files. Never conflicts. A ``fast`` append does not merge manifests."""

    fast: bool = False
    operation: Operation = Operation.APPEND

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The added files."""
        return FileChanges(added=self.added, merge_manifests=not self.fast)
