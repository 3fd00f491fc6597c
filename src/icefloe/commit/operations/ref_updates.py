"""Creates, moves and removes branches and tags (spec: Snapshot Reference)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.errors import InputError
from icefloe.model.entries import empty
from icefloe.model.metadata.snapshots import MAIN, Ref
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors

CURRENT = -1  # represents the id of the current snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRef(MetadataUpdate):
    """Creates or changes a branch or tag. The snapshot id ``CURRENT`` represents the current snapshot.

    With ``fresh`` it is an error if the name exists already. In a table without a current snapshot, a new branch starts
    with an empty snapshot of its own, and main still has none.
    """

    ref_name: str
    ref: Ref
    fresh: bool = False
    name: str = "set ref"

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with the ref."""
        metadata = draft.metadata
        is_first = self.ref.snapshot_id == CURRENT and metadata.current_snapshot_id is None
        if not is_first or self.ref.type != "branch" or self.ref_name in metadata.refs:
            return MetadataUpdate.apply(self, draft, work)
        draft = Append(added=empty(), branch=self.ref_name).apply(draft, work)
        ref = replace(self.ref, snapshot_id=draft.made[-1].snapshot_id)
        return draft.with_metadata(draft.metadata.with_ref(self.ref_name, ref))

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the ref."""
        if self.fresh and self.ref_name in metadata.refs:
            kind = metadata.refs[self.ref_name].type
            raise InputError(f"{kind} {self.ref_name!r} already exists; choose another name", ref=self.ref_name)
        ref = self.ref
        if ref.snapshot_id == CURRENT:
            if metadata.current_snapshot_id is None:
                raise InputError(
                    f"{self.ref_name!r} cannot be set: the table has no current snapshot; append rows first, or name a"
                    " snapshot",
                    ref=self.ref_name,
                )
            ref = replace(ref, snapshot_id=metadata.current_snapshot_id)
        return metadata.with_ref(self.ref_name, ref)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRef(MetadataUpdate):
    """Removes a branch or tag; its snapshots are kept until they expire."""

    ref_name: str
    name: str = "remove ref"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table without the ref."""
        return metadata.without_ref(self.ref_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCurrentSnapshot(MetadataUpdate):
    """Sets the current snapshot of main, to that of ``ref_name`` if it is given.

    A ``rollback`` must be to an ancestor of the current one.
    """

    snapshot_id: int
    ref_name: str | None = None
    rollback: bool = False
    name: str = "set current snapshot"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the snapshot as the head of main."""
        if self.ref_name is not None:
            return metadata.set_current_snapshot(metadata.ref(self.ref_name).snapshot_id, timestamp_ms=timestamp_ms)
        head = metadata.current_snapshot_id
        if self.rollback and (head is None or not _is_ancestor(metadata, self.snapshot_id, head)):
            raise InputError(
                f"snapshot {self.snapshot_id} is not in the history of main, so main cannot roll back to it",
                snapshot_id=self.snapshot_id,
            )
        return metadata.set_current_snapshot(self.snapshot_id, timestamp_ms=timestamp_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FastForward(MetadataUpdate):
    """Moves a branch forward to the snapshot of another ref; its head must be an ancestor of that snapshot."""

    branch: str
    to: str
    name: str = "fast-forward"

    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The table with the branch moved."""
        target = metadata.ref(self.to).snapshot_id
        head = metadata.refs.get(self.branch)
        if head is not None and not _is_ancestor(metadata, head.snapshot_id, target):
            raise InputError(
                f"{self.branch!r} has snapshots that {self.to!r} does not have, so it cannot be moved forward to it",
                ref=self.branch,
            )
        if self.branch == MAIN:
            return metadata.set_current_snapshot(target, timestamp_ms=timestamp_ms)
        return metadata.with_ref(self.branch, replace(head or Ref(snapshot_id=target), snapshot_id=target))


def _is_ancestor(metadata: TableMetadata, older: int, newer: int) -> bool:
    return any(snapshot.snapshot_id == older for snapshot in ancestors(metadata, newer))
