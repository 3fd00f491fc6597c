"""Adds data files to a table (spec: Snapshots)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from icefloe.commit.draft import State
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.commit.resolved import Resolved
from icefloe.model.metadata.snapshots import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(SnapshotOperation):
    """Add data files; valid on any base. A ``fast`` append leaves other manifests as they are."""

    added: pa.Table
    fast: bool = False
    operation: Operation = Operation.APPEND

    @property
    def files(self) -> tuple[str, ...]:
        """The data files."""
        return file_locations(self.added)

    def resolve(self, state: State) -> Resolved:
        """New files conflict with nothing."""
        return Resolved(added=self.added, merge=not self.fast)
