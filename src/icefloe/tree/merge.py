"""Fewer, larger leaves: merged in passing by commits of v1-v3, or all written again (spec: Manifests).

Each commit of v1-v3 adds a manifest, so they are merged when enough small ones have come together. Leaves of one
partition spec and one kind (data or deletes) are merged in the order they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import (
    MANIFESTS,
    ContentType,
    Status,
    choose,
    concat,
    live,
    of_type,
    partition_key,
    put,
    stat,
)
from icefloe.model.properties import MERGE_ENABLED, MERGE_MIN_COUNT, MERGE_TARGET_SIZE
from icefloe.tree.root import Root, leaves_of, live_rows, mark, read_leaf
from icefloe.tree.staging import NewLeaf, Staging
from icefloe.tree.store import ManifestStore

Describe = Callable[[NewLeaf, Status], pa.Table]


def merge_small(
    store: ManifestStore,
    rows: pa.Table,
    snapshot_id: int,
    staging: Staging,
    properties: Mapping[str, str],
    describe: Describe,
) -> pa.Table:
    """The rows of a root with small manifests merged; ``describe`` gives the root row of a leaf."""
    if not MERGE_ENABLED.of(properties):
        return rows
    fewest, target = MERGE_MIN_COUNT.of(properties), MERGE_TARGET_SIZE.of(properties)
    merged: list[pa.Table] = []
    gone = np.zeros(rows.num_rows, np.bool_)
    for group in _groups(rows):
        for chosen in _bins(np.asarray(rows["file_size_in_bytes"])[group], target, fewest):
            places = group[chosen]
            gone[places] = True
            inside = _together(store, rows.take(pa.array(places)), snapshot_id)
            delete = rows["content_type"][int(places[0])].as_py() == ContentType.DELETE_MANIFEST
            leaves = staging.write_leaves(store, inside, delete=delete)
            merged += [describe(leaf, Status.ADDED) for leaf in leaves]
    return rows if len(merged) == 0 else concat([rows.filter(pa.array(~gone)), *merged])


def _groups(rows: pa.Table) -> Iterator[npt.NDArray[np.int64]]:
    """Positions of the manifests that may be merged with each other, in order."""
    manifests = np.asarray(of_type(rows, *MANIFESTS))
    kinds = np.asarray(pc.fill_null(rows["content_type"], -1)).astype(np.int64)
    specs = np.asarray(pc.fill_null(rows["partition_spec_id"], -1)).astype(np.int64)
    for kind, spec in np.unique(np.column_stack([kinds, specs])[manifests], axis=0).tolist():
        yield np.flatnonzero(manifests & (kinds == kind) & (specs == spec))


def _bins(sizes: npt.NDArray[np.int64], target: int, fewest: int) -> Iterator[npt.NDArray[np.int64]]:
    """Neighbours to merge, as positions: each bin as large as the target allows, the newest only if it is worth it."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start > 0 else 0
        stop = max(int(np.searchsorted(ends, before + target, side="right")), start + 1)
        newest = stop == len(sizes)
        if stop - start > 1 and (not newest or stop - start >= fewest):
            yield np.arange(start, stop)
        start = stop


def _together(store: ManifestStore, manifests: pa.Table, snapshot_id: int) -> pa.Table:
    """The entries of several leaves: what is live, and what this snapshot removed."""
    rows = concat([read_leaf(store, leaf) for leaf in leaves_of(manifests)])
    own = pc.equal(rows["snapshot_id"], snapshot_id)
    rows = rows.filter(pc.or_(live(rows), own))
    own = pc.equal(rows["snapshot_id"], snapshot_id)
    return put(rows, "status", pc.if_else(own, rows["status"], pa.scalar(int(Status.EXISTING), pa.int32())))


def rewrite_leaves(
    store: ManifestStore, root: Root, staging: Staging, properties: Mapping[str, str], describe: Describe
) -> pa.Table:
    """The rows of a root whose leaves are written again, sorted by partition and of the size the table asks for."""
    target = MERGE_TARGET_SIZE.of(properties)
    kept = choose(root.entries, live(root.entries))
    leaving = of_type(kept, *MANIFESTS, ContentType.MANIFEST_DV)
    manifests = kept.filter(of_type(kept, *MANIFESTS))
    written: list[pa.Table] = []
    for group in _groups(manifests):
        chosen = manifests.take(pa.array(group))
        inside = concat([live_rows(store, root, leaf) for leaf in leaves_of(chosen)])
        inside = _by_partition(mark(inside, Status.EXISTING), store)
        parts = max(1, -(-int(pc.sum(chosen["file_size_in_bytes"]).as_py()) // target))
        size = max(1, -(-inside.num_rows // parts))
        delete = chosen["content_type"][0].as_py() == ContentType.DELETE_MANIFEST
        for start in range(0, inside.num_rows, size):
            leaves = staging.write_leaves(store, inside.slice(start, size), delete=delete)
            written += [describe(leaf, Status.ADDED) for leaf in leaves]
    rest = mark(kept.filter(pc.invert(leaving)), Status.EXISTING)
    return concat([rest, *written])


def _by_partition(rows: pa.Table, store: ManifestStore) -> pa.Table:
    keys = (stat("lower_bound", partition_key(field_id)) for field_id in store.context.partition_fields)
    order = [(key, "ascending") for key in keys if key in rows.column_names]
    return rows if len(order) == 0 else rows.sort_by(order)
