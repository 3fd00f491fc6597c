"""The base class of all operations that make a snapshot (spec: Snapshots).

An operation is a frozen value, the same in every attempt. Each attempt resolves it against the table as it is then:
the operation checks for conflicts and says which files to add and remove. A snapshot is made of these changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import Draft, State, Work
from icefloe.commit.resolved import Resolved
from icefloe.commit.stage import Purpose, make_snapshot, state_of
from icefloe.model.metadata.snapshots import MAIN, Operation


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
    def resolve(self, state: State) -> Resolved | None:
        """Check the operation against a state and say what it means there; none if there is nothing to do."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with the snapshot."""
        resolved = self.resolve(state_of(draft, self.branch, work))
        if resolved is None:
            return draft
        purpose = Purpose(
            operation=self.operation,
            properties=tuple(self.properties.items()),
            branch=self.branch,
            staged=self.staged,
        )
        return make_snapshot(draft, work, purpose, resolved)


def file_locations(entries: pa.Table) -> tuple[str, ...]:
    """The files of entries, each once; deletion vectors share files."""
    return tuple(pc.unique(entries["location"]).to_pylist())
