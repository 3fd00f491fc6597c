"""Deletes and adds rows as one snapshot (spec: Row-level Deletes)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.conflicts import Isolation, Since
from icefloe.commit.draft import State
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.commit.resolved import Resolved
from icefloe.errors import ConflictError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.model.entries import ContentType, empty, of_type
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.scan.tasks import TASK


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDelta(SnapshotOperation):
    """Delete rows, by deletion vectors, delete files or by removing files, and add rows, as one snapshot.

    It was computed from the files that ``read`` held and that matched ``filter``. A data file has one deletion vector,
    so two commits that delete rows of one file conflict. Delete files of version 2 add up; there only an update, which
    adds rows as well, must not meet other deletes. ``referenced`` are the data files that its position delete files
    point at, where the entries themselves do not name them.
    """

    added: pa.Table  # data files, deletion vectors and delete files
    removed: pa.Table = field(default_factory=TASK.empty_table)
    replaced: pa.Table = field(default_factory=TASK.empty_table)
    dropped: pa.Table = field(default_factory=empty)
    referenced: tuple[str, ...] = ()
    read: Snapshot | None
    filter: Expr = ALWAYS_TRUE
    isolation: Isolation = Isolation.SERIALIZABLE
    operation: Operation = Operation.OVERWRITE

    @property
    def files(self) -> tuple[str, ...]:
        """Data files and delete files."""
        return file_locations(self.added)

    def resolve(self, state: State) -> Resolved:
        """Nothing it read may have changed, as far as its isolation asks."""
        self._check_kind(state)
        since = Since(state, self.read)
        targets = pa.concat_tables([self.removed, self.replaced], promote_options="permissive")
        since.check_files_live(self._referenced(targets))
        since.check_no_vectors_of(self._one_vector_each(state))
        if self._updates:
            since.check_no_new_deletes(self.filter)
        else:
            since.check_nothing_updated(self.filter)
        if self.isolation is Isolation.SERIALIZABLE:
            since.check_no_new_data(self.filter)
        return Resolved(added=self.added, removed=self.removed, replaced=self.replaced, dropped=self.dropped)

    def _check_kind(self, state: State) -> None:
        """Refuse position delete files where deletion vectors took their place, maybe since they were written."""
        if not state.metadata.rules.deletion_vectors:
            return
        plain = pc.and_(of_type(self.added, ContentType.POSITION_DELETES), pc.is_null(self.added["dv_offset"]))
        files = self.added.filter(plain)["location"].to_pylist()
        if len(files) > 0:
            raise ConflictError(
                f"table {state.metadata.location}: format version {state.metadata.format_version} deletes rows by"
                f" deletion vectors, not by position delete files such as {files[0]}; read the table again and repeat"
                " the operation",
                files=files[:20],
            )

    @property
    def _updates(self) -> bool:
        """Whether it puts rows back in another form."""
        return pc.any(of_type(self.added, ContentType.DATA)).as_py() is True

    def _one_vector_each(self, state: State) -> pa.ChunkedArray:
        """The data files that get a vector, and those that leave, whose vectors would stay without them."""
        named = self.added.filter(pc.is_valid(self.added["dv_offset"]))["referenced_file"]
        leaving = self.removed["location"].chunks if state.metadata.rules.deletion_vectors else []
        return pa.chunked_array([*named.chunks, *leaving], pa.string())

    def _referenced(self, targets: pa.Table) -> pa.Array:
        """The data files that it removes, replaces or deletes from."""
        named = self.added["referenced_file"].drop_null().combine_chunks()
        told = pa.array(self.referenced, pa.string())
        return pa.concat_arrays([targets["location"].combine_chunks(), named, told])
