"""Affinity: which data leaf the vectors of a delete leaf belong to (V4 proposal).

A plan opens the delete leaves that belong to a data leaf it reads, and every delete leaf that belongs to none. The
second kind costs each plan, however small, so it is worth giving a leaf of its own to the vectors of one data leaf,
but only to many of them: a plan of the whole table opens all leaves, and a thousand leaves of ten vectors cost it far
more than one leaf of ten thousand (about 25 bytes each, which is one request). Hence the rule of ``laid_out``: a data
leaf gets a delete leaf when it takes an eighth of the vectors that are written, or a thousand of them; the others share
one leaf, which belongs to none unless they are all of one data leaf. So a flush writes about ten leaves however far its
vectors spread, and vectors that come from a few places, as updates of recent data do, burden no plan of other data.

Which data leaf holds a file is known only by reading leaves. They are chosen by partition, and if they are more than
a commit may read for upkeep, the vectors stay without affinity: it makes plans cheaper but is never needed.

Equality deletes apply by partition and age, not by file, so no leaf that holds one has an affinity. The affinity stands
in the root row alone. When a data leaf is replaced by one other, the row is pointed there; when it leaves otherwise,
the row is cleared. Both need no delete leaf to be opened, because a file that leaves takes its vector along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import ContentType, choose, live, of_type, stat, stat_keys
from icefloe.model.metadata.properties import UPKEEP_MAX_BYTES
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.manifest_vectors import ManifestVectors
from icefloe.tree.root import Root, leaves_of, live_leaves

_LARGEST_SHARE = 8  # one in so many vectors is enough for a leaf of their own
_MANY = 1000  # vectors; that many are enough too


def find_homes(writer: LeafWriter, deletes: pa.Table, rows: pa.Table, dead: ManifestVectors) -> pa.Array:
    """The data leaf of each delete row's data file; null where it is not in a leaf, or not worth looking for.

    ``rows`` are those of the root, ``dead`` the positions that its manifest deletion vectors hide.
    """
    vectors = choose(deletes, of_type(deletes, ContentType.POSITION_DELETES))
    candidates = _candidates(vectors, rows)
    size = pc.sum(candidates["file_size_in_bytes"], min_count=0).as_py()
    if candidates.num_rows == 0 or vectors.num_rows == 0 or size > UPKEEP_MAX_BYTES.of(writer.properties):
        return pa.nulls(deletes.num_rows, pa.string())
    leaves = tuple(leaves_of(candidates))
    inside = list(live_leaves(writer.store, Root(entries=rows, dead=dead), leaves, frozenset()))
    return homes_among(deletes, {leaf.location: rows for leaf, rows in zip(leaves, inside, strict=True)})


def homes_among(deletes: pa.Table, leaves: Mapping[str, pa.Table]) -> pa.Array:
    """The data leaf of each delete row's data file, of leaves whose live rows are given; null if it is in none.

    Equality deletes name no data file, and so have none.
    """
    if len(leaves) == 0:
        return pa.nulls(deletes.num_rows, pa.string())
    files = pa.chunked_array([c for rows in leaves.values() for c in rows["location"].chunks], pa.string())
    numbers = np.repeat(np.arange(len(leaves)), [rows.num_rows for rows in leaves.values()])
    place = pc.index_in(deletes["referenced_file"], value_set=files.combine_chunks())
    return pc.take(pa.array(list(leaves), pa.string()), pc.take(pa.array(numbers), place)).combine_chunks()


def _candidates(vectors: pa.Table, rows: pa.Table) -> pa.Table:
    """The data leaves that may hold files of these vectors, by spec and partition."""
    leaves = choose(rows, pc.and_(of_type(rows, ContentType.DATA_MANIFEST), live(rows)))
    specs = pc.unique(vectors["partition_spec_id"])
    leaves = choose(leaves, pc.is_in(leaves["partition_spec_id"], value_set=specs))
    for key in stat_keys(vectors):
        low, high = stat("lower_bound", key), stat("upper_bound", key)
        if not key.startswith("p") or low not in vectors.column_names or vectors[low].null_count > 0:
            continue
        if low in leaves.column_names and high in leaves.column_names:
            ends = pc.min_max(vectors[low])
            apart = pc.or_kleene(pc.less(leaves[high], ends["min"]), pc.greater(leaves[low], ends["max"]))
            leaves = choose(leaves, pc.invert(pc.fill_null(apart, False)))
    return leaves


def laid_out(deletes: pa.Table, homes: pa.Array) -> Iterator[tuple[pa.Table, str | None]]:
    """The delete rows in the parts that make planning cheap, each with the data leaf it belongs to or none."""
    codes = homes.dictionary_encode()
    places = np.asarray(pc.fill_null(codes.indices, -1)).astype(np.int64)
    counts = np.bincount(places[places >= 0], minlength=len(codes.dictionary))
    enough = min(_MANY, -(-deletes.num_rows // _LARGEST_SHARE))
    chosen = np.flatnonzero(counts >= enough)
    alone = np.isin(places, chosen)
    order = np.argsort(np.where(alone, places, len(counts)), kind="stable")
    ordered = deletes.take(pa.array(order))
    start = 0
    for home in chosen.tolist():
        yield ordered.slice(start, counts[home]), codes.dictionary[home].as_py()
        start += counts[home]
    if start < ordered.num_rows:
        others = np.unique(places[~alone])
        yield ordered.slice(start), codes.dictionary[others[0]].as_py() if len(others) == 1 and others[0] >= 0 else None


def home_of(part: pa.Table, deletes: pa.Table, homes: pa.Array) -> str | None:
    """The one data leaf that all vectors of a part of ``deletes`` belong to, if there is one."""
    place = pc.index_in(part["referenced_file"], value_set=deletes["referenced_file"].combine_chunks())
    found: list[str | None] = pc.unique(pc.take(homes, place)).to_pylist()
    return found[0] if len(found) == 1 else None


def repointed(rows: pa.Table, moved: Mapping[str, str]) -> pa.Table:
    """Root rows whose delete leaves name data leaves of this root only; ``moved`` says what took a leaf's place."""
    belongs = pc.and_(of_type(rows, ContentType.DELETE_MANIFEST), pc.is_valid(rows["referenced_file"]))
    if pc.any(belongs).as_py() is not True:
        return rows
    there = choose(rows, pc.and_(of_type(rows, ContentType.DATA_MANIFEST), live(rows)))["location"]
    place = pc.index_in(rows["referenced_file"], value_set=pa.array(list(moved), pa.string()))
    target = pc.coalesce(pc.take(pa.array(list(moved.values()), pa.string()), place), rows["referenced_file"])
    stays = pc.is_in(target, value_set=there.combine_chunks())
    target = pc.if_else(stays, target, pa.scalar(None, pa.string()))
    referenced = rows.schema.get_field_index("referenced_file")
    kept = pc.if_else(belongs, target, rows["referenced_file"])
    return rows.set_column(referenced, rows.schema.field(referenced), kept)
