"""Reads a plan in this process: files in parallel, rows in the order of the plan (spec: Scan Planning).

Every file is read with the columns of the table, without its deleted rows. Rows are filtered unless planning knows that
all rows of the file match. A large file is read in several parts at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.arrow.read.parallel_streams import in_order
from icefloe.expr.filter.batch_filter import evaluate_rows
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.expr.prune.stats_eval import Match
from icefloe.formats.read.align import Aligner
from icefloe.formats.read.batches import filtered
from icefloe.formats.read.file_read import FilePart, FileRead
from icefloe.formats.read.reader import read_file
from icefloe.io.file_io import FileIO
from icefloe.io.storage_locations import scheme_family
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import DELETED
from icefloe.model.schema.schema import Schema, merged_fields
from icefloe.scan.aggregates import deleted_by_vectors
from icefloe.scan.file_reads import file_reads
from icefloe.scan.tasks import MetadataFilter, Plan

T = TypeVar("T")

MAX_THREADS = 8
PART_BYTES = 16 * 1024 * 1024  # of a file whose number of row groups is known
UNKNOWN_PART_BYTES = 64 * 1024 * 1024  # of other files, which may have one row group only
FEW_BYTES = 256 * 1024
_PARTS_PER_PROCESSOR = 4  # at least, so that all processors are busy until shortly before the end


def whole_files(plan: Plan) -> Iterator[FileRead]:
    """The files of a plan, one by one, with the filter that their rows must still satisfy."""
    read = FileRead(
        location="",
        schema=plan.schema,
        table_schema=plan.table_schema,
        mapping=plan.file_mapping,
        origin=plan.origin,
    )
    few_parts = int(_part_counts(plan).sum()) < _PARTS_PER_PROCESSOR * _processors()
    use_threads = few_parts or _processors() > MAX_THREADS
    filters = (plan.tasks[name].to_pylist() for name in ("match", "residual"))
    for file, match, residual in zip(file_reads(plan.tasks, read, plan.specs), *filters, strict=True):
        if match == Match.ALL:
            yield replace(file, use_threads=use_threads)
        else:  # a filter may leave one row group of a file, which is then decoded with threads
            yield replace(file, filter=plan.filter if residual is None else plan.residuals[residual])


def file_parts(plan: Plan) -> Iterator[FileRead]:
    """The files of a plan in parts that can be read in parallel, in the order of their rows."""
    for file, count in zip(whole_files(plan), _part_counts(plan).tolist(), strict=True):
        for index in range(count):
            yield file if count == 1 else replace(file, part=FilePart(index=index, count=count))


def _part_counts(plan: Plan) -> npt.NDArray[np.int64]:
    """The number of parts of each file, by its size and row groups.

    Avro files are read whole, as reading a part means reading all blocks before it.
    """
    sizes, row_groups = plan.tasks["file_size_in_bytes"], pc.list_value_length(plan.tasks["split_offsets"])
    known = pc.min_element_wise(pc.divide(sizes, PART_BYTES), row_groups, skip_nulls=False)
    counts = pc.coalesce(known, pc.divide(sizes, UNKNOWN_PART_BYTES))
    is_avro = pc.fill_null(pc.equal(plan.tasks["file_format"], "avro"), False)
    parts: npt.NDArray[np.int64] = np.asarray(pc.if_else(is_avro, 1, pc.max_element_wise(counts, 1)), np.int64)
    return parts


def _processors() -> int:
    return os.cpu_count() or 1


def reading_threads(plan: Plan) -> int:
    """The largest number of files or parts of files to read at the same time.

    Threads that read from object stores mostly wait, so there are more of them than processors. A few local bytes are
    read in less time than threads take to start.
    """
    if plan.files > 0:
        scheme = plan.tasks["location"][0].as_py().partition("://")[0]
        if len(scheme_family(scheme)) > 0:
            return MAX_THREADS
        if pc.sum(plan.tasks["file_size_in_bytes"]).as_py() < FEW_BYTES:
            return 1
    return min(MAX_THREADS, _processors())


def read_in_parallel(plan: Plan, items: Callable[[FileRead], Iterator[T]]) -> Iterator[T]:
    """What ``items`` returns for the parts of the files of a plan, in the order of the plan."""
    return in_order((partial(items, part) for part in file_parts(plan)), threads=reading_threads(plan))


def read_plan(io: FileIO, plan: Plan, deleted_rows: DeletedRows | None = None) -> pa.RecordBatchReader:
    """The rows of a plan as a stream of batches; ``deleted_rows`` are by default those that the plan states."""
    if plan.metadata_filter is not None:
        return _filtered_by_metadata(io, plan, plan.metadata_filter, deleted_rows)
    deleted = plan.deleted_rows(io) if deleted_rows is None else deleted_rows

    def rows(part: FileRead) -> Iterator[pa.RecordBatch]:
        return read_file(io, replace(part, deletes=deleted.of(part.location)))

    return pa.RecordBatchReader.from_batches(arrow_schema(plan.schema), read_in_parallel(plan, rows))


def _filtered_by_metadata(
    io: FileIO, plan: Plan, condition: MetadataFilter, deleted_rows: DeletedRows | None
) -> pa.RecordBatchReader:
    """The rows that satisfy a condition on metadata columns, which are read for it and left out of the result."""
    needed = Schema(fields=merged_fields(plan.schema.fields, condition.columns.fields))
    reader = read_plan(io, replace(plan, schema=needed, metadata_filter=None), deleted_rows)
    align = Aligner(reader.schema, plan.schema, "", {})

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            rows = filtered(batch, pc.fill_null(evaluate_rows(condition.filter, batch), False))
            if rows.num_rows > 0:
                yield align(rows)

    return pa.RecordBatchReader.from_batches(arrow_schema(plan.schema), batches())


def count_plan(io: FileIO, plan: Plan) -> int:
    """The number of rows of a plan; of most files in which every row matches, only the deletes are read.

    The files themselves are read only if they have delete files, or their entries do not state how many rows they have.
    """
    if DELETED in plan.schema.fields:
        return sum(batch.num_rows for batch in read_plan(io, plan))
    if plan.metadata_filter is not None:
        tested = replace(plan, schema=plan.metadata_filter.columns)
        return sum(batch.num_rows for batch in read_plan(io, tested))
    tasks = plan.tasks
    is_known = pc.and_(pc.equal(tasks["match"], int(Match.ALL)), pc.equal(pc.list_value_length(tasks["deletes"]), 0))
    is_known = pc.and_(is_known, pc.is_valid(tasks["record_count"]))
    known = tasks.filter(is_known)
    deleted = pc.sum(deleted_by_vectors(io, plan.with_tasks(known)), min_count=0)
    counted = int(pc.sum(known["record_count"], min_count=0).as_py()) - int(deleted.as_py())
    return counted + count_rows(io, plan.with_tasks(tasks.filter(pc.invert(is_known))))


def count_rows(io: FileIO, plan: Plan, deleted_rows: DeletedRows | None = None) -> int:
    """The number of rows of a plan, counted in its files; only the columns of the filter are read."""
    deleted = plan.deleted_rows(io) if deleted_rows is None else deleted_rows

    def counts(part: FileRead) -> Iterator[int]:
        deletes, rows = deleted.of(part.location), part.record_count
        if part.filter != ALWAYS_TRUE or len(deletes.tests) > 0 or rows is None:
            yield from (batch.num_rows for batch in read_file(io, replace(part, deletes=deletes)))
        elif part.part.index == 0:
            yield rows if deletes.positions is None or rows == 0 else rows - deletes.positions.rank(rows - 1)

    return sum(read_in_parallel(replace(plan, schema=Schema(fields=())), counts))
