"""Applies file changes to a root: writes leaves and builds the rows of the new root (V4 proposal).

The code is the same for all format versions. Two rules distinguish them: whether the root may hold file entries, and
whether entries are removed from a leaf by a manifest deletion vector or by rewriting the leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.value.promoted_bounds import in_terms_of
from icefloe.model.entries import (
    DELETES,
    MANIFESTS,
    ContentType,
    Status,
    choose,
    concat,
    empty,
    live,
    of_type,
    put,
    put_where,
)
from icefloe.model.metadata.properties import ROOT_MAX_DATA_FILES, ROOT_MAX_DVS
from icefloe.model.metadata.version_rules import rules
from icefloe.tree.compaction import Folded, compact, exceeds_root_size, fold_leaves
from icefloe.tree.delete_leaf_affinity import common_data_leaf, find_data_leaves, split_by_data_leaf
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.find_entries import find_entries
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.manifest_vectors import delete_leaf_rows
from icefloe.tree.merge_manifests import merge_small
from icefloe.tree.new_snapshot import RowIds, SnapshotIdentity, mark_deleted
from icefloe.tree.older_manifests import completed, with_exact_counts, with_first_row_ids
from icefloe.tree.rewrite import rewrite_leaves
from icefloe.tree.root import Leaf, Root, leaves_of, position_mask, read_leaf, with_status
from icefloe.tree.staging import Staging
from icefloe.tree.store import ManifestStore

_POSITION = ["location", "manifest", "ordinal"]  # of an entry: the file that it names, and where it is listed
_VECTOR = ["location", "dv_manifest", "dv_ordinal"]  # of a planned file's deletion vector, named by the file


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRoot:
    """The rows of a new root, and how many row ids were assigned to them."""

    rows: pa.Table
    added_rows: int


def apply_changes(
    store: ManifestStore,
    root: Root,
    changes: FileChanges,
    identity: SnapshotIdentity,
    staging: Staging,
    properties: Mapping[str, str],
) -> NewRoot:
    """The root with changes applied. Leaves are written through ``staging``; the caller writes the root."""
    ids = RowIds(identity.first_row_id)
    writer = LeafWriter(store=store, identity=identity, ids=ids, staging=staging, properties=properties)
    rows = with_first_row_ids(writer, completed(store, _carry_over(root)))
    numbered = Root(entries=rows, dead=root.dead)
    removed = _remove(writer, numbered, rows, changes)
    rows = concat([removed.rows, _add(writer, numbered, changes.added)])
    if rules(store.context.format_version).root_holds_files:
        rows = compact(writer, rows, root.dead, merge=changes.merge_manifests, folded=removed.folded)
    elif changes.merge_manifests:
        rows = merge_small(writer, rows)
    return new_root(rows, ids)


def rewrite_root(
    store: ManifestStore,
    root: Root,
    identity: SnapshotIdentity,
    staging: Staging,
    properties: Mapping[str, str],
    cluster_by: tuple[int, ...] = (),
) -> NewRoot:
    """The root with rewritten leaves, whose entries are sorted by the partition fields ``cluster_by`` first."""
    ids = RowIds(identity.first_row_id)
    writer = LeafWriter(
        store=store, identity=identity, ids=ids, staging=staging, properties=properties, cluster_by=cluster_by
    )
    complete = completed(store, _carry_over(root))
    numbered = Root(entries=with_first_row_ids(writer, complete), dead=root.dead)
    return new_root(rewrite_leaves(writer, numbered), ids)


def new_root(rows: pa.Table, ids: RowIds) -> NewRoot:
    """The rows as they are written to the root."""
    rows = put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))
    return NewRoot(rows=rows.combine_chunks(), added_rows=ids.used)


def _carry_over(root: Root) -> pa.Table:
    """The live rows, as EXISTING, without leaves that have no live entries and without their deletion vectors."""
    rows = choose(root.entries, live(root.entries))
    if pc.max(rows["content_type"]).as_py() in (None, int(ContentType.DATA)):
        return with_status(rows, Status.EXISTING)  # no manifest, as in most small V4 tables
    dead = pa.concat_arrays([rows["location"].filter(root.are_dead(rows)).combine_chunks(), _removed_manifests(root)])
    if len(dead) > 0:
        leaf = pc.if_else(of_type(rows, ContentType.MANIFEST_DV), rows["referenced_file"], rows["location"])
        rows = rows.filter(pc.invert(pc.is_in(leaf, value_set=dead)))
    return with_status(rows, Status.EXISTING)


def _removed_manifests(root: Root) -> pa.Array:
    """Manifests that the last snapshot removed as a whole, as other writers do; their vectors may still be live."""
    removed = pc.and_(of_type(root.entries, *MANIFESTS), pc.invert(live(root.entries)))
    return root.entries["location"].filter(removed).combine_chunks()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Removed:
    """Root rows after removals, and the new leaves of those that were folded."""

    rows: pa.Table
    folded: Mapping[str, str] = field(default_factory=dict)


def _remove(writer: LeafWriter, root: Root, rows: pa.Table, changes: FileChanges) -> _Removed:
    if changes.only_adds:
        return _Removed(rows=rows)
    vectors = changes.with_old_vectors.select(_VECTOR).rename_columns(_POSITION)
    store, identity = writer.store, writer.identity
    removals = [
        find_entries(store, root, changes.removed, "location", ContentType.DATA),
        find_entries(store, root, vectors, "referenced_file", ContentType.POSITION_DELETES),
        find_entries(store, root, changes.removed_deletes, "location", *DELETES),
    ]
    rows = mark_deleted(rows, BitMap64.union(*(removal.in_root for removal in removals)), identity)
    positions: dict[str, BitMap64] = {}
    for removal in removals:
        for leaf, removed in removal.in_leaves.items():
            positions[leaf] = positions.get(leaf, BitMap64()) | removed
    if len(positions) == 0:
        return _Removed(rows=rows)
    if not rules(store.context.format_version).manifest_deletion_vectors:
        return _Removed(rows=_rewrite(writer, rows, positions))
    folded = Folded(rows=rows, positions=positions, replaced={})
    if changes.merge_manifests:
        folded = fold_leaves(writer, root, rows, positions)
    rows = with_exact_counts(store, folded.rows, [leaf for leaf in folded.positions if leaf not in root.dead])
    rows = delete_leaf_rows(store, rows, root.dead, folded.positions, identity, writer.staging, writer.properties)
    return _Removed(rows=rows, folded=folded.replaced)


def _rewrite(writer: LeafWriter, rows: pa.Table, positions: Mapping[str, BitMap64]) -> pa.Table:
    """Rewrite leaves, with the entries at these positions DELETED (spec: Manifests)."""
    rewritten = pc.is_in(rows["location"], value_set=pa.array(list(positions), pa.string()))
    written = []
    for leaf in leaves_of(rows.filter(pc.and_(of_type(rows, *MANIFESTS), rewritten))):
        changed = _with_deleted(writer.store, leaf, positions[leaf.location], writer.identity)
        written.append(writer.write_changed(changed, leaf.content, first_row_id=leaf.first_row_id))
    return concat([rows.filter(pc.invert(rewritten)), *written])


def _with_deleted(store: ManifestStore, leaf: Leaf, positions: BitMap64, identity: SnapshotIdentity) -> pa.Table:
    """The live entries of a leaf as EXISTING, with those at these positions DELETED by the new snapshot."""
    rows = read_leaf(store, leaf)
    was_live = live(rows)
    removed = pa.array(position_mask(positions, rows.num_rows, leaf.location)).filter(was_live)
    rows = with_status(rows.filter(was_live), Status.EXISTING)
    return put_where(rows, removed, status=int(Status.DELETED), snapshot_id=identity.snapshot_id)


def _add(writer: LeafWriter, root: Root, added: pa.Table) -> pa.Table:
    """The root rows of new files: their entries, or the leaves to which these were written."""
    if added.num_rows == 0:
        return empty()
    added = in_terms_of(added, writer.store.context)
    is_data = of_type(added, ContentType.DATA)
    data, deletes = choose(added, is_data), choose(added, pc.invert(is_data))
    return concat([*_add_data(writer, data), *_add_deletes(writer, root, deletes)])


def _add_data(writer: LeafWriter, rows: pa.Table) -> Iterator[pa.Table]:
    if rows.num_rows == 0:
        return
    if _fits_root(writer, rows, ROOT_MAX_DATA_FILES.of(writer.properties)):
        yield _root_entries(rows, writer.identity, writer.ids)
    else:
        for leaf in writer.write_added(lambda: [_leaf_entries(rows, writer.identity)], ContentType.DATA_MANIFEST):
            yield writer.added_row(leaf)


def _add_deletes(writer: LeafWriter, root: Root, rows: pa.Table) -> Iterator[pa.Table]:
    if rows.num_rows == 0:
        return
    if _fits_root(writer, rows, ROOT_MAX_DVS.of(writer.properties)):
        yield _root_entries(rows, writer.identity, writer.ids)
        return
    new = _leaf_entries(rows, writer.identity)
    if not rules(writer.store.context.format_version).root_holds_files:  # manifest lists do not store affinity
        for leaf in writer.write_added(lambda: [new], ContentType.DELETE_MANIFEST):
            yield writer.added_row(leaf)
        return
    # Leaves are reused by later attempts, but the data files may be in other leaves then: affinity is found each time.
    data_leaves = find_data_leaves(writer, new, root.entries, root.dead)
    parts = split_by_data_leaf(new, data_leaves)
    for leaf in writer.write_added(lambda: [part for part, _ in parts], ContentType.DELETE_MANIFEST):
        yield writer.added_row(leaf, common_data_leaf(leaf.rows, new, data_leaves))


def _fits_root(writer: LeafWriter, rows: pa.Table, limit: int) -> bool:
    in_root = rules(writer.store.context.format_version).root_holds_files
    return in_root and rows.num_rows <= limit and not exceeds_root_size(rows, writer.properties)


def _leaf_entries(rows: pa.Table, identity: SnapshotIdentity) -> pa.Table:
    """Entries of new files for a leaf; they inherit their sequence numbers."""
    return put(with_status(rows, Status.ADDED), "snapshot_id", identity.snapshot_id)


def _root_entries(rows: pa.Table, identity: SnapshotIdentity, ids: RowIds) -> pa.Table:
    """Entries of new files for the root, with all numbers: every attempt writes a new root."""
    rows = put(with_status(rows, Status.ADDED), "snapshot_id", identity.snapshot_id)
    rows = put(rows, "file_sequence_number", identity.sequence_number)
    rows = put(rows, "sequence_number", pc.fill_null(rows["sequence_number"], identity.sequence_number))
    is_data = of_type(rows, ContentType.DATA)
    first = ids.take_each(np.asarray(pc.if_else(is_data, rows["record_count"], 0)))
    if first is None:
        return rows
    return put(rows, "first_row_id", pc.if_else(is_data, first, pa.scalar(None, pa.int64())))
