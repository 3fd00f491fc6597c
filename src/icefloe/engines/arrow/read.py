"""A plan read in this process: files in parallel, rows in the order of the plan (spec: Scan Planning).

Every file is read as the table sees it now, without its deleted rows, and filtered where planning could not already
say that all of its rows match.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyroaring import BitMap64

from icefloe.engines.arrow.streams import in_order
from icefloe.engines.engine import check_readable
from icefloe.errors import UnsupportedError
from icefloe.expr.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.stats_eval import Match
from icefloe.formats.inherited import Lineage
from icefloe.formats.parquet_reader import read_file
from icefloe.formats.parquet_stats import PARQUET
from icefloe.io.file_io import FileIO
from icefloe.model.arrow import arrow_schema
from icefloe.scan.identity import identity_columns, identity_values
from icefloe.scan.tasks import Plan

MAX_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """One file of a plan; ``filter`` is what remains to be tested on its rows.

    ``constants`` are its partition values by column id, for columns that it may not hold; ``lineage`` is what its rows
    inherit.
    """

    location: str
    rows: int
    filter: Expr
    constants: Mapping[int, pa.Scalar]
    lineage: Lineage


def file_tasks(plan: Plan) -> Iterator[FileTask]:
    """The files of a plan, one by one; a plan that cannot be read is refused before the first."""
    check_readable(plan)
    return _file_tasks(plan)


def _file_tasks(plan: Plan) -> Iterator[FileTask]:
    names = ["location", "file_format", "record_count", "match", "residual", "first_row_id", "sequence_number"]
    constants = _constants(plan)
    for batch in plan.tasks.select(names).to_batches(max_chunksize=1024):
        for location, kind, rows, match, left, first, number in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if kind is not None and kind.lower() != PARQUET:
                raise UnsupportedError(f"{location}: data files of format {kind} are not handled yet", format=kind)
            rest = plan.filter if left is None else plan.residuals[left]
            filter_ = ALWAYS_TRUE if match == Match.ALL else rest
            lineage = Lineage(first_row_id=first, sequence_number=number)
            yield FileTask(location=location, rows=rows, filter=filter_, constants=next(constants), lineage=lineage)


def _constants(plan: Plan) -> Iterator[Mapping[int, pa.Scalar]]:
    """The partition values of each file, by column."""
    fields = [plan.table_schema.by_id[id_] for id_ in identity_columns(plan.specs) if id_ in plan.table_schema.by_id]
    values = {field.id: identity_values(plan.tasks, plan.specs, field) for field in fields}
    for row in range(plan.files):
        yield {id_: found.values[row] for id_, found in values.items() if found.known[row].as_py()}


def threads_for(plan: Plan) -> int:
    """How many files to read at the same time."""
    return min(plan.files, MAX_THREADS, os.cpu_count() or 1)


def read_plan(io: FileIO, plan: Plan, vectors: Mapping[str, BitMap64]) -> pa.RecordBatchReader:
    """The rows of a plan as a stream of batches; ``vectors`` has the deleted positions of files that have any."""

    def source(task: FileTask) -> Callable[[], Iterator[pa.RecordBatch]]:
        return partial(
            read_file,
            io,
            task.location,
            schema=plan.schema,
            filter=task.filter,
            table_schema=plan.table_schema,
            deleted=vectors.get(task.location),
            constants=task.constants,
            lineage=task.lineage,
        )

    tasks = file_tasks(plan)
    batches = in_order((source(task) for task in tasks), threads=threads_for(plan))
    return pa.RecordBatchReader.from_batches(arrow_schema(plan.schema), batches)
