"""Finds the entries of files to remove in a tree.

A plan records where each file is listed: in which manifest, and at which ordinal. Leaves are immutable, so the recorded
position is valid while the leaf is in the root, and the removal of a planned file opens no leaf. Files without a
recorded position are searched for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.errors import ConflictError
from icefloe.model.columns import Column, one_array
from icefloe.model.entries import ContentType
from icefloe.model.location_columns import is_among
from icefloe.tree.root import Leaf, Root, read_live_leaf
from icefloe.tree.store import ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntries:
    """The positions of entries: ordinals in the root, and ordinals in leaves by leaf location."""

    in_root: BitMap64 = field(default_factory=BitMap64)
    in_leaves: Mapping[str, BitMap64] = field(default_factory=dict)


def find_entries(store: ManifestStore, root: Root, files: pa.Table, column: str, *types: ContentType) -> FoundEntries:
    """Find the live entries of ``types`` whose ``column`` is the location of one of the files.

    ``files`` has columns ``location``, ``manifest`` and ``ordinal``: where the entry was listed, null if unknown.
    ConflictError names the first file that has no live entry.
    """
    if files.num_rows == 0:
        return FoundEntries()
    wanted = files["location"].combine_chunks()
    rows, table = root.rows(*types), store.context.location
    in_root = _is_named(rows[column], wanted, column, table)
    ordinals = BitMap64(np.asarray(rows.filter(in_root)["ordinal"]))
    missing = wanted.filter(pc.invert(_is_named(wanted, rows[column], column, table)))
    if len(missing) == 0:
        return FoundEntries(in_root=ordinals)
    leaves = root.leaves(*_manifest_types(types))
    in_leaves, missing = _recorded(root, leaves, missing, files)
    for leaf in leaves:
        if len(missing) == 0:
            break
        missing = _search(store, root, leaf, column, missing, in_leaves)
    if len(missing) > 0:
        raise _removed(missing[0].as_py())
    return FoundEntries(in_root=ordinals, in_leaves=in_leaves)


def _removed(file: str) -> ConflictError:
    return ConflictError(f"{file} is no longer in the table: another commit removed it", file=file)


def _manifest_types(types: tuple[ContentType, ...]) -> tuple[ContentType, ...]:
    return (ContentType.DATA_MANIFEST,) if ContentType.DATA in types else (ContentType.DELETE_MANIFEST,)


def _recorded(
    root: Root, leaves: tuple[Leaf, ...], wanted: pa.Array, files: pa.Table
) -> tuple[dict[str, BitMap64], pa.Array]:
    """The positions of wanted files whose recorded leaf is in the root, and the files that remain to be found."""
    current = pa.array([leaf.location for leaf in leaves], pa.string())
    usable = pc.and_(pc.is_in(files["location"], value_set=wanted), pc.is_in(files["manifest"], value_set=current))
    known = files.filter(usable)
    in_leaves: dict[str, BitMap64] = {}
    for manifest in pc.unique(known["manifest"]).to_pylist():
        in_manifest = known.filter(pc.equal(known["manifest"], manifest))
        positions = BitMap64(np.asarray(in_manifest["ordinal"]))
        removed = positions & root.dead.get(manifest, BitMap64())
        if len(removed) > 0:
            raise _removed(in_manifest.filter(pc.equal(in_manifest["ordinal"], removed.min()))["location"][0].as_py())
        in_leaves[manifest] = positions
    return in_leaves, wanted.filter(pc.invert(pc.is_in(wanted, value_set=known["location"].combine_chunks())))


def _is_named(values: Column, names: Column, column: str, table: str) -> pa.Array:
    """Which values are among the names; ``referenced_file`` may spell the location of a data file in another way."""
    if column == "location":
        return pc.is_in(values, value_set=one_array(names))
    return is_among(values, names, table)


def _search(
    store: ManifestStore, root: Root, leaf: Leaf, column: str, wanted: pa.Array, in_leaves: dict[str, BitMap64]
) -> pa.Array:
    """Search one leaf for wanted files; adds the positions to ``in_leaves`` and returns the files it does not list."""
    rows, table = read_live_leaf(store, root, leaf), store.context.location
    listed = rows.filter(_is_named(rows[column], wanted, column, table))
    if listed.num_rows == 0:
        return wanted
    in_leaves[leaf.location] = in_leaves.get(leaf.location, BitMap64()) | BitMap64(np.asarray(listed["ordinal"]))
    return wanted.filter(pc.invert(_is_named(wanted, listed[column], column, table)))
