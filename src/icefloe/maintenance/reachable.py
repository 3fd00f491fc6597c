"""Every file that a table's metadata names, at any depth (spec: Snapshots; V4 proposal).

From the metadata file: the files of its log, statistics files, and for each snapshot its root, the manifests under it
and the files that these hold. Manifests that snapshots share are read once. A row that a manifest deletion vector hides
keeps its file only where another snapshot shows it. What a snapshot took away is kept as far as its root says so by it.
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
    """What a file is to its table."""

    DATA = "data"
    DELETES = "deletes"
    MANIFEST = "manifest"
    METADATA = "metadata"
    STATISTICS = "statistics"


def reachable_files(base: Base, *, hidden: bool = False) -> pa.Table:
    """The files of a table by ``location`` and ``kind``, each location once; a file that cannot be read raises.

    With ``hidden`` also those that manifests name and that no snapshot shows any more.
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
    """The files that a table needed before and no longer needs, as when snapshots of it have expired."""
    old, needed = reachable_files(before), reachable_files(after)
    return old.filter(pc.invert(pc.is_in(old["location"], value_set=needed["location"].combine_chunks())))


def _of_snapshots(base: Base, *, hidden: bool) -> Iterator[pa.Table]:
    leaves: dict[str, Leaf] = {}
    gone: dict[str, BitMap64] = {}  # rows that every snapshot hides
    for snapshot in base.metadata.snapshots:
        root = read_root(base.store, snapshot)
        yield _files(snapshot.manifests if snapshot.root is None else [snapshot.root], Kind.MANIFEST)
        yield from _entries(choose(root.entries, live(root.entries)))
        # A replaced vector tells what its successor hides anew, so it is needed as long as the snapshot is.
        replaced = root.entries.filter(of_type(root.entries, ContentType.MANIFEST_DV))
        yield _files(pc.drop_null(pc.unique(replaced["location"])), Kind.DELETES)
        for leaf in leaves_of(root.rows(*MANIFESTS)):
            dead = BitMap64() if hidden else root.dead.get(leaf.location, BitMap64())
            gone[leaf.location] = gone[leaf.location] & dead if leaf.location in leaves else dead
            leaves[leaf.location] = leaf
    for leaf, rows in zip(leaves.values(), read_leaves(base.store, list(leaves.values()), NO_STATISTICS), strict=True):
        shown = pc.invert(pa.array(position_mask(gone[leaf.location], rows.num_rows, leaf.location)))
        yield from _entries(choose(rows, pc.and_(live(rows), shown)))


def _entries(rows: pa.Table) -> Iterator[pa.Table]:
    """What rows name; those that say that a file has left are not what keeps it."""
    for kind, types in (
        (Kind.DATA, (ContentType.DATA,)),
        (Kind.DELETES, (*DELETES, ContentType.MANIFEST_DV)),
        (Kind.MANIFEST, MANIFESTS),
    ):
        locations = choose(rows, of_type(rows, *types))["location"]
        yield _files(pc.drop_null(pc.unique(locations)), kind)


def _files(locations: Iterable[str] | pa.Array, kind: Kind) -> pa.Table:
    found = locations if isinstance(locations, pa.Array) else pa.array(list(locations), pa.string())
    return pa.table([found, pa.repeat(kind.value, len(found))], schema=SCHEMA)
