"""The result of planning: the files to read as Arrow columns, and their ranges for readers (spec: Scan Planning).

Files are split at their ``split_offsets``, where row groups or stripes begin, else at every multiple of the target
size. A range is added to one of a few open groups of about the same size, so that neighbours stay together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.json.name_mapping import decode_mapping
from icefloe.deletes.delete_index import DELETE_NUMBERS
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Bound, Expr
from icefloe.formats.read.reader import with_row_counts
from icefloe.io.file_io import FileIO
from icefloe.model.entries import empty
from icefloe.model.metadata.error_context import NOWHERE, Origin
from icefloe.model.metadata.properties import SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST, SPLIT_TARGET_SIZE
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, NameMapping, assumed_mapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

TASK = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("file_format", pa.string()),
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("record_count", pa.int64()),  # null where it is unknown (see Plan.counted)
        pa.field("partition_spec_id", pa.int32()),
        pa.field("sequence_number", pa.int64()),
        pa.field("first_row_id", pa.int64()),
        pa.field("match", pa.int8()),  # expr.stats_eval: SOME rows may match the filter, or ALL do
        pa.field("dv_location", pa.string()),  # the Puffin file of the deletion vector, if the file has one
        pa.field("dv_offset", pa.int64()),
        pa.field("dv_size_in_bytes", pa.int64()),
        pa.field("dv_cardinality", pa.int64()),
        pa.field("manifest", pa.string()),  # the leaf that lists the file; null when the root does
        pa.field("ordinal", pa.int64()),  # and the row in it
        pa.field("dv_manifest", pa.string()),  # the same of the deletion vector
        pa.field("dv_ordinal", pa.int64()),
        pa.field("split_offsets", pa.list_(pa.int64())),
        DELETE_NUMBERS,  # delete files that apply, as rows of Plan.deletes in the order to apply them
        pa.field("residual", pa.int32()),  # the remaining filter of its rows, as an index of Plan.residuals
    ]
)
MANIFEST = pa.field("manifest", pa.string())


def _no_deletes() -> pa.Table:
    return empty().append_column(MANIFEST, pa.nulls(0, pa.string()))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFilter:
    """A condition on metadata columns that readers evaluate on rows, and the columns that it tests."""

    filter: Bound
    columns: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The files that may contain rows of a scan, one task per file; the result of ``table.scan(...).plan()``.

    ``tasks`` has the columns of ``TASK``, followed by the partition values of the files, and by the statistics
    of the columns for which they were requested.
    """

    tasks: pa.Table
    schema: Schema  # the columns to return, with their current names
    table_schema: Schema  # all columns, for filters on columns that are not returned
    filter: Expr  # bound to table_schema
    metadata_filter: MetadataFilter | None = None  # a condition that rows must satisfy besides ``filter``
    residuals: tuple[Bound, ...] = ()  # what remains of the filter in each partition; tasks refer to them
    deletes: pa.Table = field(default_factory=_no_deletes)  # position and equality delete files that apply to any task
    specs: tuple[PartitionSpec, ...] = ()  # what the partition values of tasks mean
    properties: Mapping[str, str] = field(default_factory=dict)  # of the table
    fields: Mapping[int, Field] = field(default_factory=dict)  # all fields, past ones included, as last defined
    origin: Origin = NOWHERE  # what is read, for errors
    files_skipped: int = 0
    manifests_read: int = 0
    manifests_skipped: int = 0
    trace: pa.Table | None = None  # why each manifest and file was kept or skipped, if requested

    @property
    def files(self) -> int:
        """How many files are to be read."""
        return int(self.tasks.num_rows)

    @property
    def mapping(self) -> NameMapping | None:
        """The name mapping of the table, for files without field ids; none if the table has none."""
        text = self.properties.get(NAME_MAPPING_PROPERTY)
        with self.origin.named():
            return None if text is None else decode_mapping(text)

    @property
    def file_mapping(self) -> NameMapping:
        """What data files without ids are read by: the table's mapping, or as Apache Iceberg reads them without one."""
        stated = self.mapping
        return assumed_mapping(self.table_schema) if stated is None else stated

    def with_tasks(self, tasks: pa.Table) -> Plan:
        """The same plan for other files."""
        return replace(self, tasks=tasks)

    def counted(self, io: FileIO) -> Plan:
        """The same plan with the number of rows of every file; files whose entries do not say it are opened."""
        with self.origin.named():
            return self.with_tasks(with_row_counts(io, self.tasks))

    def deleted_rows(self, io: FileIO) -> DeletedRows:
        """The deleted rows of the files; deletes are read on first use."""
        return DeletedRows(io, self.tasks, self.deletes, fields=self.fields, mapping=self.mapping, origin=self.origin)

    def splits(
        self, *, target_size: int | None = None, lookback: int | None = None, open_file_cost: int | None = None
    ) -> pa.Table:
        """Ranges of files in groups of about the same size, for parallel readers.

        The columns are ``task`` (the row of ``tasks``), ``start`` and ``length`` in bytes, and ``group``. Defaults are
        the table's properties ``read.split.*``.
        """
        return split_tasks(
            self.tasks,
            self.deletes,
            target_size=SPLIT_TARGET_SIZE.of(self.properties) if target_size is None else target_size,
            lookback=SPLIT_LOOKBACK.of(self.properties) if lookback is None else lookback,
            open_file_cost=SPLIT_OPEN_FILE_COST.of(self.properties) if open_file_cost is None else open_file_cost,
        )


Ints: TypeAlias = npt.NDArray[np.int64]

