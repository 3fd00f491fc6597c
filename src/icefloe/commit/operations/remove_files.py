"""Removes data files from a table by location (spec: Snapshots)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.errors import ConflictError, InputError
from icefloe.model.metadata.snapshots import Operation
from icefloe.scan.lookup import files_at
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFiles(SnapshotOperation):
    """Removes data files by location. Conflicts if one of them is not live."""

    locations: tuple[str, ...]
    operation: Operation = Operation.DELETE

    def __post_init__(self) -> None:
        if len(self.locations) == 0:
            raise InputError("no files to remove")

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The files, looked up in the current snapshot."""
        return FileChanges(removed=live_files(draft, self.branch, pa.array(self.locations, pa.string())))


def live_files(draft: Draft, branch: str, locations: pa.Array) -> pa.Table:
    """The data files at these locations as scan tasks; ConflictError names the first that is not live."""
    files = files_at(draft.store, draft.metadata, draft.head(branch), locations)
    missing = locations.filter(pc.invert(pc.is_in(locations, value_set=files["location"].combine_chunks())))
    if len(missing) > 0:
        raise ConflictError(
            f"table {draft.metadata.location}: {missing[0].as_py()} is not a live data file, so it cannot be removed",
            files=missing.slice(0, 20).to_pylist(),
            retryable=False,
            next_step="Call refresh() and choose among the live files; scan().plan() lists them.",
        )
    return files
