"""Deletes on Arrow: finds rows by position, and rewrites files without them (spec: Row-level Deletes).

The filter is evaluated once, on its own columns. Merge-on-read stores the positions; copy-on-write rewrites the files
that keep some of their rows. A row for which the filter is null is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import all_positions, bitmap_of
from icefloe.engines.arrow.read.read import FileTask, file_tasks, read_task, reading_threads
from icefloe.engines.arrow.write.rewrite import rewrite_files, rows_to_rewrite
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.expr.filter.batch_filter import evaluate_rows
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.row_group_reader import merged
from icefloe.formats.read.row_mask import FileDrops, filtered
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import MetadataFilter

_POSITION = Schema(fields=(POS,))


def find_rows(files: PlannedFiles) -> dict[str, BitMap64]:
    """The positions of live rows that match the plan's filter, by file; files without any are left out."""
    plan = replace(files.plan, schema=_columns(files.plan.metadata_filter))
    parts = [part for task in file_tasks(plan) for part in _parts(task)]
    positions: dict[str, BitMap64] = {}
    with ThreadPoolExecutor(reading_threads(), thread_name_prefix="icefloe-find") as pool:
        for part, matching in zip(parts, pool.map(lambda part: _matching(files, part), parts), strict=True):
            known = positions.get(part.location)
            positions[part.location] = matching if known is None else known | matching
    return {location: matching for location, matching in positions.items() if len(matching) > 0}


def _columns(condition: MetadataFilter | None) -> Schema:
    """The position of a row, and what a condition on metadata columns tests."""
    return _POSITION if condition is None else Schema(fields=merged(_POSITION.fields, condition.columns.fields))


def _parts(task: FileTask) -> tuple[FileTask, ...]:
    return (task,) if task.filter == ALWAYS_TRUE else task.parts()


def _matching(files: PlannedFiles, part: FileTask) -> BitMap64:
    deletes, condition = files.deleted_rows.of(part.location), files.plan.metadata_filter
    if part.filter == ALWAYS_TRUE and len(deletes.tests) == 0 and condition is None:  # every row matches
        positions = all_positions(part.row_count)
        return positions if deletes.positions is None else positions - deletes.positions
    positions = BitMap64()
    columns, table_schema = _columns(condition), files.plan.table_schema
    for batch in read_task(files.io, part, schema=columns, table_schema=table_schema, drops=deletes):
        if condition is not None:
            batch = filtered(batch, pc.fill_null(evaluate_rows(condition.filter, batch), False))
        positions |= bitmap_of(np.asarray(batch.column(POS.name)))
    return positions


def write_survivors(files: PlannedFiles, positions: Positions) -> pa.Table:
    """Write the live rows of the files in ``positions`` to new files, without those positions; returns the entries."""
    touched = files.only(positions)

    def survivors(part: FileTask) -> Iterator[pa.RecordBatch]:
        deletes, deleted = files.deleted_rows.of(part.location), positions[part.location]
        if deletes.positions is not None:
            deleted = deleted | deletes.positions
        return rows_to_rewrite(touched, part, FileDrops(positions=deleted, tests=deletes.tests))

    return rewrite_files(touched, survivors)
