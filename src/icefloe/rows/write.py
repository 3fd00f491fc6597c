"""Writes rows to a table: appended, or replacing rows by a condition or by partition (spec: Snapshots)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from icefloe.commit.conflicts import Isolation, isolation_of
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.cherry_pick import STAGED_WAP_ID
from icefloe.commit.operations.overwrite import OverwriteWhere, ReplacePartitions
from icefloe.commit.operations.read_check import ReadCheck
from icefloe.commit.phases import Phase
from icefloe.engines.choose import engine_of
from icefloe.engines.engine import Engine
from icefloe.errors import IcefloeError, InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.model.metadata.properties import DELETE_ISOLATION
from icefloe.model.metadata.snapshots import Operation, SummaryKey
from icefloe.model.text.text_checks import check_text
from icefloe.rows.delete import MatchingFiles, removal_of
from icefloe.rows.prepared import CountedChanges, Prepared, RowChange, prepared
from icefloe.rows.schema_merge import SchemaMode, schema_change
from icefloe.rows.target import Scratch, Target

logger = logging.getLogger(__name__)


def append(data: Any, *, schema_mode: SchemaMode = "strict", wap_id: str | None = None) -> RowChange:
    """Add rows; without rows no snapshot is made. With ``wap_id`` the snapshot is staged, and part of no branch."""
    if wap_id is not None and schema_mode != "strict":
        raise InputError("append: wap_id= stages rows, but schema_mode='merge' changes the schema for all readers")
    if wap_id is not None:
        check_text(wap_id, "append: wap_id")
    write = _write(data, schema_mode, lambda target, engine, rows: _append(target, engine, rows, wap_id))
    return replace(write, staged=wap_id is not None)


def overwrite(
    data: Any, where: str | Expr | None, *, overwrite_all: bool = False, schema_mode: SchemaMode = "strict"
) -> RowChange:
    """Delete the rows that match ``where`` and add others, as one snapshot; rows for which it is null are kept."""
    if (where is None) != overwrite_all:
        raise InputError("overwrite: say which rows to replace by where=, or all of them by overwrite_all=True")
    return _write(data, schema_mode, lambda target, engine, rows: _overwrite(target, engine, rows, where))


def overwrite_partitions(data: Any, *, schema_mode: SchemaMode = "strict") -> RowChange:
    """Replace all rows of the partitions of the new rows; of an unpartitioned table, all rows."""
    return _write(data, schema_mode, _overwrite_partitions)


def _write(data: Any, schema_mode: SchemaMode, prepare: Callable[[Target, Engine, Any], Prepared]) -> RowChange:
    """A change that writes rows, after the columns that the table lacks are added if ``schema_mode`` says so."""
    engine = engine_of(data)

    def with_columns(target: Target) -> Prepared:
        rows, columns = schema_change(data, target.metadata, schema_mode, engine)
        return replace(prepare(target.after(columns), engine, rows), table_change=columns)

    return RowChange(engine=engine, prepare=with_columns, rows=data)


def _append(target: Target, engine: Engine, rows: Any, wap_id: str | None) -> Prepared:
    with target.timer.of(Phase.WRITE):
        added = engine.write(target.table, rows)
    if added.num_rows == 0:
        return Prepared(operation=Operation.APPEND)
    staged = {} if wap_id is None else {STAGED_WAP_ID: wap_id}
    update = Append(added=added, branch=target.branch, staged=wap_id is not None, properties=staged)
    return Prepared(operation=Operation.APPEND, update=update)


def _overwrite(target: Target, engine: Engine, rows: Any, where: str | Expr | None) -> Prepared:
    """If no file contains both rows that match and rows that do not, each attempt chooses the files by metadata alone.

    Other commits then do not conflict.
    """
    matching = MatchingFiles.of(target, engine.condition(where, target.metadata.schema))
    with Scratch(target.io) as scratch:
        with target.timer.of(Phase.WRITE):
            new = scratch.keep(engine.write(target.table, rows))
        if matching.partly.plan.files > 0 or not matching.is_exact:
            changes = matching.deletion(target, engine).with_added(new)
            change = prepared(target, matching.filter, DELETE_ISOLATION, changes)
            return replace(change, read_check=_asked_check(target, matching.filter) or change.read_check)
        changes = removal_of(matching.whole).with_added(new)
    update = OverwriteWhere(
        filter=matching.filter, added=new, branch=target.branch, operation=changes.files.operation, whole_files=True
    )
    if changes.is_empty:
        strict = isolation_of(DELETE_ISOLATION, target.properties) is Isolation.SERIALIZABLE
        return Prepared(operation=Operation.OVERWRITE, read_check=update if strict else None)
    return Prepared(
        operation=changes.files.operation,
        update=update,
        read_check=_asked_check(target, matching.filter),
        rows_already_deleted=_already_deleted(changes),
    )


def _asked_check(target: Target, filter: Expr) -> ReadCheck | None:
    """The check for the conflicts that the write asks for; none if it asks for none."""
    asked = target.settings.conflicts
    if asked is None:
        return None
    return ReadCheck(
        read=None if asked.snapshot_id is None else target.metadata.snapshot(asked.snapshot_id),
        branch=target.branch,
        filter=filter,
        added_rows=asked.isolation is Isolation.SERIALIZABLE,
        existing_rows=True,
        operation=Operation.OVERWRITE,
    )


def _overwrite_partitions(target: Target, engine: Engine, rows: Any) -> Prepared:
    with Scratch(target.io) as scratch:
        with target.timer.of(Phase.WRITE):
            new = scratch.keep(engine.write(target.table, rows))
        if new.num_rows == 0:
            return Prepared(operation=Operation.OVERWRITE)
        asked = target.settings.conflicts
        update = ReplacePartitions(
            added=new,
            branch=target.branch,
            isolation=None if asked is None else asked.isolation,
            read=None if asked is None or asked.snapshot_id is None else target.metadata.snapshot(asked.snapshot_id),
        )
        return Prepared(
            operation=Operation.OVERWRITE, update=update, rows_already_deleted=_deleted_in_partitions(target, update)
        )


def _deleted_in_partitions(target: Target, update: ReplacePartitions) -> int:
    """How many rows of the replaced files are already deleted; the summary of a table without deletes says so."""
    head = target.head
    if head is None or head.summary.get(SummaryKey.TOTAL_DELETE_FILES) == "0":
        return 0
    try:
        files = target.planned()
        replaced = update.replaced_files(files.plan.tasks, target.base.store.context)
        return _already_deleted(removal_of(files.with_tasks(replaced)))
    except IcefloeError as error:  # a wrong count must not stop a commit, which may replace damaged files
        logger.warning("rows_deleted includes rows that were already deleted: %s", error)
        return 0


def _already_deleted(changes: CountedChanges) -> int:
    """The rows that were already deleted, for an update that does not remove the delete files of its files."""
    in_delete_files: int = sum(changes.files.removed_deletes["record_count"].to_pylist())
    return changes.rows_already_deleted + in_delete_files
