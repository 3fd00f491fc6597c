"""Operations on rows that are ready to be committed (spec: Snapshots).

Files that are written again replace the old ones and must be as they were read; rows that are deleted where they are
leave other commits more room.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from icefloe.commit.conflicts import Isolation, isolation_of
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.read_check import ReadCheck
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.commit.result import CommitResult
from icefloe.expr.filter.nodes import Expr
from icefloe.model.entries import ContentType, concat, empty, of_type
from icefloe.model.metadata.properties import Property
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.rows.target import Target
from icefloe.scan.tasks import TASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An operation on rows, ready to be committed; without an update there is nothing to do.

    By itself that is the end of it: it was so at the snapshot that was read. Beside other operations it must be so
    where these land, which ``read_check`` sees to; it comes before an update that does not prove all of what was read.
    """

    operation: Operation
    update: SnapshotOperation | None = None
    read_check: SnapshotOperation | None = None
    rows_copied: int = 0  # rows that only moved to another file
    rows_dead: int = 0  # rows that the summary counts as deleted, and that were deleted before

    @property
    def steps(self) -> tuple[SnapshotOperation, ...]:
        """What is to be committed."""
        return tuple(step for step in (self.read_check, self.update) if step is not None)

    def result(self, landed: CommitResult) -> CommitResult:
        """The figures without the rows that were only copied."""
        return replace(
            landed,
            rows_added=landed.rows_added - self.rows_copied,
            rows_deleted=landed.rows_deleted - self.rows_copied - self.rows_dead,
            rows_copied=self.rows_copied,
        )

    def nothing(self, table: str) -> CommitResult:
        """The result of an operation that had no work, and made no snapshot."""
        return CommitResult(table=table, operation=str(self.operation), snapshot_id=None, attempts=0, snapshots=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What takes rows out of a table: new deletes or new files, tasks whose vector changes, files that leave."""

    added: pa.Table = field(default_factory=empty)
    replaced: pa.Table = field(default_factory=TASK.empty_table)
    removed: pa.Table = field(default_factory=TASK.empty_table)
    dropped: pa.Table = field(default_factory=empty)  # delete files of which nothing is left to delete
    referenced: tuple[str, ...] = ()  # data files that new position delete files point at
    rows_copied: int = 0  # rows that only moved to another file
    rows_dead: int = 0  # rows that the summary counts as deleted, and that were deleted before

    @property
    def is_nothing(self) -> bool:
        """Whether no row leaves."""
        return bool(self.removed.num_rows == 0 and self.added.num_rows == 0)

    def and_all(self, other: Removal) -> Removal:
        """Both of them."""
        return Removal(
            added=concat([self.added, other.added]),
            replaced=_both(self.replaced, other.replaced),
            removed=_both(self.removed, other.removed),
            dropped=_both(self.dropped, other.dropped),
            referenced=(*self.referenced, *other.referenced),
            rows_copied=self.rows_copied + other.rows_copied,
            rows_dead=self.rows_dead + other.rows_dead,
        )

    def and_rows(self, new: pa.Table) -> Removal:
        """The same, and these data files come."""
        return replace(self, added=concat([new, self.added]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an operation read and how strict it is about it."""

    read: Snapshot | None
    branch: str
    filter: Expr  # bound to the columns that were read, whatever they are called later
    isolation: Isolation
    present: bool = False  # whether rows that it finds and leaves as they are decide what it adds

    @classmethod
    def of(cls, target: Target, filter: Expr, isolation: Property[str], *, present: bool = False) -> Change:
        """The change of a branch; ``filter`` is that of its plan."""
        level = isolation_of(isolation, target.properties)
        return cls(read=target.head, branch=target.branch, filter=filter, isolation=level, present=present)

    def nothing(self, operation: Operation) -> Prepared:
        """The operation if no row comes or leaves."""
        return Prepared(operation=operation, read_check=self._read_check(operation))

    def _read_check(self, operation: Operation) -> SnapshotOperation | None:
        if self.isolation is not Isolation.SERIALIZABLE:
            return None
        return ReadCheck(
            read=self.read, branch=self.branch, filter=self.filter, present=self.present, operation=operation
        )

    def prepared(self, removal: Removal) -> Prepared:
        """Files that are written again replace the old ones; else rows are deleted where they are."""
        operation = operation_of(removal)
        if removal.is_nothing:
            return self.nothing(operation)
        if removal.rows_copied > 0:
            update: SnapshotOperation = OverwriteFiles(
                added=removal.added,
                removed=removal.removed,
                dropped=removal.dropped,
                read=self.read,
                branch=self.branch,
                filter=self.filter,
                isolation=self.isolation,
                operation=operation,
            )
        else:
            update = RowDelta(
                added=removal.added,
                removed=removal.removed,
                replaced=removal.replaced,
                dropped=removal.dropped,
                referenced=removal.referenced,
                read=self.read,
                branch=self.branch,
                filter=self.filter,
                isolation=self.isolation,
                operation=operation,
            )
        return Prepared(
            operation=operation,
            update=update,
            read_check=self._read_check(operation) if self.present else None,
            rows_copied=removal.rows_copied,
            rows_dead=removal.rows_dead,
        )


def operation_of(removal: Removal) -> Operation:
    """What the summary calls it: rows come, rows leave, or both."""
    data = removal.added.filter(of_type(removal.added, ContentType.DATA)).num_rows
    if data == 0:
        return Operation.DELETE
    return Operation.APPEND if data == removal.added.num_rows and removal.removed.num_rows == 0 else Operation.OVERWRITE


def _both(one: pa.Table, other: pa.Table) -> pa.Table:
    if one.num_rows == 0 or other.num_rows == 0:
        return other if one.num_rows == 0 else one
    return pa.concat_tables([one, other], promote_options="permissive")
