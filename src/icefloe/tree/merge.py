"""Fewer, larger leaves, merged in passing by commits of v1-v3 (spec: Manifests).

Each commit of v1-v3 adds a manifest, so they are merged when enough small ones have come together. Leaves of one
partition spec and one kind (data or deletes) are merged in the order they came.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import MANIFESTS, ContentType, Status, concat, live, of_type, put
from icefloe.model.metadata.properties import MERGE_ENABLED, MERGE_MIN_COUNT
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.root import leaves_of, read_leaf
from icefloe.tree.store import ManifestStore


def merge_small(writer: LeafWriter, rows: pa.Table) -> pa.Table:
    """The rows of a root with small manifests merged."""
    if not MERGE_ENABLED.of(writer.properties):
        return rows
    fewest = MERGE_MIN_COUNT.of(writer.properties)
    merged: list[pa.Table] = []
    gone = np.zeros(rows.num_rows, np.bool_)
    for group in _groups(rows):
        for chosen in bins(np.asarray(rows["file_size_in_bytes"])[group], writer.target, fewest):
            places = group[chosen]
            gone[places] = True
            inside = _together(writer.store, rows.take(pa.array(places)), writer.moment.snapshot_id)
            delete = rows["content_type"][int(places[0])].as_py() == ContentType.DELETE_MANIFEST
            merged += writer.merged(inside, delete=delete)
    return rows if len(merged) == 0 else concat([rows.filter(pa.array(~gone)), *merged])


def _groups(rows: pa.Table) -> Iterator[npt.NDArray[np.int64]]:
    """Positions of the manifests that may be merged with each other, in order."""
    manifests = np.asarray(of_type(rows, *MANIFESTS))
    kinds = np.asarray(pc.fill_null(rows["content_type"], -1)).astype(np.int64)
    specs = np.asarray(pc.fill_null(rows["partition_spec_id"], -1)).astype(np.int64)
    for kind, spec in np.unique(np.column_stack([kinds, specs])[manifests], axis=0).tolist():
        yield np.flatnonzero(manifests & (kinds == kind) & (specs == spec))


def bins(sizes: npt.NDArray[np.int64], target: int, fewest: int) -> Iterator[npt.NDArray[np.int64]]:
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
