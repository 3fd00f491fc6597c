"""Makes one snapshot of the steps of a transaction, or as few as their changes need (spec: Snapshots).

Every step makes a snapshot in the draft, because the steps after it read its changes. When all steps are applied, the
snapshots are made again from the base, each of the composed changes of as many steps as possible.

A file that one step adds and a later one removes is left out, and of the deletion vectors that a data file gets only
the last one remains. Deletes by position apply to data files of the same snapshot. Equality deletes do not, so rows
that one step adds and a later one deletes by value need two snapshots (spec: Sequence Number Inheritance).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import Draft, SnapshotPlan, Update, Work, draft_of
from icefloe.commit.operations.overwrite import REPLACE_PARTITIONS
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.commit.stage import make_snapshot
from icefloe.model.entries import ContentType, Measure, concat, of_type, put, stat, stat_keys
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree.file_changes import PLANNED_FILE, FileChanges

_STEP, _IS_REMOVED = "step", "is_removed"  # columns of this module: the number of the step, and what it did to a file
_VECTOR = ("dv_location", "dv_size_in_bytes", "dv_cardinality", "dv_manifest", "dv_ordinal")  # of a planned file


def remade(draft: Draft, plans: Sequence[SnapshotPlan], steps: tuple[Update, ...], work: Work) -> Draft:
    """The draft of these steps with other snapshots than those of the steps; changes of the table itself come first."""
    new, work.roots, obsolete = draft_of(draft.base), {}, work.staging.begin_again()
    for step in steps:
        if not isinstance(step, SnapshotOperation):
            new = step.apply(new, work)
    for number, plan in enumerate(plans):
        work.step = hash((number, plan.branch, _files_added(plan)))  # attempts that add the same files have the same id
        new = make_snapshot(new, work, plan)
    return replace(new, stepwise=draft.made, obsolete=obsolete)


def unused_files(draft: Draft, steps: tuple[Update, ...]) -> list[str]:
    """The files written for the steps that no snapshot of the draft added: a later step has removed them again."""
    added = {file for plan in draft.plans if plan.changes is not None for file in file_locations(plan.changes.added)}
    written = (file for step in steps if isinstance(step, SnapshotOperation) for file in step.files)
    return [file for file in written if file not in added]


def fewest(plans: Sequence[SnapshotPlan], metadata: TableMetadata) -> tuple[SnapshotPlan, ...]:
    """The plans of as few snapshots as possible; those that change nothing together are left out."""
    runs: list[list[SnapshotPlan]] = []
    for plan in plans:
        if len(runs) == 0 or not are_one(runs[-1], plan, metadata):
            runs.append([])
        runs[-1].append(plan)
    if len(runs) == len(plans):
        return tuple(plans)
    return tuple(whole for run in runs if not _changes_nothing(whole := _one(run)))


def are_one(before: Sequence[SnapshotPlan], plan: SnapshotPlan, metadata: TableMetadata) -> bool:
    """Whether snapshots that can be one are one together with the next one."""
    first = before[0]
    if first.changes is None or plan.changes is None or first.staged or plan.staged:
        return False
    if plan.branch != first.branch or Operation.REPLACE in (plan.operation, first.operation):
        return False
    if metadata.rules.deletion_vectors and any(map(_has_position_files, (first.changes, plan.changes))):
        return False
    return not need_two_snapshots(_changes(before), plan.changes)


def _files_added(plan: SnapshotPlan) -> tuple[tuple[str | None, ...], ...]:
    """The files and deletion vectors that a snapshot adds, by which its leaves can be reused."""
    if plan.changes is None:
        return ()
    return tuple(tuple(plan.changes.added[name].to_pylist()) for name in ("location", "referenced_file"))


def _changes(plans: Sequence[SnapshotPlan]) -> list[FileChanges]:
    return [plan.changes for plan in plans if plan.changes is not None]


def _one(plans: Sequence[SnapshotPlan]) -> SnapshotPlan:
    """The plan of one snapshot."""
    if len(plans) == 1:
        return plans[0]
    changes = composed(_changes(plans))
    properties = {key: value for plan in plans for key, value in plan.properties.items()}
    properties.pop(REPLACE_PARTITIONS, None)
    operations = {plan.operation for plan in plans}
    operation = plans[0].operation if len(operations) == 1 else changes.operation
    return replace(plans[0], changes=changes, operation=operation, properties=properties)


def _has_position_files(changes: FileChanges) -> bool:
    """Whether there are position delete files: a table that was upgraded meanwhile does not take any more."""
    added = changes.added
    is_file = pc.and_(of_type(added, ContentType.POSITION_DELETES), pc.is_null(added["dv_offset"]))
    return pc.any(is_file).as_py() is True


def _changes_nothing(plan: SnapshotPlan) -> bool:
    changes = plan.changes
    return changes is not None and changes.added.num_rows == 0 and changes.only_adds


def need_two_snapshots(before: Sequence[FileChanges], after: FileChanges) -> bool:
    """Whether a step deletes by value, after steps that add rows."""
    deletes = pc.any(of_type(after.added, ContentType.EQUALITY_DELETES)).as_py() is True
    return deletes and any(pc.any(of_type(each.added, ContentType.DATA)).as_py() is True for each in before)


def composed(steps: Sequence[FileChanges]) -> FileChanges:
    """The difference between the files before the first step and those after the last one."""
    if len(steps) == 1:
        return steps[0]
    added = _numbered(concat([step.added for step in steps]), [step.added for step in steps])
    touched = _together([_touched(step) for step in steps])
    delete_files = _together([step.removed_deletes for step in steps])
    is_data = of_type(added, ContentType.DATA)
    is_vector = pc.is_valid(added["dv_offset"])

    gone = _step_of(added["location"], touched.filter(touched[_IS_REMOVED]), "location", "max")
    revectored = _step_of(added["referenced_file"], touched, "location", "max")
    unused = _step_of(added["location"], delete_files, "location", "max")
    is_gone = pc.fill_null(
        pc.less(added[_STEP], pc.if_else(is_data, gone, pc.if_else(is_vector, revectored, unused))), False
    )
    is_own_file = _is_after(touched, _step_of(touched["location"], added.filter(is_data), "location", "min"))
    older = touched.filter(pc.invert(is_own_file))
    vectors = added.filter(is_vector)
    older = _without_own_vectors(older, _step_of(older["location"], vectors, "referenced_file", "min"))
    deletes = added.filter(pc.invert(is_data))
    is_own_delete = _is_after(delete_files, _step_of(delete_files["location"], deletes, "location", "min"))
    removed = pc.unique(older["location"].filter(older[_IS_REMOVED]).combine_chunks())
    first = older.take(_rows_of_first(older))
    is_removed = pc.is_in(first["location"], value_set=removed)
    has_vector = pc.is_valid(first["dv_location"])
    return FileChanges(
        added=added.filter(pc.invert(is_gone)).drop_columns([_STEP]),
        removed=first.filter(is_removed).drop_columns([_STEP, _IS_REMOVED]),
        revectored=first.filter(pc.and_(has_vector, pc.invert(is_removed))).drop_columns([_STEP, _IS_REMOVED]),
        removed_deletes=delete_files.filter(pc.invert(is_own_delete)).drop_columns([_STEP]),
        referenced=tuple(dict.fromkeys(file for step in steps for file in step.referenced)),
        merge_manifests=all(step.merge_manifests for step in steps),
    )


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return _numbered(pa.concat_tables(tables, promote_options="permissive"), tables)


def _numbered(rows: pa.Table, parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of all steps, with the number of the step."""
    return rows.append_column(_STEP, pa.array(np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])))


