"""What snapshots changed: the files that each added and removed (spec: Snapshots, Manifests; V4 proposal).

A tree says itself what its snapshot did. Rows that a snapshot added or removed have its id: in leaves that it wrote, or
in the root. A V4 snapshot also removes rows by manifest deletion vectors; the rows newly hidden are those of the new
vector that the old one, kept as DELETED, did not have. Where a writer did not keep it, the trees before and after are
compared.
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
    Status,
    choose,
    concat,
    live,
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
    live_leaves,
    mark,
    position_mask,
    read_leaf,
    read_leaves,
    read_root,
)
from icefloe.tree.store import ManifestStore

_FILES = (ContentType.DATA, *DELETES)
_IDENTITY = ("location", "dv_offset")  # vectors share a file; what tells them apart is where they begin
_POINTER = ("dv_inline_content", "location", "dv_offset")  # equal ones hide the same rows
_NOTHING = BitMap64()


def snapshot_changes(
    store: ManifestStore, metadata: TableMetadata, snapshot: Snapshot, wanted: frozenset[str] | None = None
) -> pa.Table:
    """The files that a snapshot added or removed, as entry rows of status ADDED or DELETED.

    Column ``manifest`` is the leaf that a row stands in, null for rows of the root. A removed file keeps the sequence
    numbers and row ids it had; its ``snapshot_id`` is that of the snapshot that removed it. ``wanted`` are the keys of
    statistics that the rows must have; ``None`` wants all.
    """
    told = _Told(store, snapshot, read_root(store, snapshot), wanted)
    found = told.changes()
    parent = None if snapshot.parent_id is None else metadata.snapshots.find(snapshot.parent_id)
    if parent is not None and told.has_new_vectors_alone and not _confirmed(snapshot, found):
        return compare_roots(store, read_root(store, parent), told.root, snapshot, wanted)
    return found


def changes_since(
    store: ManifestStore,
    metadata: TableMetadata,
    *,
    after: Snapshot | None,
    until: Snapshot,
    wanted: frozenset[str] | None = None,
) -> pa.Table:
    """The changes of every snapshot behind ``after`` up to ``until``, oldest first.

    Column ``changed_by`` is the snapshot that made each change. Without ``after`` the whole history is meant.
    NoSuchSnapshot says which part of the history is missing, when it is not all there.
    """
    found = [
        _by(snapshot_changes(store, metadata, snapshot, wanted), snapshot.snapshot_id)
        for snapshot in snapshots_between(metadata, after=after, until=until)
    ]
    return concat(found if len(found) > 0 else [_by(located(concat([]), None), until.snapshot_id)]).combine_chunks()


def snapshots_between(metadata: TableMetadata, *, after: Snapshot | None, until: Snapshot) -> tuple[Snapshot, ...]:
    """The snapshots behind ``after`` up to ``until`` along the parents of ``until``, oldest first."""
    found: list[Snapshot] = []
    for snapshot in ancestors(metadata, until.snapshot_id):
        if after is not None and snapshot.snapshot_id == after.snapshot_id:
            return tuple(reversed(found))
        found.append(snapshot)
    missing = found[-1].parent_id
    where = f"table {metadata.location}: the history of snapshot {until.snapshot_id}"
    if missing is not None:
        raise NoSuchSnapshot(
            f"{where} is not complete: snapshot {missing}, the parent of {found[-1].snapshot_id}, has expired",
            snapshot_id=missing,
        )
    if after is not None:
        raise NoSuchSnapshot(
            f"{where} does not contain snapshot {after.snapshot_id}; is it on another branch, or rolled back?",
            snapshot_id=after.snapshot_id,
        )
    return tuple(reversed(found))


def located(rows: pa.Table, leaf: Leaf | None) -> pa.Table:
    """The rows with the leaf they come from; a row of the root has none."""
    manifest = pa.nulls(rows.num_rows, pa.string()) if leaf is None else pa.repeat(leaf.location, rows.num_rows)
    return rows.append_column(pa.field("manifest", pa.string()), manifest)


def _by(rows: pa.Table, snapshot_id: int) -> pa.Table:
    maker = pa.repeat(pa.scalar(snapshot_id, pa.int64()), rows.num_rows)
    return rows.append_column(pa.field("changed_by", pa.int64()), maker)


class _Told:
    """What the root of a snapshot tells, with the leaves that it touched."""

    def __init__(self, store: ManifestStore, snapshot: Snapshot, root: Root, wanted: frozenset[str] | None) -> None:
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
    def has_new_vectors_alone(self) -> bool:
        """Whether a vector came that replaced none; was there one before, the root does not tell."""
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
        added = choose(rows, pc.and_(_has_status(rows, Status.ADDED), _is_by(rows, self.snapshot)))
        removed = choose(rows, _has_status(rows, Status.DELETED))  # rows that left stand in one root only
        return located(concat([added, _changed_by(removed, Status.DELETED, self.snapshot)]), None)

    def _in_own_leaves(self) -> Iterator[pa.Table]:
        """What leaves that the snapshot wrote say of it; what came and went at once is no change."""
        leaves = tuple(leaves_of(choose(self.own, _may_tell(self.own))))
        for leaf, rows in zip(leaves, read_leaves(self.store, leaves, self.wanted), strict=True):
            mine = pc.and_(_is_by(rows, self.snapshot), pc.invert(_has_status(rows, Status.EXISTING)))
            hidden = self.root.dead.get(leaf.location, _NOTHING)
            yield located(choose(rows, pc.and_(mine, pc.invert(_at(hidden, rows, leaf)))), leaf)

    def _by_vectors(self) -> Iterator[pa.Table]:
        """Rows that vectors newly hide, and those that they hide no more."""
        manifests = choose(self.root.entries, of_type(self.root.entries, *MANIFESTS))
        touched = pa.array({*self.new, *self.old}, pa.string())
        manifests = manifests.filter(pc.is_in(manifests["location"], value_set=touched))
        stays = np.asarray(live(manifests))
        for leaf, there in zip(leaves_of(manifests), stays.tolist(), strict=True):
            before, after = self.old.get(leaf.location, _NOTHING), self.root.dead.get(leaf.location, _NOTHING)
            if not there and leaf.location not in self.new:
                continue  # removed as a whole, with its vector
            rows = read_leaf(self.store, leaf, self.wanted)
            hidden = pc.and_(live(rows), _at(after - before, rows, leaf))
            if there:  # what came and went at once is no change; a manifest that is gone was there before
                came = pc.and_(_has_status(rows, Status.ADDED), _is_by(rows, self.snapshot))
                hidden = pc.and_(hidden, pc.invert(came))
                shown = choose(rows, pc.and_(live(rows), _at(before - after, rows, leaf)))
                yield located(_changed_by(shown, Status.ADDED, self.snapshot), leaf)
            yield located(_changed_by(choose(rows, hidden), Status.DELETED, self.snapshot), leaf)

    def _in_removed_leaves(self) -> Iterator[pa.Table]:
        """Live rows of leaves that were removed as a whole, less those that the snapshot moved elsewhere."""
        rows = self.root.entries
        gone = choose(rows, pc.and_(of_type(rows, *MANIFESTS), _has_status(rows, Status.DELETED)))
        leaves = [leaf for leaf in leaves_of(gone) if leaf.location not in self.new]
        if len(leaves) == 0:
            return
        kept = [self.root.rows(*_FILES)]
        own = leaves_of(choose(self.own, pc.and_(of_type(self.own, *MANIFESTS), live(self.own))))
        kept.extend(read_leaf(self.store, leaf) for leaf in own)
        moved = concat(kept)
        for leaf in leaves:
            inside = read_leaf(self.store, leaf, self.wanted)
            hidden = self.old.get(leaf.location, _NOTHING)
            inside = choose(inside, pc.and_(live(inside), pc.invert(_at(hidden, inside, leaf))))
            yield located(_changed_by(_without(inside, moved), Status.DELETED, self.snapshot), leaf)


def _confirmed(snapshot: Snapshot, changes: pa.Table) -> bool:
    """Whether the summary of a snapshot counts as many removed files as were found."""
    removed = changes.filter(_has_status(changes, Status.DELETED))
    data = pc.sum(of_type(removed, ContentType.DATA)).as_py() or 0
    told = (SummaryKey.DELETED_DATA_FILES, data), (SummaryKey.REMOVED_DELETE_FILES, removed.num_rows - data)
    return all(snapshot.summary.get(key, "0") == str(count) for key, count in told)


def compare_roots(
    store: ManifestStore, before: Root, after: Root, snapshot: Snapshot, wanted: frozenset[str] | None = None
) -> pa.Table:
    """The changes from one root to another, whatever they say of themselves; ``snapshot`` is the one of ``after``.

    Leaves that both have, with the same vector, are not read.
    """
    same = _leaves_with_vectors(before) & _leaves_with_vectors(after)
    files = [_live_files(store, root, {leaf for leaf, *_ in same}, wanted) for root in (before, after)]
    added = _changed_by(_without(files[1], files[0]), Status.ADDED, snapshot)
    removed = _changed_by(_without(files[0], files[1]), Status.DELETED, snapshot)
    return concat([added, removed]).combine_chunks()


def _leaves_with_vectors(root: Root) -> set[tuple[object, ...]]:
    vectors = root.rows(ContentType.MANIFEST_DV).select(["referenced_file", *_POINTER]).to_pylist()
    pointers = {row["referenced_file"]: tuple(row[name] for name in _POINTER) for row in vectors}
    return {(leaf.location, pointers.get(leaf.location)) for leaf in root.leaves(*MANIFESTS)}


def _live_files(store: ManifestStore, root: Root, without: set[object], wanted: frozenset[str] | None) -> pa.Table:
    """The live files of a root and of its leaves but some."""
    leaves = [leaf for leaf in root.leaves(*MANIFESTS) if leaf.location not in without]
    inside = live_leaves(store, root, leaves, wanted)
    parts = [located(root.rows(*_FILES), None)]
    parts.extend(located(rows, leaf) for leaf, rows in zip(leaves, inside, strict=True))
    return concat(parts)


def _has_status(rows: pa.Table, status: Status) -> pa.ChunkedArray:
    return pc.equal(rows["status"], int(status))


def _is_by(rows: pa.Table, snapshot: Snapshot) -> pa.ChunkedArray:
    return pc.equal(rows["snapshot_id"], snapshot.snapshot_id)


def _changed_by(rows: pa.Table, status: Status, snapshot: Snapshot) -> pa.Table:
    return put(mark(rows, status), "snapshot_id", snapshot.snapshot_id)


def _may_tell(rows: pa.Table) -> pa.ChunkedArray:
    """Which rows are manifests that may hold changes; lists of version 1 may not count them."""
    told = pc.add(rows["added_files_count"], rows["deleted_files_count"])
    return pc.and_(pc.and_(of_type(rows, *MANIFESTS), live(rows)), pc.fill_null(pc.greater(told, 0), True))


def _at(positions: BitMap64, rows: pa.Table, leaf: Leaf) -> pa.Array:
    return pa.array(position_mask(positions, rows.num_rows, leaf.location))


def _without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows whose file (or part of a file) is not among others; -1 stands for no offset, as null joins nothing."""
    keys = [
        t.select(list(_IDENTITY)).set_column(1, "dv_offset", pc.fill_null(t["dv_offset"], -1)) for t in (rows, others)
    ]
    numbered = keys[0].append_column("row", pa.array(np.arange(rows.num_rows)))
    left = numbered.join(keys[1], list(_IDENTITY), join_type="left anti")
    return rows.take(left["row"].combine_chunks().sort())
