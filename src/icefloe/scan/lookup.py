"""Live data files by location, with their deletion vectors: a plan for files whose names are known.

Nothing but names is read of the manifests that hold none of them, and the search ends when all are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_index import LISTED, attach_vectors, respell_targets
from icefloe.expr.prune.stats_eval import Match
from icefloe.model.entries import ContentType, concat
from icefloe.model.location_columns import file_names, is_among
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.plan import to_tasks
from icefloe.tree.diff import with_manifest
from icefloe.tree.root import Leaf, Root, read_live_leaf, read_root
from icefloe.tree.store import NO_STATISTICS, ManifestStore


def files_at(store: ManifestStore, metadata: TableMetadata, snapshot: Snapshot | None, locations: pa.Array) -> pa.Table:
    """Tasks of the live data files at these locations, with their vectors but without the delete files that apply.

    A location that no live data file has is not in the answer.
    """
    root = read_root(store, snapshot)
    files = _find(store, root, ContentType.DATA, locations, root.leaves(ContentType.DATA_MANIFEST))
    vectors = _vectors(store, metadata, root, files)
    vectors, _ = respell_targets(vectors, files, metadata.location)
    rows = attach_vectors(files, vectors)
    count = rows.num_rows
    rows = rows.append_column("match", pa.repeat(pa.scalar(int(Match.ALL), pa.int8()), count))
    nothing = pa.array([[]], LISTED.type).take(pa.array(np.zeros(count, np.int64)))
    rows = rows.append_column(LISTED, nothing)
    return to_tasks(rows, pa.repeat(pa.scalar(0, pa.int32()), count), statistics=False)


def _vectors(store: ManifestStore, metadata: TableMetadata, root: Root, files: pa.Table) -> pa.Table:
    """The live deletion vectors of data files; a table of a version without them has none to look for."""
    kind = ContentType.POSITION_DELETES
    leaves: Sequence[Leaf] = ()
    if metadata.rules.deletion_vectors and files.num_rows > 0:
        leaves = tuple(_delete_leaves(root, files))
    found = _find(store, root, kind, files["location"].combine_chunks(), leaves)
    return found.filter(pc.is_valid(found["dv_offset"]))


def _delete_leaves(root: Root, files: pa.Table) -> Iterator[Leaf]:
    """The delete leaves that age and affinity leave over: a vector is no older than its file."""
    oldest = pc.min(files["sequence_number"]).as_py()
    homes = set(files["manifest"].to_pylist())
    for leaf in root.leaves(ContentType.DELETE_MANIFEST):
        if leaf.sequence_number >= oldest and (leaf.affinity is None or leaf.affinity in homes):
            yield leaf


def _find(store: ManifestStore, root: Root, kind: ContentType, names: pa.Array, leaves: Sequence[Leaf]) -> pa.Table:
    """Live rows of a kind that name one of these data files, each with the leaf it stands in."""
    column = "location" if kind is ContentType.DATA else "referenced_file"
    table = store.context.location
    found = [_naming(with_manifest(root.rows(kind), None), column, names)]
    wanted = _without(names, found[0][column], table)
    requests = [leaf.request(NO_STATISTICS) for leaf in leaves]
    if len(wanted) > 0:
        for leaf, may_hold in zip(leaves, store.may_contain(requests, column, wanted), strict=False):
            if may_hold:
                inside = with_manifest(read_live_leaf(store, root, leaf, NO_STATISTICS), leaf)
                found.append(_naming(inside, column, wanted))
                wanted = _without(wanted, found[-1][column], table)
                if len(wanted) == 0:
                    break
    return concat(found).combine_chunks()


def _naming(rows: pa.Table, column: str, names: pa.Array) -> pa.Table:
    """The rows of these data files; vectors by the names of files, as they may spell a location in another way."""
    if column == "location":
        return rows.filter(pc.is_in(rows[column], value_set=names))
    return rows.filter(pc.is_in(file_names(rows[column]), value_set=file_names(names)))


def _without(names: pa.Array, found: pa.ChunkedArray, table: str) -> pa.Array:
    return names.filter(pc.invert(is_among(names, found, table)))
