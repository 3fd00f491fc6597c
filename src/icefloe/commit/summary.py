"""The summary of a snapshot, with Iceberg's keys (spec: Snapshots)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.intent import Resolved
from icefloe.model.entries import ContentType, choose, of_type, stat_keys
from icefloe.model.snapshots import Operation, Snapshot, SummaryKey

TOTALS = {
    SummaryKey.TOTAL_DATA_FILES: (SummaryKey.ADDED_DATA_FILES, SummaryKey.DELETED_DATA_FILES),
    SummaryKey.TOTAL_RECORDS: (SummaryKey.ADDED_RECORDS, SummaryKey.DELETED_RECORDS),
    SummaryKey.TOTAL_FILES_SIZE: (SummaryKey.ADDED_FILES_SIZE, SummaryKey.REMOVED_FILES_SIZE),
    SummaryKey.TOTAL_DELETE_FILES: (SummaryKey.ADDED_DELETE_FILES, SummaryKey.REMOVED_DELETE_FILES),
    SummaryKey.TOTAL_POSITION_DELETES: (SummaryKey.ADDED_POSITION_DELETES, SummaryKey.REMOVED_POSITION_DELETES),
    SummaryKey.TOTAL_EQUALITY_DELETES: (SummaryKey.ADDED_EQUALITY_DELETES, SummaryKey.REMOVED_EQUALITY_DELETES),
}
# Always written, as other engines do; the rest of the counts only when they are not zero.
ALWAYS = frozenset(TOTALS)


def summarize(
    operation: Operation, resolved: Resolved, parent: Snapshot | None, extra: Mapping[str, str]
) -> dict[str, str]:
    """What a snapshot did, and the totals after it."""
    counts = _counts(resolved)
    before: Mapping[str, str] = {} if parent is None else parent.summary
    for total, (plus, minus) in TOTALS.items():
        if parent is None or before.get(total, "").isdigit():
            counts[total] = int(before.get(total, "0")) + counts.get(plus, 0) - counts.get(minus, 0)
    written = {str(key): str(value) for key, value in counts.items() if value != 0 or key in ALWAYS}
    return {str(SummaryKey.OPERATION): str(operation), **extra, **written}


def _counts(resolved: Resolved) -> dict[str, int]:
    added = resolved.added
    data = choose(added, of_type(added, ContentType.DATA))
    vectors = choose(added, of_type(added, ContentType.POSITION_DELETES))
    gone = pa.concat_tables([resolved.removed.select(_SEEN), resolved.replaced.select(_SEEN)])
    old = gone.filter(pc.is_valid(gone["dv_location"]))
    return {
        SummaryKey.ADDED_DATA_FILES: data.num_rows,
        SummaryKey.ADDED_RECORDS: _sum(data["record_count"]),
        SummaryKey.ADDED_FILES_SIZE: _sum(data["file_size_in_bytes"]) + _sum(vectors["dv_size_in_bytes"]),
        SummaryKey.DELETED_DATA_FILES: resolved.removed.num_rows,
        SummaryKey.DELETED_RECORDS: _sum(resolved.removed["record_count"]),
        SummaryKey.REMOVED_FILES_SIZE: _sum(resolved.removed["file_size_in_bytes"]) + _sum(old["dv_size_in_bytes"]),
        SummaryKey.ADDED_DELETE_FILES: vectors.num_rows,
        SummaryKey.ADDED_DVS: vectors.num_rows,
        SummaryKey.ADDED_POSITION_DELETES: _sum(vectors["record_count"]),
        SummaryKey.REMOVED_DELETE_FILES: old.num_rows,
        SummaryKey.REMOVED_DVS: old.num_rows,
        SummaryKey.REMOVED_POSITION_DELETES: _sum(old["dv_cardinality"]),
        SummaryKey.CHANGED_PARTITION_COUNT: _partitions(resolved),
    }


_SEEN = ["dv_location", "dv_size_in_bytes", "dv_cardinality"]


def _sum(column: pa.ChunkedArray) -> int:
    total = pc.sum(column).as_py()
    return 0 if total is None else int(total)


def _partitions(resolved: Resolved) -> int:
    """How many distinct partitions the change touched."""
    tables = [t for t in (resolved.added, resolved.removed, resolved.replaced) if t.num_rows > 0]
    if len(tables) == 0:
        return 0
    keys = dict.fromkeys(f"lower_bound:{k}" for t in tables for k in stat_keys(t) if k.startswith("p"))
    parts = [t.select(["partition_spec_id", *(k for k in keys if k in t.column_names)]) for t in tables]
    rows = pa.concat_tables(parts, promote_options="permissive")
    if len(keys) == 0 or rows.num_rows == 1:
        return int(pc.count_distinct(rows["partition_spec_id"]).as_py())
    return int(rows.group_by(["partition_spec_id", *keys]).aggregate([]).num_rows)
