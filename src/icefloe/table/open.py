"""Opens a table without a catalog, by its folder or by one of its metadata files (spec: File System Tables)."""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.catalogs.catalog import Pointers
from icefloe.catalogs.file_versions import METADATA
from icefloe.catalogs.folders import FolderPointer, MetadataFile
from icefloe.codecs.json.relative_locations import folder_around
from icefloe.commit.base import TablePointer
from icefloe.commit.table_location import is_inside
from icefloe.env import SYSTEM, Env
from icefloe.errors import InputError
from icefloe.io.contained import ALLOWED_ROOTS, contain
from icefloe.io.local import file_location
from icefloe.io.select import file_io
from icefloe.maintenance.moved_tables import load_at_location
from icefloe.model.locations import S3
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

    The property ``allowed-roots``, a comma-separated list of locations, confines the table: files are read only in its
    location and below these roots, links included, and written only in its location and in a ``write.data.path`` below
    these roots. An empty list allows the location of the table only. Without the property, files of a table are read
    wherever its metadata says that they are.

    >>> import icefloe, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> t = icefloe.catalog("demo", uri=f"file://{folder}").create_table("db.orders", schema="id bigint")
    >>> open_table(f"{folder}/db/orders").name
    'orders'
    """
    place = file_location(location)
    io = file_io(place, properties)
    by_file = place.endswith(_METADATA_FILES)
    around = folder_around(place) if by_file else place.rstrip("/")
    known = around if table_location is None else file_location(table_location)
    settings = {name: value for name, value in (properties or {}).items() if name == ALLOWED_ROOTS}
    if by_file:
        pointer: Pointers = MetadataFile(place)
    else:  # links among the versions must not lead out of the allowed roots
        pointer = FolderPointer(contain(io, place, settings) if len(settings) > 0 else io, place)
    table = TablePointer(pointer, (_name(place, by_file=by_file),), io, settings=settings, location=known)
    base = load_at_location(table)  # reports a broken table now, not at its first use
    if known is None and len(settings) > 0:
        _check_allowed(base.metadata.location, place, settings[ALLOWED_ROOTS])
    return Table(table, env)


def _check_allowed(location: str, place: str, roots: str) -> None:
    """Refuse a location that nothing but the metadata determines, unless it is below an allowed root."""
    if not any(is_inside(root.strip(), f"{location}/x", same_schemes=S3) for root in roots.split(",")):
        raise InputError(
            f"the table in {place} states the location {location}, which is below none of the allowed roots; name it"
            " with table_location= if you trust it",
            location=location,
        )


def _name(place: str, *, by_file: bool) -> str:
    """The name of the table: that of its folder."""
    segments = [part for part in place.split("/") if part != ""]
    folders = segments[:-1] if by_file else segments
    return folders[-2] if by_file and folders[-1] == METADATA and len(folders) > 1 else folders[-1]
