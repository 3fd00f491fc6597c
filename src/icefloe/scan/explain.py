"""A plan as text: what is read, what is skipped, and why (spec: Scan Planning)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.io.storage_locations import scheme_family
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.scan.routes import Route, file_routes
from icefloe.scan.tasks import Plan
from icefloe.scan.trace import Decision, Kind, filter_text

_EXAMPLES = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def explain(plan: Plan, snapshot: Snapshot | None, filter: Expr = ALWAYS_TRUE, *, native: bool = True) -> str:
    """A traced plan as text: the snapshot, the filter, how much is read and skipped, and a few examples per reason.

    ``native`` is true if Spark's Parquet reader finds the columns of the table.
    """
    if plan.trace is None:
        raise InputError("the plan has no trace; plan with trace=True")
    rows, size = (pc.sum(plan.tasks[name], min_count=0).as_py() for name in ("record_count", "file_size_in_bytes"))
    vectors = pc.count(plan.tasks["dv_location"]).as_py()
    skipped = "" if plan.manifests_skipped == 0 else ", besides those of skipped manifests"
    return "\n".join(
        [
            f"{_named(snapshot)} of {plan.origin.table}",
            "no filter" if filter == ALWAYS_TRUE else f"filter: {filter_text(filter)}",
            f"manifests: {plan.manifests_read} read ({_bytes(plan.trace, Kind.MANIFEST, Decision.KEPT)} bytes),"
            f" {plan.manifests_skipped} skipped ({_bytes(plan.trace, Kind.MANIFEST, Decision.SKIPPED)} bytes)",
            f"data files: {plan.files} to read ({rows} rows, {size} bytes), {plan.files_skipped} skipped"
            f" ({_bytes(plan.trace, Kind.FILE, Decision.SKIPPED)} bytes){skipped}",
            f"deletes: {plan.deletes.num_rows} delete files and {vectors} deletion vectors to apply",
            *_routes(plan, native=native),
            *_storage(plan, native=native),
            *_reasons(plan.trace),
        ]
    )


def _routes(plan: Plan, *, native: bool) -> list[str]:
    """How Spark reads the files, unless its own Parquet reader reads all of them without joins."""
    counts = np.bincount(file_routes(plan, native=native), minlength=len(Route)).tolist()
    if counts[Route.NATIVE] == plan.files:
        return []
    return [
        f"on Spark: {counts[Route.NATIVE]} files by its Parquet reader, {counts[Route.JOINED]} by that and joins with"
        f" equality deletes, {counts[Route.TASKS]} by tasks in Python"
    ]


def _storage(plan: Plan, *, native: bool) -> list[str]:
    """What Spark needs to read the files itself, if they are in an object store."""
    schemes = {location.partition("://")[0] for location in plan.tasks["location"][:1].to_pylist()}
    return [
        f"on a Spark without a file system for {scheme}://, such as hadoop-aws: all files by tasks in Python"
        for scheme in schemes
        if native and len(scheme_family(scheme)) > 0
    ]


def _named(snapshot: Snapshot | None) -> str:
    if snapshot is None:
        return "no snapshot"
    time = (_EPOCH + timedelta(milliseconds=snapshot.timestamp_ms)).isoformat(timespec="milliseconds")
    return f"snapshot {snapshot.snapshot_id} ({snapshot.operation}, {time})"


def _bytes(trace: pa.Table, kind: Kind, decision: Decision) -> int:
    """The bytes of the manifests or files that were kept or skipped."""
    chosen = pc.and_(pc.equal(trace["kind"], kind), pc.equal(trace["decision"], decision))
    return int(pc.sum(trace["bytes"].filter(chosen), min_count=0).as_py())


def _reasons(trace: pa.Table) -> list[str]:
    lines: list[str] = []
    keys = ["kind", "decision", "reason", "conjunct"]
    totals = trace.group_by(keys, use_threads=False).aggregate([([], "count_all"), ("bytes", "sum")])
    for group in totals.to_pylist():
        why = group["reason"] if group["conjunct"] is None else f"{group['reason']}: {group['conjunct']}"
        size = "" if group["bytes_sum"] is None else f", {group['bytes_sum']} bytes"
        lines.append(f"{group['kind']} {group['decision']} ({group['count_all']}{size}): {why}")
        lines.extend(f"  {location}" for location in _examples(trace, {key: group[key] for key in keys}))
        if group["count_all"] > _EXAMPLES:
            lines.append(f"  and {group['count_all'] - _EXAMPLES} more")
    return lines


def _examples(trace: pa.Table, group: Mapping[str, str | None]) -> list[str]:
    mask = pa.repeat(True, trace.num_rows)
    for name, value in group.items():
        mask = pc.and_(
            mask, pc.is_null(trace[name]) if value is None else pc.fill_null(pc.equal(trace[name], value), False)
        )
    locations: list[str] = trace.filter(mask)["location"].slice(0, _EXAMPLES).to_pylist()
    return locations
