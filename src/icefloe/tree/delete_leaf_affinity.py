"""Affinity: which data leaf the deletion vectors of a delete leaf belong to (V4 proposal).

A plan opens the delete leaves of the data leaves that it reads, and all delete leaves without affinity. The latter cost
every plan. On the other hand a plan of the whole table opens all leaves, and a thousand leaves of ten vectors cost it
far more than one leaf of ten thousand (about 25 bytes per vector, so one request). Hence the rule of
``split_by_data_leaf``: the vectors of a data leaf get a delete leaf of their own if they are at least an eighth of the
vectors that are written, or at least a thousand. All others share one delete leaf, which has no affinity unless all of
them belong to one data leaf. So a flush writes about ten delete leaves, however many data leaves its vectors belong to.

Finding the data leaf of a file requires reading leaves. Candidates are chosen by partition. If they have more bytes
than a commit may read for compaction, the vectors get no affinity: it makes plans cheaper, but is optional.

Equality deletes apply by partition and sequence number, not by file, so a leaf that contains one has no affinity. The
affinity is stored in the root row of the delete leaf only. If a data leaf is replaced by one other leaf, the affinity
is changed to that leaf; if it is removed in another way, the affinity is cleared. Neither requires opening the delete
leaf, because the deletion vector of a data file is removed with the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import ContentType, Measure, choose, live, of_type, put, stat, stat_keys
from icefloe.model.metadata.properties import UPKEEP_MAX_BYTES
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.manifest_vectors import ManifestVectors
from icefloe.tree.root import Root, leaves_of, read_live_leaves

_MIN_SHARE = 8  # one in so many of the written vectors is enough for a leaf of their own
_MIN_COUNT = 1000  # vectors; so many are always enough


def find_data_leaves(writer: LeafWriter, deletes: pa.Table, rows: pa.Table, dead: ManifestVectors) -> pa.Array:
    """The data leaf of each delete row's data file; null if the file is not in a leaf, or if the search costs too much.

    ``rows`` are those of the root, ``dead`` the positions that its manifest deletion vectors delete.
    """
    vectors = choose(deletes, of_type(deletes, ContentType.POSITION_DELETES))
    candidates = _candidates(vectors, rows)
    size = pc.sum(candidates["file_size_in_bytes"], min_count=0).as_py()
    if candidates.num_rows == 0 or vectors.num_rows == 0 or size > UPKEEP_MAX_BYTES.of(writer.properties):
        return pa.nulls(deletes.num_rows, pa.string())
    leaves = tuple(leaves_of(candidates))
    entries = read_live_leaves(writer.store, Root(entries=rows, dead=dead), leaves, frozenset())
    return data_leaves_among(deletes, {leaf.location: inside for leaf, inside in zip(leaves, entries, strict=True)})


def data_leaves_among(deletes: pa.Table, leaves: Mapping[str, pa.Table]) -> pa.Array:
    """The data leaf of each delete row's data file, of leaves given with their live entries; null if it is in none.

    Equality deletes name no data file, so they have none.
    """
    if len(leaves) == 0:
        return pa.nulls(deletes.num_rows, pa.string())
    files = pa.chunked_array([c for entries in leaves.values() for c in entries["location"].chunks], pa.string())
    leaf_numbers = np.repeat(np.arange(len(leaves)), [entries.num_rows for entries in leaves.values()])
    index = pc.index_in(deletes["referenced_file"], value_set=files.combine_chunks())
    return pc.take(pa.array(list(leaves), pa.string()), pc.take(pa.array(leaf_numbers), index)).combine_chunks()


def _candidates(vectors: pa.Table, rows: pa.Table) -> pa.Table:
    """The data leaves that may contain the files of these vectors, by spec and partition."""
    leaves = choose(rows, pc.and_(of_type(rows, ContentType.DATA_MANIFEST), live(rows)))
    specs = pc.unique(vectors["partition_spec_id"])
    leaves = choose(leaves, pc.is_in(leaves["partition_spec_id"], value_set=specs))
    for key in stat_keys(vectors):
        low, high = stat(Measure.LOWER, key), stat(Measure.UPPER, key)
        if not key.is_partition or low not in vectors.column_names or vectors[low].null_count > 0:
            continue
        if low in leaves.column_names and high in leaves.column_names:
            ends = pc.min_max(vectors[low])
            outside = pc.or_kleene(pc.less(leaves[high], ends["min"]), pc.greater(leaves[low], ends["max"]))
            leaves = choose(leaves, pc.invert(pc.fill_null(outside, False)))
    return leaves


def split_by_data_leaf(deletes: pa.Table, data_leaves: pa.Array) -> Iterator[tuple[pa.Table, str | None]]:
    """The delete rows of each delete leaf to write, with its affinity or none; the module docstring has the rule."""
    codes = data_leaves.dictionary_encode()
    numbers = np.asarray(pc.fill_null(codes.indices, -1)).astype(np.int64)
    counts = np.bincount(numbers[numbers >= 0], minlength=len(codes.dictionary))
    enough = min(_MIN_COUNT, -(-deletes.num_rows // _MIN_SHARE))
    chosen = np.flatnonzero(counts >= enough)
    in_chosen = np.isin(numbers, chosen)
    order = np.argsort(np.where(in_chosen, numbers, len(counts)), kind="stable")
    ordered = deletes.take(pa.array(order))
    start = 0
    for number in chosen.tolist():
        yield ordered.slice(start, counts[number]), codes.dictionary[number].as_py()
        start += counts[number]
    if start < ordered.num_rows:
        others = np.unique(numbers[~in_chosen])
        has_one_leaf = len(others) == 1 and others[0] >= 0
        yield ordered.slice(start), codes.dictionary[others[0]].as_py() if has_one_leaf else None


def common_data_leaf(part: pa.Table, deletes: pa.Table, data_leaves: pa.Array) -> str | None:
    """The data leaf of all vectors in a part of ``deletes``, if it is the same for all."""
    index = pc.index_in(part["referenced_file"], value_set=deletes["referenced_file"].combine_chunks())
    leaves: list[str | None] = pc.unique(pc.take(data_leaves, index)).to_pylist()
    return leaves[0] if len(leaves) == 1 else None


def with_current_affinity(rows: pa.Table, replaced: Mapping[str, str]) -> pa.Table:
    """Root rows whose delete leaves name data leaves of this root only; ``replaced`` maps old data leaves to new."""
    has_affinity = pc.and_(of_type(rows, ContentType.DELETE_MANIFEST), pc.is_valid(rows["referenced_file"]))
    if pc.any(has_affinity).as_py() is not True:
        return rows
    data_leaves = choose(rows, pc.and_(of_type(rows, ContentType.DATA_MANIFEST), live(rows)))["location"]
    index = pc.index_in(rows["referenced_file"], value_set=pa.array(list(replaced), pa.string()))
    target = pc.coalesce(pc.take(pa.array(list(replaced.values()), pa.string()), index), rows["referenced_file"])
    is_current = pc.is_in(target, value_set=data_leaves.combine_chunks())
    target = pc.if_else(is_current, target, pa.scalar(None, pa.string()))
    return put(rows, "referenced_file", pc.if_else(has_affinity, target, rows["referenced_file"]))
