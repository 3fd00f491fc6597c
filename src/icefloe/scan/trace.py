"""Why a plan keeps or skips each manifest and file: recorded in a trace, and as text (spec: Scan Planning).

Reasons are computed only if a trace is requested, for all rows of a manifest at once: each conjunct of the filter is
evaluated by itself, first on partition values, then on all statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_index import DeleteOutcome
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound, Constant, Expr, conjuncts
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_printer import to_text
from icefloe.io.storage_locations import scheme_family
from icefloe.model.columns import one_array
from icefloe.model.entries import with_stats
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.partition.spec import PartitionField
from icefloe.scan.routes import Route, file_routes
from icefloe.scan.tasks import Plan
from icefloe.tree.root import Leaf


class Kind(StrEnum):
    """What a row of a trace is about."""

    MANIFEST = "manifest"
    FILE = "file"
    DELETE = "delete"


class Decision(StrEnum):
    """What planning did with it."""

    KEPT = "kept"
    SKIPPED = "skipped"


TRACE = pa.schema(
    [
        pa.field("kind", pa.string()),
        pa.field("location", pa.string()),
        pa.field("manifest", pa.string()),  # the leaf that lists it; null if the root does
        pa.field("decision", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("conjunct", pa.string()),  # the part of the filter that decided
        pa.field("rows", pa.int64()),  # of a data file; of a manifest its entries; null if not known
        pa.field("bytes", pa.int64()),
    ]
)
_OUTCOMES = {
    DeleteOutcome.APPLIES: "applies to planned files",
    DeleteOutcome.NO_FILE: "applies to no planned file",
    DeleteOutcome.NO_ROW: "statistics",
}


class _Reason(IntEnum):
    SOME = 0
    ALL = 1
    EMPTY = 2
    PARTITION = 3
    STATISTICS = 4
    FALSE = 5


_REASONS = pa.array(["may match", "all rows match", "no rows", "partition", "statistics", "filter is false"])


def partition_only(rows: pa.Table) -> pa.Table:
    """The rows with statistics of partition values only."""
    return with_stats(rows, lambda column: column.key.is_partition)


class Tracer:
    """Records the decisions of planning."""

    def __init__(self, bound: Bound, partitions: tuple[PartitionField, ...]) -> None:
        self._partitions = partitions
        self._conjuncts = cast(tuple[Bound, ...], conjuncts(bound))  # parts of a bound filter are bound
        self._texts = pa.array([filter_text(part) for part in self._conjuncts], pa.string())
        self._constant = isinstance(bound, Constant)
        self._records: list[pa.Table] = []

    def record(
        self,
        kind: Kind,
        rows: pa.Table,
        match: pa.Array,
        leaf: Leaf | None,
        *,
        dead: Collection[str] = (),
        others: Mapping[str, str] | None = None,
    ) -> None:
        """Record entries and how the filter matches them; ``others`` are reasons besides the filter, by location."""
        if rows.num_rows == 0:
            return
        by_location = {**dict.fromkeys(dead, "no live rows"), **({} if others is None else others)}
        index = pc.index_in(rows["location"], value_set=pa.array(list(by_location), pa.string()))
        other = pa.array(list(by_location.values()), pa.string()).take(one_array(index))
        reason, conjunct = self._reasons(rows, match)
        skipped = pc.or_(pc.equal(match, int(Match.NONE)), other.is_valid())
        conjunct = pc.if_else(other.is_valid(), None, conjunct)
        self._append(kind, rows, leaf, skipped, pc.coalesce(other, reason), conjunct)

    def record_deletes(self, rows: pa.Table, outcomes: pa.Array) -> None:
        """Record delete entries and their outcomes, as numbers of ``DeleteOutcome``."""
        texts = pa.array([_OUTCOMES[outcome] for outcome in DeleteOutcome], pa.string())
        skipped = pc.not_equal(outcomes, int(DeleteOutcome.APPLIES))
        no_conjunct = pa.nulls(rows.num_rows, pa.string())
        self._append(Kind.DELETE, rows, None, skipped, texts.take(outcomes.cast(pa.int64())), no_conjunct)

    def table(self) -> pa.Table:
        """All records, with the columns of ``TRACE``."""
        return pa.concat_tables([TRACE.empty_table(), *self._records]).combine_chunks()

    def _append(self, kind: Kind, rows: pa.Table, leaf: Leaf | None, skipped: Any, reason: Any, conjunct: Any) -> None:
        if "manifest" in rows.column_names:
            manifest = rows["manifest"]
        else:
            manifest = pa.repeat(pa.scalar(None if leaf is None else leaf.location, pa.string()), rows.num_rows)
        decision = pc.if_else(skipped, Decision.SKIPPED, Decision.KEPT)
        kinds = pa.repeat(kind, rows.num_rows)
        counts = (rows["record_count"], rows["file_size_in_bytes"])
        columns = [kinds, rows["location"], manifest, decision, reason, conjunct, *counts]
        self._records.append(pa.table(columns, schema=TRACE))

    def _reasons(self, rows: pa.Table, match: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The reason for the decision on each row, and the conjunct that decided, if one did."""
        matches = match.to_numpy()
        reason = np.where(matches == int(Match.ALL), int(_Reason.ALL), int(_Reason.SOME))
        conjunct = np.full(rows.num_rows, -1)
        none = np.flatnonzero(matches == int(Match.NONE))
        if self._constant:
            reason[none] = int(_Reason.FALSE)
        elif len(none) > 0:
            reason[none], conjunct[none] = self._deciding(rows.take(pa.array(none)))
        return _REASONS.take(pa.array(reason)), self._texts.take(pa.array(conjunct, mask=conjunct < 0))

    def _deciding(self, rows: pa.Table) -> tuple[Any, Any]:
        """For rows that do not match: the reason, and the first conjunct that shows it."""
        reasons, numbers = np.full(rows.num_rows, int(_Reason.EMPTY)), np.full(rows.num_rows, -1)
        has_rows = np.asarray(pc.fill_null(pc.not_equal(rows["record_count"], 0), True))
        for reason, statistics in ((_Reason.PARTITION, partition_only(rows)), (_Reason.STATISTICS, rows)):
            for number, part in enumerate(self._conjuncts):
                no_match = evaluate(part, statistics, self._partitions).to_numpy() == int(Match.NONE)
                decided = no_match & (numbers < 0) & has_rows
                reasons[decided], numbers[decided] = int(reason), number
        return reasons, numbers


def filter_text(part: Any) -> str:
    """A filter, or a part of one, as text for people."""
    try:
        return to_text(part)
    except InputError:  # a transform that only a spec can name
        return repr(part)


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
