"""Refuses null partition values that the statistics of their source columns contradict (V4 proposal).

Without counts, null bounds of an expression are the partition value null. A transform is null only where its source is,
so a file with values in the source column has another value, which is not recorded. If it were read as null, filters
would skip the file, and equality deletes of its partition would not apply to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.entry_columns import is_file
from icefloe.errors import FormatError
from icefloe.model.counts import Counts
from icefloe.model.entries import column_key, partition_key, stat
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.transform_names import IDENTITY

Columns = Mapping[str, pa.Array]


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
        counts = stats.get(stat("null_value_count", partition_key(part.field_id)))
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
    values, nulls = (known.get(stat(measure, column_key(source))) for measure in ("value_count", "null_value_count"))
    counts = Counts(values=values, nulls=nulls, nans=None).consistent(rows, whole=whole)
    total = counts.values if not whole else rows if counts.values is None else pc.coalesce(counts.values, rows)
    has_values = pa.repeat(False, len(null))
    if counts.nulls is not None and total is not None:
        has_values = pc.fill_null(pc.less(counts.nulls, total), False)
    for bound in ("lower_bound", "upper_bound"):
        if (column := known.get(stat(bound, column_key(source)))) is not None:
            has_values = pc.or_(has_values, pc.is_valid(column))
    if (row := pc.index(pc.and_(null, has_values), True).as_py()) >= 0:
        raise FormatError(
            f"{where}: row {row} has no value of partition field {part.name!r} in content_stats: it has no bounds"
            f" there, as if it were null, but its column {source} has values",
            location=where,
            field=part.name,
        )
