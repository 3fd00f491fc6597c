"""Rows deleted in this process: found by position, or left out of rewritten files (spec: Row-level Deletes).

Matching is decided once, by reading only the columns of the filter. Merge-on-read takes the positions as they are;
copy-on-write rewrites just the files that keep some of their rows. A row whose filter is null is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import bitmap_of
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.arrow.read.read import FileTask, file_tasks, read_task, reading_threads
from icefloe.engines.arrow.write.moved_rows import choose_files, moved, moving_rows, write_moved
from icefloe.engines.engine import Horizon, Positions, lineage_of
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.row_mask import FileDrops
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import Plan

_POSITIONS = Schema(fields=(POS,))


def find_rows(io: FileIO, plan: Plan, drops: DeletedRows) -> dict[str, BitMap64]:
    """The positions of live rows that match the plan's filter, by file; files without any are left out."""

    def find(part: FileTask) -> BitMap64:
        return _positions(io, plan, part, drops.of(part.location))

    parts = [part for task in file_tasks(plan) for part in _parts(task)]
    with ThreadPoolExecutor(reading_threads(), thread_name_prefix="icefloe-find") as pool:
        found: dict[str, BitMap64] = {}
        for part, rows in zip(parts, pool.map(find, parts), strict=True):
            known = found.get(part.location)
            found[part.location] = rows if known is None else known | rows
    return {location: rows for location, rows in found.items() if len(rows) > 0}


def _parts(task: FileTask) -> tuple[FileTask, ...]:
    return (task,) if task.filter == ALWAYS_TRUE else task.parts()


def _positions(io: FileIO, plan: Plan, part: FileTask, lost: FileDrops) -> BitMap64:
    found = BitMap64()
    if part.filter == ALWAYS_TRUE and len(lost.tests) == 0:  # planning knows that all rows match: nothing to read
        found.add_range(0, part.row_count)
        return found if lost.positions is None else found - lost.positions
    for batch in read_task(io, part, schema=_POSITIONS, table_schema=plan.table_schema, drops=lost):
        found |= bitmap_of(np.asarray(batch.column(POS.name)))
    return found


def write_survivors(
    io: FileIO,
    plan: Plan,
    drops: DeletedRows,
    found: Positions,
    metadata: TableMetadata,
    *,
    horizon: Horizon | None = None,
) -> pa.Table:
    """Write the live rows of the planned files named in ``found`` again, without those positions; the new entries.

    A row that only moves keeps its id and the sequence number of its last change.
    """
    touched = choose_files(plan, found)
    lineage = lineage_of(touched)
    schema = Schema(fields=(*metadata.schema.fields, *lineage))

    def rows(part: FileTask) -> Iterator[pa.RecordBatch]:
        lost, gone = drops.of(part.location), found[part.location]
        left = FileDrops(positions=gone if lost.positions is None else lost.positions | gone, tests=lost.tests)
        return moving_rows(io, part, left, schema, horizon=horizon)

    return write_moved(io, moved(touched, rows), metadata, lineage)
