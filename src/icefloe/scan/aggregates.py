"""Counts, minima and maxima from the metadata of files (spec: Manifests; V4 proposal).

A file answers if all its rows match the filter, none of them is deleted, and its statistics are exact. The number of
its rows is known with a deletion vector too. All files are tested at once; those that do not answer have to be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.bitmaps import within
from icefloe.expr.prune.column_stats import Statistics, is_ordered
from icefloe.expr.prune.stats_eval import Match
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.columns import one_array
from icefloe.model.counts import Counts
from icefloe.model.entries import COUNTS, Measure, column_key, stat
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import rules
from icefloe.model.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    Decimal,
    Field,
)
from icefloe.scan.partition_values import identity_columns, identity_values
from icefloe.scan.tasks import Plan

_VECTORS_AT_ONCE = 1024  # deletion vectors that are read together
_EXACT = (BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ)  # types whose bounds no writer truncates
_FLOATS = (FLOAT, DOUBLE)
_ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate over the rows of a scan: ``count`` of a column or of all rows, ``min`` or ``max`` of a column."""

    function: Literal["count", "min", "max"]
    column: Field | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAggregates:
    """Aggregates of the files that answer, one row per group, and the files that have to be read.

    The columns of ``groups`` are the values of the grouping columns, then the aggregates, named by their positions.
    """

    groups: pa.Table
    to_read: pa.ChunkedArray  # locations
    share_to_read: float  # of the rows


def can_answer(metadata: TableMetadata, groups: Sequence[Field], aggregates: Sequence[Aggregate]) -> bool:
    """Whether files of a table can answer at all, by the types of columns and the partition specs."""
    partitioned, texts = identity_columns(metadata.specs), (STRING,) if _says_tight(metadata) else ()
    bounded = (a.column.type for a in aggregates if a.column is not None and a.function != "count")
    return all(_is_exact(type_) or type_ in texts for type_ in bounded) and all(
        field.id in partitioned and (field.type == STRING or _is_exact(field.type)) and field.type not in _FLOATS
        for field in groups
    )


def _says_tight(metadata: TableMetadata) -> bool:
    """Whether entries say if bounds are values of the file; other ones are values unless writers truncate the type."""
    return rules(metadata.format_version).content_entries


def _is_exact(type_: Any) -> bool:
    return type_ in _EXACT or isinstance(type_, Decimal)


def aggregate_files(
    io: FileIO, metadata: TableMetadata, plan: Plan, groups: Sequence[Field], aggregates: Sequence[Aggregate]
) -> FileAggregates:
    """The aggregates of the rows of a plan, whose tasks have the statistics of the aggregated columns."""
    tasks, columns, says_tight = plan.tasks, [], _says_tight(metadata)
    counted_only = all(aggregate.column is None for aggregate in aggregates)
    known = pc.and_(pc.equal(tasks["match"], int(Match.ALL)), pc.equal(pc.list_value_length(tasks["deletes"]), 0))
    known = one_array(pc.and_(known, pc.fill_null(pc.greater_equal(tasks["record_count"], 0), False)))
    if not counted_only:
        known = pc.and_(known, one_array(pc.is_null(tasks["dv_location"])))
    for field in groups:
        identity = identity_values(tasks, plan.specs, field)
        columns.append(identity.values)
        known = pc.and_(known, identity.known)
    for aggregate in aggregates:
        values, answers = _of_files(tasks, aggregate, says_tight=says_tight)
        columns.append(values)
        known = pc.and_(known, answers)
    names = [str(position) for position in range(len(columns))]
    files = pa.table([*columns, one_array(tasks["record_count"])], names=[*names, _ROWS]).filter(known)
    files = _with_live_rows(io, plan.with_tasks(tasks.filter(known)), files, aggregates, len(groups))
    rows = pc.sum(tasks["record_count"]).as_py() or 0
    answered = pc.sum(tasks["record_count"].filter(known)).as_py() or 0
    return FileAggregates(
        groups=_grouped(files, names[: len(groups)], aggregates),
        to_read=tasks["location"].filter(pc.invert(known)),
        share_to_read=1 - answered / rows if rows > 0 else float(not pc.all(known, min_count=0).as_py()),
    )


def _of_files(tasks: pa.Table, aggregate: Aggregate, *, says_tight: bool) -> tuple[pa.Array, pa.Array]:
    """The aggregate of each file, and which files know it."""
    rows, field = one_array(tasks["record_count"]), aggregate.column
    if field is None:
        return rows, rows.is_valid()
    nulls = null_counts(tasks, field)
    if aggregate.function == "count":
        return pc.subtract(rows, nulls), nulls.is_valid()
    lower, upper = bounds(tasks, field)
    known = pc.less_equal(lower, upper)
    tight = _column(tasks, Measure.TIGHT, field, pa.bool_())
    known = pc.and_(known, pc.fill_null(tight, not says_tight))
    if field.type in _FLOATS:  # bounds leave out NaN, and do not distinguish the two zeros
        signed = pc.and_(pc.not_equal(lower, 0), pc.not_equal(upper, 0))
        known = pc.and_(pc.and_(known, signed), pc.equal(_column(tasks, Measure.NANS, field, pa.int64()), 0))
    all_null = pc.fill_null(pc.equal(nulls, rows), False)
    bound = lower if aggregate.function == "min" else upper
    bound = pc.if_else(all_null, pa.scalar(None, bound.type), bound)
    return bound, pc.or_(pc.fill_null(known, False), all_null)


