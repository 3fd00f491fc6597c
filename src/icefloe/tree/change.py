"""Applying a change to a root: the new root's rows, and the leaves written on the way (V4 proposal).

One path for every version. Where versions differ they differ by a named rule: whether the root may hold files, and
whether a file leaves a leaf by a manifest deletion vector or by writing the leaf again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.aggregate import manifest_row
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
from icefloe.model.properties import ROOT_MAX_DATA_FILES, ROOT_MAX_DVS
from icefloe.model.version_rules import rules
from icefloe.tree.locate import PLACE, Located, locate
from icefloe.tree.manifest_vectors import hide
from icefloe.tree.merge import merge_small, rewrite_leaves
from icefloe.tree.moment import Moment, RowIds, mark_deleted
from icefloe.tree.root import Leaf, Root, leaves_of, mark, position_mask, read_leaf
from icefloe.tree.staging import NewLeaf, Staging
from icefloe.tree.store import ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a commit does to the set of files.

    ``removed``, ``replaced`` and ``dropped`` say where the rows were seen: data files that leave, deletion vectors
    that leave, named by the data file they belong to, and delete files that leave. All have the columns of
    ``locate.PLACE``.
    """

    added: pa.Table = field(default_factory=empty)
    removed: pa.Table = field(default_factory=PLACE.empty_table)
    replaced: pa.Table = field(default_factory=PLACE.empty_table)
    dropped: pa.Table = field(default_factory=PLACE.empty_table)
    merge: bool = True  # whether small manifests may be merged in passing


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRoot:
    """The rows to write as the next root, and how many row ids they take."""

    rows: pa.Table
    added_rows: int


def apply_change(
    store: ManifestStore, root: Root, change: Change, moment: Moment, staging: Staging, properties: Mapping[str, str]
) -> NewRoot:
    """The root after a change; leaves are written through ``staging``, the root itself is the caller's to write."""
    ids = RowIds(moment.first_row_id)
    rows = number_leaves(store, _carry_over(root), ids)
    rows = _remove(store, root, rows, change, moment, staging)
    rows = concat([rows, _add(store, change.added, moment, ids, staging, properties)])
    if rules(store.context.format_version).root_holds_files:
        rows = _flush(store, rows, moment, ids, staging, properties)
    elif change.merge:
        describe = describer(store, moment, ids)
        rows = merge_small(store, rows, moment.snapshot_id, staging, properties, describe)
    return new_root(rows, ids)


def rewrite_root(
    store: ManifestStore, root: Root, moment: Moment, staging: Staging, properties: Mapping[str, str]
) -> NewRoot:
    """The root with all its leaves written again."""
    ids = RowIds(moment.first_row_id)
    numbered = Root(entries=number_leaves(store, root.entries, ids), dead=root.dead)
    return new_root(rewrite_leaves(store, numbered, staging, properties, describer(store, moment, ids)), ids)


def new_root(rows: pa.Table, ids: RowIds) -> NewRoot:
    """Rows as they will stand in the root."""
    rows = put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))
    return NewRoot(rows=rows.combine_chunks(), added_rows=ids.used)


def describer(store: ManifestStore, moment: Moment, ids: RowIds) -> Callable[[NewLeaf, Status], pa.Table]:
    """What gives the root rows of leaves whose entries all have row ids of their own."""

    def describe(leaf: NewLeaf, status: Status) -> pa.Table:
        # A leaf without first_row_id would void the ids of its files; they all have their own, so none is taken.
        return _root_row(store, leaf, moment, status, None if leaf.delete else ids.next)

    return describe


def number_leaves(store: ManifestStore, rows: pa.Table, ids: RowIds) -> pa.Table:
    """Row ids for the data of leaves from before the table had row lineage."""
    wanting = pc.and_(of_type(rows, ContentType.DATA_MANIFEST), pc.is_null(rows["first_row_id"]))
    if ids.next is None or pc.any(wanting).as_py() is not True:
        return rows
    places = np.flatnonzero(np.asarray(wanting))
    chosen = rows.take(pa.array(places))
    told = pc.add(chosen["added_rows_count"], chosen["existing_rows_count"])
    counts = [
        _rows_in(store, leaf) if n is None else n for leaf, n in zip(leaves_of(chosen), told.to_pylist(), strict=True)
    ]
    first = np.asarray(pc.fill_null(rows["first_row_id"], -1)).copy()
    start = ids.take(sum(counts))
    first[places] = start + np.cumsum([0, *counts[:-1]])
    return put(rows, "first_row_id", pa.array(first, pa.int64(), mask=first < 0))


