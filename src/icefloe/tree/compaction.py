"""Compaction of a V4 tree, as part of ordinary commits (V4 proposal).

Older file entries of the root are flushed to leaves, so that the root stays small. Small leaves are merged, and leaves
with many dead rows are rewritten. This does not change the table: the output has status EXISTING, and what it replaces
is no longer in the root, deletion vectors included. Only rows and leaves that the commit itself did not change are
compacted, as otherwise the root would no longer show what the commit changed. A leaf with many dead rows from which the
commit removes further entries is folded instead: it is rewritten as it was before the commit, and the entries that the
commit removes are removed from the new leaf. So a leaf that every commit changes is rewritten too.

Most commits have nothing to compact and must find that out cheaply, from columns of the root, without opening a leaf.
The work of one commit is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.model.entries import DELETES, MANIFESTS, ContentType, Status, concat, of_type, put
from icefloe.model.metadata.properties import (
    LEAF_MAX_DEAD_PERCENT,
    LEAF_MIN_COUNT,
    LEAF_MIN_DEAD_ROWS,
    MERGE_ENABLED,
    ROOT_MAX_BYTES,
    ROOT_MAX_COPIES,
    ROOT_MAX_DATA_FILES,
    ROOT_MAX_DVS,
    UPKEEP_MAX_BYTES,
)
from icefloe.model.metadata.version_rules import CONTENT_ENTRY_VERSIONS
from icefloe.tree.delete_leaf_affinity import find_data_leaves, split_by_data_leaf, with_current_affinity
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.manifest_vectors import ManifestVectors
from icefloe.tree.merge_manifests import bins
from icefloe.tree.root import Root, leaves_of, read_live_leaves, with_status
from icefloe.tree.staging import estimated_size

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_VALUE_BYTES = 16  # upper estimate of the size of one value; few are larger
_LEAF_IN_ENTRIES = 80  # the bytes of a leaf without rows, most of them its schema, in entries of data files


def compact(
    writer: LeafWriter,
    rows: pa.Table,
    dead: ManifestVectors,
    *,
    merge: bool = True,
    folded: Mapping[str, str] = MappingProxyType({}),
) -> pa.Table:
    """The rows of a new root after compaction; ``dead`` are the positions that the vectors of its parent delete.

    Without ``merge``, leaves are not rewritten and only the root is flushed. ``folded`` maps leaves that the commit has
    folded to the new ones.
    """
    root = _RootRows(rows)
    replaced: dict[str, str] = dict(folded)
    for manifest_type, file_types, limit in (
        (ContentType.DATA_MANIFEST, (ContentType.DATA,), ROOT_MAX_DATA_FILES),
        (ContentType.DELETE_MANIFEST, DELETES, ROOT_MAX_DVS),
    ):
        if merge:
            root = _rewrite_leaves(writer, root, dead, manifest_type, replaced)
        if _is_full(writer, root, file_types, limit.of(writer.properties)):
            root = _flush(writer, root, dead, file_types, replaced, merge=merge)
    return with_current_affinity(root.table, replaced)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Root rows after folding, what the commit removes from leaves by position, and the new leaf of each folded one."""

    rows: pa.Table
    positions: Mapping[str, BitMap64]
    replaced: Mapping[str, str]


