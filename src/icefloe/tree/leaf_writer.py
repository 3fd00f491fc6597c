"""Leaves of a snapshot that is being made, and the rows that stand for them in its root (V4 proposal).

A leaf of new files is ADDED. A leaf that only puts older entries together is EXISTING, as all its rows are: nothing of
the table changed. The two never mix, which is checked here, where every leaf of the second kind is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.errors import InputError
from icefloe.formats.read.row_counts import with_row_counts
from icefloe.model.entries import Status, live, put
from icefloe.model.metadata.properties import LEAF_TARGET_SIZE, MERGE_TARGET_SIZE
from icefloe.model.metadata.version_rules import rules
from icefloe.tree.new_snapshot import Moment, RowIds
from icefloe.tree.staging import NewLeaf, Staging
from icefloe.tree.store import ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafWriter:
    """Writes the leaves of one snapshot, of the size that the table asks for."""

    store: ManifestStore
    moment: Moment
    ids: RowIds
    staging: Staging
    properties: Mapping[str, str]

    @property
    def target(self) -> int:
        """The size of a leaf that the table asks for, in bytes."""
        holds_files = rules(self.store.context.format_version).root_holds_files
        return (LEAF_TARGET_SIZE if holds_files else MERGE_TARGET_SIZE).of(self.properties)

    def added(self, parts: Callable[[], Iterable[pa.Table]], *, delete: bool) -> tuple[NewLeaf, ...]:
        """Leaves of new files, written once for all attempts."""
        key = f"{self.moment.snapshot_id} {'deletes' if delete else 'data'}"  # a commit may make several snapshots
        return self.staging.reuse_or_write(self.store, key, parts, delete=delete, target=self.target)

    def added_row(self, leaf: NewLeaf, affinity: str | None = None) -> pa.Table:
        """The root row of a leaf of new files, which takes row ids for them."""
        first = None if leaf.delete else self.ids.take(pc.sum(leaf.rows["record_count"]).as_py())
        return self._row(leaf, Status.ADDED, first, affinity)

    def settled(
        self, rows: pa.Table, *, delete: bool, affinity: str | None = None, split: bool = True
    ) -> list[pa.Table]:
        """Write leaves of older entries; their root rows. InputError for an entry of the snapshot that is made.

        Without ``split`` the caller has seen to it that they are not too many for one leaf.
        """
        self._check_settled(rows)
        rows = self._with_row_ids(rows, delete=delete)
        if rows["file_sequence_number"].null_count > 0:
            # V4 wants what manifests of Apache Iceberg before 1.1 do not tell; files came no earlier than their data.
            rows = put(rows, "file_sequence_number", pc.coalesce(rows["file_sequence_number"], rows["sequence_number"]))
        leaves = self.staging.write_leaves(self.store, rows, delete=delete, target=self.target if split else None)
        return [self._row(leaf, Status.EXISTING, self._unused_id(leaf), affinity) for leaf in leaves]

    def merged(self, rows: pa.Table, *, delete: bool) -> list[pa.Table]:
        """Write leaves of entries of any kind, as versions 1 to 3 merge them; their root rows."""
        rows = self._with_row_ids(rows, delete=delete)
        leaves = self.staging.write_leaves(self.store, rows, delete=delete, target=self.target)
        return [self._row(leaf, Status.ADDED, self._unused_id(leaf)) for leaf in leaves]

    def written_again(self, rows: pa.Table, *, delete: bool, first_row_id: int | None) -> pa.Table:
        """Write a leaf whose entries have changed, as versions 1 to 3 do; its root row."""
        (leaf,) = self.staging.write_leaves(self.store, self._with_row_ids(rows, delete=delete), delete=delete)
        return self._row(leaf, Status.ADDED, first_row_id)

    def _with_row_ids(self, rows: pa.Table, *, delete: bool) -> pa.Table:
        """Entries with the numbers of rows and the row ids that manifests before row lineage may not have.

        Tables without row lineage keep numbers that are unknown as they are.
        """
        if self.ids.next is None:
            return rows
        rows = with_row_counts(self.store.io, rows)
        wanting = pc.and_(live(rows), pc.is_null(rows["first_row_id"]))
        if delete or pc.any(wanting).as_py() is not True:
            return rows
        counts = np.where(np.asarray(wanting), np.asarray(rows["record_count"]), 0)
        start = self.ids.take(int(counts.sum()))
        first = pa.array(start + np.concatenate(([0], np.cumsum(counts)[:-1])), pa.int64())
        return put(rows, "first_row_id", pc.if_else(wanting, first, rows["first_row_id"]))

    def _unused_id(self, leaf: NewLeaf) -> int | None:
        # A leaf without first_row_id would void the ids of its files; they all have their own, so none is taken.
        return None if leaf.delete else self.ids.next

    def _check_settled(self, rows: pa.Table) -> None:
        """New files have leaves of their own, or the root could not tell them from older ones."""
        changed = pc.or_(
            pc.not_equal(rows["status"], int(Status.EXISTING)),
            pc.equal(rows["snapshot_id"], self.moment.snapshot_id),
        )
        wrong = pc.index(pc.fill_null(changed, True), True).as_py()
        if wrong >= 0:
            file = rows["location"][wrong].as_py()
            raise InputError(
                f"table {self.store.context.location}: {file} is changed by this snapshot, so it cannot go to a"
                " manifest of older entries",
                file=file,
            )

    def _row(self, leaf: NewLeaf, status: Status, first_row_id: int | None, affinity: str | None = None) -> pa.Table:
        """The row that stands for a leaf in the root."""
        return manifest_row(
            leaf.rows,
            self.store.context,
            location=leaf.location,
            size=leaf.size,
            delete=leaf.delete,
            status=status,
            snapshot_id=self.moment.snapshot_id,
            sequence_number=self.moment.sequence_number,
            first_row_id=first_row_id,
            referenced_file=affinity,
        )
