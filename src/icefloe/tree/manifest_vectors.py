"""Manifest deletion vectors: rows of the root with the positions of removed entries of a leaf (V4 proposal).

A leaf has at most one live vector. If further entries are removed, the old vector is kept for one snapshot with status
DELETED, so that the root alone shows what changed. A small vector is stored in its root row, a large one in a Puffin
file. A vector is read together with its leaf; most readers of a root only need the count in the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.puffin.deletion_vector import decode_dv, encode_dv
from icefloe.codecs.puffin.puffin_file import deletion_vector_blob, encode_puffin
from icefloe.env import CREATED_BY
from icefloe.errors import FormatError, LimitError
from icefloe.limits import DEFAULT
from icefloe.model.entries import MANIFESTS, ContentType, Status, concat, empty, entries, of_type, put
from icefloe.model.locations import relativize
from icefloe.model.metadata.properties import MANIFEST_DV_INLINE_MAX_BYTES
from icefloe.tree.new_snapshot import SnapshotIdentity, mark_deleted
from icefloe.tree.staging import Staging
from icefloe.tree.store import ManifestStore

_POINTER = ["ordinal", "location", "dv_offset", "dv_size_in_bytes", "dv_inline_content", "record_count"]
_COLUMNS = [*_POINTER, "referenced_file"]


class ManifestVectors(Mapping[str, BitMap64]):
    """The deleted positions by leaf location; each vector is read and checked on first use.

    Counts, iteration and membership tests read nothing.
    """

    def __init__(self, store: ManifestStore | None, vectors: pa.Table, leaf_rows: pa.ChunkedArray, where: str) -> None:
        self._store = store
        self._where = where
        self._pointers = [*(vectors[name] for name in _POINTER), leaf_rows]
        self._targets: pa.ChunkedArray = vectors["referenced_file"]
        self._counts: npt.NDArray[np.int64] = np.asarray(vectors["record_count"])
        self._rows: dict[str, int] = {}
        self._loaded: dict[str, BitMap64] = {}
        if vectors.num_rows > 0:
            self._rows = {leaf: row for row, leaf in enumerate(self._targets.to_pylist())}

    @classmethod
    def none(cls) -> ManifestVectors:
        """No vectors."""
        return _NONE

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __contains__(self, leaf: object) -> bool:
        return leaf in self._rows

    def __getitem__(self, leaf: str) -> BitMap64:
        positions = self._loaded.get(leaf)
        if positions is None:
            positions = self._loaded[leaf] = self._load(leaf, self._rows[leaf])
        return positions

    def count(self, leaf: str) -> int:
        """How many rows of a leaf are deleted, by its root row."""
        row = self._rows.get(leaf)
        return 0 if row is None else int(self._counts[row])

    @property
    def counts(self) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """The leaves with a vector, and how many rows of each are deleted, by the root rows."""
        return self._targets, pa.chunked_array([self._counts])

    def _load(self, leaf: str, row: int) -> BitMap64:
        ordinal, location, offset, size, blob, count, rows = (column[row].as_py() for column in self._pointers)
        where = f"{self._where}: row {ordinal}"
        limits = DEFAULT if self._store is None else self._store.context.limits
        if blob is None and self._store is not None:
            where = f"{where}: {location} at byte {offset}"
            if size > limits.deletion_vector_bytes:
                limit = limits.deletion_vector_bytes
                raise LimitError(f"{where}: a deletion vector of {size} bytes, limit {limit}", location=self._where)
            blob = self._store.io.read_range(location, offset, size)
        positions = decode_dv(blob, where=f"{where}: rows of {leaf}", cardinality=count, limits=limits)
        if rows is not None and len(positions) > 0 and positions.max() >= rows:
            raise FormatError(
                f"{where}: the deletion vector of {leaf} has position {positions.max()}, the manifest has only {rows}"
                " rows",
                location=self._where,
                row=ordinal,
            )
        return positions


def manifest_vectors(store: ManifestStore, rows: pa.Table, where: str, *statuses: Status) -> ManifestVectors:
    """The manifest deletion vectors with one of these statuses; the root was checked before."""
    kinds, status = np.asarray(rows["content_type"]), np.asarray(rows["status"])
    chosen = kinds == int(ContentType.MANIFEST_DV)
    if not chosen.any():
        return ManifestVectors.none()
    chosen &= np.isin(status, statuses)
    vectors = rows.select(_COLUMNS).take(pa.array(np.flatnonzero(chosen)))
    manifests = rows.select(["location", "record_count"]).take(pa.array(np.flatnonzero(np.isin(kinds, MANIFESTS))))
    index = pc.index_in(vectors["referenced_file"], value_set=manifests["location"].combine_chunks())
    return ManifestVectors(store, vectors, manifests["record_count"].take(index), where)


_NONE = ManifestVectors(None, empty().select(_COLUMNS), pa.chunked_array([], pa.int64()), "")


def delete_leaf_rows(
    store: ManifestStore,
    rows: pa.Table,
    dead: Mapping[str, BitMap64],
    positions: Mapping[str, BitMap64],
    identity: SnapshotIdentity,
    staging: Staging,
    properties: Mapping[str, str],
) -> pa.Table:
    """The root rows after deleting rows of leaves: the old vector of a leaf DELETED, a vector of all positions ADDED.

    ``dead`` are the positions that were deleted before. If all inline vectors of the root together take more bytes than
    the table allows, the largest are written to one Puffin file, those of other leaves too.
    """
    targets = pa.array(list(positions), pa.string())
    old = pc.and_(of_type(rows, ContentType.MANIFEST_DV), pc.is_in(rows["referenced_file"], value_set=targets))
    rows = mark_deleted(rows, BitMap64(np.asarray(rows.filter(old)["ordinal"])), identity)
    touched = rows.filter(pc.and_(of_type(rows, *MANIFESTS), pc.is_in(rows["location"], value_set=targets)))
    specs = dict(zip(touched["location"].to_pylist(), touched["partition_spec_id"].to_pylist(), strict=True))
    merged = {leaf: dead.get(leaf, BitMap64()) | new for leaf, new in positions.items()}
    new = [
        _vector_row(identity, leaf, specs[leaf], {"record_count": len(merged[leaf]), "dv_inline_content": encode_dv(v)})
        for leaf, v in merged.items()
    ]
    limit = MANIFEST_DV_INLINE_MAX_BYTES.of(properties)
    return _without_large_vectors(store, concat([rows, entries(new)]), staging, limit)


def _without_large_vectors(store: ManifestStore, rows: pa.Table, staging: Staging, limit: int) -> pa.Table:
    """The rows with the largest inline vectors in a file, if the live ones together take more than ``limit`` bytes."""
    sizes = np.asarray(pc.fill_null(pc.binary_length(rows["dv_inline_content"]), 0)).astype(np.int64)
    sizes = np.where(np.asarray(pc.not_equal(rows["status"], int(Status.DELETED))), sizes, 0)
    total = int(sizes.sum())
    if total <= limit:
        return rows
    order = np.argsort(-sizes, kind="stable")
    # Half of the limit stays free, so that the next commits write no such file.
    count = int(np.searchsorted(np.cumsum(sizes[order]), total - limit // 2)) + 1
    moved = np.sort(order[:count])
    chosen = rows.select(["referenced_file", "record_count", "dv_inline_content"]).take(pa.array(moved)).to_pylist()
    data, blobs = encode_puffin(
        [
            # The footer names a leaf as its root row does.
            deletion_vector_blob(
                vector["dv_inline_content"],
                referenced_file=relativize(vector["referenced_file"], store.context.location),
                cardinality=vector["record_count"],
            )
            for vector in chosen
        ],
        CREATED_BY,
    )
    location = staging.new_location("dvs", "puffin")
    staging.write(store, {location: data})
    mask: npt.NDArray[np.bool_] = np.zeros(rows.num_rows, np.bool_)
    mask[moved] = True
    in_file = {
        "location": [location] * count,
        "file_size_in_bytes": [len(data)] * count,
        "dv_offset": [blob.offset for blob in blobs],
        "dv_size_in_bytes": [blob.length for blob in blobs],
        "dv_inline_content": [None] * count,
    }
    for name, values in in_file.items():
        column = rows[name].combine_chunks()
        rows = put(rows, name, pc.replace_with_mask(column, mask, pa.array(values, column.type)))
    return rows


def _vector_row(
    identity: SnapshotIdentity, leaf: str, spec_id: int, content: Mapping[str, object]
) -> dict[str, object]:
    return {
        "content_type": int(ContentType.MANIFEST_DV),
        "file_format": "puffin",
        "status": int(Status.ADDED),
        "snapshot_id": identity.snapshot_id,
        "sequence_number": identity.sequence_number,
        "file_sequence_number": identity.sequence_number,
        "partition_spec_id": spec_id,
        "referenced_file": leaf,
        **content,
    }
