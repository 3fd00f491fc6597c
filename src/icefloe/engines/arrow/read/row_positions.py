"""Reads rows of planned files with their positions, in chunks large enough to search an index with.

Files are read in parallel. Rows come in the order of the plan, and small files share a chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import all_positions, bitmap_of
from icefloe.engines.arrow.read.parallel_streams import in_order
from icefloe.engines.arrow.read.read import FileTask, file_tasks, read_task, reading_threads
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.row_mask import FileDrops
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import Plan

Ints: TypeAlias = npt.NDArray[np.int64]
_FileBatch: TypeAlias = tuple[str, pa.RecordBatch]  # with the location of its file


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Rows of one or several files in order; ``ends`` has for each file the index in ``rows`` after its last row."""

    rows: pa.RecordBatch
    files: tuple[str, ...]
    ends: Ints

    def by_file(self, rows: Ints) -> Iterator[tuple[str, slice]]:
        """The slice of these ascending row indices that belongs to each file; files without any are left out."""
        bounds = np.concatenate([[0], np.searchsorted(rows, self.ends)])
        for file, first, last in zip(self.files, bounds[:-1], bounds[1:], strict=True):
            if last > first:
                yield file, slice(int(first), int(last))

    @property
    def positions(self) -> Ints:
        """The positions of the rows in their files."""
        positions: Ints = self.rows.column(POS.name).to_numpy()
        return positions


def add_positions(positions: dict[str, BitMap64], file: str, more: Ints) -> None:
    """Add positions of rows of one file."""
    known = positions.get(file)
    positions[file] = bitmap_of(more) if known is None else known | bitmap_of(more)


def rows_with_positions(files: PlannedFiles, schema: Schema, *, min_rows: int) -> Generator[Chunk, None, None]:
    """Live rows that match the plan's filter; ``schema`` has the columns to read, the position among them."""

    def batches(part: FileTask) -> Iterator[_FileBatch]:
        deletes, table_schema = files.deleted_rows.of(part.location), files.plan.table_schema
        for batch in read_task(files.io, part, schema=schema, table_schema=table_schema, drops=deletes):
            yield part.location, batch

    return _chunks(files.plan, batches, schema, min_rows)


def rows_at(
    files: PlannedFiles, positions: Positions, schema: Schema, *, min_rows: int
) -> Generator[Chunk, None, None]:
    """The rows at these positions of the planned files; ``schema`` has the columns to read, the position among them."""

    def batches(part: FileTask) -> Iterator[_FileBatch]:
        others = FileDrops(positions=all_positions(part.row_count) - positions[part.location])
        for batch in read_task(files.io, part, schema=schema, filter=ALWAYS_TRUE, drops=others):
            yield part.location, batch

    return _chunks(files.plan, batches, schema, min_rows)


def _chunks(
    plan: Plan, batches: Callable[[FileTask], Iterator[_FileBatch]], schema: Schema, min_rows: int
) -> Generator[Chunk, None, None]:
    parts = (part for task in file_tasks(plan) for part in task.parts())
    collected: list[_FileBatch] = []
    rows = 0
    for item in in_order((partial(batches, part) for part in parts), threads=reading_threads()):
        collected.append(item)
        rows += item[1].num_rows
        if rows >= min_rows:
            yield _chunk(collected, schema)
            collected, rows = [], 0
    if rows > 0:
        yield _chunk(collected, schema)


def _chunk(items: list[_FileBatch], schema: Schema) -> Chunk:
    files: list[str] = []
    ends: list[int] = []
    end = 0
    for file, batch in items:
        end += batch.num_rows
        if len(files) > 0 and files[-1] == file:
            ends[-1] = end
        else:
            files.append(file)
            ends.append(end)
    batches = [batch for _, batch in items]
    rows = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    rows = pa.RecordBatch.from_arrays(rows.columns, schema=arrow_schema(schema))
    return Chunk(rows=rows, files=tuple(files), ends=np.array(ends, np.int64))
