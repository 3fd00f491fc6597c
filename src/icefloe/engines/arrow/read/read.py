"""Reads a plan in this process: files in parallel, rows in the order of the plan (spec: Scan Planning).

Every file is read with the columns of the table, without its deleted rows. Rows are filtered unless planning knows that
all rows of the file match. A large file is read in several parts at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.bitmaps import within
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.arrow.read.parallel_streams import in_order
from icefloe.errors import InputError
from icefloe.expr.filter.batch_filter import evaluate_rows
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.prune.stats_eval import Match
from icefloe.formats.read.align import Aligner
from icefloe.formats.read.inherited_columns import Lineage
from icefloe.formats.read.reader import read_file
from icefloe.formats.read.row_group_pruning import WHOLE, Share
from icefloe.formats.read.row_group_reader import merged
from icefloe.formats.read.row_mask import NO_DROPS, FileDrops, filtered
from icefloe.io.file_io import FileIO
from icefloe.io.storage_locations import scheme_family
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.metadata.error_context import NOWHERE, Origin
from icefloe.model.schema.metadata_columns import DELETED, PARTITION_ID
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Struct
from icefloe.scan.partition_values import identity_columns, identity_values, partition_tuples
from icefloe.scan.tasks import MetadataFilter, Plan

MAX_THREADS = 8
PART_BYTES = 16 * 1024 * 1024  # of a file whose number of row groups is known
FEW_BYTES = 256 * 1024
_PARTS_PER_PROCESSOR = 4  # at least, so that all processors are busy until shortly before the end
_VECTORS_AT_ONCE = 1024  # deletion vectors that are read together
UNKNOWN_PART_BYTES = 64 * 1024 * 1024  # of other files, which may have one row group only


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """One file of a plan, or a part of one; ``filter`` is the filter that its rows must still satisfy.

    ``constants`` are its partition values by column id, for columns that the file may lack. ``lineage`` is what its
    rows inherit. ``mapping`` gives ids to the columns of a file without ids.
    """

    location: str
    rows: int | None  # none if the entry of the file does not state it
    filter: Expr
    constants: Mapping[int, pa.Scalar]
    lineage: Lineage
    file_format: str | None = "parquet"
    mapping: NameMapping | None = None
    size: int = 0
    row_groups: int | None = None  # none if the entry of the file does not state it
    share: Share = WHOLE
    uses_all_processors: bool = True
    origin: Origin = NOWHERE  # what is read, for errors

    @property
    def row_count(self) -> int:
        """The number of rows of the file; InputError if the plan does not state it (see ``Plan.counted``)."""
        if self.rows is None:
            raise InputError(f"{self.location}: the number of rows is unknown; count the rows of the plan first")
        return self.rows

    def parts(self) -> tuple[FileTask, ...]:
        """The file in parts that can be read in parallel; the rows of the parts in order are those of the file."""
        if self.share != WHOLE or self.file_format == "avro":
            return (self,)  # reading a part of an Avro file means reading all blocks before it
        if self.row_groups is None:
            count = self.size // UNKNOWN_PART_BYTES
        else:
            count = min(self.size // PART_BYTES, self.row_groups)
        return tuple(replace(self, share=Share(index=index, of=max(1, count))) for index in range(max(1, count)))


def file_tasks(plan: Plan) -> Iterator[FileTask]:
    """The files of a plan, one by one."""
    names = ["location", "file_format", "record_count", "file_size_in_bytes", "match", "residual"]
    tasks = plan.tasks.select(names)
    tasks = tasks.append_column("row_groups", pc.list_value_length(plan.tasks["split_offsets"]))
    constants, lineages, mapping, few = _constants(plan), _lineages(plan), plan.file_mapping, _has_few_parts(plan)
    for batch in tasks.to_batches(max_chunksize=1024):
        for location, file_format, rows, size, match, residual, row_groups in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            remaining = plan.filter if residual is None else plan.residuals[residual]
            yield FileTask(
                location=location,
                rows=rows,
                filter=ALWAYS_TRUE if match == Match.ALL else remaining,
                constants=next(constants),
                lineage=next(lineages),
                file_format=file_format,
                mapping=mapping,
                size=size,
                row_groups=row_groups,
                uses_all_processors=few or match != Match.ALL,  # a filter may leave one row group of a file
                origin=plan.origin,
            )


def _has_few_parts(plan: Plan) -> bool:
    """Whether there are too few parts to keep every processor busy, so that each part may use several."""
    processors = os.cpu_count() or 1
    row_groups = pc.fill_null(pc.list_value_length(plan.tasks["split_offsets"]), 1)
    parts = pc.min_element_wise(pc.divide(plan.tasks["file_size_in_bytes"], PART_BYTES), row_groups)
    count = pc.sum(pc.max_element_wise(parts, 1)).as_py() or 0
    return processors > MAX_THREADS or count < _PARTS_PER_PROCESSOR * processors


def _lineages(plan: Plan) -> Iterator[Lineage]:
    """What the rows of each file inherit; partition tuples only if the plan selects them."""
    tuples: Iterator[pa.StructScalar | None] = repeat(None)
    for field in plan.schema.fields:
        if field.id == PARTITION_ID and isinstance(field.type, Struct):
            tuples = iter(partition_tuples(plan.tasks, field.type))
    names = ["first_row_id", "sequence_number", "partition_spec_id"]
    for batch in plan.tasks.select(names).to_batches(max_chunksize=1024):
        for first, number, spec in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield Lineage(first_row_id=first, sequence_number=number, spec_id=spec, partition=next(tuples))


def _constants(plan: Plan) -> Iterator[Mapping[int, pa.Scalar]]:
    """The partition values of each file, by column."""
    fields = [plan.table_schema.by_id[id_] for id_ in identity_columns(plan.specs) if id_ in plan.table_schema.by_id]
    values = {field.id: identity_values(plan.tasks, plan.specs, field) for field in fields}
    for row in range(plan.files):
        yield {id_: column.values[row] for id_, column in values.items() if column.known[row].as_py()}


def reading_threads(plan: Plan | None = None) -> int:
    """The largest number of files or parts of files to read at the same time.

    Threads that read from object stores mostly wait, so there are more of them than processors. A few local bytes are
    read in less time than threads take to start.
    """
    if plan is not None and plan.files > 0:
        scheme = plan.tasks["location"][0].as_py().partition("://")[0]
        if len(scheme_family(scheme)) > 0:
            return MAX_THREADS
        if pc.sum(plan.tasks["file_size_in_bytes"]).as_py() < FEW_BYTES:
            return 1
    return min(MAX_THREADS, os.cpu_count() or 1)


def read_task(
    io: FileIO,
    task: FileTask,
    *,
    schema: Schema,
    table_schema: Schema | None = None,
    filter: Expr | None = None,
    drops: FileDrops = NO_DROPS,
    row_positions: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of one task that match its filter, or ``filter`` if that is given."""
    with task.origin.named():
        yield from read_file(
            io,
            task.location,
            file_format=task.file_format,
            schema=schema,
            filter=task.filter if filter is None else filter,
            table_schema=table_schema,
            drops=drops,
            constants=task.constants,
            lineage=task.lineage,
            mapping=task.mapping,
            row_positions=row_positions,
            share=task.share,
            alone=task.uses_all_processors,
        )


