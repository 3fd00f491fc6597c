"""Deletes and adds rows as one snapshot (spec: Row-level Deletes)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.conflicts import ConflictCheck, Isolation
from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.snapshot_operation import PlannedOperation
from icefloe.errors import ConflictError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.model.entries import ContentType, of_type
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDelta(PlannedOperation):
    """Deletes rows, by deletion vectors, delete files or the removal of files, and adds rows, as one snapshot.

    The changes were computed from the files of snapshot ``read`` that may match ``filter``. A data file has at most one
    deletion vector, so two commits that delete rows of one file conflict. Position delete files of version 2 add up: an
    operation that only deletes rows does not conflict with other deletes, one that also adds rows (an update) does.
    """

    filter: Expr = ALWAYS_TRUE
    isolation: Isolation = Isolation.SERIALIZABLE
    operation: Operation = Operation.OVERWRITE

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The changes, if no other commit changed what was read, as far as the isolation level requires."""
        _check_no_position_files(self.changes.added, draft.metadata)
        conflicts = ConflictCheck(draft, work, self.branch, self.read)
        conflicts.check_files_live(_referenced_files(self.changes))
        conflicts.check_no_new_vectors(_files_with_vectors(self.changes, draft.metadata))
        if pc.any(of_type(self.changes.added, ContentType.DATA)).as_py() is True:
            conflicts.check_no_new_deletes(self.filter)
        else:
            conflicts.check_no_updates(self.filter)
        if self.isolation is Isolation.SERIALIZABLE:
            conflicts.check_no_new_data(self.filter)
        return self.changes


def _check_no_position_files(added: pa.Table, metadata: TableMetadata) -> None:
    """Refuse position delete files if the table uses deletion vectors; it may have been upgraded meanwhile."""
    if not metadata.rules.deletion_vectors:
        return
    is_file = pc.and_(of_type(added, ContentType.POSITION_DELETES), pc.is_null(added["dv_offset"]))
    files = added.filter(is_file)["location"].to_pylist()
    if len(files) > 0:
        raise ConflictError(
            f"table {metadata.location}: format version {metadata.format_version} deletes rows by deletion vectors, not"
            f" by position delete files such as {files[0]}; read the table again and repeat the operation",
            files=files[:20],
        )


def _files_with_vectors(changes: FileChanges, metadata: TableMetadata) -> pa.ChunkedArray:
    """The data files that get a deletion vector, and removed ones: a vector added meanwhile would outlive its file."""
    named = changes.added.filter(pc.is_valid(changes.added["dv_offset"]))["referenced_file"]
    removed = changes.removed["location"].chunks if metadata.rules.deletion_vectors else []
    return pa.chunked_array([*named.chunks, *removed], pa.string())


def _referenced_files(changes: FileChanges) -> pa.Array:
    """The data files that are removed, and those in which rows are deleted."""
    columns = [changes.removed["location"], changes.revectored["location"], changes.added["referenced_file"]]
    named = [column.drop_null().combine_chunks() for column in columns]
    return pa.concat_arrays([*named, pa.array(changes.referenced, pa.string())])
