"""Finds live data files by location, with their deletion vectors, as scan tasks.

Of manifests that do not list them, only the column with locations is read. The search ends when all are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.delete_index import attach_vectors, respell_targets, without_delete_files
from icefloe.expr.prune.stats_eval import Match
from icefloe.model.entries import ContentType, StatKeys, concat
from icefloe.model.location_columns import file_names, is_among
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.plan import to_tasks
from icefloe.tree.root import Leaf, Root, read_live_leaf, read_root, with_manifest
from icefloe.tree.store import NO_STATISTICS, ManifestStore


def files_at(store: ManifestStore, metadata: TableMetadata, snapshot: Snapshot | None, locations: pa.Array) -> pa.Table:
    """Tasks of the live data files at these locations, with their deletion vectors but without delete files.

    Locations without a live data file are left out.
    """
    root = read_root(store, snapshot)
    files = data_files_at(store, root, locations)
    vectors = _vectors(store, metadata, root, files)
    vectors, _ = respell_targets(vectors, files, metadata.location)
    rows = attach_vectors(files, vectors)
    count = rows.num_rows
    rows = rows.append_column("match", pa.repeat(pa.scalar(int(Match.ALL), pa.int8()), count))
    return to_tasks(without_delete_files(rows), pa.repeat(pa.scalar(0, pa.int32()), count))


def data_files_at(
    store: ManifestStore, root: Root, locations: pa.Array, wanted: StatKeys | None = NO_STATISTICS
) -> pa.Table:
    """Live entries of the data files at these locations, with column ``manifest`` and at least the wanted statistics.

    Locations without a live data file are left out.
    """
    return _find(store, root, ContentType.DATA, locations, root.leaves(ContentType.DATA_MANIFEST), wanted)


def _vectors(store: ManifestStore, metadata: TableMetadata, root: Root, files: pa.Table) -> pa.Table:
    """The live deletion vectors of data files; none if the format version has no deletion vectors."""
    leaves: Sequence[Leaf] = ()
    if metadata.rules.deletion_vectors and files.num_rows > 0:
        leaves = tuple(_delete_leaves(root, files))
    deletes = _find(store, root, ContentType.POSITION_DELETES, files["location"].combine_chunks(), leaves)
    return deletes.filter(pc.is_valid(deletes["dv_offset"]))


def _delete_leaves(root: Root, files: pa.Table) -> Iterator[Leaf]:
    """The delete leaves that may contain vectors of these files, by sequence number and affinity.

    A vector is not older than its data file.
    """
    oldest = pc.min(files["sequence_number"]).as_py()
    data_leaves = set(files["manifest"].to_pylist())
    for leaf in root.leaves(ContentType.DELETE_MANIFEST):
        if leaf.sequence_number >= oldest and (leaf.affinity is None or leaf.affinity in data_leaves):
            yield leaf


def _find(
    store: ManifestStore,
    root: Root,
    type_: ContentType,
    names: pa.Array,
    leaves: Sequence[Leaf],
    wanted: StatKeys | None = NO_STATISTICS,
) -> pa.Table:
    """Live entries of a content type that name one of these data files, with column ``manifest``."""
    column = "location" if type_ is ContentType.DATA else "referenced_file"
    table = store.context.location
    entries = [_with_names(with_manifest(root.rows(type_), None), column, names)]
    missing = _without(names, entries[0][column], table)
    requests = [leaf.request(wanted) for leaf in leaves]
    if len(missing) > 0:
        for leaf, may_contain in zip(leaves, store.may_contain(requests, column, missing), strict=False):
            if may_contain:
                live = with_manifest(read_live_leaf(store, root, leaf, wanted), leaf)
                entries.append(_with_names(live, column, missing))
                missing = _without(missing, entries[-1][column], table)
                if len(missing) == 0:
                    break
    return concat(entries).combine_chunks()


def _with_names(rows: pa.Table, column: str, names: pa.Array) -> pa.Table:
    """The entries of these data files; vectors by file name only, as they may spell a location in another way."""
    if column == "location":
        return rows.filter(pc.is_in(rows[column], value_set=names))
    return rows.filter(pc.is_in(file_names(rows[column]), value_set=file_names(names)))


def _without(names: pa.Array, others: pa.ChunkedArray, table: str) -> pa.Array:
    return names.filter(pc.invert(is_among(names, others, table)))
