"""The location of a table, if a folder or a catalog determines it and not only the metadata.

V4 metadata may lack a location, and a V4 table may be moved; the table is then where its metadata file is (V4 proposal:
relative locations).
"""

from __future__ import annotations

import os
from collections.abc import Collection

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.names import Identifier
from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.errors import FormatError, InputError, UnsupportedError
from icefloe.io.file_io import FileIO
from icefloe.io.local import local_path
from icefloe.limits import DEFAULT, Limits
from icefloe.model.locations import FILE, S3, contains, parse_location, same_location
from icefloe.model.metadata.table_metadata import TableMetadata


def read_metadata(
    io: FileIO, location: str, table_location: str | None = None, limits: Limits = DEFAULT
) -> tuple[TableMetadata, str | None]:
    """The metadata in a file, of a table at ``table_location`` if known, and the location it states if different.

    UnsupportedError if these differ and the table names its files by absolute locations, as before V4.
    """
    data = io.read(location, limits.metadata_bytes)
    try:
        metadata = decode_metadata(data, where=location, limits=limits)
    except FormatError as error:  # it may lack a location and not be in a metadata folder; else it is broken either way
        if table_location is None:
            raise
        try:
            return decode_metadata(data, where=location, limits=limits, table_location=table_location), None
        except UnsupportedError:  # it states a location, so that is not what is wrong
            raise error from None
    if table_location is None or not metadata.states_location or is_same_folder(metadata.location, table_location):
        return metadata, None
    moved = decode_metadata(data, where=location, limits=limits, table_location=table_location)
    return moved, metadata.location


def location_in(catalog: Catalog, identifier: Identifier) -> str | None:
    """The location of a table, if its catalog determines it."""
    return catalog.default_location(identifier) if catalog.names_locations else None


def is_inside(folder: str, location: str, *, same_schemes: Collection[str] = ()) -> bool:
    """Whether a location is inside a folder; a location that cannot be parsed is not.

    >>> is_inside("/w/t", "/w/t/data/a.parquet"), is_inside("/w/t", "/w/u/a.parquet")
    (True, False)
    """
    try:
        return contains(folder, location, same_schemes=same_schemes)
    except FormatError:
        return False


def is_same_folder(one: str, other: str) -> bool:
    """Whether two locations are the same folder; follows links. Locations that cannot be parsed count as the same.

    >>> is_same_folder("file:/w/t", "/w/t/"), is_same_folder("s3a://b/t", "s3://b/t"), is_same_folder("/w/t", "/w/u")
    (True, True, False)
    """
    try:
        if same_location(one.rstrip("/"), other.rstrip("/"), same_schemes=S3):
            return True
        if parse_location(one).scheme == FILE == parse_location(other).scheme:
            return os.path.samefile(local_path(one), local_path(other))
    except OSError:
        return False  # one of them does not exist
    except (FormatError, InputError):
        return True
    return False
