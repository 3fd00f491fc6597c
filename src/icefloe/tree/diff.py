"""What snapshots changed: the files that each added and removed (spec: Snapshots, Manifests; V4 proposal).

A tree says itself what its snapshot did. Rows that a snapshot added or removed have its id: in leaves that it wrote, or
in the root. A V4 snapshot also removes rows by manifest deletion vectors; the rows newly hidden are those of the new
vector that the old one did not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from icefloe.model.metadata import TableMetadata, ancestors
from icefloe.model.snapshots import Snapshot
from icefloe.tree.manifest_vectors import load_manifest_vector
from icefloe.tree.root import (
    Leaf,
    Root,
    leaves_of,
    position_mask,
    read_leaf,
    read_leaves,
    read_root,
)
from icefloe.tree.store import ManifestStore

_FILES = (ContentType.DATA, *DELETES)
_IDENTITY = ("location", "dv_offset")  # vectors share a file; what tells them apart is where they begin


def snapshot_changes(
    store: ManifestStore, metadata: TableMetadata, snapshot: Snapshot, wanted: frozenset[str] | None = None
) -> pa.Table:
    """The files that a snapshot added or removed, as entry rows of status ADDED or DELETED.

    Column ``manifest`` is the leaf that a row stands in, null for rows of the root. A removed file keeps the sequence
    numbers and row ids it had; its ``snapshot_id`` is that of the snapshot that removed it. ``wanted`` are the keys of
    statistics that the rows must have; ``None`` wants all.
    """
    root = read_root(store, snapshot)
    own = choose(root.entries, pc.equal(root.entries["snapshot_id"], snapshot.snapshot_id))
    found = [located(choose(own, pc.and_(of_type(own, *_FILES), _changed(own))), None)]
    leaves = tuple(leaves_of(choose(own, _may_tell(own))))
    for leaf, rows in zip(leaves, read_leaves(store, leaves, wanted), strict=True):
        mine = pc.and_(pc.equal(rows["snapshot_id"], snapshot.snapshot_id), _changed(rows))
        found.append(located(choose(rows, pc.and_(mine, _shown(root, leaf, rows))), leaf))
    found.extend(_newly_hidden(store, metadata, snapshot, root))
    found.extend(_dropped(store, snapshot, root, own))
    return concat(found).combine_chunks()


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


def _changed(rows: pa.Table) -> pa.ChunkedArray:
    return pc.not_equal(rows["status"], int(Status.EXISTING))


def _may_tell(rows: pa.Table) -> pa.ChunkedArray:
    """Which rows are manifests that may hold changes; lists of version 1 may not count them."""
    told = pc.add(rows["added_files_count"], rows["deleted_files_count"])
    return pc.and_(pc.and_(of_type(rows, *MANIFESTS), live(rows)), pc.fill_null(pc.greater(told, 0), True))


def _shown(root: Root, leaf: Leaf, rows: pa.Table) -> pa.Array:
    """Which rows of a leaf no manifest deletion vector hides: what came and went at once is no change."""
    return pc.invert(_at(root.dead.get(leaf.location, BitMap64()), rows))


def _at(positions: BitMap64, rows: pa.Table) -> pa.Array:
    return pa.array(position_mask(positions, rows.num_rows))


def _newly_hidden(store: ManifestStore, metadata: TableMetadata, snapshot: Snapshot, root: Root) -> Iterator[pa.Table]:
    """Rows that the snapshot's manifest deletion vectors hide and former ones did not."""
    vectors = choose(root.entries, of_type(root.entries, ContentType.MANIFEST_DV))
    new = vectors.filter(pc.equal(vectors["status"], int(Status.ADDED)))["referenced_file"]
    if len(new) == 0:
        return
    former = _former_vectors(store, metadata, snapshot, vectors, new)
    for leaf in _leaves_at(root, new):
        if leaf.snapshot_id == snapshot.snapshot_id and leaf.location not in former:
            continue  # the snapshot's own leaf: its hidden rows were never part of the table
        positions = root.dead[leaf.location] - former.get(leaf.location, BitMap64())
        rows = read_leaf(store, leaf)
        yield located(_removed(choose(rows, pc.and_(live(rows), _at(positions, rows))), snapshot), leaf)


def _former_vectors(
    store: ManifestStore, metadata: TableMetadata, snapshot: Snapshot, vectors: pa.Table, new: pa.ChunkedArray
) -> Mapping[str, BitMap64]:
    """The positions hidden before, by leaf: from vectors kept as DELETED in the root, or from the root before."""
    old = vectors.filter(pc.equal(vectors["status"], int(Status.DELETED)))
    where = snapshot.root_location
    found = {str(row["referenced_file"]): load_manifest_vector(store, row, where) for row in old.to_pylist()}
    untold = set(new.to_pylist()) - found.keys()
    parent = None if snapshot.parent_id is None else metadata.snapshots.find(snapshot.parent_id)
    if len(untold) == 0 or parent is None:
        return found
    before = read_root(store, parent).dead
    return {**{leaf: before[leaf] for leaf in untold if leaf in before}, **found}


def _dropped(store: ManifestStore, snapshot: Snapshot, root: Root, own: pa.Table) -> Iterator[pa.Table]:
    """Live rows of leaves that the snapshot removed as a whole, less those that it moved to leaves of its own."""
    gone = choose(own, pc.and_(of_type(own, *MANIFESTS), pc.equal(own["status"], int(Status.DELETED))))
    if gone.num_rows == 0:
        return
    vectors = choose(root.entries, of_type(root.entries, ContentType.MANIFEST_DV))
    told = vectors.filter(pc.equal(vectors["status"], int(Status.ADDED)))["referenced_file"]
    old = vectors.filter(pc.equal(vectors["status"], int(Status.DELETED)))
    hidden = {r["referenced_file"]: load_manifest_vector(store, r, snapshot.root_location) for r in old.to_pylist()}
    kept = [own.filter(of_type(own, *_FILES))]
    kept.extend(read_leaf(store, leaf) for leaf in leaves_of(own.filter(pc.and_(of_type(own, *MANIFESTS), live(own)))))
    moved = concat(kept).select(list(_IDENTITY))
    for leaf in leaves_of(gone.filter(pc.invert(pc.is_in(gone["location"], value_set=told.combine_chunks())))):
        rows = read_leaf(store, leaf)
        rows = choose(rows, pc.and_(live(rows), pc.invert(_at(hidden.get(leaf.location, BitMap64()), rows))))
        yield located(_removed(_without(rows, moved), snapshot), leaf)


def _without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows whose file (or part of a file) is not among others; -1 stands for no offset, as null joins nothing."""
    keys = [
        t.select(list(_IDENTITY)).set_column(1, "dv_offset", pc.fill_null(t["dv_offset"], -1)) for t in (rows, others)
    ]
    numbered = keys[0].append_column("row", pa.array(np.arange(rows.num_rows)))
    left = numbered.join(keys[1], list(_IDENTITY), join_type="left anti")
    return rows.take(left["row"].combine_chunks().sort())


def _leaves_at(root: Root, locations: pa.ChunkedArray) -> Iterator[Leaf]:
    rows = choose(root.entries, of_type(root.entries, *MANIFESTS))
    return leaves_of(rows.filter(pc.is_in(rows["location"], value_set=locations.combine_chunks())))


def _removed(rows: pa.Table, snapshot: Snapshot) -> pa.Table:
    return put(put(rows, "status", int(Status.DELETED)), "snapshot_id", snapshot.snapshot_id)
