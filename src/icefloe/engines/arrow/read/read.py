"""A plan read in this process: files and their parts in parallel, rows in the order of the plan (spec: Scan Planning).

Every file is read as the table sees it now, without its deleted rows, and filtered where planning could not already
say that all of its rows match. A large file is read in several parts at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.arrow.read.parallel_streams import in_order
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.prune.stats_eval import Match
from icefloe.formats.read.inherited_columns import Lineage
from icefloe.formats.read.reader import read_file
from icefloe.formats.read.row_group_pruning import WHOLE, Share
from icefloe.formats.read.row_mask import NO_DROPS, FileDrops
from icefloe.io.file_io import FileIO
from icefloe.io.storage_locations import scheme_family
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.metadata.error_context import NOWHERE, Origin
from icefloe.model.schema.metadata_columns import PARTITION_ID
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Struct
from icefloe.scan.identity_columns import identity_columns, identity_values
from icefloe.scan.partition_struct import partition_tuples
from icefloe.scan.tasks import Plan

MAX_THREADS = 8
PART_BYTES = 16 * 1024 * 1024  # of a file that tells how many pieces it has
FEW_BYTES = 256 * 1024
_PARTS_PER_PROCESSOR = 4  # or more, so that none has nothing to do for long while the last part is read
BLIND_PART_BYTES = 64 * 1024 * 1024  # of any other: it may turn out to be one piece


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """One file of a plan, or a part of one; ``filter`` is what remains to be tested on its rows.

    ``constants`` are its partition values by column id, for columns that it may not hold; ``lineage`` is what its rows
    inherit; ``mapping`` gives ids to the columns of a file without any.
    """

    location: str
    rows: int | None  # unknown if the entry does not say it
    filter: Expr
    constants: Mapping[int, pa.Scalar]
    lineage: Lineage
    file_format: str | None = "parquet"
    mapping: NameMapping | None = None
    size: int = 0
    pieces: int | None = None  # how many there are in the file, if its entry tells
    share: Share = WHOLE
    alone: bool = True  # whether it may take all processors
    origin: Origin = NOWHERE  # what is read, for errors

    @property
    def row_count(self) -> int:
        """How many rows the file has; InputError if the plan does not say it (see ``Plan.counted``)."""
        if self.rows is None:
            raise InputError(f"{self.location}: the number of rows is unknown; count the rows of the plan first")
        return self.rows

    def parts(self) -> tuple[FileTask, ...]:
        """The file in parts that can be read at the same time; their rows, one after the other, are the file's."""
        if self.share != WHOLE or self.file_format == "avro":
            return (self,)  # every part of an Avro file would have to go through all of its blocks
        if self.pieces is None:
            count = self.size // BLIND_PART_BYTES
        else:
            count = min(self.size // PART_BYTES, self.pieces)
        return tuple(replace(self, share=Share(index=index, of=max(1, count))) for index in range(max(1, count)))


def file_tasks(plan: Plan) -> Iterator[FileTask]:
    """The files of a plan, one by one."""
    names = ["location", "file_format", "record_count", "file_size_in_bytes", "match", "residual"]
    tasks = plan.tasks.select(names)
    tasks = tasks.append_column("pieces", pc.list_value_length(plan.tasks["split_offsets"]))
    constants, lineages, mapping, few = _constants(plan), _lineages(plan), plan.file_mapping, _has_few_parts(plan)
    for batch in tasks.to_batches(max_chunksize=1024):
        for location, kind, rows, size, match, left, pieces in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            rest = plan.filter if left is None else plan.residuals[left]
            yield FileTask(
                location=location,
                rows=rows,
                filter=ALWAYS_TRUE if match == Match.ALL else rest,
                constants=next(constants),
                lineage=next(lineages),
                file_format=kind,
                mapping=mapping,
                size=size,
                pieces=pieces,
                alone=few or match != Match.ALL,  # a filter may leave one piece of a file
                origin=plan.origin,
            )


def _has_few_parts(plan: Plan) -> bool:
    """Whether there are too few to keep every processor at work, so that each part may take several."""
    processors = os.cpu_count() or 1
    pieces = pc.fill_null(pc.list_value_length(plan.tasks["split_offsets"]), 1)
    parts = pc.min_element_wise(pc.divide(plan.tasks["file_size_in_bytes"], PART_BYTES), pieces)
    count = pc.sum(pc.max_element_wise(parts, 1)).as_py() or 0
    return processors > MAX_THREADS or count < _PARTS_PER_PROCESSOR * processors


def _lineages(plan: Plan) -> Iterator[Lineage]:
    """What the rows of each file inherit; partition tuples only if they are asked for."""
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
        yield {id_: found.values[row] for id_, found in values.items() if found.known[row].as_py()}


def reading_threads(plan: Plan | None = None) -> int:
    """How many files or parts of files to read at the same time, if there are that many.

    Where the files of ``plan`` are far away, threads mostly wait, and there are more of them than processors. Few bytes
    nearby are read sooner than threads are started.
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
    """The rows of one task, which match its filter or, if there is one, ``filter`` instead."""
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
            alone=task.alone,
        )


def read_plan(io: FileIO, plan: Plan, drops: DeletedRows | None = None) -> pa.RecordBatchReader:
    """The rows of a plan as a stream of batches; ``drops`` is what its files have lost, by default what it says."""
    lost = plan.deleted_rows(io) if drops is None else drops

    def rows(part: FileTask) -> Iterator[pa.RecordBatch]:
        gone = lost.of(part.location)
        return read_task(io, part, schema=plan.schema, table_schema=plan.table_schema, drops=gone)

    batches = in_order((partial(rows, part) for part in _parts(plan)), threads=reading_threads(plan))
    return pa.RecordBatchReader.from_batches(arrow_schema(plan.schema), batches)


def count_plan(io: FileIO, plan: Plan, drops: DeletedRows | None = None) -> int:
    """How many rows a plan has; of files that must be read for it, only the columns that decide."""
    lost, nothing = plan.deleted_rows(io) if drops is None else drops, Schema(fields=())

    def rows(part: FileTask) -> Iterator[int]:
        gone = lost.of(part.location)
        if part.filter == ALWAYS_TRUE and len(gone.tests) == 0 and part.rows is not None:
            dead = 0 if gone.positions is None or part.rows == 0 else gone.positions.rank(part.rows - 1)
            yield part.rows - dead if part.share.index == 0 else 0
            return
        for batch in read_task(io, part, schema=nothing, table_schema=plan.table_schema, drops=gone):
            yield batch.num_rows

    return sum(in_order((partial(rows, part) for part in _parts(plan)), threads=reading_threads(plan)))


def _parts(plan: Plan) -> Iterator[FileTask]:
    return (part for task in file_tasks(plan) for part in task.parts())
