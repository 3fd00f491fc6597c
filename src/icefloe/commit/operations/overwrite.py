"""Replaces data files by others: named files, files that match a filter, whole partitions (spec: Snapshots).

``OverwriteFiles`` was computed from the files that it replaces, and conflicts with other commits that changed them.
``OverwriteWhere`` and ``ReplacePartitions`` choose the files to replace in each attempt, so they do not conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.commit.conflicts import ConflictCheck, Isolation, same_partition
from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.snapshot_operation import AddingOperation, PlannedOperation
from icefloe.errors import ConflictError, InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.prune.stats_eval import Match
from icefloe.expr.text.filter_printer import to_text
from icefloe.model.entries import empty
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.scan.plan import plan_scan
from icefloe.tree.file_changes import FileChanges

REPLACE_PARTITIONS = "replace-partitions"  # summary key that distinguishes these snapshots from other overwrites


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteFiles(PlannedOperation):
    """Replaces data files by files with the remaining and the new rows (copy-on-write).

    The changes were computed from the files of snapshot ``read`` that may match ``filter``.
    """

    filter: Expr = ALWAYS_TRUE
    isolation: Isolation = Isolation.SERIALIZABLE
    operation: Operation = Operation.OVERWRITE

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The changes, if the replaced files are unchanged; if serializable, also if no matching rows were added."""
        conflicts = ConflictCheck(draft, work, self.branch, self.read)
        conflicts.check_files_live(self.changes.removed["location"].combine_chunks())
        conflicts.check_no_deletes_of(self.changes.removed)
        if self.isolation is Isolation.SERIALIZABLE:
            conflicts.check_no_new_data(self.filter)
        return self.changes


@dataclass(frozen=True, slots=True, kw_only=True)
class OverwriteWhere(AddingOperation):
    """Removes the files in which every row matches a filter, and adds others. Reads no data.

    A file in which some rows may match is an error, as its rows would have to be read. With ``whole_files`` there was
    no such file when the operation was prepared: one that exists now is a conflict.
    """

    filter: Expr
    added: pa.Table = field(default_factory=empty)
    whole_files: bool = False
    operation: Operation = Operation.OVERWRITE

    def resolve(self, draft: Draft, work: Work) -> FileChanges | None:
        """The added files, and the matching files of the current snapshot."""
        table = f"table {draft.metadata.location}"
        matching = plan_scan(draft.store, draft.metadata, draft.head(self.branch), filter=self.filter).tasks
        partly = matching.filter(pc.not_equal(matching["match"], int(Match.ALL)))["location"].slice(0, 20).to_pylist()
        if len(partly) > 0 and self.whole_files:
            raise ConflictError(
                f"{table}: {partly[0]} was added by another commit, and may contain both rows that match"
                f" {to_text(self.filter)} and rows that do not; repeat the operation",
                files=partly,
            )
        if len(partly) > 0:
            raise InputError(
                f"{table}: {partly[0]} may contain both rows that match {to_text(self.filter)} and rows that do not;"
                " delete by rows instead, or choose whole partitions",
                files=partly,
            )
        if matching.num_rows == 0 and self.added.num_rows == 0:
            return None
        return FileChanges(added=self.added, removed=matching)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacePartitions(AddingOperation):
    """Adds files, and removes all other files of their partitions; of the whole table if it is not partitioned.

    With an ``isolation`` level it conflicts with commits after ``read`` that changed rows of these partitions.
    """

    isolation: Isolation | None = None
    read: Snapshot | None = None
    operation: Operation = Operation.OVERWRITE
    properties: Mapping[str, str] = field(default_factory=lambda: {REPLACE_PARTITIONS: "true"})

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The added files, and the files of the current snapshot that they replace."""
        if self.isolation is not None:
            added_rows = self.isolation is Isolation.SERIALIZABLE
            ConflictCheck(draft, work, self.branch, self.read).check_partitions(self.added, added_rows=added_rows)
        tasks = plan_scan(draft.store, draft.metadata, draft.head(self.branch)).tasks
        return FileChanges(added=self.added, removed=self.replaced_files(tasks, draft.store.context))

    def replaced_files(self, tasks: pa.Table, context: ManifestContext) -> pa.Table:
        """The files that are replaced, of all files of a snapshot."""
        specs = pc.unique(self.added["partition_spec_id"]).to_pylist()
        if any(not context.spec(spec_id).is_partitioned for spec_id in specs):
            return tasks
        return tasks.filter(same_partition(tasks, self.added, context))
