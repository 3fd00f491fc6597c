"""The files that snapshots added and removed (spec: Snapshots, Manifests; V4 proposal).

A tree records what its snapshot changed. Entries that a snapshot added or removed have its id, in leaves that it wrote
or in the root. A V4 snapshot also removes entries by manifest deletion vectors: those in the new vector that are not in
the old one, which is kept with status DELETED. If a writer did not keep the old vector, the trees of the snapshot and
of its parent are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.errors import NoSuchSnapshot
from icefloe.model.entries import (
    DELETES,
    MANIFESTS,
    ContentType,
    StatKeys,
    Status,
    choose,
    concat,
    count,
    live,
    of_status,
    of_type,
    put,
)
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors
from icefloe.tree.manifest_vectors import ManifestVectors, manifest_vectors
from icefloe.tree.root import (
    Leaf,
    Root,
    leaves_of,
    live_files,
    position_mask,
    read_leaf,
    read_leaves,
    read_root,
    with_manifest,
    with_status,
)
from icefloe.tree.store import ManifestStore

_FILES = (ContentType.DATA, *DELETES)
_IDENTITY = ("location", "dv_offset")  # of an entry; deletion vectors share a file and differ in their offset
_CONTENT = ("dv_inline_content", "location", "dv_offset")  # of a manifest vector; equal ones have equal positions
_NO_POSITIONS = BitMap64()


def snapshot_changes(
    store: ManifestStore, metadata: TableMetadata, snapshot: Snapshot, wanted: StatKeys | None = None
) -> pa.Table:
    """The files that a snapshot added or removed, as entries with status ADDED or DELETED.

    Column ``manifest`` is the leaf that lists an entry, null for entries of the root. A removed file keeps its sequence
    numbers and row ids; its ``snapshot_id`` is that of the snapshot that removed it. ``wanted`` are the statistics keys
    that the entries must have (``None`` for all).
    """
    recorded = _RecordedChanges(store, snapshot, read_root(store, snapshot), wanted)
    changes = recorded.changes()
    parent = None if snapshot.parent_id is None else metadata.snapshots.find(snapshot.parent_id)
    if parent is not None and recorded.may_lack_old_vectors and not _agrees_with_summary(snapshot, changes):
        return compare_roots(store, read_root(store, parent), recorded.root, snapshot, wanted)
    return changes


def changes_since(
    store: ManifestStore, metadata: TableMetadata, *, after: Snapshot | None, until: Snapshot
) -> pa.Table:
    """The changes of every snapshot after ``after`` up to ``until``, oldest first.

    Column ``changed_by`` is the snapshot that made each change. Without ``after``, the changes of the whole history.
    NoSuchSnapshot names the first snapshot of the history that is missing.
    """
    changes = [
        _with_maker(snapshot_changes(store, metadata, snapshot), snapshot.snapshot_id)
        for snapshot in snapshots_between(metadata, after=after, until=until)
    ]
    none = _with_maker(with_manifest(concat([]), None), until.snapshot_id)
    return concat(changes if len(changes) > 0 else [none]).combine_chunks()


def in_total(changes: pa.Table) -> pa.Table:
    """The changes of several snapshots, oldest first, without files that were added and removed or the reverse."""
    offsets = pc.fill_null(changes["dv_offset"], -1)
    keys = pa.table({"location": changes["location"], "offset": offsets, "row": np.arange(changes.num_rows)})
    ends = keys.group_by(["location", "offset"]).aggregate([("row", "min"), ("row", "max")])
    first, last = (np.asarray(ends[f"row_{name}"]) for name in ("min", "max"))
    status = np.asarray(changes["status"])
    return changes.take(pa.array(np.sort(last[status[first] == status[last]])))


def snapshots_between(metadata: TableMetadata, *, after: Snapshot | None, until: Snapshot) -> tuple[Snapshot, ...]:
    """The snapshots after ``after`` up to ``until``, along the parents of ``until``, oldest first."""
    newest_first: list[Snapshot] = []
    for snapshot in ancestors(metadata, until.snapshot_id):
        if after is not None and snapshot.snapshot_id == after.snapshot_id:
            return tuple(reversed(newest_first))
        newest_first.append(snapshot)
    missing = newest_first[-1].parent_id
    where = f"table {metadata.location}: the history of snapshot {until.snapshot_id}"
    if missing is not None:
        raise NoSuchSnapshot(
            f"{where} is not complete: snapshot {missing}, the parent of {newest_first[-1].snapshot_id}, has expired",
            snapshot_id=missing,
        )
    if after is not None:
        raise NoSuchSnapshot(
            f"{where} does not contain snapshot {after.snapshot_id}; is it on another branch, or rolled back?",
            snapshot_id=after.snapshot_id,
        )
    return tuple(reversed(newest_first))


def _with_maker(rows: pa.Table, snapshot_id: int) -> pa.Table:
    maker = pa.repeat(pa.scalar(snapshot_id, pa.int64()), rows.num_rows)
    return rows.append_column(pa.field("changed_by", pa.int64()), maker)


class _RecordedChanges:
    """The changes that the root of a snapshot records, with the leaves that the snapshot changed."""

    def __init__(self, store: ManifestStore, snapshot: Snapshot, root: Root, wanted: StatKeys | None) -> None:
        self.store = store
        self.snapshot = snapshot
        self.root = root
        self.wanted = wanted
        rows = root.entries
        self.own = choose(rows, pc.equal(rows["snapshot_id"], snapshot.snapshot_id))
        where = "" if snapshot.root is None else snapshot.root
        self.new: ManifestVectors = manifest_vectors(store, rows, where, Status.ADDED)
        self.old: ManifestVectors = manifest_vectors(store, rows, where, Status.DELETED)

    @property
    def may_lack_old_vectors(self) -> bool:
        """Whether a leaf has a new vector and no old one: either there was none, or the writer did not keep it."""
        return any(leaf not in self.old for leaf in self.new)

    def changes(self) -> pa.Table:
        """The files that the snapshot added or removed."""
        parts = [self._in_root(), *self._in_own_leaves()]
        if len(self.new) > 0 or len(self.old) > 0:
            parts.extend(self._by_vectors())
        parts.extend(self._in_removed_leaves())
        return concat(parts).combine_chunks()

    def _in_root(self) -> pa.Table:
        rows = choose(self.root.entries, of_type(self.root.entries, *_FILES))
        added = choose(rows, pc.and_(of_status(rows, Status.ADDED), _is_by(rows, self.snapshot)))
        removed = choose(rows, of_status(rows, Status.DELETED))  # a root keeps removed rows for one snapshot only
        return with_manifest(concat([added, _changed_by(removed, Status.DELETED, self.snapshot)]), None)

    def _in_own_leaves(self) -> Iterator[pa.Table]:
        """Changes in leaves that the snapshot wrote, without entries that it both added and removed."""
        leaves = tuple(leaves_of(choose(self.own, _may_contain_changes(self.own))))
        for leaf, rows in zip(leaves, read_leaves(self.store, leaves, self.wanted), strict=True):
            changed = pc.and_(_is_by(rows, self.snapshot), pc.invert(of_status(rows, Status.EXISTING)))
            dead = self.root.dead.get(leaf.location, _NO_POSITIONS)
            yield with_manifest(choose(rows, pc.and_(changed, pc.invert(_at(dead, rows, leaf)))), leaf)

    def _by_vectors(self) -> Iterator[pa.Table]:
        """Entries that new vectors remove, and entries that they bring back."""
        manifests = choose(self.root.entries, of_type(self.root.entries, *MANIFESTS))
        touched = pa.array({*self.new, *self.old}, pa.string())
        manifests = manifests.filter(pc.is_in(manifests["location"], value_set=touched))
        are_live = np.asarray(live(manifests))
        for leaf, is_live in zip(leaves_of(manifests), are_live.tolist(), strict=True):
            before = self.old.get(leaf.location, _NO_POSITIONS)
            after = self.root.dead.get(leaf.location, _NO_POSITIONS)
            if not is_live and leaf.location not in self.new:
                continue  # removed as a whole, with its vector
            rows = read_leaf(self.store, leaf, self.wanted)
            removed = pc.and_(live(rows), _at(after - before, rows, leaf))
            if is_live:  # else the leaf existed before the snapshot, so the snapshot added no entry of it
                added = pc.and_(of_status(rows, Status.ADDED), _is_by(rows, self.snapshot))
                removed = pc.and_(removed, pc.invert(added))
                restored = choose(rows, pc.and_(live(rows), _at(before - after, rows, leaf)))
                yield with_manifest(_changed_by(restored, Status.ADDED, self.snapshot), leaf)
            yield with_manifest(_changed_by(choose(rows, removed), Status.DELETED, self.snapshot), leaf)

    def _in_removed_leaves(self) -> Iterator[pa.Table]:
        """Live entries of leaves that were removed as a whole, without those that were moved to other leaves."""
        rows = self.root.entries
        removed = choose(rows, pc.and_(of_type(rows, *MANIFESTS), of_status(rows, Status.DELETED)))
        leaves = [leaf for leaf in leaves_of(removed) if leaf.location not in self.new]
        if len(leaves) == 0:
            return
        kept = [self.root.rows(*_FILES)]
        own = leaves_of(choose(self.own, pc.and_(of_type(self.own, *MANIFESTS), live(self.own))))
        kept.extend(read_leaf(self.store, leaf) for leaf in own)
        moved = concat(kept)
        for leaf in leaves:
            entries = read_leaf(self.store, leaf, self.wanted)
            dead = self.old.get(leaf.location, _NO_POSITIONS)
            entries = choose(entries, pc.and_(live(entries), pc.invert(_at(dead, entries, leaf))))
            yield with_manifest(_changed_by(_without(entries, moved), Status.DELETED, self.snapshot), leaf)


def _agrees_with_summary(snapshot: Snapshot, changes: pa.Table) -> bool:
    """Whether the summary of a snapshot has the same number of removed files."""
    removed = changes.filter(of_status(changes, Status.DELETED))
    data = count(of_type(removed, ContentType.DATA))
    counts = (SummaryKey.DELETED_DATA_FILES, data), (SummaryKey.REMOVED_DELETE_FILES, removed.num_rows - data)
    return all(snapshot.summary.get(key, "0") == str(number) for key, number in counts)


def compare_roots(
    store: ManifestStore, before: Root, after: Root, snapshot: Snapshot, wanted: StatKeys | None = None
) -> pa.Table:
    """The changes from one root to another, by comparison of their live entries; ``snapshot`` is that of ``after``.

    Leaves that are in both, with the same vector, are not read.
    """
    same = _leaves_with_vectors(before) & _leaves_with_vectors(after)
    unread = {leaf for leaf, _ in same}
    old, new = (_live_entries(store, root, unread, wanted) for root in (before, after))
    added = _changed_by(_without(new, old), Status.ADDED, snapshot)
    removed = _changed_by(_without(old, new), Status.DELETED, snapshot)
    return concat([added, removed]).combine_chunks()


def _leaves_with_vectors(root: Root) -> set[tuple[str, tuple[object, ...] | None]]:
    vectors = root.rows(ContentType.MANIFEST_DV).select(["referenced_file", *_CONTENT]).to_pylist()
    contents = {row["referenced_file"]: tuple(row[name] for name in _CONTENT) for row in vectors}
    return {(leaf.location, contents.get(leaf.location)) for leaf in root.leaves(*MANIFESTS)}


def _live_entries(store: ManifestStore, root: Root, unread: set[str], wanted: StatKeys | None) -> pa.Table:
    """The live entries of a root and of its leaves, without some leaves."""
    leaves = [leaf for leaf in root.leaves(*MANIFESTS) if leaf.location not in unread]
    return live_files(store, root, leaves, *_FILES, wanted=wanted)


def _is_by(rows: pa.Table, snapshot: Snapshot) -> pa.ChunkedArray:
    return pc.equal(rows["snapshot_id"], snapshot.snapshot_id)


def _changed_by(rows: pa.Table, status: Status, snapshot: Snapshot) -> pa.Table:
    return put(with_status(rows, status), "snapshot_id", snapshot.snapshot_id)


def _may_contain_changes(rows: pa.Table) -> pa.ChunkedArray:
    """Which rows are manifests that may contain changes; lists of version 1 may lack the counts."""
    changed = pc.add(rows["added_files_count"], rows["deleted_files_count"])
    return pc.and_(pc.and_(of_type(rows, *MANIFESTS), live(rows)), pc.fill_null(pc.greater(changed, 0), True))


def _at(positions: BitMap64, rows: pa.Table, leaf: Leaf) -> pa.Array:
    return pa.array(position_mask(positions, rows.num_rows, leaf.location))


def _without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The entries that are not among others. A join does not match nulls, so -1 represents a null offset."""
    keys = [
        t.select(list(_IDENTITY)).set_column(1, "dv_offset", pc.fill_null(t["dv_offset"], -1)) for t in (rows, others)
    ]
    numbered = keys[0].append_column("row", pa.array(np.arange(rows.num_rows)))
    remaining = numbered.join(keys[1], list(_IDENTITY), join_type="left anti")
    return rows.take(remaining["row"].combine_chunks().sort())
