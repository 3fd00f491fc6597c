"""Manifest deletion vectors: which rows of a leaf have left, as a row of the root (V4 proposal).

A leaf has at most one live vector. When more rows leave, the old vector stays for one snapshot as DELETED, so that the
root alone shows what changed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.deletion_vector import decode_dv, encode_dv
from icefloe.errors import FormatError
from icefloe.model.entries import MANIFESTS, ContentType, Status, choose, concat, entries, live, of_type
from icefloe.tree.moment import Moment, mark_deleted
from icefloe.tree.store import ManifestStore


def manifest_vectors(store: ManifestStore, rows: pa.Table, where: str) -> Mapping[str, BitMap64]:
    """Manifest deletion vectors by leaf, checked against the rows they point at (V4 proposal)."""
    vectors = choose(rows, pc.and_(live(rows), of_type(rows, ContentType.MANIFEST_DV)))
    if vectors.num_rows == 0:
        return {}
    manifests = rows.filter(of_type(rows, ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST))
    sizes = dict(zip(manifests["location"].to_pylist(), manifests["record_count"].to_pylist(), strict=True))
    dead: dict[str, BitMap64] = {}
    for row in vectors.to_pylist():
        target = row["referenced_file"]
        if target in dead:
            raise FormatError(f"{where}: two live deletion vectors for manifest {target}", location=where)
        if target not in sizes:
            raise FormatError(f"{where}: a deletion vector names {target}, which is not in this root", location=where)
        positions = load_manifest_vector(store, row, where)
        if len(positions) > 0 and positions.max() >= sizes[target]:
            raise FormatError(
                f"{where}: the deletion vector of {target} has position {positions.max()}, the manifest has only"
                f" {sizes[target]} rows",
                location=where,
            )
        dead[target] = positions
    return dead


def load_manifest_vector(store: ManifestStore, row: Mapping[str, object], where: str) -> BitMap64:
    """The positions of a MANIFEST_DV row, inline or from its Puffin file."""
    blob = row["dv_inline_content"]
    if blob is None:
        offset, size = row["dv_offset"], row["dv_size_in_bytes"]
        blob = store.io.read_range(str(row["location"]), int(str(offset)), int(str(size)))
    count = int(str(row["record_count"]))
    return decode_dv(bytes(memoryview(blob)), where=where, cardinality=count, limits=store.context.limits)  # type: ignore[arg-type]  # a binary value of an untyped row


def hide(rows: pa.Table, dead: Mapping[str, BitMap64], positions: Mapping[str, BitMap64], moment: Moment) -> pa.Table:
    """Manifest deletion vectors: the old one of a leaf stays as DELETED, so that the root alone shows what changed."""
    targets = pa.array(list(positions), pa.string())
    old = pc.and_(of_type(rows, ContentType.MANIFEST_DV), pc.is_in(rows["referenced_file"], value_set=targets))
    rows = mark_deleted(rows, BitMap64(np.asarray(rows.filter(old)["ordinal"])), moment)
    touched = rows.filter(pc.and_(of_type(rows, *MANIFESTS), pc.is_in(rows["location"], value_set=targets)))
    specs = dict(zip(touched["location"].to_pylist(), touched["partition_spec_id"].to_pylist(), strict=True))
    new = [
        _vector_row(target, dead.get(target, BitMap64()) | gone, specs[target], moment)
        for target, gone in positions.items()
    ]
    return concat([rows, entries(new)])


def _vector_row(target: str, dead: BitMap64, spec_id: int, moment: Moment) -> dict[str, object]:
    return {
        "content_type": int(ContentType.MANIFEST_DV),
        "file_format": "puffin",
        "status": int(Status.ADDED),
        "snapshot_id": moment.snapshot_id,
        "sequence_number": moment.sequence_number,
        "file_sequence_number": moment.sequence_number,
        "dv_inline_content": encode_dv(dead),
        "partition_spec_id": spec_id,
        "record_count": len(dead),
        "referenced_file": target,
    }
