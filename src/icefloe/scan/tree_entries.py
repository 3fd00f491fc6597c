"""The entries in the trees of snapshots as one table, for all format versions (spec: Manifests; V4 proposal)."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyroaring import BitMap64

from icefloe.model.entries import DELETES, ContentType, StatKeys, Status, choose, concat, live, of_type, put_where
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.tree.root import Leaf, leaves_of, position_mask, read_leaves, read_root
from icefloe.tree.store import ManifestStore

FILES = (ContentType.DATA, *DELETES)


def tree_entries(
    store: ManifestStore,
    snapshots: Iterable[Snapshot],
    types: tuple[ContentType, ...] = FILES,
    wanted: StatKeys | None = None,
) -> pa.Table:
    """The entries of files of these content types, of every status: those of roots first, then those of leaves.

    Leaves that snapshots share are read once. An entry that manifest deletion vectors remove from all of the snapshots
    has the status DELETED. Rows have at least the ``wanted`` statistics.
    """
    parts: list[pa.Table] = []
    leaves: dict[str, Leaf] = {}
    dead: dict[str, BitMap64] = {}  # by leaf: positions that are removed from every snapshot
    for snapshot in snapshots:
        root = read_root(store, snapshot)
        parts.append(choose(root.entries, of_type(root.entries, *types)))
        for leaf in leaves_of(root.rows(*_manifests(types))):
            own = root.dead.get(leaf.location, BitMap64())
            dead[leaf.location] = dead[leaf.location] & own if leaf.location in leaves else own
            leaves[leaf.location] = leaf
    for leaf, rows in zip(leaves.values(), read_leaves(store, list(leaves.values()), wanted), strict=True):
        is_removed = pa.array(position_mask(dead[leaf.location], rows.num_rows, leaf.location))
        rows = put_where(rows, is_removed, status=int(Status.DELETED))
        parts.append(choose(rows, of_type(rows, *types)))
    return concat(parts).combine_chunks()


def live_entries(
    store: ManifestStore,
    snapshots: Iterable[Snapshot],
    types: tuple[ContentType, ...] = FILES,
    wanted: StatKeys | None = None,
) -> pa.Table:
    """The entries that are part of at least one of the snapshots."""
    rows = tree_entries(store, snapshots, types, wanted)
    return choose(rows, live(rows)).combine_chunks()


def _manifests(types: tuple[ContentType, ...]) -> tuple[ContentType, ...]:
    """The kinds of manifests that list files of these content types."""
    data = (ContentType.DATA_MANIFEST,) if ContentType.DATA in types else ()
    return (*data, ContentType.DELETE_MANIFEST) if any(kind in types for kind in DELETES) else data