def _rows_in(store: ManifestStore, leaf: Leaf) -> int:
    rows = read_leaf(store, leaf)
    return int(pc.sum(choose(rows, live(rows))["record_count"], min_count=0).as_py())


def _carry_over(root: Root) -> pa.Table:
    """Live rows as EXISTING, less the leaves whose rows are all gone and their deletion vectors."""
    rows = choose(root.entries, live(root.entries))
    if pc.max(rows["content_type"]).as_py() in (None, int(ContentType.DATA)):
        return mark(rows, Status.EXISTING)  # no manifest, as in most small tables of V4
    gone = rows["location"].filter(_is_dead(root, rows)).combine_chunks()
    if len(gone) > 0:
        target = pc.if_else(of_type(rows, ContentType.MANIFEST_DV), rows["referenced_file"], rows["location"])
        rows = rows.filter(pc.invert(pc.is_in(target, value_set=gone)))
    return mark(rows, Status.EXISTING)


def _is_dead(root: Root, rows: pa.Table) -> pa.ChunkedArray:
    """Which rows are manifests all of whose files have left; ``Root.is_dead`` for all rows at once."""
    hidden = pa.array([len(positions) for positions in root.dead.values()], pa.int64())
    place = pc.index_in(rows["location"], value_set=pa.array(list(root.dead), pa.string()))
    left = pc.subtract(
        pc.add(rows["added_files_count"], rows["existing_files_count"]), pc.fill_null(pc.take(hidden, place), 0)
    )
    return pc.and_(of_type(rows, *MANIFESTS), pc.fill_null(pc.less_equal(left, 0), False))


def _remove(
    store: ManifestStore, root: Root, rows: pa.Table, change: Change, moment: Moment, staging: Staging
) -> pa.Table:
    if change.removed.num_rows == 0 and change.replaced.num_rows == 0 and change.dropped.num_rows == 0:
        return rows
    found = [
        _locate(store, root, change.removed, "location", ContentType.DATA),
        _locate(store, root, change.replaced, "referenced_file", ContentType.POSITION_DELETES),
        _locate(store, root, change.dropped, "location", *DELETES),
    ]
    rows = mark_deleted(rows, BitMap64.union(*(each.in_root for each in found)), moment)
    positions: dict[str, BitMap64] = {}
    for each in found:
        for leaf, dead in each.in_leaves.items():
            positions[leaf] = positions.get(leaf, BitMap64()) | dead
    if len(positions) == 0:
        return rows
    if rules(store.context.format_version).manifest_deletion_vectors:
        return hide(rows, root.dead, positions, moment)
    return _rewrite(store, rows, positions, moment, staging)


def _locate(store: ManifestStore, root: Root, places: pa.Table, column: str, *types: ContentType) -> Located:
    if places.num_rows == 0:
        return Located()
    wanted = places["location"].combine_chunks()
    return locate(store, root, wanted, places, column=column, types=types)


def _rewrite(
    store: ManifestStore, rows: pa.Table, positions: Mapping[str, BitMap64], moment: Moment, staging: Staging
) -> pa.Table:
    """Write the touched leaves again with their removed files as DELETED (spec: Manifests)."""
    written = []
    replaced = pa.array(list(positions), pa.string())
    for leaf in _touched(rows, replaced):
        changed = _with_deleted(store, leaf, positions[leaf.location], moment)
        (new,) = staging.write_leaves(store, changed, delete=leaf.delete)
        written.append(_root_row(store, new, moment, Status.ADDED, leaf.first_row_id))
    return concat([rows.filter(pc.invert(pc.is_in(rows["location"], value_set=replaced))), *written])


