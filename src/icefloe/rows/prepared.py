"""Operations on rows: changes that can be prepared on any state of a branch, and prepared ones (spec: Snapshots)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icefloe.commit.conflicts import Isolation, isolation_of
from icefloe.commit.draft import Update
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.read_check import ReadCheck
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.engines.engine import Engine, MergedRows
from icefloe.expr.filter.nodes import Expr
from icefloe.model.metadata.properties import Property
from icefloe.model.metadata.snapshots import Operation
from icefloe.rows.target import Target
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An operation on rows, ready to be committed; without an update there is nothing to do.

    ``read_check`` fails if other commits changed what was read. A transaction applies it even if there is no update.
    It is also applied before an update that does not check by itself all of what was read. ``table_change`` is applied
    first: it adds the columns or the name mapping that the new files need.
    """

    operation: Operation
    update: SnapshotOperation | None = None
    read_check: SnapshotOperation | None = None
    table_change: MetadataUpdate | None = None
    rows_copied: int = 0  # rows that were only copied to another file
    rows_already_deleted: int = 0  # rows that the summary counts as deleted, although they were deleted before
    merged: MergedRows | None = None  # of a merge, with its row counts

    @property
    def steps(self) -> tuple[Update, ...]:
        """The steps of the commit."""
        return tuple(step for step in (self.table_change, self.read_check, self.update) if step is not None)

    def with_summary(self, keys: Mapping[str, str]) -> Prepared:
        """The operation with further keys for the summary of its snapshot."""
        update, check = (
            None if step is None else replace(step, properties={**step.properties, **keys})
            for step in (self.update, self.read_check)
        )
        return replace(self, update=update, read_check=check)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """An operation on rows that can be prepared on any state of a branch, for its own commit or for a transaction.

    ``rows`` are those that it was given. A ``staged`` one makes a snapshot that is part of no branch.
    """

    engine: Engine
    prepare: Callable[[Target], Prepared]
    rows: object = None
    staged: bool = False

    def prepared(self, target: Target, summary: Mapping[str, str] | None = None) -> Prepared:
        """The operation, ready to be committed, with the keys of the engine and of the write for its summary."""
        return self.prepare(target).with_summary({**self.engine.summary, **(summary or {}), **target.settings.summary})


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedChanges:
    """File changes of an operation on rows, with row counts that the files themselves do not show."""

    files: FileChanges = field(default_factory=FileChanges)
    rows_copied: int = 0  # rows that were only copied to another file
    rows_already_deleted: int = 0  # rows that the summary counts as deleted, although they were deleted before

    @property
    def is_empty(self) -> bool:
        """Whether no row is added or deleted."""
        return bool(self.files.removed.num_rows == 0 and self.files.added.num_rows == 0)

    def combined(self, other: CountedChanges) -> CountedChanges:
        """The changes of both."""
        return CountedChanges(
            files=self.files.combined(other.files),
            rows_copied=self.rows_copied + other.rows_copied,
            rows_already_deleted=self.rows_already_deleted + other.rows_already_deleted,
        )

    def with_added(self, entries: pa.Table) -> CountedChanges:
        """The changes with further new data files."""
        return replace(self, files=self.files.with_added(entries))


def prepared(
    target: Target,
    filter: Expr,
    isolation: Property[str],
    changes: CountedChanges,
    *,
    existing_rows: bool = False,
    operation: Operation | None = None,
) -> Prepared:
    """An operation with these changes, which were computed from the rows that match the bound ``filter`` of a plan.

    Files that were rewritten must not have changed since they were read. Deletes by position conflict with fewer
    commits. With ``existing_rows``, rows that were read and not changed decide which rows are added. ``operation`` is
    by default that of the changes.
    """
    level = isolation_of(isolation, target.properties)
    operation = changes.files.operation if operation is None else operation
    check = None
    if level is Isolation.SERIALIZABLE:
        check = ReadCheck(
            read=target.head, branch=target.branch, filter=filter, existing_rows=existing_rows, operation=operation
        )
    if changes.is_empty:
        return Prepared(operation=operation, read_check=check)
    kind = OverwriteFiles if changes.rows_copied > 0 else RowDelta
    update = kind(
        changes=changes.files,
        read=target.head,
        branch=target.branch,
        filter=filter,
        isolation=level,
        operation=operation,
    )
    return Prepared(
        operation=operation,
        update=update,
        read_check=check if existing_rows else None,
        rows_copied=changes.rows_copied,
        rows_already_deleted=changes.rows_already_deleted,
    )
