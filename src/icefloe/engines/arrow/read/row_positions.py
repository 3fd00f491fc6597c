"""Rows of planned files with where they lie, in chunks that are worth asking an index for.

Files are read at the same time; their rows come in the order of the plan, and small files are put together.
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

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.arrow.read.parallel_streams import in_order
from icefloe.engines.arrow.read.read import FileTask, file_tasks, read_task, reading_threads
from icefloe.engines.engine import Positions
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.row_mask import FileDrops
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import Plan

Ints: TypeAlias = npt.NDArray[np.int64]
_Located: TypeAlias = tuple[str, pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Rows of one file or of several, one after the other; ``ends`` are where in ``rows`` those of a file end."""

    rows: pa.RecordBatch
    files: tuple[str, ...]
    ends: Ints

    def by_file(self, places: Ints) -> Iterator[tuple[str, slice]]:
        """Which part of these places, which ascend, is of which file; files without any are left out."""
        bounds = np.concatenate([[0], np.searchsorted(places, self.ends)])
        for file, first, last in zip(self.files, bounds[:-1], bounds[1:], strict=True):
            if last > first:
                yield file, slice(int(first), int(last))

    @property
    def positions(self) -> Ints:
        """Where the rows lie in their files."""
        found: Ints = self.rows.column(POS.name).to_numpy()
        return found


def located_rows(
    io: FileIO, plan: Plan, drops: DeletedRows, schema: Schema, *, at_least: int
) -> Generator[Chunk, None, None]:
    """Live rows that match the plan's filter; ``schema`` has the columns to read, the position among them."""

    def rows(part: FileTask) -> Iterator[_Located]:
        lost = drops.of(part.location)
        for batch in read_task(io, part, schema=schema, table_schema=plan.table_schema, drops=lost):
            yield part.location, batch

    return _gathered(plan, rows, schema, at_least)


def rows_at(
    io: FileIO, plan: Plan, wanted: Positions, schema: Schema, *, at_least: int
) -> Generator[Chunk, None, None]:
    """The rows at these positions of the planned files; ``schema`` has the columns to read, the position among them."""

    def rows(part: FileTask) -> Iterator[_Located]:
        others = BitMap64()
        others.add_range(0, part.row_count)
        lost = FileDrops(positions=others - wanted[part.location])
        for batch in read_task(io, part, schema=schema, filter=ALWAYS_TRUE, drops=lost):
            yield part.location, batch

    return _gathered(plan, rows, schema, at_least)


def _gathered(
    plan: Plan, rows: Callable[[FileTask], Iterator[_Located]], schema: Schema, at_least: int
) -> Generator[Chunk, None, None]:
    """What ``rows`` makes of every file, in chunks of some size."""

    parts = (part for task in file_tasks(plan) for part in task.parts())
    waiting: list[_Located] = []
    gathered = 0
    for item in in_order((partial(rows, part) for part in parts), threads=reading_threads()):
        waiting.append(item)
        gathered += item[1].num_rows
        if gathered >= at_least:
            yield _chunk(waiting, schema)
            waiting, gathered = [], 0
    if gathered > 0:
        yield _chunk(waiting, schema)


def _chunk(items: list[_Located], schema: Schema) -> Chunk:
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
