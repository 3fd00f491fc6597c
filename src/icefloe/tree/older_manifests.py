"""Manifests of older versions in a new root: what their lists may leave out is filled in (spec: Manifest Lists).

Lists of version 1 need not count files and rows, and neither do those that other writers made of them. From version 2
on a root must tell, so such manifests are read, once. What other writers counted wrongly is put right when it begins
to matter: when V4 hides the first row of a manifest, how many are left decides whether it stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.model.entries import MANIFEST_COUNTS, MANIFESTS, Status, choose, concat, of_type, put
from icefloe.model.metadata.version_rules import rules
from icefloe.tree.root import Leaf, leaves_of, read_leaf
from icefloe.tree.store import ManifestStore

_KEPT = ("file_format", "format_version", "status", "key_metadata", "referenced_file", "first_row_id", "ordinal")
_NO_STATISTICS: frozenset[str] = frozenset()
_V4 = 4


def with_counts(store: ManifestStore, rows: pa.Table) -> pa.Table:
    """The rows of a root, in their order, with the counts of every manifest; manifests without entries have no row."""
    if not rules(store.context.format_version).sequence_numbers or rows.num_rows == 0:
        return rows
    untold = pc.is_null(rows["record_count"])
    for field in MANIFEST_COUNTS:
        if rows[field.name].null_count > 0:
            untold = pc.or_(untold, pc.is_null(rows[field.name]))
    untold = pc.and_(untold, of_type(rows, *MANIFESTS))
    if pc.any(untold).as_py() is not True:
        return rows
    chosen = rows.filter(untold)
    told = [_counted(store, leaf, chosen.slice(index, 1)) for index, leaf in enumerate(leaves_of(chosen))]
    return concat([choose(rows, pc.invert(untold)), *told]).sort_by("ordinal")


def recounted(store: ManifestStore, rows: pa.Table, leaves: Sequence[str]) -> pa.Table:
    """The rows of a root, in their order, those of these manifests with counts as they are; V4 counts its own right."""
    older = pc.not_equal(pc.fill_null(rows["format_version"], 0), _V4)
    chosen = pc.and_(of_type(rows, *MANIFESTS), pc.is_in(rows["location"], value_set=pa.array(leaves, pa.string())))
    chosen = pc.and_(chosen, older)
    if pc.any(chosen).as_py() is not True:
        return rows
    old = rows.filter(chosen)
    told: list[pa.Table] = []
    for index, leaf in enumerate(leaves_of(old)):
        row = old.slice(index, 1)
        counted = _counted(store, leaf, row, _NO_STATISTICS)
        for name in ("record_count", *(field.name for field in MANIFEST_COUNTS)):
            row = put(row, name, counted[name])
        told.append(row)
    return concat([rows.filter(pc.invert(chosen)), *told]).sort_by("ordinal")


def _counted(store: ManifestStore, leaf: Leaf, row: pa.Table, wanted: frozenset[str] | None = None) -> pa.Table:
    """The row of one manifest with counts and statistics of what is in it; at least the wanted ones."""
    inside = read_leaf(store, leaf, wanted)
    if inside.num_rows == 0:
        return row.slice(0, 0)
    counted = manifest_row(
        inside,
        store.context,
        location=leaf.location,
        size=row["file_size_in_bytes"][0].as_py(),
        delete=leaf.delete,
        status=Status.EXISTING,
        snapshot_id=leaf.snapshot_id,
        sequence_number=leaf.sequence_number,
    )
    for name in _KEPT:
        counted = put(counted, name, row[name].combine_chunks())
    return counted
