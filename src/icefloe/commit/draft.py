"""The state of a commit attempt, and the state that a commit keeps between its attempts (spec: Optimistic Concurrency).

An attempt starts with a draft of the base and applies the updates of the commit to it, one after the other. Each update
sees the changes of the updates before it, so several updates can be one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.base import Base, decodes_alike
from icefloe.env import Env
from icefloe.io.contained import Contained
from icefloe.model.metadata.properties import DATA_PATH
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.staging import Staging
from icefloe.tree.store import ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPlan:
    """What a snapshot of a draft was made of; without changes its manifests were rewritten."""

    changes: FileChanges | None
    operation: Operation
    properties: Mapping[str, str]  # for its summary
    branch: str
    staged: bool = False
    cluster_by: tuple[int, ...] = ()  # partition fields by which rewritten manifests are sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The table after the updates applied so far; ``made`` are the snapshots that they made, ``plans`` of what."""

    base: Base
    metadata: TableMetadata
    store: ManifestStore
    made: tuple[Snapshot, ...] = ()
    plans: tuple[SnapshotPlan, ...] = ()
    stepwise: tuple[Snapshot, ...] = ()  # those of the single steps, if the snapshots made combine several
    obsolete: tuple[str, ...] = ()  # files of the snapshots of the single steps, to delete after the commit

    def with_metadata(self, metadata: TableMetadata) -> Draft:
        """The draft with other metadata; manifests are read with its schemas and specs."""
        if decodes_alike(self.metadata, metadata):
            return replace(self, metadata=metadata)
        store = self.store.with_context(manifest_context(metadata, self.store.context.limits))
        if isinstance(store.io, Contained):
            store.io = store.io.moved(metadata.location, metadata.properties.get(DATA_PATH.name))
        return replace(self, metadata=metadata, store=store)

    def head(self, branch: str) -> Snapshot | None:
        """The newest snapshot of a branch."""
        return head_of(self.metadata, branch)


def head_of(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The newest snapshot of a branch; a branch that does not exist yet starts at the head of main."""
    ref = metadata.refs.get(branch)
    return metadata.current_snapshot if ref is None else metadata.snapshot(ref.snapshot_id)


def draft_of(base: Base) -> Draft:
    """The draft that an attempt starts with."""
    return Draft(base=base, metadata=base.metadata, store=base.store)


class Work:
    """The state that a commit keeps between its attempts: files written and snapshot ids assigned."""

    def __init__(self, base: Base, staging: Staging, env: Env) -> None:
        self.base = base  # of the first attempt
        self.attempt_base = base  # of the current attempt
        self.staging = staging
        self.env = env
        self.attempt = 1
        self.step = 0  # the number of the update that is being applied
        self.roots: dict[str, bytes] = {}  # to be written with the metadata file, with a single sync
        self.parents: dict[int, int | None] = {}  # parent ids of the snapshots that the first attempt made
        self._snapshot_ids: dict[int, int] = {}

    def snapshot_id(self) -> int:
        """The id of the snapshot that the current update makes, the same in every attempt.

        The id identifies a landed snapshot, and the leaves that an update has written. It is assigned by update, not in
        the order of snapshots: an update that makes a snapshot on one base may make none on another.
        """
        if self.step not in self._snapshot_ids:
            self._snapshot_ids[self.step] = self.env.new_snapshot_id()
        return self._snapshot_ids[self.step]

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids assigned so far."""
        return tuple(self._snapshot_ids.values())

    def write_roots(self, store: ManifestStore) -> None:
        """Write the pending roots, so that they can be read before the commit ends."""
        if len(self.roots) > 0:
            self.staging.write(store, self.roots)
            self.roots = {}


class Update(Protocol):
    """One step of a commit, as a frozen value. Its result depends on the draft only, except for the names of files."""

    @property
    def name(self) -> str:
        """A short description for results and messages."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files written for this update, which are deleted if it fails."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft after the update; ConflictError is final."""
