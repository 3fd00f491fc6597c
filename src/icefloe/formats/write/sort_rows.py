"""Sorts rows by a table's sort order before they are written (spec: Sorting).

Rows in memory are sorted together. A stream is sorted in runs, each as large as memory allows, and every run is written
to its own files: the rows of each file are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.schema.schema import Schema
from icefloe.transforms import transform_of
from icefloe.transforms.source_columns import column_path


def usable(order: SortOrder, schema: Schema) -> SortOrder:
    """The order, or none if rows cannot be sorted by it: writers are not required to sort."""
    for field in order.fields:
        known = all(len(column_path(schema, id_)) > 0 for id_ in field.source_ids)
        if not known or not transform_of(field).is_known:
            return UNSORTED
    return order


def ordered_ids(order: SortOrder) -> frozenset[int]:
    """The source columns of transforms that preserve order."""
    return frozenset(field.source_id for field in order.fields if transform_of(field).preserves_order)


def sorted_runs(
    rows: pa.Table | Iterable[pa.RecordBatch],
    sort: Callable[[pa.Table], pa.Array],
    *,
    run_bytes: int,
    batch_rows: int,
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Sorted runs of rows, in batches of ``batch_rows``; a table is one run of any size.

    ``sort`` returns the row numbers of a run in its order.
    """
    for run in (rows,) if isinstance(rows, pa.Table) else _runs(rows, run_bytes):
        compact = run.combine_chunks() if run.nbytes <= run_bytes else run
        yield _in_order(compact, sort(compact), batch_rows)


def _runs(batches: Iterable[pa.RecordBatch], run_bytes: int) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in batches:
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= run_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, waiting_bytes = [], 0
    if len(waiting) > 0:
        yield pa.Table.from_batches(waiting)


def _in_order(run: pa.Table, order: pa.Array, batch_rows: int) -> Iterator[pa.RecordBatch]:
    if np.array_equal(np.asarray(order), np.arange(run.num_rows)):
        yield from run.to_batches()
        return
    for start in range(0, run.num_rows, batch_rows):
        yield from run.take(order.slice(start, batch_rows)).to_batches()
