"""Applying a change to a root: the new root's rows, and the leaves written on the way (V4 proposal).

One path for every version. Where versions differ they differ by a named rule: whether the root may hold files, and
whether a file leaves a leaf by a manifest deletion vector or by writing the leaf again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
)
from icefloe.model.metadata.properties import ROOT_MAX_DATA_FILES, ROOT_MAX_DVS
from icefloe.model.metadata.version_rules import rules
from icefloe.tree.compaction import keep_up, too_large
from icefloe.tree.delete_leaf_affinity import find_homes, home_of, laid_out
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.locate import Located, locate
from icefloe.tree.manifest_vectors import hide
from icefloe.tree.merge import merge_small
from icefloe.tree.new_snapshot import Moment, RowIds, mark_deleted
from icefloe.tree.older_manifests import recounted, with_counts
from icefloe.tree.rewrite import rewrite_leaves
from icefloe.tree.root import Leaf, Root, leaves_of, mark, position_mask, read_leaf
from icefloe.tree.row_lineage import number_leaves
from icefloe.tree.staging import Staging
from icefloe.tree.store import ManifestStore

_POSITION = ["location", "manifest", "ordinal"]  # of an entry: the file that it names, and where it is listed
_VECTOR = ["location", "dv_manifest", "dv_ordinal"]  # of a planned file's deletion vector, named by the file


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRoot:
    """The rows to write as the next root, and how many row ids they take."""

    rows: pa.Table
    added_rows: int


def apply_changes(
    store: ManifestStore,
    root: Root,
    changes: FileChanges,
    moment: Moment,
    staging: Staging,
    properties: Mapping[str, str],
) -> NewRoot:
    """The root with changes applied. Leaves are written through ``staging``; the caller writes the root."""
    ids = RowIds(moment.first_row_id)
    writer = LeafWriter(store=store, moment=moment, ids=ids, staging=staging, properties=properties)
    rows = number_leaves(writer, with_counts(store, _carry_over(root)))
    numbered = Root(entries=rows, dead=root.dead)
    rows = _remove(writer, numbered, rows, changes)
    rows = concat([rows, _add(writer, numbered, changes.added)])
    if rules(store.context.format_version).root_holds_files:
        rows = keep_up(writer, rows, root.dead, merge=changes.merge_manifests)
    elif changes.merge_manifests:
        rows = merge_small(writer, rows)
    return new_root(rows, ids)


def rewrite_root(
    store: ManifestStore, root: Root, moment: Moment, staging: Staging, properties: Mapping[str, str]
) -> NewRoot:
    """The root with all its leaves written again."""
    ids = RowIds(moment.first_row_id)
    writer = LeafWriter(store=store, moment=moment, ids=ids, staging=staging, properties=properties)
    counted = with_counts(store, _carry_over(root))
    numbered = Root(entries=number_leaves(writer, counted), dead=root.dead)
    return new_root(rewrite_leaves(writer, numbered), ids)


def new_root(rows: pa.Table, ids: RowIds) -> NewRoot:
    """Rows as they will stand in the root."""
    rows = put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))
    return NewRoot(rows=rows.combine_chunks(), added_rows=ids.used)


def _carry_over(root: Root) -> pa.Table:
    """Live rows as EXISTING, less the leaves whose rows are all gone and their deletion vectors."""
    rows = choose(root.entries, live(root.entries))
    if pc.max(rows["content_type"]).as_py() in (None, int(ContentType.DATA)):
        return mark(rows, Status.EXISTING)  # no manifest, as in most small tables of V4
    gone = pa.concat_arrays([rows["location"].filter(root.are_dead(rows)).combine_chunks(), _removed_manifests(root)])
    if len(gone) > 0:
        target = pc.if_else(of_type(rows, ContentType.MANIFEST_DV), rows["referenced_file"], rows["location"])
        rows = rows.filter(pc.invert(pc.is_in(target, value_set=gone)))
    return mark(rows, Status.EXISTING)


def _removed_manifests(root: Root) -> pa.Array:
    """Manifests that the last snapshot removed as a whole, as other writers do; a vector may have come with it."""
    gone = pc.and_(of_type(root.entries, *MANIFESTS), pc.invert(live(root.entries)))
    return root.entries["location"].filter(gone).combine_chunks()


def _remove(writer: LeafWriter, root: Root, rows: pa.Table, changes: FileChanges) -> pa.Table:
    if changes.only_adds:
        return rows
    vectors = changes.with_old_vectors.select(_VECTOR).rename_columns(_POSITION)
    store, moment = writer.store, writer.moment
    found = [
        _locate(store, root, changes.removed, "location", ContentType.DATA),
        _locate(store, root, vectors, "referenced_file", ContentType.POSITION_DELETES),
        _locate(store, root, changes.removed_deletes, "location", *DELETES),
    ]
    rows = mark_deleted(rows, BitMap64.union(*(each.in_root for each in found)), moment)
    positions: dict[str, BitMap64] = {}
    for each in found:
        for leaf, dead in each.in_leaves.items():
            positions[leaf] = positions.get(leaf, BitMap64()) | dead
    if len(positions) == 0:
        return rows
    if rules(store.context.format_version).manifest_deletion_vectors:
        rows = recounted(store, rows, [leaf for leaf in positions if leaf not in root.dead])
        return hide(store, rows, root.dead, positions, moment, writer.staging, writer.properties)
    return _rewrite(writer, rows, positions)


def _locate(store: ManifestStore, root: Root, places: pa.Table, column: str, *types: ContentType) -> Located:
    if places.num_rows == 0:
        return Located()
    wanted = places["location"].combine_chunks()
    return locate(store, root, wanted, places, column=column, types=types)


def _rewrite(writer: LeafWriter, rows: pa.Table, positions: Mapping[str, BitMap64]) -> pa.Table:
    """Write the touched leaves again with their removed files as DELETED (spec: Manifests)."""
    written = []
    replaced = pa.array(list(positions), pa.string())
    for leaf in _touched(rows, replaced):
        changed = _with_deleted(writer.store, leaf, positions[leaf.location], writer.moment)
        written.append(writer.written_again(changed, delete=leaf.delete, first_row_id=leaf.first_row_id))
    return concat([rows.filter(pc.invert(pc.is_in(rows["location"], value_set=replaced))), *written])


def _touched(rows: pa.Table, locations: pa.Array) -> Iterator[Leaf]:
    """The manifests at these locations."""
    found = pc.and_(of_type(rows, *MANIFESTS), pc.is_in(rows["location"], value_set=locations))
    return leaves_of(rows.filter(found))


def _with_deleted(store: ManifestStore, leaf: Leaf, dead: BitMap64, moment: Moment) -> pa.Table:
    rows = read_leaf(store, leaf)
    rows = rows.append_column("_dead", pa.array(position_mask(dead, rows.num_rows, leaf.location)))
    rows = rows.filter(live(rows))
    gone = rows["_dead"]
    rows = rows.drop_columns(["_dead"])
    status = pc.if_else(gone, pa.scalar(int(Status.DELETED), pa.int32()), pa.scalar(int(Status.EXISTING), pa.int32()))
    return put(put(rows, "status", status), "snapshot_id", pc.if_else(gone, moment.snapshot_id, rows["snapshot_id"]))


def _add(writer: LeafWriter, root: Root, added: pa.Table) -> pa.Table:
    """Rows for the new files: themselves where the root may hold them, or the leaves they were written to."""
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
        yield _explicit(rows, writer.moment, writer.ids)
    else:
        for leaf in writer.added(lambda: [_new(rows, writer.moment)], delete=False):
            yield writer.added_row(leaf)


def _add_deletes(writer: LeafWriter, root: Root, rows: pa.Table) -> Iterator[pa.Table]:
    if rows.num_rows == 0:
        return
    if _fits_root(writer, rows, ROOT_MAX_DVS.of(writer.properties)):
        yield _explicit(rows, writer.moment, writer.ids)
        return
    new = _new(rows, writer.moment)
    if not rules(writer.store.context.format_version).root_holds_files:  # and no list could say where they belong
        for leaf in writer.added(lambda: [new], delete=True):
            yield writer.added_row(leaf)
        return
    # Where the data files stand may differ between attempts, so that of the leaves is found anew in each.
    homes = find_homes(writer, new, root.entries, root.dead)
    for leaf in writer.added(lambda: [part for part, _ in laid_out(new, homes)], delete=True):
        yield writer.added_row(leaf, home_of(leaf.rows, new, homes))


def _fits_root(writer: LeafWriter, rows: pa.Table, limit: int) -> bool:
    in_root = rules(writer.store.context.format_version).root_holds_files
    return in_root and rows.num_rows <= limit and not too_large(rows, writer.properties)


def _new(rows: pa.Table, moment: Moment) -> pa.Table:
    """Rows of a leaf of new files, which inherits its sequence numbers."""
    return put(mark(rows, Status.ADDED), "snapshot_id", moment.snapshot_id)


def _explicit(rows: pa.Table, moment: Moment, ids: RowIds) -> pa.Table:
    """New root rows: the root is written in every attempt, so nothing need be inherited."""
    rows = put(mark(rows, Status.ADDED), "snapshot_id", moment.snapshot_id)
    rows = put(rows, "file_sequence_number", moment.sequence_number)
    rows = put(rows, "sequence_number", pc.fill_null(rows["sequence_number"], moment.sequence_number))
    counts = np.asarray(pc.if_else(of_type(rows, ContentType.DATA), rows["record_count"], 0))
    start = ids.take(int(counts.sum()))
    if start is None:
        return rows
    first = pa.array(start + np.concatenate(([0], np.cumsum(counts)[:-1])), pa.int64())
    return put(rows, "first_row_id", pc.if_else(of_type(rows, ContentType.DATA), first, pa.scalar(None, pa.int64())))
