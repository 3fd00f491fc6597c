"""The base class of all operations that make a snapshot (spec: Snapshots).

An operation is a frozen value, the same in every attempt. Each attempt resolves it against the table as it is then:
the operation checks for conflicts and computes which files to add and remove. A snapshot is made of these changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import Draft, SnapshotPlan, Work
from icefloe.commit.idempotency import committed_snapshot, key_in
from icefloe.commit.stage import make_snapshot
from icefloe.errors import ConflictError
from icefloe.model.metadata.snapshots import MAIN, Operation, Snapshot
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOperation(ABC):
    """An operation that makes a snapshot of a branch; ``properties`` are keys to add to its summary.

    A ``staged`` snapshot is stored in the table without being part of a branch, until it is published (write, audit,
    publish).
    """

    operation: Operation
    properties: Mapping[str, str] = field(default_factory=dict)
    branch: str = MAIN
    staged: bool = False

    @property
    def name(self) -> str:
        """The operation of the snapshot."""
        return str(self.operation)

    @property
    def files(self) -> tuple[str, ...]:
        """The files written for this operation, which are deleted if it fails."""
        return ()

    @abstractmethod
    def resolve(self, draft: Draft, work: Work) -> FileChanges | None:
        """Check the operation for conflicts and compute its changes; none if there is nothing to do."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with the snapshot; ConflictError if the branch has one with the same key."""
        self._check_not_committed(draft)
        changes = self.resolve(draft, work)
        return draft if changes is None else self.with_snapshot(draft, work, changes)

    def _check_not_committed(self, draft: Draft) -> None:
        key = key_in(self.properties)
        made = [snapshot.snapshot_id for snapshot in draft.made]
        found = committed_snapshot(draft.metadata, self.branch, key, staged=self.staged, ignored=made)
        if found is not None:
            raise ConflictError(
                f"table {draft.metadata.location}: snapshot {found.snapshot_id} has {key}: this change is already"
                " committed",
                snapshot_ids=[found.snapshot_id],
                retryable=False,
                next_step="Nothing; the change is committed.",
            )

    def with_snapshot(
        self, draft: Draft, work: Work, changes: FileChanges | None, cluster_by: tuple[int, ...] = ()
    ) -> Draft:
        """The draft with a snapshot of these changes.

        Without changes, all manifests are rewritten, sorted by the partition fields ``cluster_by`` first.
        """
        plan = SnapshotPlan(
            changes=changes,
            operation=self.operation,
            properties=self.properties,
            branch=self.branch,
            staged=self.staged,
            cluster_by=cluster_by,
        )
        return make_snapshot(draft, work, plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddingOperation(SnapshotOperation):
    """An operation that adds files which were written for it, and finds the files to remove by itself."""

    added: pa.Table

    @property
    def files(self) -> tuple[str, ...]:
        """The new data files and delete files."""
        return file_locations(self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOperation(SnapshotOperation):
    """An operation whose changes were planned on the snapshot ``read``; commits after it may conflict."""

    changes: FileChanges
    read: Snapshot | None

    @property
    def files(self) -> tuple[str, ...]:
        """The new data files and delete files."""
        return file_locations(self.changes.added)


def file_locations(entries: pa.Table) -> tuple[str, ...]:
    """The files of entries, each once; deletion vectors share files."""
    return tuple(pc.unique(entries["location"]).to_pylist())
