"""Converts equality deletes to deletes by position, which cost readers less (spec: Delete Formats).

The rows of the table do not change. Every data file that equality deletes apply to is read once, the rows that they
delete are deleted by position, and the equality delete files are removed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.conflicts import Isolation
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.engines.condition import Condition
from icefloe.engines.engine import Engine
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.model.entries import ContentType, empty, of_type
from icefloe.model.metadata.snapshots import Operation
from icefloe.rows.removal import deleted_before
from icefloe.rows.target import Target
from icefloe.scan.tasks import Plan
from icefloe.tree.file_changes import FileChanges


def convert_equality_deletes(target: Target, engine: Engine) -> RowDelta | None:
    """The change that replaces all equality deletes of a branch by deletion vectors or position delete files.

    None if there are no equality deletes.
    """
    files = target.planned()
    plan = files.plan
    converted = plan.deletes.filter(of_type(plan.deletes, ContentType.EQUALITY_DELETES))
    if target.head is None or converted.num_rows == 0:
        return None
    deleted = _deleted_by_value(files, engine)
    touched = files.only(deleted).plan.tasks
    vectors = target.metadata.rules.deletion_vectors
    return RowDelta(
        changes=FileChanges(
            added=_write_deletes(target, files, touched, deleted),
            revectored=touched if vectors else touched.slice(0, 0),
            removed_deletes=converted,
            referenced=tuple(deleted),
        ),
        read=target.head,
        branch=target.branch,
        isolation=Isolation.SNAPSHOT,  # equality deletes do not apply to rows that were added since
        operation=Operation.REPLACE,
    )


def _deleted_by_value(files: PlannedFiles, engine: Engine) -> dict[str, BitMap64]:
    """The positions of rows that only equality deletes delete, by file; files without any are left out."""
    tasks = _with_equality_deletes(files.plan)
    live = engine.find_rows(files.with_tasks(tasks), Condition(filter=ALWAYS_TRUE))
    by_position = files.deleted_rows.positions(tasks["location"].to_pylist())
    deleted: dict[str, BitMap64] = {}
    for location, rows in zip(tasks["location"].to_pylist(), tasks["record_count"].to_pylist(), strict=True):
        positions = BitMap64()
        positions.add_range(0, rows)
        for others in (live, by_position):
            positions -= others.get(location, BitMap64())
        if len(positions) > 0:
            deleted[location] = positions
    return deleted


def _with_equality_deletes(plan: Plan) -> pa.Table:
    """The tasks of the files that equality deletes apply to."""
    is_equality = of_type(plan.deletes, ContentType.EQUALITY_DELETES).to_numpy()
    numbers = plan.tasks["deletes"].combine_chunks()
    rows = pc.list_parent_indices(numbers).to_numpy()[is_equality[pc.list_flatten(numbers).to_numpy()]]
    return plan.tasks.take(pa.array(np.unique(rows)))


def _write_deletes(target: Target, files: PlannedFiles, tasks: pa.Table, deleted: Positions) -> pa.Table:
    """Write deletes by position for these files; returns their entries."""
    if len(deleted) == 0:
        return empty()
    metadata, new_uuid = target.metadata, target.env.new_uuid
    if metadata.rules.deletion_vectors:
        location = f"{metadata.data_location}/{new_uuid()}-deletes.puffin"
        old = deleted_before(files.deleted_rows, tasks)
        return write_vectors(target.io, tasks, old, deleted, location=location)
    return write_position_deletes(
        target.io,
        tasks,
        deleted,
        data_location=metadata.data_location,
        properties=metadata.properties,
        new_uuid=new_uuid,
    )
