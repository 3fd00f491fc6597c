"""The root row of a manifest: counts, and the aggregated statistics of its entries (spec: Manifest Lists; V4 proposal).

Bounds become the least and the greatest, boxes of shapes the box around them, counts are summed, average sizes are
weighted by the numbers of values. What is unknown of one row is unknown of all: an aggregate may be missing but never
wrong. Bounds of a manifest are not claimed to be tight: its root row stays the same if entries are removed later.
Statistics are those of live rows, but what a manifest list summarizes is the partitions of all entries: readers look
there for removals too.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.manifests import extension
from icefloe.codecs.manifest.value_sizes import average_sizes, value_counts
from icefloe.errors import InputError
from icefloe.model.corners import enclosing_box
from icefloe.model.counts import Counts
from icefloe.model.entries import (
    COUNTS,
    ENTRY,
    ContentType,
    Measure,
    StatKey,
    Status,
    choose,
    column_key,
    live,
    put,
    stat,
    stat_columns,
    stat_keys,
)
from icefloe.model.metadata.version_rules import rules
from icefloe.model.schema.types import has_value_sizes, is_shape

_NAMES = {Status.ADDED: "added", Status.EXISTING: "existing", Status.DELETED: "deleted"}


def manifest_row(
    entries: pa.Table,
    context: ManifestContext,
    *,
    location: str,
    size: int,
    content: ContentType,
    status: Status,
    snapshot_id: int,
    sequence_number: int,
    first_row_id: int | None = None,
    referenced_file: str | None = None,
) -> pa.Table:
    """The row of a manifest in its root; ``entries`` are all its rows, of one partition spec."""
    row: dict[str, object] = {
        "content_type": int(content),
        "location": location,
        "file_format": extension(context),
        "format_version": context.format_version,
        "status": int(status),
        "snapshot_id": snapshot_id,
        "sequence_number": sequence_number,
        "file_sequence_number": sequence_number,
        "partition_spec_id": _spec_id(entries, location),
        "record_count": entries.num_rows,
        "file_size_in_bytes": size,
        "referenced_file": referenced_file,
        "first_row_id": first_row_id if content is ContentType.DATA_MANIFEST else None,
        **_counts(entries, sequence_number),
    }
    fixed = [pa.array([row.get(field.name)], field.type) for field in ENTRY]
    rows = choose(entries, live(entries))
    listed = not rules(context.format_version).root_holds_files
    fields, values = _statistics(rows, context, entries if listed else None)
    return pa.Table.from_arrays([*fixed, *values], schema=pa.schema([*ENTRY, *fields]))


def _spec_id(entries: pa.Table, location: str) -> int:
    spec_ids = pc.unique(entries["partition_spec_id"]).to_pylist()
    if len(spec_ids) != 1 or spec_ids[0] is None:
        raise InputError(
            f"manifest {location} must hold files of one partition spec, not of {spec_ids}", location=location
        )
    return int(spec_ids[0])


def _counts(entries: pa.Table, sequence_number: int) -> dict[str, int]:
    statuses = np.asarray(entries["status"])
    rows = np.asarray(pc.fill_null(entries["record_count"], 0))
    counts: dict[str, int] = {}
    for status, name in _NAMES.items():
        of_status = statuses == int(status)
        counts[f"{name}_files_count"] = int(np.count_nonzero(of_status))
        counts[f"{name}_rows_count"] = int(rows[of_status].sum())
    own = pc.fill_null(entries.filter(live(entries))["sequence_number"], sequence_number)
    least = pc.min(own).as_py()  # rows without a number of their own inherit the manifest's
    counts["min_sequence_number"] = sequence_number if least is None else least
    return counts


def _statistics(
    rows: pa.Table, context: ManifestContext, listed: pa.Table | None
) -> tuple[list[pa.Field], list[pa.Array]]:
    """Statistics of live rows. Bounds and null flags of partition fields cover all of ``listed`` if not None."""
    fields: list[pa.Field] = []
    values: list[pa.Array] = []
    unknown = rows["record_count"].null_count > 0
    rows = _with_consistent_counts(rows, context)
    for key in stat_keys(rows):
        measures: dict[Measure, pa.Scalar] = {m: _sum(rows[stat(m, key)]) for m in COUNTS if _has(rows, m, key)}
        if unknown:  # sums of nulls must not be compared with the number of rows
            measures = {
                m: count if m is Measure.VALUES else pa.scalar(None, count.type) for m, count in measures.items()
            }
        summed = listed if listed is not None and key.is_partition else rows
        type_ = None if key.is_partition else context.column_type(key.id)
        if _has(rows, Measure.LOWER, key):
            measures |= _box(rows, key) if type_ is not None and is_shape(type_) else _bounds(summed, key)
        if listed is None and not unknown and type_ is not None and has_value_sizes(type_):
            measures |= _average(rows, key)
        if summed is listed:
            measures |= _contained(summed, key)
        for measure, value in measures.items():
            fields.append(pa.field(stat(measure, key), value.type))
            values.append(pa.repeat(value, 1))
    return fields, values


def _with_consistent_counts(rows: pa.Table, context: ManifestContext) -> pa.Table:
    """Rows without counts that contradict each other, whose sums could look consistent."""
    top = frozenset(column_key(field.id) for field in context.schema.fields)
    for key in stat_keys(rows):
        recorded = Counts.of(rows, key)
        counts = recorded.consistent(rows["record_count"], whole=key in top)
        if counts is not recorded:
            for name, column in counts.columns(key).items():
                rows = put(rows, name, column)
    return rows


def _has(rows: pa.Table, measure: Measure, key: StatKey) -> bool:
    return stat(measure, key) in rows.schema.names


def _sum(column: pa.ChunkedArray) -> pa.Scalar:
    return pc.sum(column, skip_nulls=False, min_count=0)


def _contained(rows: pa.Table, key: StatKey) -> dict[Measure, pa.Scalar]:
    """Whether null and NaN are among partition values; null if a row has no recorded value."""
    unknown = pa.scalar(None, pa.bool_())
    if not _has(rows, Measure.VALUES, key) or rows[stat(Measure.VALUES, key)].null_count > 0:
        return {Measure.HAS_NULL: unknown}
    values = rows[stat(Measure.LOWER, key)] if _has(rows, Measure.LOWER, key) else pa.nulls(rows.num_rows)
    if not _has(rows, Measure.NANS, key):
        return {Measure.HAS_NULL: pa.scalar(values.null_count > 0)}
    nan = pc.fill_null(pc.greater(rows[stat(Measure.NANS, key)], 0), False)
    # A file without rows counts no null, yet its partition is one.
    null = pc.and_(pc.is_null(values), pc.invert(nan))
    return {Measure.HAS_NULL: pc.any(null), Measure.HAS_NAN: pc.any(nan)}


def _bounds(rows: pa.Table, key: StatKey) -> dict[Measure, pa.Scalar]:
    lower = rows[stat(Measure.LOWER, key)]
    upper = rows[stat(Measure.UPPER, key)] if _has(rows, Measure.UPPER, key) else pa.nulls(len(lower), lower.type)
    if key.is_partition:
        upper = pc.coalesce(upper, lower)  # a partition value is its own upper bound
    return {
        Measure.LOWER: _least(rows, key, lower, "min"),
        Measure.UPPER: _least(rows, key, upper, "max"),
    }


def _box(rows: pa.Table, key: StatKey) -> dict[Measure, pa.Scalar]:
    """The box around the boxes of rows, or null if a row with shapes has no box."""
    lower = rows[stat(Measure.LOWER, key)].combine_chunks()
    upper = rows[stat(Measure.UPPER, key)].combine_chunks() if _has(rows, Measure.UPPER, key) else lower
    both = pc.and_(pc.is_valid(lower), pc.is_valid(upper))
    known = pc.if_else(both, lower, None)
    if known.null_count > 0 and not _only_where_empty(rows, key, known):
        both = pc.and_(both, False)
    low, high = enclosing_box(lower.filter(both), upper.filter(both))
    return {Measure.LOWER: low, Measure.UPPER: high}


def _average(rows: pa.Table, key: StatKey) -> dict[Measure, pa.Scalar]:
    """The average size of all values, or nothing if it is unknown of a row with values."""
    columns = {name: rows[name] for name, column in stat_columns(rows).items() if column.key == key}
    averages, values = average_sizes(columns, key), value_counts(columns, key)
    if averages is None or values is None or values.null_count > 0:
        return {}
    weights, sizes = np.asarray(values), np.asarray(pc.fill_null(averages, -1))
    if weights.sum() == 0 or (sizes[weights > 0] < 0).any():
        return {}
    average = round(float(np.average(sizes, weights=weights)))
    return {Measure.AVERAGE_SIZE: pa.scalar(average, pa.int32())}


def _least(rows: pa.Table, key: StatKey, bounds: pa.ChunkedArray, end: str) -> pa.Scalar:
    """The outermost bound, or null if a row with values has no bound."""
    if bounds.null_count > 0 and not _only_where_empty(rows, key, bounds):
        return pa.scalar(None, bounds.type)
    if pa.types.is_floating(bounds.type):
        return _outermost_float(bounds, end)
    return pc.min_max(bounds)[end]


def _only_where_empty(rows: pa.Table, key: StatKey, bounds: pa.ChunkedArray) -> bool:
    """Whether bounds are null only in rows whose values are all null or NaN."""
    if not (_has(rows, Measure.VALUES, key) and _has(rows, Measure.NULLS, key)):
        return False
    rest = pc.subtract(rows[stat(Measure.VALUES, key)], rows[stat(Measure.NULLS, key)])
    if _has(rows, Measure.NANS, key):
        rest = pc.subtract(rest, pc.fill_null(rows[stat(Measure.NANS, key)], 0))
    empty = pc.fill_null(pc.equal(rest, 0), False)
    return bool(pc.all(pc.or_(pc.is_valid(bounds), empty), min_count=0).as_py())


def _outermost_float(bounds: pa.ChunkedArray, end: str) -> pa.Scalar:
    """Minimum or maximum in the total order, where -0.0 is below +0.0; a NaN is no bound."""
    values = np.asarray(bounds.drop_null())
    if len(values) == 0 or np.isnan(values).any():
        return pa.scalar(None, bounds.type)
    extreme = values.min() if end == "min" else values.max()
    if extreme == 0:
        negative = np.signbit(values[values == 0])
        extreme = np.copysign(extreme, -1 if (negative.any() if end == "min" else negative.all()) else 1)
    return pa.scalar(extreme, bounds.type)
