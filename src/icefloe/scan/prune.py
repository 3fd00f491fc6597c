"""Prunes manifests and files by their statistics (spec: Scan Planning; V4 proposal).

The filter is evaluated on all rows of a table at once: on all statistics of data files, but only on the partition
values of deletes, because statistics of a delete file may describe columns that it does not compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.filter.nodes import Bound, BoundPredicate, leaves
from icefloe.expr.prune.boxes import ColumnBox
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.model.entries import DELETES, ContentType, StatKeys, choose, column_key, concat, partition_key, with_stats
from icefloe.model.partition.spec import PartitionField
from icefloe.scan.trace import Kind, Tracer, partition_only
from icefloe.tree.root import Leaf, Root, leaves_of, live_files, read_live_leaves, with_manifest
from icefloe.tree.store import ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Data files that may match: entries of the root, and leaves that are not read yet."""

    rows: pa.Table
    leaves: tuple[Leaf, ...]
    min_sequence_number: int | None  # a lower bound for all these data files; none if there are none

    @property
    def locations(self) -> frozenset[str]:
        """The locations of the leaves."""
        return frozenset(leaf.location for leaf in self.leaves)


def statistics_keys(bound: Bound, partitions: Sequence[PartitionField], compared: Iterable[int] = ()) -> StatKeys:
    """The statistics keys that planning needs: of filter columns, partition fields and other compared columns."""
    tested = (column_key(node.field_id) for node in leaves(bound) if isinstance(node, BoundPredicate))
    of_partitions = (partition_key(field.field_id) for field in partitions)
    return frozenset([*tested, *map(column_key, compared), *of_partitions])


class Pruner:
    """Evaluates one filter on entry tables, counts skipped files and manifests, and records decisions in a tracer."""

    def __init__(
        self,
        bound: Bound,
        partitions: tuple[PartitionField, ...],
        tracer: Tracer | None = None,
        boxes: tuple[ColumnBox, ...] = (),
    ) -> None:
        self._bound = bound
        self._partitions = partitions
        self._tracer = tracer
        self._boxes = boxes
        self.files_skipped = 0
        self.manifests_read = 0
        self.manifests_skipped = 0

    def data_rows(self, store: ManifestStore, root: Root, data: Candidates, wanted: StatKeys | None) -> pa.Table:
        """The data files that may contain matching rows, with the wanted statistics (``None`` for all)."""
        live = read_live_leaves(store, root, data.leaves, wanted)
        parts = [self.keep_files(rows, leaf) for leaf, rows in zip(data.leaves, live, strict=True)]
        return self.joined(data.rows, parts, wanted)

    def joined(self, rows: pa.Table, parts: Sequence[pa.Table], wanted: StatKeys | None) -> pa.Table:
        """The data files of the root and those of its leaves together, with the wanted statistics."""
        return concat([_narrowed(part, wanted) for part in (rows, *parts)]).combine_chunks()

    def untraced(self) -> Pruner:
        """A pruner with the same filter, which has counted nothing and records nothing."""
        return Pruner(self._bound, self._partitions, boxes=self._boxes)

    def _match(self, rows: pa.Table) -> tuple[pa.Array, dict[str, str]]:
        """How many rows of each file or manifest match, and the reasons of a trace for those outside a box."""
        match = evaluate(self._bound, rows, self._partitions)
        reasons: dict[str, str] = {}
        for box in self._boxes:
            outside = pa.array(box.is_outside(rows))
            match = pc.if_else(outside, pa.scalar(int(Match.NONE), match.type), match)
            if self._tracer is not None:
                reasons |= dict.fromkeys(rows["location"].filter(outside).to_pylist(), f"outside {box.box}")
        return match, reasons

    def keep_files(self, rows: pa.Table, leaf: Leaf | None) -> pa.Table:
        """The data files that may contain matching rows, with columns ``match`` and ``manifest``."""
        match, reasons = self._match(rows)
        if self._tracer is not None:
            self._tracer.record(Kind.FILE, rows, match, leaf, others=reasons)
        kept = rows.append_column("match", match).filter(pc.not_equal(match, int(Match.NONE)))
        self.files_skipped += rows.num_rows - kept.num_rows
        return with_manifest(kept, leaf)

    def candidates(self, root: Root) -> Candidates:
        """The data files of the root and the data leaves that may contain matching rows."""
        rows = root.rows(ContentType.DATA_MANIFEST)
        match, reasons = self._match(rows)
        kept = choose(rows, pc.not_equal(match, int(Match.NONE)))
        kept_leaves = tuple(leaf for leaf in leaves_of(kept) if not root.is_dead(leaf))
        if self._tracer is not None:
            dead = [leaf.location for leaf in leaves_of(rows) if root.is_dead(leaf)]
            self._tracer.record(Kind.MANIFEST, rows, match, None, dead=dead, others=reasons)
        self.manifests_read += len(kept_leaves)
        self.manifests_skipped += rows.num_rows - len(kept_leaves)
        files = self.keep_files(root.rows(ContentType.DATA), None)
        return Candidates(rows=files, leaves=kept_leaves, min_sequence_number=_min_sequence_number(files, kept))

    def delete_rows(self, store: ManifestStore, root: Root, data: Candidates) -> pa.Table:
        """Live delete entries that may apply to the candidates, with column ``manifest``."""
        if data.min_sequence_number is None:
            return with_manifest(root.rows(*DELETES).slice(0, 0), None)
        kept = tuple(self._delete_leaves(root, data))
        return delete_rows(store, root, kept)

    def _delete_leaves(self, root: Root, data: Candidates) -> Iterator[Leaf]:
        """The delete leaves that may apply, by partition, sequence number and affinity."""
        rows = root.rows(ContentType.DELETE_MANIFEST)
        match = evaluate(self._bound, partition_only(rows), self._partitions)
        wanted = data.locations
        reasons: dict[str, str] = {}
        for leaf, verdict in zip(leaves_of(rows), match.to_pylist(), strict=True):
            if verdict == Match.NONE:
                continue
            if root.is_dead(leaf):
                reasons[leaf.location] = "no live rows"
            elif data.min_sequence_number is not None and leaf.sequence_number < data.min_sequence_number:
                reasons[leaf.location] = "older than every planned file"
            elif leaf.affinity is not None and leaf.affinity not in wanted:
                reasons[leaf.location] = "belongs to a skipped manifest"
            else:
                yield leaf
        if self._tracer is not None:
            self._tracer.record(Kind.MANIFEST, partition_only(rows), match, None, others=reasons)


DataRows: TypeAlias = Callable[[Pruner, ManifestStore, Root, Candidates, StatKeys | None], pa.Table]


def delete_rows(store: ManifestStore, root: Root, leaves: Sequence[Leaf]) -> pa.Table:
    """Live delete entries of the root and of some delete leaves, with column ``manifest``."""
    return live_files(store, root, leaves, *DELETES).combine_chunks()


def _narrowed(rows: pa.Table, wanted: StatKeys | None) -> pa.Table:
    """The rows with the wanted statistics only; the cache may return more."""
    return rows if wanted is None else with_stats(rows, lambda column: column.key in wanted)


def _min_sequence_number(files: pa.Table, manifests: pa.Table) -> int | None:
    """The lowest sequence number that a data file may have; 0 if a manifest does not record it."""
    numbers = [
        pc.min(files["sequence_number"]).as_py(),
        pc.min(pc.fill_null(manifests["min_sequence_number"], 0)).as_py(),
    ]
    return min((number for number in numbers if number is not None), default=None)
