"""A snapshot's root and its leaves, read with inheritance and manifest deletion vectors applied.

One shape for every version: a v1-v3 manifest list is a root whose rows are all manifests, a v1-v3 manifest is a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.errors import FormatError
from icefloe.model.entries import MANIFESTS, ContentType, Status, choose, concat, empty, live, of_type, put
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.version_rules import rules
from icefloe.tree.inherit import inherit
from icefloe.tree.manifest_vectors import ManifestVectors, manifest_vectors
from icefloe.tree.root_checks import check_root
from icefloe.tree.store import LeafRequest, ManifestStore

_V4 = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A manifest as its root row describes it."""

    location: str
    delete: bool
    snapshot_id: int
    sequence_number: int
    spec_id: int
    record_count: int | None  # rows in the file, of every status; lists of version 1 may not tell, others be wrong
    live_count: int | None  # rows that were live when the leaf was written
    first_row_id: int | None
    affinity: str | None  # the data leaf that a delete leaf belongs to
    size: int | None = None  # of the file in bytes
    format_version: int | None = None  # that it was written in; lists do not tell

    def request(self, wanted: frozenset[str] | None = None) -> LeafRequest:
        """What to ask the store for to read the leaf with at least the wanted statistics."""
        return LeafRequest(
            location=self.location, delete=self.delete, spec_id=self.spec_id, size=self.size, wanted=wanted
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The rows of a root; ``dead`` has the positions that manifest deletion vectors hide, by leaf location.

    Each vector is read when it is asked for.
    """

    entries: pa.Table = field(default_factory=empty)
    dead: ManifestVectors = field(default_factory=ManifestVectors.none)

    def rows(self, *types: ContentType) -> pa.Table:
        """Live rows of these content types."""
        return choose(self.entries, pc.and_(live(self.entries), of_type(self.entries, *types)))

    def leaves(self, *types: ContentType) -> tuple[Leaf, ...]:
        """Live manifests of these content types that still have a live row."""
        return tuple(leaf for leaf in leaves_of(self.rows(*types)) if not self.is_dead(leaf))

    def is_dead(self, leaf: Leaf) -> bool:
        """Whether every row of a leaf has been removed."""
        if leaf.live_count is None or self.dead.count(leaf.location) < leaf.live_count:
            return False
        # The count alone must not make files vanish: where it says so, the vector itself is looked at.
        return leaf.live_count == 0 or len(self.dead[leaf.location]) >= leaf.live_count

    def are_dead(self, rows: pa.Table) -> pa.ChunkedArray:
        """Which rows are manifests all of whose rows have been removed; ``is_dead`` for all at once."""
        leaves, hidden = self.dead.counts
        if len(leaves) == 0:
            hides: object = 0
        else:
            place = pc.index_in(rows["location"], value_set=leaves.combine_chunks())
            hides = pc.fill_null(pc.take(hidden, place), 0)
        left = pc.subtract(pc.add(rows["added_files_count"], rows["existing_files_count"]), hides)
        found = pc.and_(of_type(rows, *MANIFESTS), pc.fill_null(pc.less_equal(left, 0), False))
        for leaf in rows["location"].filter(found).to_pylist():
            if leaf in self.dead:
                self.dead[leaf]  # checks that the vector hides as many rows as the root says
        return found


def leaves_of(rows: pa.Table) -> Iterator[Leaf]:
    """Manifest rows as values."""
    names = ("location", "snapshot_id", "sequence_number", "partition_spec_id", "record_count", "first_row_id")
    more = ("content_type", "added_files_count", "existing_files_count", "referenced_file", "file_size_in_bytes")
    for row in rows.select([*names, *more, "format_version"]).to_pylist():
        yield Leaf(
            location=row["location"],
            delete=row["content_type"] == ContentType.DELETE_MANIFEST,
            snapshot_id=row["snapshot_id"],
            sequence_number=row["sequence_number"],
            spec_id=row["partition_spec_id"],
            record_count=row["record_count"],
            live_count=_sum(row["added_files_count"], row["existing_files_count"]),
            first_row_id=row["first_row_id"],
            affinity=row["referenced_file"],
            size=row["file_size_in_bytes"],
            format_version=row["format_version"],
        )


def _sum(added: int | None, existing: int | None) -> int | None:
    return None if added is None or existing is None else added + existing


def read_root(store: ManifestStore, snapshot: Snapshot | None) -> Root:
    """The root of a snapshot; an empty one before the first snapshot."""
    if snapshot is None:
        return Root()
    if snapshot.root is None:
        return Root(entries=_named_manifests(store, snapshot))
    where = snapshot.root
    # A manifest list names the first row id of each manifest, or the manifest's files have none (v3).
    lists_ids = not rules(store.context.format_version).root_holds_files or where.endswith(".avro")
    rows = inherit(
        store.root(where),
        where=where,
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=None if lists_ids else snapshot.first_row_id,
    )
    if lists_ids:
        return Root(entries=rows)
    check_root(rows, where)
    return Root(entries=rows, dead=manifest_vectors(store, rows, where, Status.EXISTING, Status.ADDED))


def _named_manifests(store: ManifestStore, snapshot: Snapshot) -> pa.Table:
    """The rows that a manifest list would have, for a snapshot of v1 that has none (spec: Snapshots).

    Nothing but the manifests themselves tells their partition spec and counts, so they are read; one without files
    has no row.
    """
    requests = [LeafRequest(location=location, delete=False) for location in snapshot.manifests]
    found: list[pa.Table] = []
    for request, rows in zip(requests, store.leaves(requests), strict=True):
        if rows.num_rows > 0:
            row = manifest_row(
                inherit(rows, where=request.location, snapshot_id=snapshot.snapshot_id, sequence_number=0),
                store.context,
                location=request.location,
                size=store.io.size(request.location),
                delete=False,
                status=Status.EXISTING,
                snapshot_id=snapshot.snapshot_id,
                sequence_number=0,
            )
            found.append(put(put(row, "file_format", "avro"), "format_version", rows["format_version"][0].as_py()))
    rows = concat(found)
    return put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))


def read_leaf(store: ManifestStore, leaf: Leaf, wanted: frozenset[str] | None = None) -> pa.Table:
    """All physical rows of a leaf, with inheritance and at least the wanted statistics."""
    (rows,) = read_leaves(store, [leaf], wanted)
    return rows


def read_leaves(
    store: ManifestStore, leaves: Sequence[Leaf], wanted: frozenset[str] | None = None
) -> Iterator[pa.Table]:
    """All physical rows of several leaves in order, as ``read_leaf`` gives them, the next ones being read ahead."""
    requests = [leaf.request(wanted) for leaf in leaves]
    for leaf, rows in zip(leaves, store.leaves(requests), strict=True):
        # Writers of lists have miscounted the entries that left, which no other reader minds.
        told = leaf.record_count if leaf.format_version == _V4 else None
        if told is not None and rows.num_rows != told:
            raise FormatError(
                f"{leaf.location}: has {rows.num_rows} rows, its root says {told}", location=leaf.location
            )
        yield inherit(
            rows,
            where=leaf.location,
            snapshot_id=leaf.snapshot_id,
            sequence_number=leaf.sequence_number,
            first_row_id=leaf.first_row_id,
        )


def live_rows(store: ManifestStore, root: Root, leaf: Leaf, wanted: frozenset[str] | None = None) -> pa.Table:
    """The rows of a leaf that are part of the snapshot."""
    (rows,) = live_leaves(store, root, [leaf], wanted)
    return rows


def live_leaves(
    store: ManifestStore, root: Root, leaves: Sequence[Leaf], wanted: frozenset[str] | None = None
) -> Iterator[pa.Table]:
    """The rows of several leaves in order that are part of the snapshot, the next leaves being read ahead."""
    for leaf, rows in zip(leaves, read_leaves(store, leaves, wanted), strict=True):
        keep = live(rows)
        dead = root.dead.get(leaf.location)
        if dead is not None:
            keep = pc.and_(keep, pc.invert(pa.array(position_mask(dead, rows.num_rows, leaf.location))))
        yield choose(rows, keep)


def position_mask(positions: BitMap64, length: int, where: str) -> npt.NDArray[np.bool_]:
    """A bitmap as one boolean per row of the leaf at ``where``."""
    if len(positions) > 0 and positions.max() >= length:
        raise FormatError(
            f"{where}: a deletion vector has position {positions.max()}, the manifest has only {length} rows",
            location=where,
        )
    mask = np.zeros(length, dtype=np.bool_)
    mask[np.asarray(positions.to_array(), dtype=np.int64)] = True
    return mask


def mark(rows: pa.Table, status: Status) -> pa.Table:
    """The rows with another status."""
    return put(rows, "status", int(status))
