"""Removes data files from a table by location (spec: Snapshots)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import State
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.commit.resolved import Resolved
from icefloe.errors import ConflictError, InputError
from icefloe.model.metadata.snapshots import Operation
from icefloe.scan.lookup import files_at


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFiles(SnapshotOperation):
    """Remove data files by location; each must be live."""

    locations: tuple[str, ...]
    operation: Operation = Operation.DELETE

    def __post_init__(self) -> None:
        if len(self.locations) == 0:
            raise InputError("no files to remove")

    def resolve(self, state: State) -> Resolved:
        """Find the files on this base."""
        return Resolved(removed=live_tasks(state, pa.array(self.locations, pa.string())))


def live_tasks(state: State, wanted: pa.Array) -> pa.Table:
    """The files at these locations as planned; ConflictError for the first that is not live."""
    tasks = files_at(state.store, state.metadata, state.head, wanted)
    gone = wanted.filter(pc.invert(pc.is_in(wanted, value_set=tasks["location"].combine_chunks())))
    if len(gone) > 0:
        raise ConflictError(
            f"table {state.metadata.location}: {gone[0].as_py()} is not a live data file, so it cannot be removed",
            files=gone.slice(0, 20).to_pylist(),
            retryable=False,
            next_step="Call refresh() and choose among the live files; scan().plan() lists them.",
        )
    return tasks
