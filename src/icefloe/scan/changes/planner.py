"""Plans which files contain the rows that commits changed (spec: Scan Planning, Row-level Deletes; V4 proposal).

A snapshot adds and removes data files, and adds and removes deletes. The data files that stay, and to which added or
removed deletes apply, are planned twice: with the deletes of the parent, and with those of the snapshot. Files that a
snapshot does not touch are not planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_index import attach_deletes
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound, Expr
from icefloe.model.entries import DELETES, ContentType, Status, choose, concat, of_status, of_type
from icefloe.model.location_columns import index_of
from icefloe.model.metadata.error_context import Origin
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.scan.changes.plan import ChangePlan, ChangeStep
from icefloe.scan.changes.snapshot_range import SnapshotRange
from icefloe.scan.lookup import data_files_at
from icefloe.scan.plan import plan_files, selected
from icefloe.scan.prune import delete_rows
from icefloe.scan.tasks import Plan
from icefloe.tree.opened_manifests import RecordingStore
from icefloe.tree.root import Root, live_files, read_root, with_manifest
from icefloe.tree.snapshot_changes import in_total, snapshot_changes
from icefloe.tree.store import ManifestStore


def plan_changes(
    store: ManifestStore,
    metadata: TableMetadata,
    between: SnapshotRange,
    *,
    filter: Expr = ALWAYS_TRUE,
    columns: Sequence[str] | None = None,
    table: str | None = None,
) -> ChangePlan:
    """The files that contain the changed rows of a range of snapshots that may match ``filter``, by commit.

    Rows are read with the schema of the last snapshot. ``table`` is the name of the table, for errors.
    """
    schema = between.schema
    planner = _Planner(
        store=RecordingStore(store),
        metadata=metadata,
        schema=schema,
        bound=bind(filter, schema),
    )
    numbered = enumerate(between.changing, between.first_ordinal)
    steps = (planner.step(ordinal, snapshots) for ordinal, snapshots in numbered)
    return ChangePlan(
        steps=tuple(step for step in steps if step.files > 0),
        schema=selected(store, metadata, schema, columns, table),
        table_schema=schema,
        filter=planner.bound,
        manifests=planner.store.opened,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """What planning every step needs."""

    store: RecordingStore
    metadata: TableMetadata
    schema: Schema
    bound: Bound

    def step(self, ordinal: int, snapshots: Sequence[Snapshot]) -> ChangeStep:
        """The files whose rows a commit changed, by one snapshot or several."""
        snapshot, parent_id = snapshots[-1], snapshots[0].parent_id
        parent = None if parent_id is None else self.metadata.snapshot(parent_id)
        origin = Origin(table=self.metadata.location, snapshot_id=snapshot.snapshot_id)
        with origin.named():
            changes = self._changes(snapshots)
            is_data = of_type(changes, ContentType.DATA)
            added = choose(changes, pc.and_(is_data, of_status(changes, Status.ADDED)))
            removed = choose(changes, pc.and_(is_data, of_status(changes, Status.DELETED)))
            deletes = choose(changes, of_type(changes, *DELETES))
            roots = _Roots(self.store, read_root(self.store, parent), read_root(self.store, snapshot))
            kept = self._touched(roots.after, deletes, added, removed)
            before = self._plan(kept, roots.deletes_before(kept), origin)
            after = self._plan(kept, roots.deletes_after(kept, snapshot, deletes), origin)
            return ChangeStep(
                ordinal=ordinal,
                snapshot=snapshot,
                added=self._plan(added, roots.deletes_after(added, snapshot, deletes), origin),
                removed=self._plan(removed, roots.deletes_before(removed), origin),
                before=before,
                after=after,
            )

    def _changes(self, snapshots: Sequence[Snapshot]) -> pa.Table:
        """The files that the snapshots together added and removed."""
        changes = concat([snapshot_changes(self.store, self.metadata, snapshot) for snapshot in snapshots])
        return changes if len(snapshots) == 1 else in_total(changes.combine_chunks())

    def _plan(self, rows: pa.Table, deletes: pa.Table, origin: Origin) -> Plan:
        """Those of the data files that may contain matching rows, with the deletes that apply to them."""
        plan = plan_files(self.store, self.metadata, self.bound, self.schema, rows, deletes, origin)
        return plan.counted(self.store.io)

    def _touched(self, root: Root, deletes: pa.Table, added: pa.Table, removed: pa.Table) -> pa.Table:
        """The data files that stay in the table and to which added or removed deletes apply."""
        none = with_manifest(root.entries.slice(0, 0), None)
        is_vector = pc.is_valid(deletes["dv_offset"])
        named = pc.unique(deletes.filter(is_vector)["referenced_file"].combine_chunks())
        for files in (added, removed):
            known = index_of(named, files["location"], self.metadata.location).is_valid()
            named = named.filter(pc.invert(known))
        others = deletes.filter(pc.invert(is_vector))
        if len(named) == 0 and others.num_rows == 0:
            return none
        if others.num_rows == 0:
            kept = data_files_at(self.store, root, named, None)
            if kept.num_rows == len(named):
                return kept
        return self._search(root, named, others, added)

    def _search(self, root: Root, named: pa.Array, others: pa.Table, added: pa.Table) -> pa.Table:
        """The data files that vectors name in any spelling, or that delete files apply to; reads all data manifests."""
        leaves = root.leaves(ContentType.DATA_MANIFEST)
        rows = live_files(self.store, root, leaves, ContentType.DATA).combine_chunks()
        rows = rows.filter(pc.invert(pc.is_in(rows["location"], value_set=added["location"].combine_chunks())))
        touched = np.zeros(rows.num_rows, np.bool_)
        touched[np.asarray(index_of(named, rows["location"], self.metadata.location).drop_null())] = True
        attached = attach_deletes(rows, others, self.store.context).data
        touched |= np.asarray(pc.greater(pc.list_value_length(attached["deletes"]), 0))
        return rows.filter(pa.array(touched))


class _Roots:
    """The roots of a snapshot and of its parent, with their deletes."""

    def __init__(self, store: ManifestStore, before: Root, after: Root) -> None:
        self._store = store
        self.before = before
        self.after = after

    def deletes_before(self, files: pa.Table) -> pa.Table:
        """The deletes of the parent that may apply to data files."""
        return self._deletes(self.before, files)

    def deletes_after(self, files: pa.Table, snapshot: Snapshot, changed: pa.Table) -> pa.Table:
        """The deletes of the snapshot that may apply to data files.

        Only deletes that are at least as new as a data file apply to it, and none is newer than the snapshot.
        """
        oldest = pc.min(files["sequence_number"]).as_py()
        if oldest is not None and oldest == snapshot.sequence_number > 0:
            return changed.filter(of_status(changed, Status.ADDED))
        return self._deletes(self.after, files)

    def _deletes(self, root: Root, files: pa.Table) -> pa.Table:
        oldest = pc.min(files["sequence_number"]).as_py()
        leaves = root.leaves(ContentType.DELETE_MANIFEST) if files.num_rows > 0 else ()
        newer = tuple(leaf for leaf in leaves if oldest is None or leaf.sequence_number >= oldest)
        rows = delete_rows(self._store, root, newer)
        return rows if files.num_rows > 0 else rows.slice(0, 0)