def read_plan(io: FileIO, plan: Plan, deleted_rows: DeletedRows | None = None) -> pa.RecordBatchReader:
    """The rows of a plan as a stream of batches; ``deleted_rows`` are by default those that the plan states."""
    if plan.metadata_filter is not None:
        return _filtered_by_metadata(io, plan, plan.metadata_filter, deleted_rows)
    deletes = plan.deleted_rows(io) if deleted_rows is None else deleted_rows

    def rows(part: FileTask) -> Iterator[pa.RecordBatch]:
        drops = deletes.of(part.location)
        return read_task(io, part, schema=plan.schema, table_schema=plan.table_schema, drops=drops)

    batches = in_order((partial(rows, part) for part in file_parts(plan)), threads=reading_threads(plan))
    return pa.RecordBatchReader.from_batches(arrow_schema(plan.schema), batches)


def _filtered_by_metadata(
    io: FileIO, plan: Plan, condition: MetadataFilter, deleted_rows: DeletedRows | None
) -> pa.RecordBatchReader:
    """The rows that satisfy a condition on metadata columns, which are read for it and left out of the result."""
    needed = Schema(fields=merged(plan.schema.fields, condition.columns.fields))
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
    counted = int(pc.sum(known["record_count"], min_count=0).as_py()) - _count_deleted(io, plan.with_tasks(known))
    return counted + count_rows(io, plan.with_tasks(tasks.filter(pc.invert(is_known))))


def _count_deleted(io: FileIO, plan: Plan) -> int:
    """The number of rows that vectors delete; their entries may count rows that the files do not have."""
    with_vector = plan.tasks.filter(pc.is_valid(plan.tasks["dv_location"]))
    deleted_rows, count = plan.deleted_rows(io), 0
    for batch in with_vector.select(["location", "record_count"]).to_batches(max_chunksize=_VECTORS_AT_ONCE):
        row_counts = dict(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for file, positions in deleted_rows.positions(row_counts).items():
            count += len(within(positions, row_counts[file]))
    return count


def count_rows(io: FileIO, plan: Plan, deleted_rows: DeletedRows | None = None) -> int:
    """The number of rows of a plan, counted in its files; only the columns of the filter are read."""
    deletes, no_columns = plan.deleted_rows(io) if deleted_rows is None else deleted_rows, Schema(fields=())

    def rows(part: FileTask) -> Iterator[int]:
        drops = deletes.of(part.location)
        if part.filter == ALWAYS_TRUE and len(drops.tests) == 0 and part.rows is not None:
            deleted = 0 if drops.positions is None or part.rows == 0 else drops.positions.rank(part.rows - 1)
            yield part.rows - deleted if part.share.index == 0 else 0
            return
        for batch in read_task(io, part, schema=no_columns, table_schema=plan.table_schema, drops=drops):
            yield batch.num_rows

    return sum(in_order((partial(rows, part) for part in file_parts(plan)), threads=reading_threads(plan)))


def file_parts(plan: Plan) -> Iterator[FileTask]:
    """The files of a plan in parts that can be read in parallel."""
    return (part for task in file_tasks(plan) for part in task.parts())
