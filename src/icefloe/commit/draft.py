"""A table in the middle of an attempt, and what a commit carries through all its attempts.

An attempt applies the updates of a commit one after the other to a draft that starts as the base. Each update sees what
the ones before it did, so several of them land as one commit (spec: Optimistic Concurrency).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.base import Base, same_terms
from icefloe.env import Env
from icefloe.io.contained import Contained
from icefloe.model.metadata.properties import DATA_PATH
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree.staging import Staging
from icefloe.tree.store import ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The table as the updates so far have left it; ``made`` are the snapshots they made."""

    base: Base
    metadata: TableMetadata
    store: ManifestStore
    made: tuple[Snapshot, ...] = ()

    def with_metadata(self, metadata: TableMetadata) -> Draft:
        """The draft with other metadata, and with manifests read in its terms."""
        if same_terms(self.metadata, metadata):
            return replace(self, metadata=metadata)
        store = self.store.in_terms_of(manifest_context(metadata, self.store.context.limits))
        if isinstance(store.io, Contained):
            store.io = store.io.moved(metadata.location, metadata.properties.get(DATA_PATH.name))
        return replace(self, metadata=metadata, store=store)

    def head(self, branch: str) -> Snapshot | None:
        """The newest snapshot of a branch."""
        return head_of(self.metadata, branch)


def head_of(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The newest snapshot of a branch; a branch that is not there begins where main is."""
    ref = metadata.refs.get(branch)
    return metadata.current_snapshot if ref is None else metadata.snapshot(ref.snapshot_id)


def draft_of(base: Base) -> Draft:
    """The draft that an attempt starts from."""
    return Draft(base=base, metadata=base.metadata, store=base.store)


class Work:
    """What a commit has written and named, kept through its attempts."""

    def __init__(self, base: Base, staging: Staging, env: Env) -> None:
        self.base = base  # of the first attempt
        self.attempt_base = base  # of the present attempt
        self.staging = staging
        self.env = env
        self.attempt = 1
        self.step = 0  # which update of the commit is applied now
        self.roots: dict[str, bytes] = {}  # written together with the metadata file, so that one sync is enough
        self.parents: dict[int, int | None] = {}  # of the snapshots that the first attempt made
        self._snapshot_ids: dict[int, int] = {}

    def snapshot_id(self) -> int:
        """The id of the snapshot that the present update makes: the same in every attempt.

        A landed snapshot is known by it, and the leaves that an update wrote are, so it belongs to the update and not
        to the place among the snapshots: an update that made one may make none on another base.
        """
        if self.step not in self._snapshot_ids:
            self._snapshot_ids[self.step] = self.env.new_snapshot_id()
        return self._snapshot_ids[self.step]

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids handed out so far."""
        return tuple(self._snapshot_ids.values())

    def write_roots(self, store: ManifestStore) -> None:
        """Write the roots that wait, for whoever reads them before the commit ends."""
        if len(self.roots) > 0:
            self.staging.write(store, self.roots)
            self.roots = {}


class Update(Protocol):
    """One step of a commit, as a frozen value: a pure function of the draft it finds, but for the names of files."""

    @property
    def name(self) -> str:
        """What it does, in a word or two, for results and messages."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """Files written for this update, which belong to nobody if it fails."""
        ...

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft after the update; ConflictError is final."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What an update that makes a snapshot looks at: the table, and the head of the branch it goes to.

    ``own`` are the snapshots of the commit itself and ``origin`` is the head that its first attempt began on, by which
    an update that read what an earlier one of the same commit did knows what others have done since. ``parents`` are
    those that its snapshots had in the first attempt, when later updates were made for them.
    """

    metadata: TableMetadata
    store: ManifestStore
    head: Snapshot | None
    origin: Snapshot | None = None
    own: tuple[int, ...] = ()
    parents: Mapping[int, int | None] = field(default_factory=dict)
