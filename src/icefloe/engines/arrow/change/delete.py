"""Deletes on Arrow: finds rows by position, and rewrites files without them (spec: Row-level Deletes).

The filter is evaluated once, on its own columns. Merge-on-read stores the positions; copy-on-write rewrites the files
that keep some of their rows. A row for which the filter is null is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import add_positions, all_positions, bitmap_of
from icefloe.engines.arrow.read.plan_reader import read_in_parallel
from icefloe.engines.arrow.write import rewrite_files, rows_to_rewrite
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.expr.filter.batch_filter import evaluate_rows
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.batches import filtered
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema, merged_fields
from icefloe.scan.tasks import MetadataFilter

_POSITION = Schema(fields=(POS,))


def find_rows(files: PlannedFiles) -> dict[str, BitMap64]:
    """The positions of live rows that match the plan's filter, by file; files without any are left out."""
    plan = replace(files.plan, schema=_columns(files.plan.metadata_filter))
    positions: dict[str, BitMap64] = {}

    def matches(part: FileRead) -> Iterator[tuple[str, BitMap64]]:
        yield part.location, _matching(files, part)

    for location, matching in read_in_parallel(plan, matches):
        add_positions(positions, location, matching)
    return {location: matching for location, matching in positions.items() if len(matching) > 0}


def _columns(condition: MetadataFilter | None) -> Schema:
    """The position of a row, and what a condition on metadata columns tests."""
    return _POSITION if condition is None else Schema(fields=merged_fields(_POSITION.fields, condition.columns.fields))


def _matching(files: PlannedFiles, part: FileRead) -> BitMap64:
    deletes, condition = files.deleted_rows.of(part.location), files.plan.metadata_filter
    if part.filter == ALWAYS_TRUE and len(deletes.tests) == 0 and condition is None:  # every row matches
        positions = all_positions(part.row_count if part.part.index == 0 else 0)
        return positions if deletes.positions is None else positions - deletes.positions
    positions = BitMap64()
    for batch in read_file(files.io, replace(part, deletes=deletes)):
        if condition is not None:
            batch = filtered(batch, pc.fill_null(evaluate_rows(condition.filter, batch), False))
        positions |= bitmap_of(np.asarray(batch.column(POS.name)))
    return positions


def write_survivors(files: PlannedFiles, positions: Positions) -> pa.Table:
    """Write the live rows of the files in ``positions`` to new files, without those positions; returns the entries."""
    touched = files.only(positions)

    def survivors(part: FileRead) -> Iterator[pa.RecordBatch]:
        return rows_to_rewrite(touched, part, files.deleted_rows.of(part.location).also(positions[part.location]))

    return rewrite_files(touched, survivors)
