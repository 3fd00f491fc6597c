"""Why a plan is what it is: for every manifest and file whether it was kept, and what decided (spec: Scan Planning).

Reasons are worked out only when a trace is asked for, for all rows of a manifest at once: each conjunct of the filter
is judged on its own, first by partition values alone, then by all statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_index import Fate
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Bound, Constant, conjuncts
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_printer import to_text
from icefloe.model.partition.spec import PartitionField
from icefloe.tree.root import Leaf

TRACE = pa.schema(
    [
        pa.field("kind", pa.string()),  # manifest, file or delete
        pa.field("location", pa.string()),
        pa.field("manifest", pa.string()),  # the leaf that lists it; null when the root does
        pa.field("decision", pa.string()),  # kept or skipped
        pa.field("reason", pa.string()),
        pa.field("conjunct", pa.string()),  # the part of the filter that decided
    ]
)
_FATES = {
    Fate.APPLIES: "applies to planned files",
    Fate.OUT_OF_REACH: "no planned file is within its reach",
    Fate.APART: "statistics",
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
    """The rows with the statistics of partition values alone."""
    return rows.select([name for name in rows.column_names if ":" not in name or name.split(":", 1)[1][0] == "p"])


class Tracer:
    """Takes note of what planning looks at."""

    def __init__(self, bound: Bound, partitions: tuple[PartitionField, ...]) -> None:
        self._partitions = partitions
        self._conjuncts = cast(tuple[Bound, ...], conjuncts(bound))  # parts of a bound filter are bound
        self._texts = pa.array([filter_text(part) for part in self._conjuncts], pa.string())
        self._constant = isinstance(bound, Constant)
        self._found: list[pa.Table] = []

    def judged(
        self,
        kind: str,
        rows: pa.Table,
        match: pa.Array,
        leaf: Leaf | None,
        *,
        dead: Collection[str] = (),
        others: Mapping[str, str] | None = None,
    ) -> None:
        """Note rows and how much of each matches the filter; ``others`` are reasons beside it, by location."""
        if rows.num_rows == 0:
            return
        beside = {**dict.fromkeys(dead, "no live rows"), **({} if others is None else others)}
        place = pc.index_in(rows["location"], value_set=pa.array(list(beside), pa.string()))
        given = pa.array(list(beside.values()), pa.string()).take(_flat(place))
        skipped = pc.equal(match, int(Match.NONE))
        reason, conjunct = self._reasons(rows, match)
        reason = pc.coalesce(given, reason)
        self._note(
            kind, rows, leaf, pc.or_(skipped, pc.is_valid(given)), reason, pc.if_else(given.is_valid(), None, conjunct)
        )

    def deletes(self, rows: pa.Table, fates: pa.Array) -> None:
        """Note delete rows and what became of them."""
        texts = pa.array([_FATES[fate] for fate in Fate], pa.string())
        skipped = pc.not_equal(fates, int(Fate.APPLIES))
        nothing = pa.nulls(rows.num_rows, pa.string())
        self._note("delete", rows, None, skipped, texts.take(fates.cast(pa.int64())), nothing)

    def table(self) -> pa.Table:
        """Everything noted, in the form of ``TRACE``."""
        return pa.concat_tables([TRACE.empty_table(), *self._found]).combine_chunks()

    def _note(self, kind: str, rows: pa.Table, leaf: Leaf | None, skipped: Any, reason: Any, conjunct: Any) -> None:
        if "manifest" in rows.column_names:
            manifest = rows["manifest"]
        else:
            manifest = pa.repeat(pa.scalar(None if leaf is None else leaf.location, pa.string()), rows.num_rows)
        decision = pc.if_else(skipped, "skipped", "kept")
        kinds = pa.repeat(kind, rows.num_rows)
        self._found.append(pa.table([kinds, rows["location"], manifest, decision, reason, conjunct], schema=TRACE))

    def _reasons(self, rows: pa.Table, match: pa.Array) -> tuple[pa.Array, pa.Array]:
        """What decided about each row: the reason, and the conjunct where one did."""
        verdicts = match.to_numpy()
        reason = np.where(verdicts == int(Match.ALL), int(_Reason.ALL), int(_Reason.SOME))
        conjunct = np.full(rows.num_rows, -1)
        none = np.flatnonzero(verdicts == int(Match.NONE))
        if self._constant:
            reason[none] = int(_Reason.FALSE)
        elif len(none) > 0:
            reason[none], conjunct[none] = self._decisive(rows.take(pa.array(none)))
        return _REASONS.take(pa.array(reason)), self._texts.take(pa.array(conjunct, mask=conjunct < 0))

    def _decisive(self, rows: pa.Table) -> tuple[Any, Any]:
        """For rows that do not match: how that is known, and by which conjunct."""
        how, which = np.full(rows.num_rows, int(_Reason.EMPTY)), np.full(rows.num_rows, -1)
        filled = np.asarray(pc.fill_null(pc.not_equal(rows["record_count"], 0), True))
        for reason, given in ((_Reason.PARTITION, partition_only(rows)), (_Reason.STATISTICS, rows)):
            for number, part in enumerate(self._conjuncts):
                ruled_out = evaluate(part, given, self._partitions).to_numpy() == int(Match.NONE)
                new = ruled_out & (which < 0) & filled
                how[new], which[new] = int(reason), number
        return how, which


def filter_text(part: Any) -> str:
    """A filter, or a part of one, as text for people."""
    try:
        return to_text(part)
    except InputError:  # a transform that only a spec can name
        return repr(part)


def _flat(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
