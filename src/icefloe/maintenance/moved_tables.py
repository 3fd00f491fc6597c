"""Loads and registers tables that were moved or copied as a folder (V4 proposal: relative locations).

A V4 table names files below its location relative to it, so its folder can be moved. A table that was upgraded may
still have manifests that name files by absolute locations. A copy of it would read files of the original, so it is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalogs.folders import MetadataFile
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.stage import encode_metadata_file
from icefloe.commit.table_location import is_inside
from icefloe.env import Env
from icefloe.errors import UnsupportedError
from icefloe.io.file_io import FileIO
from icefloe.model.entries import MANIFESTS
from icefloe.model.locations import S3
from icefloe.tree.root import Leaf, leaves_of, read_leaves, read_root
from icefloe.tree.store import NO_STATISTICS


def load_at_location(table: TablePointer) -> Base:
    """The state of a table; refused if it was moved and still names files at the location that its metadata states."""
    base = table.load()
    if table.stated_location is not None:
        _check_moved(base, table.stated_location)
    return base


def registrable(io: FileIO, metadata_location: str, table_location: str | None, env: Env) -> str:
    """The metadata file to register for a table at ``table_location``.

    If the given file states another location, a new one is written: catalogs store nothing but the location of the
    metadata file, so its content must be correct.
    """
    table = TablePointer(MetadataFile(metadata_location), ("table",), io, location=table_location)
    base = load_at_location(table)
    if table.stated_location is None:
        return metadata_location
    timestamp_ms = max(env.now_ms(), base.metadata.last_updated_ms)
    metadata = base.metadata.committed(timestamp_ms=timestamp_ms, former_location=metadata_location)
    location, data = encode_metadata_file(metadata, metadata_location, env)
    base.store.io.write_new(location, data)
    return location


def _check_moved(base: Base, origin: str) -> None:
    """Refuse a table that names files inside ``origin``, at any depth of its metadata; opens no file there."""
    leaves: dict[str, Leaf] = {}
    for snapshot in base.metadata.snapshots:
        _check_locations(base, origin, snapshot.manifests if snapshot.root is None else [snapshot.root])
        root = read_root(base.store, snapshot)
        _check_entries(base, origin, root.entries)
        leaves.update({leaf.location: leaf for leaf in leaves_of(root.rows(*MANIFESTS))})
    for rows in read_leaves(base.store, list(leaves.values()), NO_STATISTICS):
        _check_entries(base, origin, rows)


def _check_entries(base: Base, origin: str, rows: pa.Table) -> None:
    for name in ("location", "referenced_file"):
        inside = pc.fill_null(pc.starts_with(rows[name], base.metadata.location + "/"), True)
        _check_locations(base, origin, rows[name].filter(pc.invert(inside)).to_pylist())


def _check_locations(base: Base, origin: str, locations: Iterable[str]) -> None:
    inside = partial(is_inside, same_schemes=S3)
    for location in locations:
        if inside(origin, location) and not inside(base.metadata.location, location):
            raise UnsupportedError(
                f"the table at {base.metadata.location} was moved or copied from {origin}, but still names {location}"
                " there. Rewrite the manifests of the original and let its snapshots from before format version 4"
                " expire, then copy it again",
                location=location,
            )
