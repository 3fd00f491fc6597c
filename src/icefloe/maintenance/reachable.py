"""Lists all files that a table's metadata references (spec: Snapshots; V4 proposal).

These are the files of the metadata log, statistics files, and for each snapshot its root, its manifests and the files
in them. Manifests that snapshots share are read once. An entry that a manifest deletion vector deletes counts only if
it is live in another snapshot. Deletion vectors that a snapshot replaced count too, as its root references them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.base import Base
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, choose, live, of_type
from icefloe.tree.root import Leaf, leaves_of, position_mask, read_leaves, read_root
from icefloe.tree.store import NO_STATISTICS

SCHEMA = pa.schema([pa.field("location", pa.string()), pa.field("kind", pa.string())])


class Kind(Enum):
    """The kind of a file of a table."""

    DATA = "data"
    DELETES = "deletes"
    MANIFEST = "manifest"
    METADATA = "metadata"
    STATISTICS = "statistics"


def reachable_files(base: Base, *, hidden: bool = False) -> pa.Table:
    """The files of a table, with columns ``location`` and ``kind``, each location once; an unreadable manifest raises.

    With ``hidden``, entries that are deleted by manifest deletion vectors in all snapshots are included.
    """
    metadata = base.metadata
    logged = [base.pointer, *(entry.metadata_file for entry in metadata.metadata_log)]
    statistics = [
        *(file.statistics_path for file in metadata.statistics),
        *(file.statistics_path for file in metadata.partition_statistics),
    ]
    parts = [_files(logged, Kind.METADATA), _files(statistics, Kind.STATISTICS), *_of_snapshots(base, hidden=hidden)]
    every = pa.concat_tables(parts)
    first = every.group_by("location", use_threads=False).aggregate([("kind", "first")])
    return first.rename_columns({"kind_first": "kind"}).select(SCHEMA.names)


def freed_files(before: Base, after: Base) -> pa.Table:
    """The files that a table referenced before and no longer references, for example after snapshots expired."""
    old, new = reachable_files(before), reachable_files(after)
    return old.filter(pc.invert(pc.is_in(old["location"], value_set=new["location"].combine_chunks())))


def _of_snapshots(base: Base, *, hidden: bool) -> Iterator[pa.Table]:
    leaves: dict[str, Leaf] = {}
    dead: dict[str, BitMap64] = {}  # by leaf: positions that are deleted in every snapshot
    for snapshot in base.metadata.snapshots:
        root = read_root(base.store, snapshot)
        yield _files(snapshot.manifests if snapshot.root is None else [snapshot.root], Kind.MANIFEST)
        yield from _entries(choose(root.entries, live(root.entries)))
        # A replaced vector is needed while the snapshot exists: it shows which entries the new vector deletes.
        replaced = root.entries.filter(of_type(root.entries, ContentType.MANIFEST_DV))
        yield _files(pc.drop_null(pc.unique(replaced["location"])), Kind.DELETES)
        for leaf in leaves_of(root.rows(*MANIFESTS)):
            own = BitMap64() if hidden else root.dead.get(leaf.location, BitMap64())
            dead[leaf.location] = dead[leaf.location] & own if leaf.location in leaves else own
            leaves[leaf.location] = leaf
    for leaf, rows in zip(leaves.values(), read_leaves(base.store, list(leaves.values()), NO_STATISTICS), strict=True):
        is_kept = pc.invert(pa.array(position_mask(dead[leaf.location], rows.num_rows, leaf.location)))
        yield from _entries(choose(rows, pc.and_(live(rows), is_kept)))


def _entries(rows: pa.Table) -> Iterator[pa.Table]:
    """The files of live entries, by kind."""
    for kind, types in (
        (Kind.DATA, (ContentType.DATA,)),
        (Kind.DELETES, (*DELETES, ContentType.MANIFEST_DV)),
        (Kind.MANIFEST, MANIFESTS),
    ):
        locations = choose(rows, of_type(rows, *types))["location"]
        yield _files(pc.drop_null(pc.unique(locations)), kind)


def _files(locations: Iterable[str] | pa.Array, kind: Kind) -> pa.Table:
    column = locations if isinstance(locations, pa.Array) else pa.array(list(locations), pa.string())
    return pa.table([column, pa.repeat(kind.value, len(column))], schema=SCHEMA)
