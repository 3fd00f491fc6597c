"""Merges small manifests of format versions 1 to 3, as part of ordinary commits (spec: Manifests).

Each commit of these versions adds a manifest. If there are enough small ones, they are merged, in the order in which
they were added. Only manifests of one partition spec and one content type (data or deletes) are merged with each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import MANIFESTS, ContentType, Status, concat, live, of_type, put_where
from icefloe.model.metadata.properties import MERGE_ENABLED, MERGE_MIN_COUNT
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.root import leaves_of, read_leaf
from icefloe.tree.store import ManifestStore


def merge_small(writer: LeafWriter, rows: pa.Table) -> pa.Table:
    """The rows of a root, with small manifests merged."""
    if not MERGE_ENABLED.of(writer.properties):
        return rows
    min_count = MERGE_MIN_COUNT.of(writer.properties)
    written: list[pa.Table] = []
    merged = np.zeros(rows.num_rows, np.bool_)
    for group in _groups(rows):
        for positions in bins(np.asarray(rows["file_size_in_bytes"])[group], writer.target, min_count):
            indexes = group[positions]
            merged[indexes] = True
            entries = _entries(writer.store, rows.take(pa.array(indexes)), writer.identity.snapshot_id)
            written += writer.write_merged(entries, ContentType(rows["content_type"][int(indexes[0])].as_py()))
    return rows if len(written) == 0 else concat([rows.filter(pa.array(~merged)), *written])


def _groups(rows: pa.Table) -> Iterator[npt.NDArray[np.int64]]:
    """The indexes of manifests that may be merged with each other, in order."""
    manifests = np.asarray(of_type(rows, *MANIFESTS))
    types = np.asarray(pc.fill_null(rows["content_type"], -1)).astype(np.int64)
    specs = np.asarray(pc.fill_null(rows["partition_spec_id"], -1)).astype(np.int64)
    for type_, spec in np.unique(np.column_stack([types, specs])[manifests], axis=0).tolist():
        yield np.flatnonzero(manifests & (types == type_) & (specs == spec))


def bins(sizes: npt.NDArray[np.int64], target: int, min_count: int) -> Iterator[npt.NDArray[np.int64]]:
    """Positions of neighbours to merge, in bins of at most the target size; the last bin needs ``min_count`` members.

    >>> [positions.tolist() for positions in bins(np.array([4, 4, 9, 1, 2]), target=8, min_count=3)]
    [[0, 1]]
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start > 0 else 0
        stop = max(int(np.searchsorted(ends, before + target, side="right")), start + 1)
        is_last = stop == len(sizes)
        if stop - start > 1 and (not is_last or stop - start >= min_count):
            yield np.arange(start, stop)
        start = stop


def _entries(store: ManifestStore, manifests: pa.Table, snapshot_id: int) -> pa.Table:
    """The entries of several manifests: live ones, and those that the new snapshot removed."""
    rows = concat([read_leaf(store, leaf) for leaf in leaves_of(manifests)])
    rows = rows.filter(pc.or_(live(rows), pc.equal(rows["snapshot_id"], snapshot_id)))
    return put_where(rows, pc.not_equal(rows["snapshot_id"], snapshot_id), status=int(Status.EXISTING))
