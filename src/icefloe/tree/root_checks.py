"""What the rows of a root must satisfy together, checked on reading (V4 proposal).

What each row must satisfy by itself is the codec's affair. A deletion vector is checked against its leaf when it is
read, and a leaf against its row when that is.
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
    # Vectors share files, and inline ones have none; all else has a file to itself.
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
    places = np.flatnonzero(chosen)
    if len(places) < 2:
        return
    mine = values if len(places) == len(values) else values.take(pa.array(places))
    if len(pc.unique(mine)) < len(mine):
        codes = np.asarray(mine.combine_chunks().dictionary_encode().indices)
        _, first = np.unique(codes, return_index=True)
        again = np.setdiff1d(np.arange(len(codes)), first)
        _refuse(places[again[0]], f"{rule}: {mine[int(again[0])].as_py()}", where)


def _check_affinity(rows: pa.Table, kinds: npt.NDArray[np.int32], live: Flags, where: str) -> None:
    """A delete leaf that belongs to a data leaf is read with it, so that one must be there."""
    bound = live & (kinds == _DELETE_MANIFEST) & np.asarray(rows["referenced_file"].is_valid())
    if bound.any():
        rule = "a delete manifest belongs to a data manifest that is not in this root"
        _check_targets(rows, bound, live & (kinds == _DATA_MANIFEST), rule, where)


def _check_manifest_vectors(rows: pa.Table, kinds: npt.NDArray[np.int32], live: Flags, where: str) -> None:
    """A live vector may belong to a manifest that was removed with it, and then tells which of its rows left."""
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
        _refuse(row, f"a deletion vector of {counts[row]} rows, which its manifest does not have", where)


def _check_targets(rows: pa.Table, chosen: Flags, there: Flags, rule: str, where: str) -> npt.NDArray[np.int64]:
    """The places, among the rows that are there, of the files that chosen rows refer to."""
    targets = rows["referenced_file"].take(pa.array(np.flatnonzero(chosen)))
    known = rows["location"].take(pa.array(np.flatnonzero(there))).combine_chunks()
    place = pc.fill_null(pc.index_in(targets, value_set=known), -1)
    found: npt.NDArray[np.int64] = np.asarray(place).astype(np.int64)
    if len(found) > 0 and found.min() < 0:
        wrong = int(np.argmin(found))
        _refuse(np.flatnonzero(chosen)[wrong], f"{rule}: {targets[wrong].as_py()}", where)
    return found


def _refuse(row: np.int64, rule: str, where: str) -> None:
    raise FormatError(f"{where}: row {row}: {rule}", location=where, row=int(row))
