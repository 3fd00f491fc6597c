"""The files that the first rows of a scan can come from, in any order or in the order of a column.

Counts and bounds of the files decide it for all files at once. A file whose bounds or counts are unknown is kept, and
none of its rows is counted on.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.columns import one_array
from icefloe.model.schema.types import Field
from icefloe.scan.aggregates import bounds, null_counts


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows:
    """How many rows are wanted: any, or the first by ``column``, a column with bounds whose values are not NaN."""

    rows: int
    column: str | None = None
    descending: bool = False
    nulls_first: bool = False


def files_of_first_rows(tasks: pa.Table, first: FirstRows, column: Field | None) -> pa.Table:
    """Those of the files, whose rows are all wanted, that the first rows can come from."""
    known = pc.and_(pc.is_null(tasks["dv_location"]), pc.equal(pc.list_value_length(tasks["deletes"]), 0))
    rows = pc.if_else(one_array(known), pc.fill_null(pc.max_element_wise(one_array(tasks["record_count"]), 0), 0), 0)
    if column is None:
        enough = pc.greater_equal(pc.cumulative_sum(rows), first.rows)
        place = pc.index(enough, True).as_py()
        return tasks if place < 0 else tasks.slice(0, place + 1)
    nulls, (lower, upper) = null_counts(tasks, column), bounds(tasks, column)
    values = pc.fill_null(pc.subtract(rows, pc.if_else(pc.equal(rows, 0), 0, nulls)), 0)
    nearest, farthest, order = (upper, lower, "descending") if first.descending else (lower, upper, "ascending")
    by = pc.sort_indices(farthest, sort_keys=[("", order)])
    counted = pc.cumulative_sum(pc.if_else(farthest.is_valid(), values, 0).take(by))
    place = pc.index(pc.greater_equal(counted, first.rows), True).as_py()
    if place < 0:
        return tasks
    last = farthest.take(by)[place]
    reached = (pc.greater_equal if first.descending else pc.less_equal)(nearest, last)
    kept = pc.fill_null(reached, True)
    if first.nulls_first:
        kept = pc.or_(kept, pc.fill_null(pc.not_equal(nulls, 0), True))
    else:
        kept = pc.and_(kept, pc.invert(pc.fill_null(pc.equal(nulls, one_array(tasks["record_count"])), False)))
    return tasks.filter(kept)