def _touched(rows: pa.Table, locations: pa.Array) -> Iterator[Leaf]:
    """The manifests at these locations."""
    found = pc.and_(of_type(rows, *MANIFESTS), pc.is_in(rows["location"], value_set=locations))
    return leaves_of(rows.filter(found))


def _with_deleted(store: ManifestStore, leaf: Leaf, dead: BitMap64, moment: Moment) -> pa.Table:
    rows = read_leaf(store, leaf)
    rows = rows.append_column("_dead", pa.array(position_mask(dead, rows.num_rows)))
    rows = rows.filter(live(rows))
    gone = rows["_dead"]
    rows = rows.drop_columns(["_dead"])
    status = pc.if_else(gone, pa.scalar(int(Status.DELETED), pa.int32()), pa.scalar(int(Status.EXISTING), pa.int32()))
    return put(put(rows, "status", status), "snapshot_id", pc.if_else(gone, moment.snapshot_id, rows["snapshot_id"]))


def _add(
    store: ManifestStore,
    added: pa.Table,
    moment: Moment,
    ids: RowIds,
    staging: Staging,
    properties: Mapping[str, str],
) -> pa.Table:
    """Rows for the new files: themselves where the root may hold them, or the leaves they were written to."""
    if added.num_rows == 0:
        return empty()
    in_root = rules(store.context.format_version).root_holds_files
    is_data = of_type(added, ContentType.DATA)
    parts = []
    for delete, rows in ((False, choose(added, is_data)), (True, choose(added, pc.invert(is_data)))):
        limit = (ROOT_MAX_DVS if delete else ROOT_MAX_DATA_FILES).of(properties) if in_root else 0
        if rows.num_rows == 0:
            continue
        if rows.num_rows <= limit:
            parts.append(_explicit(rows, moment, ids))
        else:
            leaf_rows = put(mark(rows, Status.ADDED), "snapshot_id", moment.snapshot_id)
            key = f"{moment.snapshot_id} {'deletes' if delete else 'data'}"  # a commit may make several snapshots
            leaves = staging.reuse_or_write(store, key, leaf_rows, delete=delete)
            parts.extend(_added_leaf(store, leaf, moment, ids) for leaf in leaves)
    return concat(parts)


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


def _added_leaf(store: ManifestStore, leaf: NewLeaf, moment: Moment, ids: RowIds) -> pa.Table:
    first = None if leaf.delete else ids.take(pc.sum(leaf.rows["record_count"]).as_py())
    return _root_row(store, leaf, moment, Status.ADDED, first)


def _flush(
    store: ManifestStore,
    rows: pa.Table,
    moment: Moment,
    ids: RowIds,
    staging: Staging,
    properties: Mapping[str, str],
) -> pa.Table:
    """Move older file rows to leaves when the root holds too many; data files and deletes have limits of their own."""
    limits = ((False, (ContentType.DATA,), ROOT_MAX_DATA_FILES), (True, DELETES, ROOT_MAX_DVS))
    for delete, types, limit in limits:
        mine = pc.and_(of_type(rows, *types), live(rows))
        if pc.sum(mine).as_py() <= limit.of(properties):
            continue
        old = pc.and_(mine, pc.equal(rows["status"], int(Status.EXISTING)))
        settled = rows.filter(old)
        if settled.num_rows == 0:
            continue
        describe = describer(store, moment, ids)
        new = [describe(leaf, Status.EXISTING) for leaf in staging.write_leaves(store, settled, delete=delete)]
        rows = concat([rows.filter(pc.invert(old)), *new])
    return rows


def _root_row(
    store: ManifestStore, leaf: NewLeaf, moment: Moment, status: Status, first_row_id: int | None
) -> pa.Table:
    """The row that stands for a leaf in the root."""
    return manifest_row(
        leaf.rows,
        store.context,
        location=leaf.location,
        size=leaf.size,
        delete=leaf.delete,
        status=status,
        snapshot_id=moment.snapshot_id,
        sequence_number=moment.sequence_number,
        first_row_id=first_row_id,
    )