def _touched(step: FileChanges) -> pa.Table:
    """The data files that a step removes, and those whose deletion vector it replaces, with their partitions."""
    parts = []
    for table, is_removed in ((step.removed, True), (step.revectored, False)):
        partition = [stat(Measure.LOWER, key) for key in stat_keys(table) if key.is_partition]
        parts.append(
            table.select([*PLANNED_FILE.names, *partition]).append_column(
                _IS_REMOVED, pa.repeat(is_removed, table.num_rows)
            )
        )
    return pa.concat_tables(parts, promote_options="permissive")


def _step_of(names: pa.ChunkedArray, rows: pa.Table, column: str, which: Literal["min", "max"]) -> pa.ChunkedArray:
    """The first (``min``) or last step that names each file in a column of these rows, null if there is none."""
    found = rows.group_by(column).aggregate([(_STEP, which)])
    if found.num_rows == 0:
        return pa.chunked_array([pa.nulls(len(names), pa.int64())])
    places = pc.index_in(names, value_set=found[column].combine_chunks()).combine_chunks()
    return pa.chunked_array([found[f"{_STEP}_{which}"].combine_chunks().take(places)])


def _is_after(rows: pa.Table, steps: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.greater(rows[_STEP], steps), False)


def _without_own_vectors(touched: pa.Table, steps: pa.ChunkedArray) -> pa.Table:
    """The files, without the deletion vectors that an earlier step has added: these were never in the table."""
    is_own = _is_after(touched, steps)
    for name in _VECTOR:
        touched = put(touched, name, pc.if_else(is_own, pa.scalar(None, touched[name].type), touched[name]))
    return touched


def _rows_of_first(touched: pa.Table) -> pa.Array:
    """The row of the first step that touches each file, which has the deletion vector that the file had before."""
    rows = touched.select(["location"]).append_column("row", pa.array(np.arange(touched.num_rows)))
    return rows.group_by("location").aggregate([("row", "min")])["row_min"].combine_chunks().sort()
