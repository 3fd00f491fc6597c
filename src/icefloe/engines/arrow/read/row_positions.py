"""Reads rows of planned files with their positions, in chunks large enough to search an index with.

Files are read in parallel. Rows come in the order of the plan, and small files share a chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.deletes.deleted_rows import all_except
from icefloe.engines.arrow.read.plan_reader import read_in_parallel
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema

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


def rows_with_positions(files: PlannedFiles, schema: Schema, *, min_rows: int) -> Generator[Chunk, None, None]:
    """Live rows that match the plan's filter; ``schema`` has the columns to read, the position among them."""

    def live(part: FileRead) -> FileRead:
        return replace(part, deletes=files.deleted_rows.of(part.location))

    return _chunks(files, live, schema, min_rows)


def rows_at(
    files: PlannedFiles, positions: Positions, schema: Schema, *, min_rows: int
) -> Generator[Chunk, None, None]:
    """The rows at these positions of the planned files; ``schema`` has the columns to read, the position among them."""

    def chosen(part: FileRead) -> FileRead:
        return replace(part, filter=ALWAYS_TRUE, deletes=all_except(positions[part.location], part.row_count))

    return _chunks(files, chosen, schema, min_rows)


def _chunks(
    files: PlannedFiles, rows_of: Callable[[FileRead], FileRead], schema: Schema, min_rows: int
) -> Generator[Chunk, None, None]:
    def batches(part: FileRead) -> Iterator[_FileBatch]:
        return ((part.location, batch) for batch in read_file(files.io, rows_of(part)))

    collected: list[_FileBatch] = []
    rows = 0
    for item in read_in_parallel(replace(files.plan, schema=schema), batches):
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
