"""Partition tuples as numbers: equal for files of the same spec and partition (spec: Partition Transforms).

Null equals null and NaN equals NaN. Values are compared bit by bit, so 0.0 and -0.0 are two partitions. Fields that a
spec does not have are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.model.columns import joint_codes, one_array
from icefloe.model.entries import Measure, StatKey, partition_key, stat, stat_keys

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_SPEC = "partition_spec_id"


def partition_codes(tables: list[pa.Table], context: ManifestContext) -> list[Ints]:
    """For each entry table a number per row, the same for the same spec and partition values."""
    keys = {field_id: partition_key(field_id) for field_id in context.specs_with}
    names = [stat(measure, key) for key in keys.values() for measure in (Measure.LOWER, Measure.NANS)]
    joined = pa.concat_tables(
        [table.select([_SPEC, *(name for name in names if name in table.column_names)]) for table in tables],
        promote_options="permissive",
    ).combine_chunks()
    columns = [joined[_SPEC]]
    for field_id, key in keys.items():
        own = pc.is_in(joined[_SPEC], value_set=pa.array(context.specs_with[field_id], pa.int32()))
        columns += _values(joined, key, own)
    return np.split(joint_codes(columns, joined.num_rows), np.cumsum([table.num_rows for table in tables])[:-1])


def scopes(table: pa.Table) -> Ints:
    """A number for each row of one entry table, the same for the same spec and partition values.

    Like ``partition_codes``, but does not need the specs; all partition values must be known.
    """
    every, keys = pa.repeat(True, table.num_rows), (key for key in stat_keys(table) if key.is_partition)
    columns = [table[_SPEC], *(values for key in keys for values in _values(table, key, every))]
    return joint_codes(columns, table.num_rows)


def _values(joined: pa.Table, key: StatKey, own: Any) -> Iterator[Any]:
    """The values of a partition field, null where the spec does not have it, and which values are NaN."""
    nan = pa.repeat(False, joined.num_rows)
    if (counts := stat(Measure.NANS, key)) in joined.column_names:
        nan = pc.fill_null(pc.greater(one_array(joined[counts]), 0), False)
    if (bounds := stat(Measure.LOWER, key)) in joined.column_names:
        values = one_array(joined[bounds])
        if pa.types.is_floating(values.type):
            nan = pc.or_(nan, pc.fill_null(pc.is_nan(values), False))
            values = values.view(pa.int64() if values.type == pa.float64() else pa.int32())
        yield pc.if_else(pc.and_(own, pc.invert(nan)), values, pa.scalar(None, values.type))
    yield pc.and_(own, nan)