SPLIT = pa.schema(
    [
        pa.field("task", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("group", pa.int64()),
    ]
)
_SPLITTABLE = pa.array(["avro", "orc", "parquet"])


def split_tasks(
    tasks: pa.Table, deletes: pa.Table, *, target_size: int, lookback: int, open_file_cost: int
) -> pa.Table:
    """Ranges that cover each file once, with the group of each range."""
    for name, value in (
        (SPLIT_TARGET_SIZE.name, target_size),
        (SPLIT_LOOKBACK.name, lookback),
        (SPLIT_OPEN_FILE_COST.name, open_file_cost),
    ):
        if value < (0 if name == SPLIT_OPEN_FILE_COST.name else 1):
            raise InputError(f"{name} is {value}; it must be positive", property=name)
    sizes = pc.fill_null(tasks["file_size_in_bytes"], 0).to_numpy()
    task, start = _ranges(tasks, sizes, target_size)
    length = _lengths(task, start, sizes)
    weights = _weights(tasks, deletes, task, length, open_file_cost)
    group = np.array(pack(weights.tolist(), target_size, lookback), np.int64)
    return _merged(task, start, length, group)


def pack(weights: list[int], target: int, lookback: int) -> list[int]:
    """The group of each item: the first open group with enough room, or a new one.

    At most ``lookback`` groups are open; if there are more, the fullest is closed.

    >>> pack([4, 4, 2, 9, 1], target=8, lookback=2)
    [1, 1, 2, 0, 2]
    """
    of_item: list[int] = []
    numbers: list[int] = []  # the open groups, oldest first
    rooms: list[int] = []  # and the remaining room of each
    closed: list[int] = []
    made = 0
    for weight in weights:  # may be very many, hence plain lists and no calls for most items
        for at, room in enumerate(rooms):
            if weight <= room:
                rooms[at] = room - weight
                of_item.append(numbers[at])
                break
        else:
            numbers.append(made)
            rooms.append(target - weight)
            of_item.append(made)
            made += 1
            if made - len(closed) > lookback:
                fullest = rooms.index(min(rooms))
                closed.append(numbers.pop(fullest))
                del rooms[fullest]
    closed.extend(numbers)
    position = np.empty(made, np.int64)  # of each group, in the order in which groups were closed
    position[closed] = np.arange(made)
    return cast(list[int], position[of_item].tolist())


def _ranges(tasks: pa.Table, sizes: Ints, target_size: int) -> tuple[Ints, Ints]:
    """The start of each range, in the order of tasks: its task and its offset."""
    by_offset, offsets = _usable_offsets(tasks, sizes)
    ranges = np.maximum(1, -(-sizes // target_size))
    ranges[by_offset] = 0
    whole = pc.invert(pc.is_in(pc.utf8_lower(tasks["file_format"]), value_set=_SPLITTABLE))
    ranges[np.asarray(pc.fill_null(whole, False)) & ~by_offset] = 1
    task = np.repeat(np.arange(len(sizes)), ranges)
    start = (np.arange(len(task)) - np.repeat(np.cumsum(ranges) - ranges, ranges)) * target_size
    task, start = np.concatenate([task, offsets[0]]), np.concatenate([start, offsets[1]])
    order = np.lexsort((start, task))
    return task[order], start[order]


def _usable_offsets(tasks: pa.Table, sizes: Ints) -> tuple[npt.NDArray[np.bool_], tuple[Ints, Ints]]:
    """Which files have valid split offsets (ascending, within the file), and these offsets, with the first set to 0."""
    lists = tasks["split_offsets"].combine_chunks()
    owner, offset = pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists).to_numpy()
    first = np.diff(owner, prepend=-1) != 0
    good = np.zeros(len(sizes), np.bool_)
    good[owner] = True
    wrong = (offset < 0) | (offset >= sizes[owner]) | (~first & (np.diff(offset, prepend=0) <= 0))
    good[owner[wrong]] = False
    kept = good[owner]
    return good, (owner[kept], np.where(first, 0, offset)[kept])


def _lengths(task: Ints, start: Ints, sizes: Ints) -> Ints:
    last = np.diff(task, append=-1) != 0
    end = np.where(last, sizes[task], np.append(start[1:], 0))
    return end - start


def _weights(tasks: pa.Table, deletes: pa.Table, task: Ints, length: Ints, open_file_cost: int) -> Ints:
    """The cost of reading a range: its bytes and those of its deletes, but at least that of opening the files."""
    lists = tasks["deletes"].combine_chunks()
    owner, delete = pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists).to_numpy()
    size_of = pc.fill_null(deletes["file_size_in_bytes"], 0).to_numpy()
    count = np.bincount(owner, minlength=tasks.num_rows)
    size = np.bincount(owner, weights=size_of[delete], minlength=tasks.num_rows).astype(np.int64)
    count += np.asarray(pc.is_valid(tasks["dv_location"])).astype(np.int64)
    size += pc.fill_null(tasks["dv_size_in_bytes"], 0).to_numpy()
    weight: Ints = np.maximum(length + size[task], (1 + count[task]) * open_file_cost)
    return weight


def _merged(task: Ints, start: Ints, length: Ints, group: Ints) -> pa.Table:
    """The ranges by group; adjacent ranges of one file are merged."""
    order = np.argsort(group, kind="stable")
    task, start, length, group = task[order], start[order], length[order], group[order]
    joins: Any = (task[1:] == task[:-1]) & (group[1:] == group[:-1]) & (start[1:] == (start + length)[:-1])
    first = np.flatnonzero(np.concatenate([[True], ~joins])) if len(task) > 0 else np.empty(0, np.int64)
    total = np.add.reduceat(length, first) if len(first) > 0 else first
    return pa.table([task[first], start[first], total, group[first]], schema=SPLIT)
