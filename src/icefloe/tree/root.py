"""Reads the root and the leaves of a snapshot, with inheritance and manifest deletion vectors applied.

All format versions have the same form: a manifest list of versions 1 to 3 is a root whose rows are all manifests, and a
manifest of these versions is a leaf.

Rows inherit snapshot ids, sequence numbers and row ids (spec: Sequence Number Inheritance; V4 proposal). Nulls are
filled in all rows of a manifest, before its deletion vector is applied: the removal of a file must not change the row
ids of the files after it.
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
from icefloe.model.entries import (
    DELETES,
    MANIFESTS,
    ContentType,
    StatKeys,
    Status,
    choose,
    concat,
    empty,
    live,
    of_status,
    of_type,
    put,
)
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.version_rules import CONTENT_ENTRY_VERSIONS, is_manifest_list
from icefloe.tree.manifest_vectors import ManifestVectors, manifest_vectors
from icefloe.tree.new_snapshot import consecutive
from icefloe.tree.root_checks import check_root
from icefloe.tree.store import LeafRequest, ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A manifest, as its root row describes it."""

    location: str
    content: ContentType  # DATA_MANIFEST or DELETE_MANIFEST
    snapshot_id: int
    sequence_number: int
    spec_id: int
    record_count: int | None  # rows of every status; null in some lists of version 1, and inexact before V4
    live_count: int | None  # rows that were live when the leaf was written
    first_row_id: int | None
    affinity: str | None  # the data leaf that the vectors of a delete leaf belong to
    size: int | None = None  # of the file, in bytes
    format_version: int | None = None  # in which it was written; null in manifest lists

    @property
    def is_data(self) -> bool:
        """Whether it lists data files, not deletes."""
        return self.content is ContentType.DATA_MANIFEST

    def request(self, wanted: StatKeys | None = None) -> LeafRequest:
        """The request to read the leaf with at least the wanted statistics."""
        return LeafRequest(
            location=self.location, content=self.content, spec_id=self.spec_id, size=self.size, wanted=wanted
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The rows of a root; ``dead`` has the positions that manifest deletion vectors delete, by leaf location.

    A vector is read on first use.
    """

    entries: pa.Table = field(default_factory=empty)
    dead: ManifestVectors = field(default_factory=ManifestVectors.none)

    def rows(self, *types: ContentType) -> pa.Table:
        """Live rows of these content types."""
        return choose(self.entries, pc.and_(live(self.entries), of_type(self.entries, *types)))

    def leaves(self, *types: ContentType) -> tuple[Leaf, ...]:
        """Live manifests of these content types that have live rows."""
        return tuple(leaf for leaf in leaves_of(self.rows(*types)) if not self.is_dead(leaf))

    def is_dead(self, leaf: Leaf) -> bool:
        """Whether all rows of a leaf are dead."""
        if leaf.live_count is None or self.dead.count(leaf.location) < leaf.live_count:
            return False
        # A wrong count must not make files disappear, so the vector itself is read.
        return leaf.live_count == 0 or len(self.dead[leaf.location]) >= leaf.live_count

    @property
    def has_deletes(self) -> bool:
        """Whether there are live deletes, in the root or in its leaves; leaves are not read."""
        return self.rows(*DELETES).num_rows > 0 or len(self.leaves(ContentType.DELETE_MANIFEST)) > 0

    def are_dead(self, rows: pa.Table) -> pa.ChunkedArray:
        """Which rows are manifests without live rows; ``is_dead`` for all rows at once."""
        leaves, counts = self.dead.counts
        if len(leaves) == 0:
            dead_counts: object = 0
        else:
            index = pc.index_in(rows["location"], value_set=leaves.combine_chunks())
            dead_counts = pc.fill_null(pc.take(counts, index), 0)
        live_counts = pc.subtract(pc.add(rows["added_files_count"], rows["existing_files_count"]), dead_counts)
        are_dead = pc.and_(of_type(rows, *MANIFESTS), pc.fill_null(pc.less_equal(live_counts, 0), False))
        for leaf in rows["location"].filter(are_dead).to_pylist():
            if leaf in self.dead:
                self.dead[leaf]  # checks that the vector has as many positions as its root row records
        return are_dead


def leaves_of(rows: pa.Table) -> Iterator[Leaf]:
    """Root rows of manifests as values."""
    names = ("location", "snapshot_id", "sequence_number", "partition_spec_id", "record_count", "first_row_id")
    more = ("content_type", "added_files_count", "existing_files_count", "referenced_file", "file_size_in_bytes")
    for row in rows.select([*names, *more, "format_version"]).to_pylist():
        yield Leaf(
            location=row["location"],
            content=ContentType(row["content_type"]),
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
    """The root of a snapshot; an empty root if there is no snapshot."""
    if snapshot is None:
        return Root()
    if snapshot.root is None:
        return Root(entries=_named_manifests(store, snapshot))
    where = snapshot.root
    # A manifest list has the first row id of each manifest; if it is null, the files have no row ids (v3).
    is_list = is_manifest_list(where, store.context.format_version)
    rows = inherit(
        store.root(where),
        where=where,
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=None if is_list else snapshot.first_row_id,
    )
    if is_list:
        return Root(entries=rows)
    check_root(rows, where)
    return Root(entries=rows, dead=manifest_vectors(store, rows, where, Status.EXISTING, Status.ADDED))


def _named_manifests(store: ManifestStore, snapshot: Snapshot) -> pa.Table:
    """The rows that a manifest list would have, for a v1 snapshot without a list (spec: Snapshots).

    The manifests are read, as only they record their partition spec, their counts and who wrote them. One without files
    has no row.
    """
    requests = [LeafRequest(location=location, content=ContentType.DATA_MANIFEST) for location in snapshot.manifests]
    named: list[pa.Table] = []
    for request, rows in zip(requests, store.leaves(requests), strict=True):
        if rows.num_rows > 0:
            rows = inherit(rows, where=request.location, snapshot_id=snapshot.snapshot_id, sequence_number=0)
            row = manifest_row(
                rows,
                store.context,
                location=request.location,
                size=store.io.size(request.location),
                content=request.content,
                status=Status.EXISTING,
                snapshot_id=_writer(rows, snapshot),
                sequence_number=0,
            )
            named.append(put(put(row, "file_format", "avro"), "format_version", rows["format_version"][0].as_py()))
    rows = concat(named)
    return put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))


def _writer(rows: pa.Table, snapshot: Snapshot) -> int:
    """The snapshot that wrote a manifest: that of its entries that are new or removed there, if it has any."""
    changed = choose(rows, pc.invert(of_status(rows, Status.EXISTING)))
    return snapshot.snapshot_id if changed.num_rows == 0 else int(changed["snapshot_id"][0].as_py())


def read_leaf(store: ManifestStore, leaf: Leaf, wanted: StatKeys | None = None) -> pa.Table:
    """All rows of a leaf, of any status, with inherited values and at least the wanted statistics."""
    (rows,) = read_leaves(store, [leaf], wanted)
    return rows


def read_leaves(store: ManifestStore, leaves: Sequence[Leaf], wanted: StatKeys | None = None) -> Iterator[pa.Table]:
    """All rows of several leaves in order, as ``read_leaf`` returns them; the next leaves are read ahead."""
    requests = [leaf.request(wanted) for leaf in leaves]
    for leaf, rows in zip(leaves, store.leaves(requests), strict=True):
        # Before V4 the counts may be wrong: some writers miscounted removed entries, and other readers ignore that.
        expected = leaf.record_count if leaf.format_version in CONTENT_ENTRY_VERSIONS else None
        if expected is not None and rows.num_rows != expected:
            raise FormatError(
                f"{leaf.location}: has {rows.num_rows} rows, its root says {expected}", location=leaf.location
            )
        yield inherit(
            rows,
            where=leaf.location,
            snapshot_id=leaf.snapshot_id,
            sequence_number=leaf.sequence_number,
            first_row_id=leaf.first_row_id,
        )


def read_live_leaf(store: ManifestStore, root: Root, leaf: Leaf, wanted: StatKeys | None = None) -> pa.Table:
    """The live rows of a leaf."""
    (rows,) = read_live_leaves(store, root, [leaf], wanted)
    return rows


def read_live_leaves(
    store: ManifestStore, root: Root, leaves: Sequence[Leaf], wanted: StatKeys | None = None
) -> Iterator[pa.Table]:
    """The live rows of several leaves, in order; the next leaves are read ahead."""
    for leaf, rows in zip(leaves, read_leaves(store, leaves, wanted), strict=True):
        is_live = live(rows)
        dead = root.dead.get(leaf.location)
        if dead is not None:
            is_live = pc.and_(is_live, pc.invert(pa.array(position_mask(dead, rows.num_rows, leaf.location))))
        yield choose(rows, is_live)


def live_files(
    store: ManifestStore, root: Root, leaves: Sequence[Leaf], *types: ContentType, wanted: StatKeys | None = None
) -> pa.Table:
    """The live entries of the root with these content types, and those of some leaves, with column ``manifest``."""
    parts = [with_manifest(root.rows(*types), None)]
    parts += map(with_manifest, read_live_leaves(store, root, leaves, wanted), leaves)
    return concat(parts)


def with_manifest(rows: pa.Table, leaf: Leaf | None) -> pa.Table:
    """The rows with column ``manifest``: the leaf that lists them, null for rows of the root."""
    manifest = pa.nulls(rows.num_rows, pa.string()) if leaf is None else pa.repeat(leaf.location, rows.num_rows)
    return rows.append_column(pa.field("manifest", pa.string()), manifest)


def position_mask(positions: BitMap64, length: int, where: str) -> npt.NDArray[np.bool_]:
    """A bitmap as one boolean for each row of the leaf at ``where``."""
    if len(positions) > 0 and positions.max() >= length:
        raise FormatError(
            f"{where}: a deletion vector has position {positions.max()}, the manifest has only {length} rows",
            location=where,
        )
    mask = np.zeros(length, dtype=np.bool_)
    mask[np.asarray(positions.to_array(), dtype=np.int64)] = True
    return mask


def with_status(rows: pa.Table, status: Status) -> pa.Table:
    """The rows, all with this status."""
    return put(rows, "status", int(status))


def inherit(
    table: pa.Table, *, where: str, snapshot_id: int | None, sequence_number: int, first_row_id: int | None = None
) -> pa.Table:
    """The rows with inherited values: those of a root from its snapshot, those of a leaf from its root row."""
    if snapshot_id is not None and table["snapshot_id"].null_count > 0:
        table = put(table, "snapshot_id", pc.fill_null(table["snapshot_id"], snapshot_id))
    table = _inherit_sequences(table, where, sequence_number)
    return table if first_row_id is None else _assign_row_ids(table, first_row_id)


def _inherit_sequences(table: pa.Table, where: str, sequence_number: int) -> pa.Table:
    """The rows with inherited sequence numbers; others stay null.

    Apache Iceberg before 1.1 wrote no file sequence numbers for entries that were not new, and no sequence numbers for
    removed entries. The data sequence number of a live file is required, as it decides which deletes apply to it.
    """
    names = [name for name in ("sequence_number", "file_sequence_number") if table[name].null_count > 0]
    if len(names) == 0:
        return table
    # A manifest with sequence number 0 was written in version 1: its rows have no numbers, and all inherit 0.
    may_inherit = pa.scalar(True) if sequence_number == 0 else of_status(table, Status.ADDED)
    if "sequence_number" in names:
        missing = pc.is_null(table["sequence_number"])
        wrong = pc.index(pc.and_(pc.and_(missing, live(table)), pc.invert(may_inherit)), True).as_py()
        if wrong >= 0:
            raise FormatError(
                f"{where}: row {wrong}: sequence_number is null, which only an ADDED entry may inherit",
                location=where,
                row=wrong,
            )
    inherited = pc.if_else(may_inherit, pa.scalar(sequence_number, pa.int64()), pa.scalar(None, pa.int64()))
    for name in names:
        table = put(table, name, pc.coalesce(table[name], inherited))
    return table


def _assign_row_ids(table: pa.Table, first_row_id: int) -> pa.Table:
    """The rows with first row ids for live data files and manifests that have none, in row order.

    The ids after a file with an unknown row count are unknown.
    """
    if table["first_row_id"].null_count == 0:
        return table
    has_rows = of_type(table, ContentType.DATA, ContentType.DATA_MANIFEST)
    missing = pc.and_(pc.and_(live(table), has_rows), pc.is_null(table["first_row_id"]))
    if pc.any(missing).as_py() is not True:
        return table
    is_missing = np.asarray(missing)
    counts = _row_counts(table)
    starts = consecutive(first_row_id, np.where(is_missing, np.asarray(pc.fill_null(counts, 0)), 0))
    unknown = np.cumsum(is_missing & np.asarray(pc.is_null(counts))) > 0
    after_unknown = np.concatenate(([False], unknown[:-1]))
    ids = pc.if_else(missing, pa.array(starts, pa.int64(), mask=after_unknown), table["first_row_id"])
    return put(table, "first_row_id", ids)


def _row_counts(table: pa.Table) -> pa.ChunkedArray:
    """The number of data rows of each entry, null if unknown; the record_count of a manifest counts its entries."""
    in_manifest = pc.add(table["added_rows_count"], table["existing_rows_count"])
    return pc.if_else(of_type(table, ContentType.DATA_MANIFEST), pc.fill_null(in_manifest, 0), table["record_count"])
