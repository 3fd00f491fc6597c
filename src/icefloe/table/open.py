"""Opens a table without a catalog, by its folder or by one of its metadata files (spec: File System Tables)."""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.catalogs.file_versions import METADATA
from icefloe.catalogs.folders import FolderPointer, MetadataFile
from icefloe.codecs.json.relative_locations import folder_around
from icefloe.commit.base import TablePointer
from icefloe.env import SYSTEM, Env
from icefloe.io.local import file_location
from icefloe.io.select import file_io
from icefloe.maintenance.moved_tables import load_at_location
from icefloe.table.table import Table

_METADATA_FILES = (".metadata.json", ".metadata.json.gz")


def open_table(
    location: str,
    *,
    table_location: str | None = None,
    properties: Mapping[str, str] | None = None,
    env: Env = SYSTEM,
) -> Table:
    """Open the table in a folder, or a metadata file as a table that can only be read.

    A folder needs versioned metadata (``metadata/v3.metadata.json``), as file-system catalogs write it. Its table can
    be changed if the storage has an exclusive put. ``properties`` such as ``s3.endpoint`` are for the storage.

    A V4 table that was moved or copied is read at its new location. Other versions state absolute locations of their
    files, so a copy is refused. ``table_location`` is the location of the table if its metadata is stored elsewhere.

    >>> import icefloe, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> t = icefloe.catalog("demo", uri=f"file://{folder}").create_table("db.orders", schema="id bigint")
    >>> open_table(f"{folder}/db/orders").name
    'orders'
    """
    place = file_location(location)
    io = file_io(place, properties)
    by_file = place.endswith(_METADATA_FILES)
    pointer = MetadataFile(place) if by_file else FolderPointer(io, place)
    around = folder_around(place) if by_file else place.rstrip("/")
    known = around if table_location is None else file_location(table_location)
    table = TablePointer(pointer, (_name(place, by_file=by_file),), io, location=known)
    load_at_location(table)  # reports a broken table now, not at its first use
    return Table(table, env)


def _name(place: str, *, by_file: bool) -> str:
    """The name of the table: that of its folder."""
    segments = [part for part in place.split("/") if part != ""]
    folders = segments[:-1] if by_file else segments
    return folders[-2] if by_file and folders[-1] == METADATA and len(folders) > 1 else folders[-1]
