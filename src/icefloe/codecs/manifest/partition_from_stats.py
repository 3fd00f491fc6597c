"""Partition values of V4 entries, from their statistics (V4 proposal).

A file has its value as lower bound, a manifest has the bounds of the values of its files. Null and NaN have no bounds:
counts tell them, and without counts two null bounds are a null value.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.entry_columns import has_nan, is_file, partition_stats
from icefloe.errors import FormatError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import ContentType, column_key, partition_key, stat
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.model.schema.types import Type

Columns = Mapping[str, pa.Array]

PARTITION_MEASURES = ("lower_bound", "upper_bound", "value_count", "null_value_count", "nan_value_count")


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
    stored: Mapping[str, pa.Array | None],
    record_count: pa.Array,
    key: str,
    type_: Type,
    files: pa.Array,
    part: PartitionField,
    where: str,
) -> dict[str, pa.Array]:
    """Partition values of file rows: the lower bound, else NaN by the counts, else null if both bounds are null.

    FormatError if counts contradict null, or if the file has no statistics of the field at all.
    """
    target = arrow_type(type_)
    lower, upper, nulls = stored["lower_bound"], stored["upper_bound"], stored["null_value_count"]
    value = pa.nulls(len(files), target) if lower is None else lower.cast(target)
    total = record_count if stored["value_count"] is None else pc.coalesce(stored["value_count"], record_count)
    known = pc.is_valid(value)
    if has_nan(type_):
        nan = pc.and_(_equal(stored["nan_value_count"], total, len(files)), pc.invert(known))
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