def fold_leaves(writer: LeafWriter, root: Root, rows: pa.Table, positions: Mapping[str, BitMap64]) -> Folded:
    """Rewrite leaves with many dead rows from which a commit removes further entries, without their dead rows.

    ``rows`` are those of the new root, ``positions`` what the commit removes, in terms of the old leaves.
    """
    due = _due_for_folding(writer, root, _RootRows(rows), positions)
    if len(due) == 0:
        return Folded(rows=rows, positions=positions, replaced={})
    chosen = pc.and_(of_type(rows, *MANIFESTS), pc.is_in(rows["location"], value_set=pa.array(due, pa.string())))
    old, removed, replaced = rows.filter(chosen), dict(positions), {}
    leaves, written = tuple(leaves_of(old)), []
    for index, (leaf, entries) in enumerate(zip(leaves, read_live_leaves(writer.store, root, leaves), strict=True)):
        gone = np.isin(np.asarray(entries["ordinal"]), removed.pop(leaf.location).to_array())
        entries = with_status(entries, Status.EXISTING)
        (new,) = writer.write_existing(entries, leaf.content, affinity=leaf.affinity, split=False)
        written.append(put(new, "ordinal", old["ordinal"].slice(index, 1).combine_chunks()))
        replaced[leaf.location] = new["location"][0].as_py()
        removed[replaced[leaf.location]] = BitMap64(np.flatnonzero(gone))
    of_leaf = pc.if_else(of_type(rows, ContentType.MANIFEST_DV), rows["referenced_file"], rows["location"])
    is_old = pc.fill_null(pc.is_in(of_leaf, value_set=pa.array(due, pa.string())), False)
    return Folded(rows=concat([rows.filter(pc.invert(is_old)), *written]), positions=removed, replaced=replaced)


def _due_for_folding(writer: LeafWriter, root: Root, rows: _RootRows, positions: Mapping[str, BitMap64]) -> list[str]:
    """The leaves to fold: due by the rows that were dead before the commit, with rows that remain live after it."""
    candidates = [leaf for leaf in positions if root.dead.count(leaf) > 0]
    if len(candidates) == 0 or _is_first_after_upgrade(rows):
        return []
    counted = rows.has_content_entries & rows.of_status(Status.EXISTING) & rows.of_type(*MANIFESTS)
    counted &= np.asarray(pc.is_in(rows.table["location"], value_set=pa.array(candidates, pa.string())))
    locations = rows.table["location"].filter(pa.array(counted)).to_pylist()
    dead = np.array([root.dead.count(leaf) for leaf in locations], np.int64)
    remaining = (rows.numbers("added_files_count") + rows.numbers("existing_files_count"))[counted] - dead
    removed = np.array([len(positions[leaf]) for leaf in locations], np.int64)
    due = _has_many_dead(writer, dead, dead + remaining) & (removed < remaining)
    sizes = np.cumsum(np.where(due, rows.numbers("file_size_in_bytes")[counted], 0))
    within = (sizes <= UPKEEP_MAX_BYTES.of(writer.properties)) | (np.cumsum(due) == 1)
    return [leaf for leaf, folds in zip(locations, (due & within).tolist(), strict=True) if folds]


def _has_many_dead(writer: LeafWriter, dead: Ints, row_counts: Ints) -> Mask:
    """Which leaves have so many dead rows that they are rewritten without them."""
    many: Mask = dead >= max(1, LEAF_MIN_DEAD_ROWS.of(writer.properties))
    if many.any():
        many &= (dead < row_counts) & (dead * 100 >= row_counts * LEAF_MAX_DEAD_PERCENT.of(writer.properties))
    return many


def exceeds_root_size(rows: pa.Table, properties: Mapping[str, str]) -> bool:
    """Whether file entries are estimated to take more bytes than the root should hold."""
    limit = ROOT_MAX_BYTES.of(properties)
    return _may_exceed(rows.num_rows, rows, limit) and estimated_size(rows) > limit


def _may_exceed(row_count: int, table: pa.Table, limit: int) -> bool:
    """Whether so many rows with these columns may take more than ``limit`` bytes; a cheap upper estimate."""
    columns: int = table.num_columns
    return row_count * columns * _VALUE_BYTES > limit


