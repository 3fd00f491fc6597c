"""Checks rules between the rows of a root when it is read (V4 proposal).

The codec checks rules for a single row. A deletion vector is checked against its leaf when it is read, and a leaf
against its root row when it is read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError
from icefloe.model.entries import ContentType, Status

Flags = npt.NDArray[np.bool_]

_DATA, _DV = int(ContentType.DATA), int(ContentType.POSITION_DELETES)
_DATA_MANIFEST, _DELETE_MANIFEST = int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)
_MANIFEST_DV = int(ContentType.MANIFEST_DV)


def check_root(rows: pa.Table, where: str) -> None:
    """Raise FormatError for the first row of a root that contradicts another one."""
    if rows.num_rows == 0:
        return
    kinds = np.asarray(rows["content_type"])
    live: Flags = np.asarray(rows["status"]) != int(Status.DELETED)
    vectors, manifest_vectors = kinds == _DV, kinds == _MANIFEST_DV
    # Deletion vectors share files, and inline ones have none. Every other row has a file of its own.
    _check_unique(
        rows["location"], live & ~vectors & ~manifest_vectors, "another live row has the same location", where
    )
    if not vectors.any() and kinds.max() == _DATA:
        return
    targets = rows["referenced_file"]
    _check_unique(targets, live & vectors, "another live row is the deletion vector of the same data file", where)
    _check_affinity(rows, kinds, live, where)
    if manifest_vectors.any():
        _check_manifest_vectors(rows, kinds, live, where)


def _check_unique(values: pa.ChunkedArray, chosen: Flags, rule: str, where: str) -> None:
    indexes = np.flatnonzero(chosen)
    if len(indexes) < 2:
        return
    compared = values if len(indexes) == len(values) else values.take(pa.array(indexes))
    if len(pc.unique(compared)) < len(compared):
        codes = np.asarray(compared.combine_chunks().dictionary_encode().indices)
        _, first = np.unique(codes, return_index=True)
        repeated = np.setdiff1d(np.arange(len(codes)), first)
        _refuse(indexes[repeated[0]], f"{rule}: {compared[int(repeated[0])].as_py()}", where)


def _check_affinity(rows: pa.Table, kinds: npt.NDArray[np.int32], live: Flags, where: str) -> None:
    """A delete leaf with affinity is only read together with its data leaf, so the root must have that leaf."""
    has_affinity = live & (kinds == _DELETE_MANIFEST) & np.asarray(rows["referenced_file"].is_valid())
    if has_affinity.any():
        rule = "a delete manifest belongs to a data manifest that is not in this root"
        _check_targets(rows, has_affinity, live & (kinds == _DATA_MANIFEST), rule, where)


def _check_manifest_vectors(rows: pa.Table, kinds: npt.NDArray[np.int32], live: Flags, where: str) -> None:
    """A live vector may belong to a manifest that this snapshot replaced; it lists the entries that were removed."""
    vectors = kinds == _MANIFEST_DV
    for chosen, kind in ((live & vectors, "live"), (~live & vectors, "DELETED")):
        rule = f"another {kind} row is the deletion vector of the same manifest"
        _check_unique(rows["referenced_file"], chosen, rule, where)
    manifests = (kinds == _DATA_MANIFEST) | (kinds == _DELETE_MANIFEST)
    rule = "a deletion vector belongs to a manifest that is not in this root"
    target = _check_targets(rows, live & vectors, manifests, rule, where)
    counts = np.asarray(rows["record_count"])
    too_many = np.flatnonzero(counts[live & vectors] > counts[manifests][target])
    if len(too_many) > 0:
        row = np.flatnonzero(live & vectors)[too_many[0]]
        _refuse(row, f"a deletion vector of {counts[row]} rows, more than its manifest has", where)


def _check_targets(rows: pa.Table, chosen: Flags, allowed: Flags, rule: str, where: str) -> npt.NDArray[np.int64]:
    """The positions, among the allowed rows, of the files that chosen rows reference."""
    targets = rows["referenced_file"].take(pa.array(np.flatnonzero(chosen)))
    known = rows["location"].take(pa.array(np.flatnonzero(allowed))).combine_chunks()
    index = pc.fill_null(pc.index_in(targets, value_set=known), -1)
    positions: npt.NDArray[np.int64] = np.asarray(index).astype(np.int64)
    if len(positions) > 0 and positions.min() < 0:
        wrong = int(np.argmin(positions))
        _refuse(np.flatnonzero(chosen)[wrong], f"{rule}: {targets[wrong].as_py()}", where)
    return positions


def _refuse(row: np.int64, rule: str, where: str) -> None:
    raise FormatError(f"{where}: row {row}: {rule}", location=where, row=int(row))
