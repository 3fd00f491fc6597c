"""Records for every manifest and file of a plan whether it was kept, and why (spec: Scan Planning).

Reasons are computed only if a trace is requested, for all rows of a manifest at once: each conjunct of the filter is
evaluated by itself, first on partition values, then on all statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum, StrEnum
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_index import DeleteOutcome
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Bound, Constant, conjuncts
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_printer import to_text
from icefloe.model.columns import one_array
from icefloe.model.entries import with_stats
from icefloe.model.partition.spec import PartitionField
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
