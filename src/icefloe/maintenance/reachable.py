"""Every file that a table's metadata names, at any depth (spec: Snapshots).

From the metadata file: the files of its log, statistics files, and for each snapshot its root, the manifests under it
and the files that these hold. Manifests that snapshots share are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, choose, live, of_type
from icefloe.tree.root import Leaf, leaves_of, read_leaves, read_root

NO_STATISTICS: frozenset[str] = frozenset()
SCHEMA = pa.schema([pa.field("location", pa.string()), pa.field("kind", pa.string())])


class Kind(Enum):
    """What a file is to its table."""

    DATA = "data"
    DELETES = "deletes"
    MANIFEST = "manifest"
    METADATA = "metadata"
    STATISTICS = "statistics"


def reachable_files(base: Base) -> pa.Table:
    """The files of a table by ``location`` and ``kind``, each location once; a file that cannot be read raises."""
    metadata = base.metadata
    logged = [base.pointer, *(entry.metadata_file for entry in metadata.metadata_log)]
    statistics = [
        *(file.statistics_path for file in metadata.statistics),
        *(file.statistics_path for file in metadata.partition_statistics),
    ]
    parts = [_files(logged, Kind.METADATA), _files(statistics, Kind.STATISTICS), *_of_snapshots(base)]
    every = pa.concat_tables(parts)
    first = every.group_by("location", use_threads=False).aggregate([("kind", "first")])
    return first.rename_columns({"kind_first": "kind"}).select(SCHEMA.names)


def _of_snapshots(base: Base) -> Iterator[pa.Table]:
    leaves: dict[str, Leaf] = {}
    for snapshot in base.metadata.snapshots:
        root = read_root(base.store, snapshot)
        yield _files(snapshot.manifests if snapshot.root is None else [snapshot.root], Kind.MANIFEST)
        yield from _entries(root.entries)
        leaves.update({leaf.location: leaf for leaf in leaves_of(root.rows(*MANIFESTS))})
    for rows in read_leaves(base.store, list(leaves.values()), NO_STATISTICS):
        yield from _entries(rows)


def _entries(rows: pa.Table) -> Iterator[pa.Table]:
    """What live rows name; rows that say that a file has left are not what keeps it."""
    rows = choose(rows, live(rows))
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
