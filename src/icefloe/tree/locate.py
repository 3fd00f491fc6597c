"""Finding the rows of files that are to leave a tree.

A plan remembers where it saw each file (``manifest`` and ``ordinal``). As leaves are immutable, that place is still
right while the leaf is in the root, so removing a planned file opens no leaf. Files without a place are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.errors import ConflictError
from icefloe.model.entries import ContentType
from icefloe.model.location_columns import Column, is_among, one_array
from icefloe.tree.root import Leaf, Root, live_rows
from icefloe.tree.store import ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Where the wanted rows are: ordinals in the root, and positions in leaves by leaf location."""

    in_root: BitMap64 = field(default_factory=BitMap64)
    in_leaves: Mapping[str, BitMap64] = field(default_factory=dict)


def locate(
    store: ManifestStore, root: Root, wanted: pa.Array, hints: pa.Table, *, column: str, types: tuple[ContentType, ...]
) -> Located:
    """Find live rows of ``types`` whose ``column`` is one of ``wanted``; ``hints`` say where each was listed.

    Raises ConflictError for the first value that no live row has.
    """
    rows, table = root.rows(*types), store.context.location
    here = _is_named(rows[column], wanted, column, table)
    in_root = BitMap64(np.asarray(rows.filter(here)["ordinal"]))
    missing = wanted.filter(pc.invert(_is_named(wanted, rows[column], column, table)))
    if len(missing) == 0:
        return Located(in_root=in_root)
    leaves = root.leaves(*_manifest_types(types))
    in_leaves, missing = _by_hint(root, leaves, missing, hints)
    for leaf in leaves:
        if len(missing) == 0:
            break
        missing = _search(store, root, leaf, column, missing, in_leaves)
    if len(missing) > 0:
        gone = missing[0].as_py()
        raise ConflictError(f"{gone} is no longer in the table: another commit removed it", file=gone)
    return Located(in_root=in_root, in_leaves=in_leaves)


def _manifest_types(types: tuple[ContentType, ...]) -> tuple[ContentType, ...]:
    return (ContentType.DATA_MANIFEST,) if ContentType.DATA in types else (ContentType.DELETE_MANIFEST,)


def _by_hint(
    root: Root, leaves: tuple[Leaf, ...], wanted: pa.Array, hints: pa.Table
) -> tuple[dict[str, BitMap64], pa.Array]:
    """Positions of the wanted files whose remembered leaf is still in the root, and the files that remain."""
    present = pa.array([leaf.location for leaf in leaves], pa.string())
    usable = pc.and_(pc.is_in(hints["location"], value_set=wanted), pc.is_in(hints["manifest"], value_set=present))
    known = hints.filter(usable)
    found: dict[str, BitMap64] = {}
    for manifest in pc.unique(known["manifest"]).to_pylist():
        mine = known.filter(pc.equal(known["manifest"], manifest))
        positions = BitMap64(np.asarray(mine["ordinal"]))
        dead = root.dead.get(manifest)
        if dead is not None and len(dead & positions) > 0:
            lost = mine.filter(pc.equal(mine["ordinal"], (dead & positions).min()))["location"][0].as_py()
            raise ConflictError(f"{lost} is no longer in the table: another commit removed it", file=lost)
        found[manifest] = positions
    return found, wanted.filter(pc.invert(pc.is_in(wanted, value_set=known["location"].combine_chunks())))


def _is_named(values: Column, names: Column, column: str, table: str) -> pa.Array:
    """Which values are among the names; ``referenced_file`` may spell the location of a data file in another way."""
    if column == "location":
        return pc.is_in(values, value_set=one_array(names))
    return is_among(values, names, table)


def _search(
    store: ManifestStore, root: Root, leaf: Leaf, column: str, wanted: pa.Array, found: dict[str, BitMap64]
) -> pa.Array:
    """Look for wanted files in one leaf; add what is there to ``found`` and return what is not."""
    rows, table = live_rows(store, root, leaf), store.context.location
    here = rows.filter(_is_named(rows[column], wanted, column, table))
    if here.num_rows == 0:
        return wanted
    found[leaf.location] = found.get(leaf.location, BitMap64()) | BitMap64(np.asarray(here["ordinal"]))
    return wanted.filter(pc.invert(_is_named(wanted, here[column], column, table)))
