"""Converts deletes to the form that costs readers least (spec: Delete Formats).

Equality deletes and position delete files become deletion vectors. Without them, in version 2, equality deletes and
position delete files become one position delete file for each data file. The rows of the table do not change. Every
data file that equality deletes apply to is read once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.conflicts import Isolation
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.partition_keys import Ints
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.engines.engine import Engine
from icefloe.engines.work import Condition, PlannedFiles, Positions
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.model.entries import ContentType, empty, of_type
from icefloe.model.metadata.properties import DELETE_GRANULARITY
from icefloe.model.metadata.snapshots import Operation
from icefloe.rows.removal import deleted_before
from icefloe.rows.target import Target
from icefloe.scan.tasks import Plan
from icefloe.tree.file_changes import FileChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The deletes of a branch that are converted, and the data files that they apply to."""

    files: PlannedFiles
    deletes: pa.Table
    tasks: pa.Table


def planned_conversion(target: Target, where: Expr = ALWAYS_TRUE) -> Conversion:
    """The deletes to convert of the data files of a branch that may contain rows matching ``where``."""
    files = target.planned()
    pairs = _Pairs.of(files.plan)
    considered = None if where == ALWAYS_TRUE else target.plan(where).tasks["location"].combine_chunks()
    chosen = pairs.convertible(considered, vectors=target.metadata.rules.deletion_vectors)
    tasks = files.plan.tasks.take(pa.array(np.unique(pairs.owners[chosen[pairs.numbers]])))
    return Conversion(files=files, deletes=files.plan.deletes.filter(pa.array(chosen)), tasks=tasks)


def convert_deletes(
    target: Target, engine: Engine, where: Expr = ALWAYS_TRUE, unused: FileChanges | None = None
) -> RowDelta | None:
    """The change that converts the deletes of the data files of a branch that may contain rows matching ``where``.

    A delete file that also applies to other data files is kept. ``unused`` are deletes to remove in the same commit.
    None if there is nothing to do.
    """
    planned = planned_conversion(target, where)
    more = FileChanges() if unused is None else unused
    if target.head is None or (planned.deletes.num_rows == 0 and more.only_adds):
        return None
    changes = _converted(target, planned.files, planned.tasks, engine)
    return RowDelta(
        changes=changes.combined(FileChanges(removed_deletes=planned.deletes)).combined(more),
        read=target.head,
        branch=target.branch,
        isolation=Isolation.SNAPSHOT,  # equality deletes do not apply to rows that were added since
        operation=Operation.REPLACE,
    )


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of a planned data file and a delete file that applies to it, as row numbers of the plan's tables."""

    plan: Plan
    owners: Ints
    numbers: Ints

    @classmethod
    def of(cls, plan: Plan) -> _Pairs:
        lists = plan.tasks["deletes"].combine_chunks()
        return cls(plan, np.asarray(pc.list_parent_indices(lists)), np.asarray(pc.list_flatten(lists)))

    def convertible(self, considered: pa.Array | None, *, vectors: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which delete files are converted: all that apply to considered data files only, unless they are fine.

        Without deletion vectors, a position delete file is fine if it is the only one of one data file.
        """
        deletes, tasks = self.plan.deletes, self.plan.tasks
        equality = np.asarray(of_type(deletes, ContentType.EQUALITY_DELETES))
        due = np.ones(deletes.num_rows, np.bool_)
        if not vectors:
            by_position = ~equality[self.numbers]
            counts = np.bincount(self.owners[by_position], minlength=tasks.num_rows)
            several = np.bincount(self.numbers, weights=counts[self.owners] > 1, minlength=deletes.num_rows) > 0
            due = equality | several | np.asarray(pc.is_null(deletes["referenced_file"]))
        if considered is not None:
            outside = ~np.asarray(pc.is_in(tasks["location"], value_set=considered))
            due &= np.bincount(self.numbers, weights=outside[self.owners], minlength=deletes.num_rows) == 0
        return due


def _converted(target: Target, files: PlannedFiles, tasks: pa.Table, engine: Engine) -> FileChanges:
    """The deletes of these data files by position, in new files."""
    if tasks.num_rows == 0:
        return FileChanges()
    by_value = _deleted_by_value(files, tasks, engine)
    old = deleted_before(files.deleted_rows, tasks)
    every: dict[str, BitMap64] = {}
    for location in tasks["location"].to_pylist():
        positions = by_value.get(location, BitMap64()) | old.get(location, BitMap64())
        if len(positions) > 0:
            every[location] = positions
    touched = files.only(every).plan.tasks
    return FileChanges(
        added=_write_deletes(target, touched, every),
        revectored=touched if target.metadata.rules.deletion_vectors else touched.slice(0, 0),
        referenced=tuple(every),
    )


def _deleted_by_value(files: PlannedFiles, tasks: pa.Table, engine: Engine) -> dict[str, BitMap64]:
    """The positions of rows of these files that only equality deletes delete; files without any are left out."""
    is_equality = np.asarray(of_type(files.plan.deletes, ContentType.EQUALITY_DELETES))
    numbers = tasks["deletes"].combine_chunks()
    rows = np.asarray(pc.list_parent_indices(numbers))[is_equality[np.asarray(pc.list_flatten(numbers))]]
    tasks = tasks.take(pa.array(np.unique(rows)))
    live = engine.find_rows(files.with_tasks(tasks), Condition(filter=ALWAYS_TRUE))
    by_position = files.deleted_rows.positions(tasks["location"].to_pylist())
    deleted: dict[str, BitMap64] = {}
    for location, row_count in zip(tasks["location"].to_pylist(), tasks["record_count"].to_pylist(), strict=True):
        positions = BitMap64()
        positions.add_range(0, row_count)
        for others in (live, by_position):
            positions -= others.get(location, BitMap64())
        if len(positions) > 0:
            deleted[location] = positions
    return deleted


def _write_deletes(target: Target, tasks: pa.Table, deleted: Positions) -> pa.Table:
    """Write deletes by position for these files; returns their entries."""
    if len(deleted) == 0:
        return empty()
    metadata, new_uuid = target.metadata, target.env.new_uuid
    if metadata.rules.deletion_vectors:
        return write_vectors(
            target.io, tasks, {}, deleted, location=f"{metadata.data_location}/{new_uuid()}-deletes.puffin"
        )
    return write_position_deletes(
        target.io,
        tasks,
        deleted,
        data_location=metadata.data_location,
        properties={**metadata.properties, DELETE_GRANULARITY.name: "file"},
        new_uuid=new_uuid,
    )
