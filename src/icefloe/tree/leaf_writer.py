"""Writes the leaf manifests of a new snapshot and builds their rows for its root manifest (V4 proposal).

A leaf of new files has status ADDED. A leaf of older entries has status EXISTING, like all its entries, as it does not
change the table. A leaf never contains both; ``write_existing`` checks that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.errors import InputError
from icefloe.formats.read.reader import with_row_counts
from icefloe.model.entries import ContentType, Status, live, put
from icefloe.model.metadata.properties import LEAF_TARGET_SIZE, MERGE_TARGET_SIZE
from icefloe.model.metadata.version_rules import rules
from icefloe.tree.new_snapshot import RowIds, SnapshotIdentity
from icefloe.tree.staging import NewLeaf, Staging
from icefloe.tree.store import ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafWriter:
    """Writes the leaves of one snapshot, in the target size of the table.

    Entries that do not fit one leaf are sorted by partition, by the fields ``cluster_by`` first.
    """

    store: ManifestStore
    identity: SnapshotIdentity
    ids: RowIds
    staging: Staging
    properties: Mapping[str, str]
    cluster_by: tuple[int, ...] = ()

    @property
    def target(self) -> int:
        """The target size of a leaf, in bytes."""
        holds_files = rules(self.store.context.format_version).root_holds_files
        return (LEAF_TARGET_SIZE if holds_files else MERGE_TARGET_SIZE).of(self.properties)

    def write_added(self, parts: Callable[[], Iterable[pa.Table]], content: ContentType) -> tuple[NewLeaf, ...]:
        """Write leaves of new files, or reuse those of an earlier attempt."""
        of = self.identity.snapshot_id  # a commit may make several snapshots
        return self.staging.reuse_or_write(self.store, of, parts, content=content, target=self.target)

    def added_row(self, leaf: NewLeaf, affinity: str | None = None) -> pa.Table:
        """The root row of a leaf of new files; assigns row ids to them."""
        first = self.ids.take(pc.sum(leaf.rows["record_count"]).as_py()) if leaf.is_data else None
        return self._row(leaf, Status.ADDED, first, affinity)

    def write_existing(
        self, rows: pa.Table, content: ContentType, *, affinity: str | None = None, split: bool = True
    ) -> list[pa.Table]:
        """Write leaves of older entries; their root rows. InputError for an entry that the new snapshot changes.

        Without ``split`` all rows are written to one leaf.
        """
        self._check_unchanged(rows)
        rows = self._with_row_ids(rows, content)
        if rows["file_sequence_number"].null_count > 0:
            # Required in V4, but missing in manifests of Apache Iceberg before 1.1. A file is not older than its data.
            rows = put(rows, "file_sequence_number", pc.coalesce(rows["file_sequence_number"], rows["sequence_number"]))
        target = self.target if split else None
        leaves = self.staging.write_leaves(self.store, rows, content=content, target=target, cluster_by=self.cluster_by)
        return [self._row(leaf, Status.EXISTING, self._next_id(leaf), affinity) for leaf in leaves]

    def write_merged(self, rows: pa.Table, content: ContentType) -> list[pa.Table]:
        """Write leaves of entries of any status, as versions 1 to 3 merge them; their root rows."""
        rows = self._with_row_ids(rows, content)
        leaves = self.staging.write_leaves(
            self.store, rows, content=content, target=self.target, cluster_by=self.cluster_by
        )
        return [self._row(leaf, Status.ADDED, self._next_id(leaf)) for leaf in leaves]

    def write_changed(self, rows: pa.Table, content: ContentType, *, first_row_id: int | None) -> pa.Table:
        """Write a leaf with changed entries, as versions 1 to 3 do; its root row."""
        (leaf,) = self.staging.write_leaves(self.store, self._with_row_ids(rows, content), content=content)
        return self._row(leaf, Status.ADDED, first_row_id)

    def _with_row_ids(self, rows: pa.Table, content: ContentType) -> pa.Table:
        """Entries with row counts and row ids, which manifests from before row lineage may lack.

        In tables without row lineage, unknown row counts stay unknown.
        """
        if self.ids.next is None:
            return rows
        rows = with_row_counts(self.store.io, rows)
        missing = pc.and_(live(rows), pc.is_null(rows["first_row_id"]))
        if content is not ContentType.DATA_MANIFEST or pc.any(missing).as_py() is not True:
            return rows
        first = self.ids.take_each(np.where(np.asarray(missing), np.asarray(rows["record_count"]), 0))
        return put(rows, "first_row_id", pc.if_else(missing, first, rows["first_row_id"]))

    def _next_id(self, leaf: NewLeaf) -> int | None:
        """The next row id, not taken: all files of the leaf have ids, but a null would make readers ignore them."""
        return self.ids.next if leaf.is_data else None

    def _check_unchanged(self, rows: pa.Table) -> None:
        """Refuse entries that the new snapshot changes: the root could not distinguish them from older ones."""
        changed = pc.or_(
            pc.not_equal(rows["status"], int(Status.EXISTING)),
            pc.equal(rows["snapshot_id"], self.identity.snapshot_id),
        )
        wrong = pc.index(pc.fill_null(changed, True), True).as_py()
        if wrong >= 0:
            file = rows["location"][wrong].as_py()
            raise InputError(
                f"table {self.store.context.location}: {file} is changed by this snapshot, so it cannot be written to a"
                " manifest of older entries",
                file=file,
            )

    def _row(self, leaf: NewLeaf, status: Status, first_row_id: int | None, affinity: str | None = None) -> pa.Table:
        return manifest_row(
            leaf.rows,
            self.store.context,
            location=leaf.location,
            size=leaf.size,
            content=leaf.content,
            status=status,
            snapshot_id=self.identity.snapshot_id,
            sequence_number=self.identity.sequence_number,
            first_row_id=first_row_id,
            referenced_file=affinity,
        )
