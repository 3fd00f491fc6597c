"""Equality deletes turned into deletes by position, which cost readers less (spec: Delete Formats).

The rows of the table stay the same: every live file of a snapshot that equality deletes apply to is read once, the rows
that they delete are written down by position, and the equality delete files leave.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.conflicts import Isolation
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.bitmaps import within
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.engines.arrow.change.delete import find_rows
from icefloe.engines.engine import Positions
from icefloe.env import SYSTEM, Env
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.io.file_io import FileIO
from icefloe.model.entries import ContentType, empty, of_type
from icefloe.model.metadata.snapshots import MAIN, Operation, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.tasks import Plan
from icefloe.tree.file_changes import FileChanges


def find_dropped(io: FileIO, plan: Plan, drops: DeletedRows) -> dict[str, BitMap64]:
    """The positions of rows that nothing but equality deletes has deleted, by file; files without any are left out."""
    tasks = _compared(plan)
    if plan.filter != ALWAYS_TRUE:
        raise InputError("equality deletes apply to all rows of a file: plan without a filter to convert them")
    locations, counts = tasks["location"].to_pylist(), tasks["record_count"].to_pylist()
    live, old = find_rows(io, plan.with_tasks(tasks), drops), drops.positions(locations)
    found: dict[str, BitMap64] = {}
    for location, rows in zip(locations, counts, strict=True):
        gone = BitMap64()
        gone.add_range(0, rows)
        for others in (live, old):
            gone -= others.get(location, BitMap64())
        if len(gone) > 0:
            found[location] = gone
    return found


def convert_equality_deletes(
    io: FileIO, plan: Plan, metadata: TableMetadata, *, read: Snapshot, branch: str = MAIN, env: Env = SYSTEM
) -> RowDelta | None:
    """The commit that replaces all equality deletes of a snapshot by deletion vectors or position delete files.

    ``plan`` is that of the whole snapshot ``read``; none if there is nothing to convert.
    """
    obsolete = plan.deletes.filter(of_type(plan.deletes, ContentType.EQUALITY_DELETES))
    if obsolete.num_rows == 0:
        return None
    plan = plan.counted(io)
    drops = plan.deleted_rows(io)
    found = find_dropped(io, plan, drops)
    touched = plan.tasks.filter(pc.is_in(plan.tasks["location"], value_set=pa.array(list(found), pa.string())))
    counts = dict(zip(touched["location"].to_pylist(), touched["record_count"].to_pylist(), strict=True))
    old = {file: within(positions, counts[file]) for file, positions in drops.positions(found).items()}
    vectors = metadata.rules.deletion_vectors
    if len(found) == 0:
        added = empty()
    elif vectors:
        added = _vectors(io, touched, old, found, metadata, env)
    else:
        added = write_position_deletes(
            io,
            touched,
            found,
            data_location=metadata.data_location,
            properties=metadata.properties,
            new_uuid=env.new_uuid,
        )
    return RowDelta(
        changes=FileChanges(
            added=added,
            revectored=touched if vectors else touched.slice(0, 0),
            removed_deletes=obsolete,
            referenced=tuple(found),
        ),
        read=read,
        branch=branch,
        isolation=Isolation.SNAPSHOT,  # equality deletes do not apply to rows that were added since
        operation=Operation.REPLACE,
    )


def _compared(plan: Plan) -> pa.Table:
    """The planned files that equality deletes apply to."""
    equality = of_type(plan.deletes, ContentType.EQUALITY_DELETES).to_numpy()
    lists = plan.tasks["deletes"].combine_chunks()
    owners = pc.list_parent_indices(lists).to_numpy()[equality[pc.list_flatten(lists).to_numpy()]]
    return plan.tasks.take(pa.array(np.unique(owners)))


def _vectors(
    io: FileIO, touched: pa.Table, old: Positions, found: Positions, metadata: TableMetadata, env: Env
) -> pa.Table:
    location = f"{metadata.data_location}/{env.new_uuid()}-deletes.puffin"
    return write_vectors(io, touched, old, found, location=location)
