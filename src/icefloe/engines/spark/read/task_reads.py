"""Reads files that Spark's Parquet reader cannot read, inside of Spark's tasks.

These are ORC and Avro files, Parquet files without field ids, files that lack an identity-partition column, and files
with equality deletes that a join cannot apply. The driver lists groups of files: a row per group, with planned files
and their deletes as Arrow streams. Tasks read the files of their groups as the Arrow engine does and apply the deletes.
Spark pushes neither filters nor projections through Python: its filters prune these files only if SQL passes them on,
and all columns of the DataFrame are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StringType, StructType, TimestampType

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.spark.failures import marking
from icefloe.engines.spark.storage import TaskStorage
from icefloe.engines.spark.task_python import arrow_stream
from icefloe.expr.filter.nodes import Bound
from icefloe.formats.read.batches import repeated
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema
from icefloe.scan.file_reads import file_reads
from icefloe.scan.tasks import Plan

FILES, DELETES = "_icefloe_files", "_icefloe_deletes"
GROUPS = StructType().add(FILES, BinaryType()).add(DELETES, BinaryType())
LISTED = (
    StructType()
    .add("path", StringType())
    .add("modificationTime", TimestampType())
    .add("length", LongType())
    .add("content", BinaryType())
)  # the columns of Spark's format for files as they are; none of them is read

_LISTING = pa.schema([("location", pa.string()), ("size", pa.int64()), (FILES, pa.binary()), (DELETES, pa.binary())])
_ALSO_DELETED = "_icefloe_also_deleted"
_OPEN_COST = 1 << 20  # bytes that could be read in the time that opening a file takes
_GROUP_BYTES_MAX = 64 << 20
_GROUPS_PER_CORE = 4


def file_groups(
    spark: SparkSession, plan: Plan, constants: Mapping[str, pa.Array], also_deleted: Mapping[str, BitMap64]
) -> pa.Table:
    """Groups of planned files for tasks to read: a location, the size of all files, the files and their deletes."""
    tasks = plan.tasks
    for name, values in constants.items():
        tasks = tasks.append_column(name, values)
    more = [also_deleted.get(location) for location in tasks["location"].to_pylist()] if len(also_deleted) > 0 else []
    positions = [None if found is None else found.serialize() for found in more]
    tasks = tasks.append_column(
        _ALSO_DELETED, pa.array(positions, pa.binary()) if len(more) > 0 else pa.nulls(tasks.num_rows, pa.binary())
    )
    rows = []
    for start, end, size in _groups(tasks, spark.sparkContext.defaultParallelism):
        part, deletes = _with_own_deletes(tasks.slice(start, end - start).combine_chunks(), plan.deletes)
        location = tasks["location"][start].as_py()
        rows.append({"location": location, "size": size, FILES: arrow_stream(part), DELETES: arrow_stream(deletes)})
    return pa.Table.from_pylist(rows, schema=_LISTING)


def _groups(tasks: pa.Table, cores: int) -> Iterator[tuple[int, int, int]]:
    """Ranges of files of about the same cost, with the size of each: first file, end and bytes."""
    if tasks.num_rows == 0:
        return
    sizes = pc.fill_null(tasks["file_size_in_bytes"], 0).to_numpy() + _OPEN_COST
    total = np.cumsum(sizes)
    target = max(_OPEN_COST, min(_GROUP_BYTES_MAX, int(total[-1]) // max(1, cores * _GROUPS_PER_CORE)))
    numbers = (total - 1) // target
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    ends = np.append(starts[1:], len(sizes))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield start, end, int(sizes[start:end].sum())


def _with_own_deletes(tasks: pa.Table, deletes: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The tasks with the delete files that apply to any of them, renumbered."""
    lists = tasks["deletes"].combine_chunks()
    numbers = pc.list_flatten(lists)
    used = pc.unique(numbers).sort()
    own = pa.ListArray.from_arrays(lists.offsets, pc.index_in(numbers, value_set=used))
    index = tasks.schema.get_field_index("deletes")
    return tasks.set_column(index, tasks.schema.field("deletes"), own), deletes.take(used)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReader:
    """Reads groups of files in a task; the rows have the columns of ``result``.

    ``columns`` are those to read. The row positions and columns of the files' tasks follow them, null if the tasks lack
    one. ``plan`` has no files; it says how they are read.
    """

    storage: TaskStorage
    plan: Plan
    columns: Schema
    filter: Bound
    positions: bool
    result: StructType

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all groups that a task gets."""
        with marking():
            target = to_arrow_schema(self.result)
            for batch in batches:
                for files, deletes in zip(batch[FILES], batch[DELETES], strict=True):
                    tasks = pa.ipc.open_stream(files.as_buffer()).read_all()
                    yield from self._rows(tasks, pa.ipc.open_stream(deletes.as_buffer()).read_all(), target)

    def _rows(self, tasks: pa.Table, deletes: pa.Table, target: pa.Schema) -> Iterator[pa.RecordBatch]:
        io, plan = self.storage.open(), self.plan
        deleted_rows = DeletedRows(io, tasks, deletes, fields=plan.fields, mapping=plan.mapping, origin=plan.origin)
        read = FileRead(
            location="",
            schema=Schema(fields=(*self.columns.fields, POS)) if self.positions else self.columns,
            filter=self.filter,
            table_schema=plan.table_schema,
            mapping=plan.file_mapping,
            use_threads=False,
        )
        for row, file in enumerate(file_reads(tasks, read, plan.specs)):
            more = tasks[_ALSO_DELETED][row].as_py()
            positions = None if more is None else BitMap64.deserialize(more)
            file_deletes = deleted_rows.of(file.location).also(positions)
            for batch in read_file(io, replace(file, deletes=file_deletes)):
                yield self._completed(batch, tasks.slice(row, 1), target)

    def _completed(self, batch: pa.RecordBatch, task: pa.Table, target: pa.Schema) -> pa.RecordBatch:
        """The rows of one file with its constants, in the types of Spark."""
        arrays = list(batch.columns)
        for field in list(target)[len(arrays) :]:
            known = field.name in task.column_names
            value = task[field.name][0] if known else pa.scalar(None, field.type)
            arrays.append(repeated(value, batch.num_rows))
        columns = [_for_spark(array, field.type) for array, field in zip(arrays, target, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=target)


def _for_spark(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same values in the Arrow type that Spark expects."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array if array.type == type_ else array.cast(type_)
