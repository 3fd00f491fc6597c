"""Upkeep of a V4 tree, as part of ordinary commits (V4 proposal).

The root is kept small by moving older files to leaves; leaves are kept few by merging small ones, and full by writing
those again that have lost many of their rows. None of it changes the table: outputs are EXISTING, what they replace is
no longer named, with its deletion vector. So only rows and leaves are touched that the commit left as they were, or the
root could not tell any more what the commit did.

Most commits have nothing to do here and must find that out cheaply: all is tested on columns of the root, and no leaf
is looked at. What there is to do is bounded, so that no commit pays for all that has come together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import DELETES, MANIFESTS, ContentType, Status, concat
from icefloe.model.metadata.properties import (
    LEAF_MAX_DEAD_PERCENT,
    LEAF_MIN_COUNT,
    LEAF_MIN_DEAD_ROWS,
    MERGE_ENABLED,
    ROOT_MAX_BYTES,
    ROOT_MAX_DATA_FILES,
    ROOT_MAX_DVS,
    UPKEEP_MAX_BYTES,
)
from icefloe.tree.delete_leaf_affinity import find_homes, laid_out, repointed
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.manifest_vectors import ManifestVectors
from icefloe.tree.merge import bins
from icefloe.tree.root import Root, leaves_of, live_leaves, mark
from icefloe.tree.staging import stored_bytes

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_VERSION = 4
_COLUMN_BYTES = 16  # what a value takes at most, but for a few


def keep_up(writer: LeafWriter, rows: pa.Table, dead: ManifestVectors, *, merge: bool = True) -> pa.Table:
    """The rows of a new root after upkeep; ``dead`` are the positions that its parent's vectors hide.

    Without ``merge``, leaves stay as they are and only the root is emptied.
    """
    rest = _Rows(rows)
    moved: dict[str, str] = {}
    for leaves, files, limit in (
        (ContentType.DATA_MANIFEST, (ContentType.DATA,), ROOT_MAX_DATA_FILES),
        (ContentType.DELETE_MANIFEST, DELETES, ROOT_MAX_DVS),
    ):
        if merge:
            rest = _compact(writer, rest, dead, leaves, moved)
        rest = _flush(writer, rest, dead, files, limit.of(writer.properties))
    return repointed(rest.table, moved)


def too_large(rows: pa.Table, properties: Mapping[str, str]) -> bool:
    """Whether file rows take more bytes than the root should hold of them, as far as that shows before writing."""
    most = ROOT_MAX_BYTES.of(properties)
    return _may_take(rows.num_rows, rows, most) and stored_bytes(rows) > most


def _may_take(count: int, like: pa.Table, most: int) -> bool:
    """Whether so many rows like these may take more than so many bytes; asks for no byte to be counted."""
    columns: int = like.num_columns
    return count * columns * _COLUMN_BYTES > most


class _Rows:
    """Rows of a root, and the two columns that everything depends on."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._types: Ints = np.asarray(table["content_type"])
        self._statuses: Ints = np.asarray(table["status"])

    def of_type(self, *types: ContentType) -> Mask:
        """Which rows are of one of these content types."""
        found: Mask = self._types == int(types[0])
        for other in types[1:]:
            found = found | (self._types == int(other))
        return found

    def has(self, status: Status) -> Mask:
        """Which rows have a status."""
        found: Mask = self._statuses == int(status)
        return found

    def numbers(self, name: str) -> Ints:
        """A column, 0 where it is null."""
        found: Ints = np.asarray(pc.fill_null(self.table[name], 0)).astype(np.int64)
        return found

    @property
    def written_in_v4(self) -> Mask:
        """Which rows are manifests of V4; the lists of older versions do not tell of which version theirs are."""
        found: Mask = self.numbers("format_version") == _VERSION
        return found

    def replaced(self, gone: Mask, written: list[pa.Table]) -> _Rows:
        """The rows less some, and others instead, before the rows that the snapshot adds."""
        added = self.has(Status.ADDED)
        before, behind = self.table.filter(pa.array(~gone & ~added)), self.table.filter(pa.array(~gone & added))
        return _Rows(concat([before, *written, behind]))


