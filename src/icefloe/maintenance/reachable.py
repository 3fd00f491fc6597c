"""Lists all files that a table's metadata references (spec: Snapshots; V4 proposal).

These are the files of the metadata log, statistics files, and for each snapshot its root, its manifests and the files
in them. Manifests that snapshots share are read once. An entry that a manifest deletion vector deletes counts only if
it is live in another snapshot. Deletion vectors that a snapshot replaced count too, as its root references them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.base import Base
from icefloe.errors import IcefloeError
from icefloe.maintenance.containment import check_no_alias
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, choose, live, of_type
from icefloe.model.location_columns import Column, is_among
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.tree.root import Leaf, leaves_of, position_mask, read_leaf, read_leaves, read_root
from icefloe.tree.store import NO_STATISTICS

SCHEMA = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("content", pa.int32()),  # the content type of its entry; null for metadata files and roots
    ]
)

_MAX_PARTS = 1_000  # tables of files; with more of them, files that several snapshots have are folded into one row

logger = logging.getLogger(__name__)


class Kind(Enum):
    """The kind of a file of a table."""

    DATA = "data"
    DELETES = "deletes"
    MANIFEST = "manifest"
    METADATA = "metadata"
    STATISTICS = "statistics"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trees:
    """The trees of some snapshots: the files that their roots name, and their leaves."""

    files: list[pa.Table] = field(default_factory=list)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    dead: dict[str, BitMap64] = field(default_factory=dict)  # by leaf: positions that are deleted in every snapshot

    def add_files(self, *parts: pa.Table) -> None:
        """Add files. Memory follows the number of different files, not that of snapshots."""
        self.files.extend(part for part in parts if part.num_rows > 0)
        if len(self.files) > _MAX_PARTS:
            self.files[:] = [_distinct(self.files)]


def reachable_files(base: Base, *, hidden: bool = False) -> pa.Table:
    """The files of a table, with columns ``location``, ``kind``, ``bytes`` and ``content``; each location once.

    ``bytes`` is null where the metadata does not record it. An unreadable manifest raises. With ``hidden``, entries
    that are deleted by manifest deletion vectors in all snapshots are included.
    """
    trees = _read_trees(base, base.metadata.snapshots, hidden=hidden)
    leaves = list(trees.leaves.values())
    rows = zip(leaves, read_leaves(base.store, leaves, NO_STATISTICS), strict=True)
    in_leaves = [part for leaf, entries in rows for part in _leaf_files(leaf, entries, trees.dead[leaf.location])]
    return _distinct([*_of_metadata(base), *trees.files, *in_leaves])


def freed_files(before: Base, after: Base) -> pa.Table:
    """The files that a table referenced before and no longer references, for example after snapshots expired.

    If a file of the state after cannot be read, that is an error. A file of a removed snapshot that cannot be read is
    skipped with a warning: what it references is not freed. It is an error too if a freed file may be a kept one.
    """
    kept_ids = {snapshot.snapshot_id for snapshot in after.metadata.snapshots}
    gone = [snapshot for snapshot in before.metadata.snapshots if snapshot.snapshot_id not in kept_ids]
    kept = _read_trees(after, after.metadata.snapshots)
    leaves = list(kept.leaves.values())
    rows = zip(leaves, read_leaves(after.store, leaves, NO_STATISTICS), strict=True)
    in_leaves = [part for leaf, entries in rows for part in _leaf_files(leaf, entries, kept.dead[leaf.location])]
    new = _distinct([*_of_metadata(after), *kept.files, *in_leaves])
    candidates = [*_of_metadata(before)]
    trees = _Trees()
    for snapshot in gone:
        try:
            _add_tree(before, snapshot, trees, hidden=False)
        except IcefloeError as error:
            logger.warning("the files of snapshot %d are not freed: %s", snapshot.snapshot_id, error)
    candidates += trees.files
    for location, leaf in trees.leaves.items():
        still = kept.dead.get(location)
        if still is not None and len(still - trees.dead[location]) == 0:
            continue  # all that it has there is live in a retained snapshot
        try:
            entries = read_leaf(before.store, leaf, NO_STATISTICS)
            candidates += _leaf_files(leaf, entries, trees.dead[location])
        except IcefloeError as error:
            logger.warning("the files of manifest %s are not freed: %s", location, error)
    old = _distinct(candidates)
    freed = old.filter(pc.invert(is_among(old["location"], new["location"], after.metadata.location)))
    check_no_alias(freed["location"], new["location"], after.metadata.location)
    return freed


def _of_metadata(base: Base) -> Iterator[pa.Table]:
    """The metadata files and the statistics files."""
    metadata = base.metadata
    logged = [base.pointer, *(entry.metadata_file for entry in metadata.metadata_log)]
    yield _files(logged, Kind.METADATA)
    for files in (metadata.statistics, metadata.partition_statistics):
        sizes = pa.array([file.file_size_in_bytes for file in files], pa.int64())
        yield _files([file.statistics_path for file in files], Kind.STATISTICS, sizes)


def _read_trees(base: Base, snapshots: Iterable[Snapshot], *, hidden: bool = False) -> _Trees:
    trees = _Trees()
    for snapshot in snapshots:
        _add_tree(base, snapshot, trees, hidden=hidden)
    return trees


def _add_tree(base: Base, snapshot: Snapshot, trees: _Trees, *, hidden: bool) -> None:
    """Add the root of a snapshot; nothing is added if it cannot be read."""
    root = read_root(base.store, snapshot)
    # A replaced vector is needed while the snapshot exists: it shows which entries the new vector deletes.
    replaced = root.entries.filter(of_type(root.entries, ContentType.MANIFEST_DV))
    manifests = root.rows(*MANIFESTS)
    locations = manifests["location"].to_pylist()
    own = {location: BitMap64() if hidden else root.dead.get(location, BitMap64()) for location in locations}
    new = manifests.filter(pa.array([location not in trees.leaves for location in locations], pa.bool_()))
    trees.add_files(
        _files(snapshot.manifests if snapshot.root is None else [snapshot.root], Kind.MANIFEST),
        *_entries(root.rows(ContentType.DATA, *DELETES, ContentType.MANIFEST_DV)),
        _of_rows(replaced, Kind.DELETES),
        _of_rows(new, Kind.MANIFEST),
    )
    for location, dead in own.items():
        trees.dead[location] = trees.dead[location] & dead if location in trees.leaves else dead
    trees.leaves.update((leaf.location, leaf) for leaf in leaves_of(new))


def _leaf_files(leaf: Leaf, rows: pa.Table, dead: BitMap64) -> list[pa.Table]:
    is_kept = pc.invert(pa.array(position_mask(dead, rows.num_rows, leaf.location)))
    return list(_entries(choose(rows, pc.and_(live(rows), is_kept))))


def _entries(rows: pa.Table) -> Iterator[pa.Table]:
    """The files of live entries, by kind."""
    for kind, types in (
        (Kind.DATA, (ContentType.DATA,)),
        (Kind.DELETES, (*DELETES, ContentType.MANIFEST_DV)),
        (Kind.MANIFEST, MANIFESTS),
    ):
        yield _of_rows(choose(rows, of_type(rows, *types)), kind)


def _of_rows(rows: pa.Table, kind: Kind) -> pa.Table:
    rows = rows.select(["location", "file_size_in_bytes", "content_type"]).filter(pc.is_valid(rows["location"]))
    return _files(rows["location"], kind, rows["file_size_in_bytes"], rows["content_type"])


def _files(
    locations: Iterable[str] | pa.ChunkedArray,
    kind: Kind,
    sizes: Column | None = None,
    content: Column | None = None,
) -> pa.Table:
    column = locations if isinstance(locations, pa.ChunkedArray) else pa.array(list(locations), pa.string())
    sizes = pa.nulls(len(column), pa.int64()) if sizes is None else sizes
    content = pa.nulls(len(column), pa.int32()) if content is None else content
    return pa.table([column, pa.repeat(kind.value, len(column)), sizes, content], schema=SCHEMA)


def _distinct(parts: Iterable[pa.Table]) -> pa.Table:
    """Each location once, with its first kind and its size."""
    every = pa.concat_tables([SCHEMA.empty_table(), *parts])
    measures = [("kind", "first"), ("bytes", "max"), ("content", "min")]
    grouped = every.group_by("location", use_threads=False).aggregate(measures)
    names = {"kind_first": "kind", "bytes_max": "bytes", "content_min": "content"}
    return grouped.rename_columns(names).select(SCHEMA.names)


def bytes_of(files: pa.Table) -> int:
    """The bytes of files together, as far as their sizes are known."""
    return int(pc.sum(files["bytes"], min_count=0).as_py())
