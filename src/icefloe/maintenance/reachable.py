"""Lists all files that a table's metadata references (spec: Snapshots; V4 proposal).

These are the files of the metadata log, statistics files, and for each snapshot its root, its manifests and the files
in them. Manifests that snapshots share are read once. An entry that a manifest deletion vector deletes counts only if
it is live in another snapshot. Deletion vectors that a snapshot replaced count too, as its root references them.

An inline manifest deletion vector may have a location all the same, which the proposal requires. It is not a file of
the table: nothing frees or purges it, but it is no orphan either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.base import Base, TablePointer
from icefloe.engines.engine import Engine
from icefloe.engines.file_sets import (
    DistinctFiles,
    Kind,
    LeafFiles,
    ReferencedFiles,
    distinct_files,
    entry_files,
    files_at,
    named_files,
)
from icefloe.errors import IcefloeError, NoSuchFile
from icefloe.maintenance.containment import check_no_alias
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, of_type
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.tree.root import Leaf, leaves_of, read_root

_T = TypeVar("_T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trees:
    """The trees of some snapshots: the files that their roots name, and their leaves."""

    files: DistinctFiles = field(default_factory=DistinctFiles)
    unused: DistinctFiles = field(default_factory=DistinctFiles)  # locations of inline vectors
    leaves: dict[str, Leaf] = field(default_factory=dict)
    dead: dict[str, BitMap64] = field(default_factory=dict)  # by leaf: positions that are deleted in every snapshot

    def referenced(
        self, base: Base, metadata_files: Iterable[pa.Table], *, skip_unreadable: bool, kept: bool
    ) -> ReferencedFiles:
        """The files of the trees, with metadata files; if they are ``kept``, with the locations of inline vectors."""
        unused = [self.unused.all()] if kept else []
        return ReferencedFiles(
            store=base.store,
            table_location=base.metadata.location,
            files=distinct_files([*metadata_files, self.files.all(), *unused]),
            leaves=tuple(LeafFiles(leaf=leaf, dead=self.dead[name]) for name, leaf in self.leaves.items()),
            skip_unreadable=skip_unreadable,
        )


def reachable_files(base: Base, *, hidden: bool = False) -> pa.Table:
    """The files of a table, with columns ``location``, ``kind``, ``bytes`` and ``content``; each location once.

    ``bytes`` is null where the metadata does not record it. An unreadable manifest raises. With ``hidden``, entries
    that are deleted by manifest deletion vectors in all snapshots are included.
    """
    return _referenced(base, hidden=hidden, kept=False).read()[0]


def referenced_files(base: Base, *, hidden: bool = False) -> ReferencedFiles:
    """The files of a table that must be kept, as a set whose leaves are not read yet."""
    return _referenced(base, hidden=hidden, kept=True)


def _referenced(base: Base, *, hidden: bool, kept: bool) -> ReferencedFiles:
    trees = _read_trees(base, base.metadata.snapshots, hidden=hidden)
    return trees.referenced(base, _of_metadata(base), skip_unreadable=False, kept=kept)


def on_newest(table: TablePointer, work: Callable[[Base], _T]) -> _T:
    """Do work that reads all snapshots of the newest state; again on a newer one, if expiry deleted what it reads."""
    while True:
        base = table.load()
        try:
            return work(base)
        except NoSuchFile as error:
            if table.load().pointer == base.pointer:
                raise
            logger.info("table %s has changed while it was read, so it is read again: %s", table, error)


def freed_files(before: Base, after: Base, engine: Engine) -> tuple[pa.Table, tuple[str, ...]]:
    """The files that a table referenced before and no longer references, and why these may not be all.

    If a file of the state after cannot be read, that is an error. A file of a removed snapshot that cannot be read is
    skipped: what it references is not freed. It is an error too if a freed file may be a kept one.
    """
    kept_ids = {snapshot.snapshot_id for snapshot in after.metadata.snapshots}
    kept = _read_trees(after, after.metadata.snapshots)
    trees, problems = _Trees(), []
    for snapshot in before.metadata.snapshots:
        if snapshot.snapshot_id in kept_ids:
            continue
        try:
            _add_tree(before, snapshot, trees, hidden=False)
        except IcefloeError as error:
            problems.append(f"the files of snapshot {snapshot.snapshot_id} are not freed: {error}")
    for location in trees.leaves.keys() & kept.leaves.keys():
        if len(kept.dead[location] - trees.dead[location]) == 0:
            del trees.leaves[location]  # all that it has there is live in a retained snapshot
    freed = engine.file_sets.subtract(
        trees.referenced(before, _of_metadata(before), skip_unreadable=True, kept=False),
        kept.referenced(after, _of_metadata(after), skip_unreadable=False, kept=True),
    )
    check_no_alias(freed, after.metadata.location)
    return freed.files, (*problems, *freed.problems)


def _of_metadata(base: Base) -> Iterator[pa.Table]:
    """The metadata files and the statistics files."""
    metadata = base.metadata
    logged = [base.pointer, *(entry.metadata_file for entry in metadata.metadata_log)]
    yield files_at(logged, Kind.METADATA)
    files = metadata.statistics_files
    sizes = pa.array([file.file_size_in_bytes for file in files], pa.int64())
    yield files_at([file.statistics_path for file in files], Kind.STATISTICS, sizes)


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
    roots = snapshot.manifests if snapshot.root is None else [snapshot.root]
    trees.files.add(
        pa.concat_tables(
            [
                files_at(roots, Kind.MANIFEST),
                entry_files(root.rows(ContentType.DATA, *DELETES, ContentType.MANIFEST_DV)),
                named_files(replaced, Kind.DELETES),
                named_files(new, Kind.MANIFEST),
            ]
        )
    )
    inline = replaced.filter(pc.and_(pc.is_valid(replaced["dv_inline_content"]), pc.is_valid(replaced["location"])))
    if inline.num_rows > 0:
        trees.unused.add(files_at(inline["location"], Kind.DELETES))
    for location, dead in own.items():
        trees.dead[location] = trees.dead[location] & dead if location in trees.leaves else dead
    trees.leaves.update((leaf.location, leaf) for leaf in leaves_of(new))
