"""The root row of a manifest: counts, and the aggregated statistics of its entries (spec: Manifest Lists; V4 proposal).

Bounds become the least and the greatest, boxes of shapes the box around them, counts are summed, average sizes are
weighted by the numbers of values. If a value is unknown for one row, the aggregate is unknown: it may be missing but is
never wrong. Bounds of a manifest are not marked as tight, because its root row stays the same if entries are removed
later. Statistics cover live rows, but the partition summaries of a manifest list cover all entries: readers also look
for removed files there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

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
    columns_of,
    known_measures,
    live,
    stat,
    stat_keys,
)
from icefloe.model.metadata.version_rules import rules
from icefloe.model.schema.types import has_value_sizes, is_shape

Known: TypeAlias = Mapping[Measure, pa.Array]  # the statistics of one key in all rows

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
    columns = columns_of(rows)
    all_columns = columns if listed is None else columns_of(listed)
    rows_of_files = columns["record_count"]
    top = frozenset(column_key(field.id) for field in context.schema.fields)
    aggregates: dict[str, pa.Scalar] = {}
    for key in stat_keys(rows):
        known = known_measures(columns, key)
        # Counts that contradict each other could have consistent sums.
        known |= Counts.of(known).consistent(rows_of_files, whole=key in top).known
        found = {m: pc.sum(known[m], skip_nulls=False, min_count=0) for m in COUNTS if m in known}
        if rows_of_files.null_count > 0:  # sums of nulls must not be compared with the number of rows
            found = {m: count if m is Measure.VALUES else pa.scalar(None, count.type) for m, count in found.items()}
        summed = known if listed is None or not key.is_partition else known_measures(all_columns, key)
        type_ = None if key.is_partition else context.column_type(key.id)
        if Measure.LOWER in known:
            found |= _box(known) if type_ is not None and is_shape(type_) else _bounds(summed, key)
        if listed is None and rows_of_files.null_count == 0 and type_ is not None and has_value_sizes(type_):
            found |= _average(known)
        if summed is not known:
            found |= _contained(summed)
        aggregates |= {stat(measure, key): value for measure, value in found.items()}
    fields = [pa.field(name, value.type) for name, value in aggregates.items()]
    return fields, [pa.repeat(value, 1) for value in aggregates.values()]


def _contained(known: Known) -> dict[Measure, pa.Scalar]:
    """Whether null and NaN are among partition values; null if a row has no recorded value."""
    counts = known.get(Measure.VALUES)
    if counts is None or counts.null_count > 0:
        return {Measure.HAS_NULL: pa.scalar(None, pa.bool_())}
    values = known.get(Measure.LOWER, pa.nulls(len(counts)))
    if Measure.NANS not in known:
        return {Measure.HAS_NULL: pa.scalar(values.null_count > 0)}
    nan = pc.fill_null(pc.greater(known[Measure.NANS], 0), False)
    # A file without rows counts no null, yet its partition is one.
    null = pc.and_(pc.is_null(values), pc.invert(nan))
    return {Measure.HAS_NULL: pc.any(null), Measure.HAS_NAN: pc.any(nan)}


def _bounds(known: Known, key: StatKey) -> dict[Measure, pa.Scalar]:
    lower = known[Measure.LOWER]
    upper = known.get(Measure.UPPER, pa.nulls(len(lower), lower.type))
    if key.is_partition:
        upper = pc.coalesce(upper, lower)  # a partition value is its own upper bound
    return {Measure.LOWER: _outermost(known, lower, "min"), Measure.UPPER: _outermost(known, upper, "max")}


def _box(known: Known) -> dict[Measure, pa.Scalar]:
    """The box around the boxes of rows, or null if a row with shapes has no box."""
    lower = known[Measure.LOWER]
    upper = known.get(Measure.UPPER, lower)
    both = pc.and_(pc.is_valid(lower), pc.is_valid(upper))
    bounded = pc.if_else(both, lower, None)
    if bounded.null_count > 0 and not _only_where_empty(known, bounded):
        both = pc.and_(both, False)
    low, high = enclosing_box(lower.filter(both), upper.filter(both))
    return {Measure.LOWER: low, Measure.UPPER: high}


def _average(known: Known) -> dict[Measure, pa.Scalar]:
    """The average size of all values, or nothing if it is unknown of a row with values."""
    averages, values = average_sizes(known), value_counts(known)
    if averages is None or values is None or values.null_count > 0:
        return {}
    weights, sizes = np.asarray(values), np.asarray(pc.fill_null(averages, -1))
    if weights.sum() == 0 or (sizes[weights > 0] < 0).any():
        return {}
    average = round(float(np.average(sizes, weights=weights)))
    return {Measure.AVERAGE_SIZE: pa.scalar(average, pa.int32())}


def _outermost(known: Known, bounds: pa.Array, end: str) -> pa.Scalar:
    """The outermost bound, or null if a row with values has no bound."""
    if bounds.null_count > 0 and not _only_where_empty(known, bounds):
        return pa.scalar(None, bounds.type)
    if pa.types.is_floating(bounds.type):
        return _outermost_float(bounds, end)
    return pc.min_max(bounds)[end]


def _only_where_empty(known: Known, bounds: pa.Array) -> bool:
    """Whether bounds are null only in rows whose values are all null or NaN."""
    if Measure.VALUES not in known or Measure.NULLS not in known:
        return False
    rest = pc.subtract(known[Measure.VALUES], known[Measure.NULLS])
    if Measure.NANS in known:
        rest = pc.subtract(rest, pc.fill_null(known[Measure.NANS], 0))
    empty = pc.fill_null(pc.equal(rest, 0), False)
    return bool(pc.all(pc.or_(pc.is_valid(bounds), empty), min_count=0).as_py())


def _outermost_float(bounds: pa.Array, end: str) -> pa.Scalar:
    """Minimum or maximum in the total order, where -0.0 is below +0.0; a NaN is no bound."""
    values = np.asarray(bounds.drop_null())
    if len(values) == 0 or np.isnan(values).any():
        return pa.scalar(None, bounds.type)
    extreme = values.min() if end == "min" else values.max()
    if extreme == 0:
        negative = np.signbit(values[values == 0])
        extreme = np.copysign(extreme, -1 if (negative.any() if end == "min" else negative.all()) else 1)
    return pa.scalar(extreme, bounds.type)
