"""Makes one snapshot of the steps of a transaction, or as few as their changes need (spec: Snapshots).

Every step makes a snapshot in the draft, because the steps after it read its changes. When all steps are applied, the
snapshots are made again from the base, each of the composed changes of as many steps as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.compute as pc

from icefloe.commit.composed_changes import composed, need_two_snapshots
from icefloe.commit.draft import Draft, SnapshotPlan, Update, Work, draft_of
from icefloe.commit.operations.overwrite import REPLACE_PARTITIONS
from icefloe.commit.operations.snapshot_operation import SnapshotOperation, file_locations
from icefloe.commit.stage import make_snapshot
from icefloe.model.entries import ContentType, of_type
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree.file_changes import FileChanges


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