def null_counts(tasks: pa.Table, field: Field) -> pa.Array:
    """How many nulls each file has in a column, null where it is unknown or contradicts other counts."""
    values, nulls, nans = (_column(tasks, measure, field, pa.int64()) for measure in COUNTS)
    return Counts(values=values, nulls=nulls, nans=nans).consistent(one_array(tasks["record_count"]), whole=True).nulls


def value_ranges(tasks: pa.Table, field: Field) -> tuple[pa.Scalar, pa.Scalar]:
    """The least lower and the greatest upper bound of a column in all files; null if a file does not state its own."""
    lower, upper = bounds(tasks, field)
    stated = pc.or_(pc.less_equal(lower, upper), pc.equal(null_counts(tasks, field), tasks["record_count"]))
    if not pc.all(pc.fill_null(stated, False)).as_py():
        return pa.scalar(None, lower.type), pa.scalar(None, upper.type)
    return pc.min(lower), pc.max(upper)


def bounds(tasks: pa.Table, field: Field) -> tuple[pa.Array, pa.Array]:
    """The lower and upper bounds of a column in each file, null where they are unknown."""
    type_ = arrow_type(field.type)
    if not is_ordered(field.type):
        return pa.nulls(tasks.num_rows, type_), pa.nulls(tasks.num_rows, type_)
    return _column(tasks, Measure.LOWER, field, type_), _column(tasks, Measure.UPPER, field, type_)


def _column(tasks: pa.Table, measure: Measure, field: Field, type_: pa.DataType) -> pa.Array:
    statistics = Statistics(table=tasks, partitions=(), start=0, size=tasks.num_rows)
    found = statistics.column(stat(measure, column_key(field.id)), type_)
    return pa.nulls(tasks.num_rows, type_) if found is None else found


def _with_live_rows(io: FileIO, plan: Plan, files: pa.Table, aggregates: Sequence[Aggregate], groups: int) -> pa.Table:
    """The files with their live rows in place of all rows."""
    if pc.all(pc.is_null(plan.tasks["dv_location"]), min_count=0).as_py():
        return files
    live = pc.subtract(files[_ROWS], deleted_by_vectors(io, plan))
    for position, aggregate in enumerate(aggregates, start=groups):
        if aggregate.column is None:
            files = files.set_column(position, str(position), live)
    return files.set_column(files.num_columns - 1, _ROWS, live)


def deleted_by_vectors(io: FileIO, plan: Plan) -> pa.Array:
    """How many rows of each file its vector deletes; an entry may count rows that the file does not have."""
    tasks, deleted_rows, counts = plan.tasks, plan.deleted_rows(io), dict[str, int]()
    with_vector = tasks.filter(pc.is_valid(tasks["dv_location"])).select(["location", "record_count"])
    for batch in with_vector.to_batches(max_chunksize=_VECTORS_AT_ONCE):
        row_counts = dict(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for file, positions in deleted_rows.positions(row_counts).items():
            counts[file] = len(within(positions, row_counts[file]))
    places = pc.index_in(tasks["location"].combine_chunks(), value_set=pa.array(list(counts), pa.string()))
    return pc.fill_null(pa.array(list(counts.values()), pa.int64()).take(places), 0)


def _grouped(files: pa.Table, keys: Sequence[str], aggregates: Sequence[Aggregate]) -> pa.Table:
    """One row for each group that has rows, or one row if nothing is grouped."""
    wanted = [*zip(files.column_names[len(keys) :], _functions(aggregates), strict=True)]
    groups = files.group_by(list(keys)).aggregate(wanted)
    groups = groups.rename_columns([*keys, *files.column_names[len(keys) :]])
    if len(keys) > 0:
        groups = groups.filter(pc.greater(groups[_ROWS], 0))
    for position, aggregate in enumerate(aggregates, start=len(keys)):
        if aggregate.function == "count":
            groups = groups.set_column(position, str(position), pc.fill_null(groups[str(position)], 0))
    return groups.drop_columns([_ROWS])


def _functions(aggregates: Sequence[Aggregate]) -> Iterator[str]:
    for aggregate in aggregates:
        yield "sum" if aggregate.function == "count" else aggregate.function
    yield "sum"  # of the rows