# -- the root


def _flush(writer: LeafWriter, rows: _Rows, dead: ManifestVectors, types: tuple[ContentType, ...], limit: int) -> _Rows:
    """Move older file rows to leaves when the root holds too many of them."""
    mine = rows.of_type(*types)
    old = mine & rows.has(Status.EXISTING)
    count = int(np.count_nonzero(old))
    if count == 0:
        return rows
    too_many = int(np.count_nonzero(mine & ~rows.has(Status.DELETED))) > limit
    if not too_many and not _may_take(count, rows.table, ROOT_MAX_BYTES.of(writer.properties)):
        return rows
    settled = rows.table.filter(pa.array(old))
    if not too_many and not too_large(settled, writer.properties):
        return rows
    if types == DELETES:
        written = _write_deletes(writer, rows, dead, settled)
    else:
        written = writer.settled(settled, delete=False)
    return rows.replaced(old, written)


def _write_deletes(
    writer: LeafWriter, rows: _Rows, dead: ManifestVectors, deletes: pa.Table, *, split: bool = True
) -> list[pa.Table]:
    """Write leaves of delete rows, in the layout that plans like best; their root rows."""
    homes = find_homes(writer, deletes, rows.table, dead)
    parts = laid_out(deletes, homes)
    return [row for part, home in parts for row in writer.settled(part, delete=True, affinity=home, split=split)]


# -- leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaves:
    """Leaves of one kind that the commit left as they were: where they stand in the root, and their figures."""

    places: Ints
    sizes: Ints  # of the files, in bytes
    rows: Ints  # that were live when the leaf was written
    dead: Ints  # of them, that were removed since

    @property
    def remaining(self) -> Ints:
        """About how many bytes they would have without their dead rows."""
        shares = np.where(self.rows > 0, (self.rows - self.dead) / np.maximum(self.rows, 1), 1.0)
        found: Ints = (self.sizes * shares).astype(np.int64)
        return found


def _compact(writer: LeafWriter, rows: _Rows, dead: ManifestVectors, kind: ContentType, moved: dict[str, str]) -> _Rows:
    """Merge small leaves and write those again that have lost many rows; ``moved`` learns what replaced data leaves."""
    leaves = _settled_leaves(rows, kind)
    if leaves is None:
        return rows
    units = tuple(_affordable(_units(writer, rows, leaves), leaves, UPKEEP_MAX_BYTES.of(writer.properties)))
    if len(units) == 0 or _just_upgraded(rows):
        return rows
    gone: Mask = np.zeros(rows.table.num_rows, np.bool_)
    written: list[pa.Table] = []
    for unit in units:
        gone[leaves.places[unit]] = True
        inputs = rows.table.take(pa.array(leaves.places[unit]))
        inside = live_leaves(writer.store, Root(entries=rows.table, dead=dead), tuple(leaves_of(inputs)))
        settled, affinity = mark(concat(list(inside)), Status.EXISTING), inputs["referenced_file"][0].as_py()
        if kind is ContentType.DATA_MANIFEST:
            new = writer.settled(settled, delete=False, split=False)
            moved.update({old: row["location"][0].as_py() for row in new for old in inputs["location"].to_pylist()})
        elif affinity is None:
            new = _write_deletes(writer, rows, dead, settled, split=False)
        else:
            new = writer.settled(settled, delete=True, affinity=affinity, split=False)
        written.extend(new)
    return rows.replaced(gone | _vectors_of(rows, gone), written)


