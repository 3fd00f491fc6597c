"""Partition values as statistics of entries, and back (V4 proposal).

A file has its value as both bounds, in V4 manifests as the lower bound only; a manifest has the bounds of the values of
its files. Null and NaN have no bounds: counts show them, and without counts two null bounds are a null value. A
transform is null only where its source is, so a null is refused if the source column has values: filters would skip the
file, and equality deletes of its partition would not apply to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.value.bounds import without_nan
from icefloe.errors import FormatError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.counts import Counts
from icefloe.model.entries import (
    BOUNDS,
    COUNTS,
    Columns,
    ContentType,
    Measure,
    StatKey,
    column_key,
    is_file,
    partition_key,
    stat,
)
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.model.schema.types import Type, has_nan

PARTITION_MEASURES = (*BOUNDS, *COUNTS)


def partition_stats(key: StatKey, value: pa.Array, record_count: pa.Array, type_: Type) -> dict[str, pa.Array]:
    """Statistics columns of file rows from their partition values: null and NaN are expressed by counts, not bounds."""
    none = pa.scalar(0, pa.int64())
    columns = {
        stat(Measure.VALUES, key): record_count,
        stat(Measure.NULLS, key): pc.if_else(pc.is_null(value), record_count, none),
    }
    if has_nan(type_):
        nan = pc.fill_null(pc.is_nan(value), False)
        columns[stat(Measure.NANS, key)] = pc.if_else(nan, record_count, none)
        value = without_nan(value)
    return {stat(Measure.LOWER, key): value, stat(Measure.UPPER, key): value, **columns}


def partition_value(key: StatKey, columns: Columns, length: int, type_: Type) -> pa.Array:
    """The partition values of file rows from their statistics columns; the inverse of ``partition_stats``."""
    # A column that is null in every row may be absent.
    value = columns.get(stat(Measure.LOWER, key), pa.nulls(length, arrow_type(type_)))
    if has_nan(type_) and (nan := columns.get(stat(Measure.NANS, key))) is not None:
        is_nan = pc.and_(value.is_null(), pc.fill_null(pc.greater(nan, 0), False))
        value = pc.if_else(is_nan, pa.scalar(float("nan"), value.type), value)
    return value


def partition_values(
    stats: Columns, fixed: Columns, part: PartitionField, context: ManifestContext, *, where: str
) -> dict[str, pa.Array]:
    """The statistics of one partition field, from its own struct or that of its identity column."""
    key, type_ = partition_key(part.field_id), context.partition_types[part.field_id]
    source = column_key(part.source_id) if part.transform == IDENTITY else key
    content_type, spec_ids = fixed["content_type"], fixed["partition_spec_id"]
    mine = pc.is_in(spec_ids, value_set=pa.array(context.specs_with[part.field_id], pa.int32()))
    rows = pc.and_(mine, pc.not_equal(content_type, int(ContentType.MANIFEST_DV)))
    files = pc.and_(rows, is_file(content_type))
    stored = {m: stats.get(stat(m, source)) for m in PARTITION_MEASURES}
    of_files = _file_values(stored, fixed["record_count"], key, type_, files, part, where)
    if files.true_count == len(files):
        return of_files
    result: dict[str, pa.Array] = {}
    for measure in PARTITION_MEASURES:
        if (value := of_files.get(stat(measure, key))) is not None:
            own = stored[measure]
            others = pa.nulls(len(rows), value.type) if own is None else pc.if_else(rows, own.cast(value.type), None)
            result[stat(measure, key)] = pc.if_else(files, value, others)
    return result


def _file_values(
    stored: Mapping[Measure, pa.Array | None],
    record_count: pa.Array,
    key: StatKey,
    type_: Type,
    files: pa.Array,
    part: PartitionField,
    where: str,
) -> dict[str, pa.Array]:
    """Partition values of file rows: the lower bound, else NaN by the counts, else null if both bounds are null.

    FormatError if counts contradict null, or if the file has no statistics of the field at all.
    """
    target = arrow_type(type_)
    lower, upper, nulls = stored[Measure.LOWER], stored[Measure.UPPER], stored[Measure.NULLS]
    value = pa.nulls(len(files), target) if lower is None else lower.cast(target)
    total = record_count if stored[Measure.VALUES] is None else pc.coalesce(stored[Measure.VALUES], record_count)
    known = pc.is_valid(value)
    if has_nan(type_):
        nan = pc.and_(_equal(stored[Measure.NANS], total, len(files)), pc.invert(known))
        nan = pc.and_(nan, pc.invert(_equal(nulls, total, len(files))))  # a file without rows has no NaN
        value = pc.if_else(nan, pa.scalar(float("nan"), target), value)
        known = pc.or_(known, nan)
    if any(measure is not None for measure in stored.values()):
        null = pa.repeat(True, len(files)) if nulls is None else pc.fill_null(pc.equal(nulls, total), True)
        known = pc.or_(known, null if upper is None else pc.and_(null, pc.is_null(upper)))
    if (row := pc.index(pc.and_not(files, known), True).as_py()) >= 0:
        raise FormatError(
            f"{where}: row {row} has no value of partition field {part.name!r} in content_stats", location=where
        )
    return partition_stats(key, value, record_count, type_)


def _equal(left: pa.Array | None, right: pa.Array | None, length: int) -> pa.Array:
    if left is None or right is None:
        return pa.repeat(False, length)
    return pc.fill_null(pc.equal(left, right), False)


def check_null_partitions(
    stats: Columns,
    fixed: Columns,
    context: ManifestContext,
    measures: Callable[[frozenset[int]], Columns],
    *,
    where: str,
) -> None:
    """FormatError for the first row whose null is contradicted; ``measures`` reads the statistics of columns by id."""
    nulls = {}
    for part in context.partition_fields.values():
        counts = stats.get(stat(Measure.NULLS, partition_key(part.field_id)))
        if part.transform == IDENTITY or counts is None:  # a column's own statistics are checked with its value
            continue
        null = pc.fill_null(pc.greater(counts, 0), False)
        if null.true_count > 0:
            nulls[part.field_id] = pc.and_(null, is_file(fixed["content_type"]))
    if not any(null.true_count > 0 for null in nulls.values()):
        return
    parts = [context.partition_fields[field_id] for field_id in nulls]
    known = measures(frozenset(source for part in parts for source in part.source_ids))
    for part, null in zip(parts, nulls.values(), strict=True):
        for source in part.source_ids:
            _check(part, source, null, known, fixed["record_count"], context, where)


def _check(
    part: PartitionField,
    source: int,
    null: pa.Array,
    known: Columns,
    rows: pa.Array,
    context: ManifestContext,
    where: str,
) -> None:
    whole = any(field.id == source for field in context.schema.fields)
    values, nulls = (known.get(stat(measure, column_key(source))) for measure in (Measure.VALUES, Measure.NULLS))
    counts = Counts(values=values, nulls=nulls, nans=None).consistent(rows, whole=whole)
    total = counts.values if not whole else rows if counts.values is None else pc.coalesce(counts.values, rows)
    has_values = pa.repeat(False, len(null))
    if counts.nulls is not None and total is not None:
        has_values = pc.fill_null(pc.less(counts.nulls, total), False)
    for bound in BOUNDS:
        if (column := known.get(stat(bound, column_key(source)))) is not None:
            has_values = pc.or_(has_values, pc.is_valid(column))
    if (row := pc.index(pc.and_(null, has_values), True).as_py()) >= 0:
        raise FormatError(
            f"{where}: row {row} has no value of partition field {part.name!r} in content_stats: it has no bounds"
            f" there, as if it were null, but its column {source} has values",
            location=where,
            field=part.name,
        )
