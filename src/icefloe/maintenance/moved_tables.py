"""Tables that were moved or copied as a folder (V4 proposal: relative locations).

A table of V4 names the files below it relative to itself, so it is whole wherever its folder is. One that was upgraded
may still have manifests that name files by absolute locations; a copy of it would read files of the original, and is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalogs.folders import MetadataFile
from icefloe.codecs.json.table_metadata import encode_metadata
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.stage import METADATA_FOLDER, metadata_name
from icefloe.env import Env
from icefloe.errors import FormatError, UnsupportedError
from icefloe.io.file_io import FileIO
from icefloe.model.entries import MANIFESTS
from icefloe.model.locations import S3, contains
from icefloe.model.metadata.properties import METADATA_COMPRESSION
from icefloe.tree.root import Leaf, leaves_of, read_leaves, read_root
from icefloe.tree.store import NO_STATISTICS


def load_in_place(table: TablePointer) -> Base:
    """The state of a table that is where it was found; refused if it still names files of the place it states."""
    base = table.load()
    if table.left is not None:
        _check_moved(base, table.left)
    return base


def registrable(io: FileIO, metadata_location: str, place: str | None, env: Env) -> str:
    """The metadata file to register for a table that is at ``place``: the given one, or one that states no other place.

    Catalogs know nothing but the location of the metadata file, so what the file states must be true.
    """
    table = TablePointer(MetadataFile(metadata_location), ("table",), io, place=place)
    base = load_in_place(table)
    if table.left is None:
        return metadata_location
    moment = max(env.now_ms(), base.metadata.last_updated_ms)
    metadata = base.metadata.committed(timestamp_ms=moment, former_location=metadata_location)
    compression = METADATA_COMPRESSION.of(metadata.properties)
    name = metadata_name(metadata_location, str(env.new_uuid()), compressed=compression != "none")
    settled = f"{metadata.location}/{METADATA_FOLDER}/{name}"
    base.store.io.write_new(settled, encode_metadata(metadata, compression=compression))
    return settled


def _check_moved(base: Base, left: str) -> None:
    """Refuse a table that names files inside ``left``, at any depth; nothing there is opened."""
    leaves: dict[str, Leaf] = {}
    for snapshot in base.metadata.snapshots:
        _check_left(base, left, snapshot.manifests if snapshot.root is None else [snapshot.root])
        root = read_root(base.store, snapshot)
        _check_entries(base, left, root.entries)
        leaves.update({leaf.location: leaf for leaf in leaves_of(root.rows(*MANIFESTS))})
    for rows in read_leaves(base.store, list(leaves.values()), NO_STATISTICS):
        _check_entries(base, left, rows)


def _check_entries(base: Base, left: str, rows: pa.Table) -> None:
    for name in ("location", "referenced_file"):
        inside = pc.fill_null(pc.starts_with(rows[name], base.metadata.location + "/"), True)
        _check_left(base, left, rows[name].filter(pc.invert(inside)).to_pylist())


def _check_left(base: Base, left: str, locations: Iterable[str]) -> None:
    for location in locations:
        if _is_inside(left, location) and not _is_inside(base.metadata.location, location):
            raise UnsupportedError(
                f"the table at {base.metadata.location} was moved or copied from {left}, but still names {location}"
                " there. Rewrite the manifests of the original and let its snapshots from before format version 4"
                " expire, then copy it again",
                location=location,
            )


def _is_inside(folder: str, location: str) -> bool:
    try:
        return contains(folder, location, same_schemes=S3)
    except FormatError:
        return False
