"""Replaces data files by others: named files, files that match a filter, and whole partitions (spec: Snapshots).

``OverwriteFiles`` was computed from the files that it replaces, and checks what other commits did to them.
``OverwriteWhere`` and ``ReplacePartitions`` choose the files to replace in each attempt, so other commits cannot
conflict with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.conflicts import Isolation, Since, same_partition
from icefloe.commit.draft import State
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.commit.resolved import Resolved
from icefloe.errors import ConflictError, InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.prune.stats_eval import Match
from icefloe.expr.text.filter_printer import to_text
from icefloe.model.entries import empty
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.scan.plan import plan_scan

REPLACES_PARTITIONS = "replace-partitions"  # summary key that distinguishes these snapshots from other overwrites


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteFiles(SnapshotOperation):
    """Replace data files by others that hold the rows to keep and the new ones (copy-on-write)."""

    added: pa.Table
    removed: pa.Table  # tasks of the files that are replaced
    dropped: pa.Table = field(default_factory=empty)  # delete files that no longer apply to anything
    read: Snapshot | None
    filter: Expr = ALWAYS_TRUE
    isolation: Isolation = Isolation.SERIALIZABLE
    operation: Operation = Operation.OVERWRITE

    @property
    def files(self) -> tuple[str, ...]:
        """The new data files."""
        return file_locations(self.added)

    def resolve(self, state: State) -> Resolved:
        """The replaced files are as they were; for serializable isolation, nothing came that it would have read."""
        since = Since(state, self.read)
        since.check_files_live(self.removed["location"].combine_chunks())
        since.check_no_deletes_on(self.removed)
        if self.isolation is Isolation.SERIALIZABLE:
            since.check_no_new_data(self.filter)
        return Resolved(added=self.added, removed=self.removed, dropped=self.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteWhere(SnapshotOperation):
    """Remove the files all of whose rows match a filter, and add others; metadata alone decides.

    A file of which only some rows match is refused: its rows would have to be read. ``whole_files`` says that there
    was none when the operation was prepared, so that one which is there now came by another commit.
    """

    filter: Expr
    added: pa.Table = field(default_factory=empty)
    whole_files: bool = False
    operation: Operation = Operation.OVERWRITE

    @property
    def files(self) -> tuple[str, ...]:
        """The new data files."""
        return file_locations(self.added)

    def resolve(self, state: State) -> Resolved | None:
        """The files that leave, as of this base."""
        tasks = plan_scan(state.store, state.metadata, state.head, filter=self.filter).tasks
        partly = tasks.filter(pc.not_equal(tasks["match"], int(Match.ALL)))
        if partly.num_rows > 0 and self.whole_files:
            raise ConflictError(
                f"table {state.metadata.location}: {partly['location'][0].as_py()} came by another commit, and may hold"
                f" rows that match {to_text(self.filter)} beside rows that do not; repeat the operation",
                files=partly["location"].slice(0, 20).to_pylist(),
            )
        if partly.num_rows > 0:
            raise InputError(
                f"table {state.metadata.location}: {partly['location'][0].as_py()} may hold rows that match"
                f" {to_text(self.filter)} and rows that do not; delete by rows instead, or choose whole partitions",
                files=partly["location"].slice(0, 20).to_pylist(),
            )
        if tasks.num_rows == 0 and self.added.num_rows == 0:
            return None
        return Resolved(added=self.added, removed=tasks)


def delete_where(filter: Expr) -> OverwriteWhere:
    """The deletion of the files all of whose rows match."""
    return OverwriteWhere(filter=filter, operation=Operation.DELETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacePartitions(SnapshotOperation):
    """Put files in the place of everything that is in their partitions; without partitions, of the whole table."""

    added: pa.Table
    operation: Operation = Operation.OVERWRITE
    properties: Mapping[str, str] = field(default_factory=lambda: {REPLACES_PARTITIONS: "true"})

    @property
    def files(self) -> tuple[str, ...]:
        """The new data files."""
        return file_locations(self.added)

    def resolve(self, state: State) -> Resolved:
        """The files that leave, as of this base."""
        tasks = plan_scan(state.store, state.metadata, state.head).tasks
        return Resolved(added=self.added, removed=self.leaving(tasks, state))

    def leaving(self, tasks: pa.Table, state: State) -> pa.Table:
        """Those of the table's files that are in the way."""
        specs = pc.unique(self.added["partition_spec_id"]).to_pylist()
        if any(not state.metadata.spec_by_id(spec_id).is_partitioned for spec_id in specs):
            return tasks
        return tasks.filter(same_partition(tasks, self.added, state))
