"""The summary of a snapshot, with Iceberg's keys (spec: Snapshots, Optional Snapshot Summary Fields)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.intent import Resolved
from icefloe.model.entries import ContentType, choose, of_type, stat_keys
from icefloe.model.snapshots import Operation, Snapshot

TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
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
    written = {key: str(value) for key, value in counts.items() if value != 0 or key in ALWAYS}
    return {"operation": str(operation), **extra, **written}


def _counts(resolved: Resolved) -> dict[str, int]:
    added = resolved.added
    data = choose(added, of_type(added, ContentType.DATA))
    vectors = choose(added, of_type(added, ContentType.POSITION_DELETES))
    gone = pa.concat_tables([resolved.removed.select(_SEEN), resolved.replaced.select(_SEEN)])
    old = gone.filter(pc.is_valid(gone["dv_location"]))
    return {
        "added-data-files": data.num_rows,
        "added-records": _sum(data["record_count"]),
        "added-files-size": _sum(data["file_size_in_bytes"]) + _sum(vectors["dv_size_in_bytes"]),
        "deleted-data-files": resolved.removed.num_rows,
        "deleted-records": _sum(resolved.removed["record_count"]),
        "removed-files-size": _sum(resolved.removed["file_size_in_bytes"]) + _sum(old["dv_size_in_bytes"]),
        "added-delete-files": vectors.num_rows,
        "added-dvs": vectors.num_rows,
        "added-position-deletes": _sum(vectors["record_count"]),
        "removed-delete-files": old.num_rows,
        "removed-dvs": old.num_rows,
        "removed-position-deletes": _sum(old["dv_cardinality"]),
        "changed-partition-count": _partitions(resolved),
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