class _RootRows:
    """Rows of a root, with the two columns that all decisions depend on."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._types: Ints = np.asarray(table["content_type"])
        self._statuses: Ints = np.asarray(table["status"])

    def of_type(self, *types: ContentType) -> Mask:
        """Which rows are of one of these content types."""
        mask: Mask = self._types == int(types[0])
        for other in types[1:]:
            mask = mask | (self._types == int(other))
        return mask

    def of_status(self, status: Status) -> Mask:
        """Which rows have a status."""
        mask: Mask = self._statuses == int(status)
        return mask

    def numbers(self, name: str) -> Ints:
        """A column, 0 where it is null."""
        values: Ints = np.asarray(pc.fill_null(self.table[name], 0)).astype(np.int64)
        return values

    @property
    def has_content_entries(self) -> Mask:
        """Which rows are manifests of content entries; manifest lists do not record the version of their manifests."""
        mask: Mask = np.isin(self.numbers("format_version"), CONTENT_ENTRY_VERSIONS)
        return mask

    def replaced(self, removed: Mask, written: list[pa.Table]) -> _RootRows:
        """The rows without some, and with others, which are placed before the rows that the snapshot adds."""
        added = self.of_status(Status.ADDED)
        older, newer = self.table.filter(pa.array(~removed & ~added)), self.table.filter(pa.array(~removed & added))
        return _RootRows(concat([older, *written, newer]))


# -- the root


def _is_full(writer: LeafWriter, root: _RootRows, types: tuple[ContentType, ...], limit: int) -> bool:
    """Whether the root holds too many file entries, too many bytes of them, or has copied older ones too often."""
    of_type = root.of_type(*types)
    existing = of_type & root.of_status(Status.EXISTING)
    if (count := int(np.count_nonzero(existing))) == 0:
        return False
    if int(np.count_nonzero(of_type & ~root.of_status(Status.DELETED))) > limit:
        return True
    if types != DELETES and _is_copied_too_often(writer, root.numbers("file_sequence_number")[existing]):
        return True
    may_exceed = _may_exceed(count, root.table, ROOT_MAX_BYTES.of(writer.properties))
    return may_exceed and exceeds_root_size(root.table.filter(pa.array(existing)), writer.properties)


def _is_copied_too_often(writer: LeafWriter, sequence_numbers: Ints) -> bool:
    """Whether copying entries from root to root has cost several times what a leaf of them costs (decision 010).

    Each commit since an entry was added has copied it once, so small commits flush the root after fewer entries.
    """
    copies = int((writer.identity.sequence_number - sequence_numbers).sum())
    return copies > ROOT_MAX_COPIES.of(writer.properties) * (len(sequence_numbers) + _LEAF_IN_ENTRIES)


def _flush(
    writer: LeafWriter,
    root: _RootRows,
    dead: ManifestVectors,
    types: tuple[ContentType, ...],
    replaced: dict[str, str],
    *,
    merge: bool,
) -> _RootRows:
    """Move older file entries to leaves, with ``merge`` to the newest data leaf if it has few entries."""
    flushed = root.of_type(*types) & root.of_status(Status.EXISTING)
    entries = root.table.filter(pa.array(flushed))
    if types == DELETES:
        return root.replaced(flushed, _write_deletes(writer, root, dead, entries))
    last = _leaf_to_extend(writer, root, entries) if merge else None
    if last is None:
        return root.replaced(flushed, writer.write_existing(entries, ContentType.DATA_MANIFEST))
    flushed[last] = True
    (leaf,) = leaves_of(root.table.slice(last, 1))
    (older,) = read_live_leaves(writer.store, Root(entries=root.table, dead=dead), (leaf,))
    entries = concat([with_status(older, Status.EXISTING), entries])
    written = writer.write_existing(entries, ContentType.DATA_MANIFEST, split=False)
    replaced[leaf.location] = written[0]["location"][0].as_py()
    return root.replaced(flushed | _vectors_of(root, flushed), written)


def _leaf_to_extend(writer: LeafWriter, root: _RootRows, entries: pa.Table) -> int | None:
    """The row of the newest data leaf, if it is so small that it is written again with flushed entries.

    Otherwise a root that is flushed often would have many small leaves, and each of them costs plans some time.
    """
    leaves = _unchanged_leaves(root, ContentType.DATA_MANIFEST)
    if leaves is None or not MERGE_ENABLED.of(writer.properties) or _is_first_after_upgrade(root):
        return None
    last, rows = int(leaves.indexes[-1]), int(leaves.row_counts[-1] - leaves.dead_counts[-1]) + entries.num_rows
    specs = {*pc.unique(entries["partition_spec_id"]).to_pylist(), root.table["partition_spec_id"][last].as_py()}
    fits = rows <= ROOT_MAX_DATA_FILES.of(writer.properties) * 4 // 3 and int(leaves.sizes[-1]) * 2 < writer.target
    return last if fits and len(specs) == 1 and bool(root.has_content_entries[last]) else None


def _write_deletes(
    writer: LeafWriter, root: _RootRows, dead: ManifestVectors, deletes: pa.Table, *, split: bool = True
) -> list[pa.Table]:
    """Write delete leaves, separated by affinity; their root rows."""
    data_leaves = find_data_leaves(writer, deletes, root.table, dead)
    return [
        row
        for part, affinity in split_by_data_leaf(deletes, data_leaves)
        for row in writer.write_existing(part, ContentType.DELETE_MANIFEST, affinity=affinity, split=split)
    ]


# -- leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaves:
    """Leaves of one content type that the commit did not change, as columns."""

    indexes: Ints  # in the root
    sizes: Ints  # of the files, in bytes
    row_counts: Ints  # rows that were live when the leaf was written
    dead_counts: Ints  # of these, rows that were removed since

    @property
    def live_sizes(self) -> Ints:
        """About how many bytes they would have without their dead rows."""
        live = self.row_counts - self.dead_counts
        shares = np.where(self.row_counts > 0, live / np.maximum(self.row_counts, 1), 1.0)
        sizes: Ints = (self.sizes * shares).astype(np.int64)
        return sizes


def _rewrite_leaves(
    writer: LeafWriter, root: _RootRows, dead: ManifestVectors, manifest_type: ContentType, replaced: dict[str, str]
) -> _RootRows:
    """Merge small leaves and rewrite leaves with many dead rows; ``replaced`` gets the new leaf of each data leaf."""
    leaves = _unchanged_leaves(root, manifest_type)
    if leaves is None:
        return root
    groups = tuple(_within_budget(_groups(writer, root, leaves), leaves, UPKEEP_MAX_BYTES.of(writer.properties)))
    if len(groups) == 0 or _is_first_after_upgrade(root):
        return root
    rewritten: Mask = np.zeros(root.table.num_rows, np.bool_)
    written: list[pa.Table] = []
    for group in groups:
        rewritten[leaves.indexes[group]] = True
        inputs = root.table.take(pa.array(leaves.indexes[group]))
        live = read_live_leaves(writer.store, Root(entries=root.table, dead=dead), tuple(leaves_of(inputs)))
        entries, affinity = with_status(concat(list(live)), Status.EXISTING), inputs["referenced_file"][0].as_py()
        if manifest_type is ContentType.DATA_MANIFEST:
            new = writer.write_existing(entries, manifest_type, split=False)
            replaced.update({old: row["location"][0].as_py() for row in new for old in inputs["location"].to_pylist()})
        elif affinity is None:
            new = _write_deletes(writer, root, dead, entries, split=False)
        else:
            new = writer.write_existing(entries, manifest_type, affinity=affinity, split=False)
        written.extend(new)
    return root.replaced(rewritten | _vectors_of(root, rewritten), written)


def _unchanged_leaves(root: _RootRows, manifest_type: ContentType) -> _Leaves | None:
    """The leaves of a content type that may be rewritten, or none.

    Delete leaves of older versions are left out: they may contain position delete files, which V4 leaves may not.
    """
    chosen = root.of_type(manifest_type) & root.of_status(Status.EXISTING)
    dead_counts: Ints = np.zeros(root.table.num_rows, np.int64)
    if manifest_type is ContentType.DELETE_MANIFEST:
        chosen &= root.has_content_entries
    is_vector = root.of_type(ContentType.MANIFEST_DV)
    if is_vector.any():
        vectors = root.table.select(["referenced_file", "record_count", "status"]).filter(pa.array(is_vector))
        index = pc.index_in(root.table["location"], value_set=vectors["referenced_file"].combine_chunks())
        dead_counts = np.asarray(pc.fill_null(pc.take(vectors["record_count"], index), 0))
        changed = vectors.filter(pc.not_equal(vectors["status"], int(Status.EXISTING)))["referenced_file"]
        chosen &= ~np.asarray(pc.is_in(root.table["location"], value_set=changed.combine_chunks()))
    if not chosen.any():
        return None
    indexes = np.flatnonzero(chosen)
    return _Leaves(
        indexes=indexes,
        sizes=root.numbers("file_size_in_bytes")[indexes],
        row_counts=(root.numbers("added_files_count") + root.numbers("existing_files_count"))[indexes],
        dead_counts=dead_counts[indexes],
    )


def _groups(writer: LeafWriter, root: _RootRows, leaves: _Leaves) -> Iterator[Ints]:
    """Groups of leaves to rewrite as one, as numbers in ``leaves``: small ones, then those with many dead rows."""
    properties = writer.properties
    taken: Mask = np.zeros(len(leaves.indexes), np.bool_)
    if MERGE_ENABLED.of(properties):
        for group in _small_leaves(root, leaves, writer.target, max(LEAF_MIN_COUNT.of(properties), 2)):
            taken[group] = True
            yield group
    for number in np.flatnonzero(_has_many_dead(writer, leaves.dead_counts, leaves.row_counts) & ~taken):
        yield np.array([number], np.int64)


def _small_leaves(root: _RootRows, leaves: _Leaves, target: int, min_count: int) -> Iterator[Ints]:
    """Groups of small leaves of one spec and affinity, if there are enough or if they fill a leaf of the target size.

    A leaf that is at least half full is not small: it would be copied again and again to add a few entries.
    """
    sizes = leaves.live_sizes
    small = np.flatnonzero(sizes * 2 < target)
    if len(small) < 2 or (len(small) < min_count and sizes[small].sum() < target):
        return
    codes = _spec_and_affinity(root, leaves.indexes[small])
    counts = np.bincount(codes)
    due = (counts >= min_count) | (np.bincount(codes, weights=sizes[small]) >= target)
    for code in np.flatnonzero(due):
        together = small[codes == code]
        for positions in bins(sizes[together], target, min_count):
            yield together[positions]


def _spec_and_affinity(root: _RootRows, indexes: Ints) -> Ints:
    """A number for each leaf, the same for leaves of one partition spec and one affinity."""
    chosen = root.table.select(["partition_spec_id", "referenced_file"]).take(pa.array(indexes))
    affinity = chosen["referenced_file"].combine_chunks().dictionary_encode().indices
    keys = np.column_stack([np.asarray(chosen["partition_spec_id"]), np.asarray(pc.fill_null(affinity, -1))])
    _, numbers = np.unique(keys, axis=0, return_inverse=True)
    return numbers.reshape(-1)


def _within_budget(groups: Iterator[Ints], leaves: _Leaves, limit: int) -> Iterator[Ints]:
    """The first groups that together have at most ``limit`` bytes to read, at least one group."""
    total = 0
    for group in groups:
        size = int(leaves.sizes[group].sum())
        if total > 0 and total + size > limit:
            return
        total += size
        yield group


def _is_first_after_upgrade(root: _RootRows) -> bool:
    """Whether this is the first commit after an upgrade to V4, which keeps all manifests as they are."""
    older = root.of_type(*MANIFESTS) & ~root.has_content_entries
    return bool(older[root.of_status(Status.EXISTING)].all())


def _vectors_of(root: _RootRows, leaves: Mask) -> Mask:
    """Which rows are deletion vectors of these leaves."""
    locations = root.table["location"].filter(pa.array(leaves)).combine_chunks()
    mask: Mask = np.asarray(pc.is_in(root.table["referenced_file"], value_set=locations))
    return mask & root.of_type(ContentType.MANIFEST_DV)