def _settled_leaves(rows: _Rows, kind: ContentType) -> _Leaves | None:
    """The leaves of a kind that may be written again in passing.

    Delete leaves of older versions may hold position delete files, which a leaf of V4 may not.
    """
    mine = rows.of_type(kind) & rows.has(Status.EXISTING)
    if not mine.any():
        return None
    hidden: Ints = np.zeros(rows.table.num_rows, np.int64)
    if kind is ContentType.DELETE_MANIFEST:
        mine &= rows.written_in_v4
    is_vector = rows.of_type(ContentType.MANIFEST_DV)
    if is_vector.any():
        vectors = rows.table.select(["referenced_file", "record_count", "status"]).filter(pa.array(is_vector))
        place = pc.index_in(rows.table["location"], value_set=vectors["referenced_file"].combine_chunks())
        hidden = np.asarray(pc.fill_null(pc.take(vectors["record_count"], place), 0))
        changed = vectors.filter(pc.not_equal(vectors["status"], int(Status.EXISTING)))["referenced_file"]
        mine &= ~np.asarray(pc.is_in(rows.table["location"], value_set=changed.combine_chunks()))
    places = np.flatnonzero(mine)
    return _Leaves(
        places=places,
        sizes=rows.numbers("file_size_in_bytes")[places],
        rows=(rows.numbers("added_files_count") + rows.numbers("existing_files_count"))[places],
        dead=hidden[places],
    )


def _units(writer: LeafWriter, rows: _Rows, leaves: _Leaves) -> Iterator[Ints]:
    """Leaves to be written as one, as numbers in ``leaves``: small ones together, then those with many dead rows."""
    properties = writer.properties
    taken: Mask = np.zeros(len(leaves.places), np.bool_)
    if MERGE_ENABLED.of(properties):
        for unit in _small(rows, leaves, writer.target, max(LEAF_MIN_COUNT.of(properties), 2)):
            taken[unit] = True
            yield unit
    many = leaves.dead >= max(1, LEAF_MIN_DEAD_ROWS.of(properties))
    if many.any():
        most = LEAF_MAX_DEAD_PERCENT.of(properties)
        heavy = many & (leaves.dead < leaves.rows) & (leaves.dead * 100 >= leaves.rows * most)
        for number in np.flatnonzero(heavy & ~taken):
            yield np.array([number], np.int64)


def _small(rows: _Rows, leaves: _Leaves, target: int, fewest: int) -> Iterator[Ints]:
    """Small leaves of one spec and one affinity, once they are many or make up a leaf of the target size.

    A leaf that is half full is not small: it would be copied again and again for what comes behind it.
    """
    sizes = leaves.remaining
    small = np.flatnonzero(sizes * 2 < target)
    if len(small) < 2 or (len(small) < fewest and sizes[small].sum() < target):
        return
    groups = _groups(rows, leaves.places[small])
    counts = np.bincount(groups)
    due = (counts >= fewest) | (np.bincount(groups, weights=sizes[small]) >= target)
    for group in np.flatnonzero(due):
        mine = small[groups == group]
        for chosen in bins(sizes[mine], target, fewest):
            yield mine[chosen]


def _groups(rows: _Rows, places: Ints) -> Ints:
    """A number for each leaf, the same for those of one partition spec and one affinity."""
    chosen = rows.table.select(["partition_spec_id", "referenced_file"]).take(pa.array(places))
    affinity = chosen["referenced_file"].combine_chunks().dictionary_encode().indices
    keys = np.column_stack([np.asarray(chosen["partition_spec_id"]), np.asarray(pc.fill_null(affinity, -1))])
    _, numbers = np.unique(keys, axis=0, return_inverse=True)
    return numbers.reshape(-1)


def _affordable(units: Iterator[Ints], leaves: _Leaves, most: int) -> Iterator[Ints]:
    """As many units as may be read in one commit, one at least."""
    spent = 0
    for unit in units:
        cost = int(leaves.sizes[unit].sum())
        if spent > 0 and spent + cost > most:
            return
        spent += cost
        yield unit


def _just_upgraded(rows: _Rows) -> bool:
    """Whether the commit is the first one of V4, which takes all manifests over as they are."""
    older = rows.of_type(*MANIFESTS) & ~rows.written_in_v4
    return bool(older[rows.has(Status.EXISTING)].all())


def _vectors_of(rows: _Rows, gone: Mask) -> Mask:
    """Which rows are deletion vectors of leaves that go."""
    leaves = rows.table["location"].filter(pa.array(gone)).combine_chunks()
    found: Mask = np.asarray(pc.is_in(rows.table["referenced_file"], value_set=leaves))
    return found & rows.of_type(ContentType.MANIFEST_DV)
