"""Rows deleted in this process: found by position, or left out of rewritten files (spec: Row-level Deletes).

Matching is decided once, by reading only the columns of the filter. Merge-on-read takes the positions as they are;
copy-on-write rewrites just the files that keep some of their rows. A row whose filter is null is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.engines.arrow.read import FileTask, file_tasks, threads_for
from icefloe.engines.arrow.streams import in_order
from icefloe.engines.arrow.write import data_location
from icefloe.engines.engine import lineage_of
from icefloe.expr.nodes import ALWAYS_TRUE
from icefloe.formats.parquet_reader import read_file
from icefloe.formats.partitioned import write_files
from icefloe.io.file_io import FileIO
from icefloe.model.arrow import conform
from icefloe.model.metadata import TableMetadata
from icefloe.model.metadata_columns import POS
from icefloe.model.schema import Schema
from icefloe.scan.tasks import Plan

_POSITIONS = Schema(fields=(POS,))


def find_rows(io: FileIO, plan: Plan, vectors: Mapping[str, BitMap64]) -> dict[str, BitMap64]:
    """The positions of live rows that match the plan's filter, by file; files without any are left out."""

    def find(task: FileTask) -> BitMap64:
        return _positions(io, plan, task, vectors.get(task.location))

    tasks = list(file_tasks(plan))
    with ThreadPoolExecutor(max(1, threads_for(plan)), thread_name_prefix="icefloe-find") as pool:
        found = list(pool.map(find, tasks))
    return {task.location: rows for task, rows in zip(tasks, found, strict=True) if len(rows) > 0}


def _positions(io: FileIO, plan: Plan, task: FileTask, deleted: BitMap64 | None) -> BitMap64:
    found = BitMap64()
    if task.filter == ALWAYS_TRUE:  # planning knows that all rows match: nothing to read
        found.add_range(0, task.rows)
        return found if deleted is None else found - deleted
    batches = read_file(
        io,
        task.location,
        schema=_POSITIONS,
        filter=task.filter,
        table_schema=plan.table_schema,
        deleted=deleted,
        constants=task.constants,
    )
    for batch in batches:
        found |= BitMap64(np.asarray(batch.column(POS.name)).astype(np.uint64))
    return found


def write_survivors(io: FileIO, plan: Plan, deleted: Mapping[str, BitMap64], metadata: TableMetadata) -> pa.Table:
    """Write the rows of the planned files named in ``deleted`` again, without those positions; the new entries.

    A row that only moves keeps its id and the sequence number of its last change.
    """
    tasks = plan.tasks
    touched = plan.with_tasks(tasks.filter(pc.is_in(tasks["location"], value_set=pa.array(list(deleted), pa.string()))))
    lineage = lineage_of(touched)
    return write_files(
        io,
        _survivors(io, touched, deleted, Schema(fields=(*metadata.schema.fields, *lineage))),
        schema=metadata.schema,
        spec=metadata.spec,
        data_location=data_location(metadata),
        properties=metadata.properties,
        lineage=lineage,
    )


def _survivors(io: FileIO, plan: Plan, deleted: Mapping[str, BitMap64], schema: Schema) -> Iterator[pa.RecordBatch]:
    """Rows that are in none of the bitmaps, ready to be written; files are read at the same time, in order."""

    def source(task: FileTask) -> Callable[[], Iterator[pa.RecordBatch]]:
        return partial(
            read_file,
            io,
            task.location,
            schema=schema,
            deleted=deleted[task.location],
            constants=task.constants,
            lineage=task.lineage,
        )

    for batch in in_order(map(source, file_tasks(plan)), threads=threads_for(plan)):
        # Also where the schema is right: below a null struct, a writer accepts only what conform makes of it.
        yield from conform(pa.Table.from_batches([batch]), schema).to_batches()
