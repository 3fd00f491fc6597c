"""Where a table is, when that is known from more than its metadata: from its folder, or from a catalog of folders.

A table that states its location is there, whatever else its metadata is copied to; one of V4 that states none, or
that is found elsewhere, is where its metadata is (V4 proposal: relative locations).
"""

from __future__ import annotations

import os

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.names import Identifier
from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.errors import FormatError, InputError
from icefloe.io.file_io import FileIO
from icefloe.io.local import local_path
from icefloe.limits import DEFAULT, Limits
from icefloe.model.locations import FILE, S3, parse_location, same_location
from icefloe.model.metadata.table_metadata import TableMetadata


def read_metadata(
    io: FileIO, location: str, place: str | None = None, limits: Limits = DEFAULT
) -> tuple[TableMetadata, str | None]:
    """The metadata in a file, of a table that is at ``place`` if that is given, and the other place that it states.

    UnsupportedError if it states another place and names its files by absolute locations, as all versions before V4.
    """
    data = io.read(location)
    try:
        metadata = decode_metadata(data, where=location, limits=limits)
    except FormatError:  # a file that lies anywhere and states no place, or one that is broken either way
        if place is None:
            raise
        return decode_metadata(data, where=location, limits=limits, table_location=place), None
    if place is None or not metadata.states_location or is_same_place(metadata.location, place):
        return metadata, None
    moved = decode_metadata(data, where=location, limits=limits, table_location=place)
    return moved, metadata.location


def place_in(catalog: Catalog, identifier: Identifier) -> str | None:
    """Where a catalog knows a table to be; none if its tables may be anywhere."""
    return catalog.default_location(identifier) if catalog.names_locations else None


def is_same_place(stated: str, place: str) -> bool:
    """Whether two locations are one folder, links followed; what cannot be compared is taken at its word.

    >>> is_same_place("file:/wh/t", "/wh/t/"), is_same_place("s3a://b/t", "s3://b/t"), is_same_place("/wh/t", "/wh/u")
    (True, True, False)
    """
    try:
        if same_location(stated.rstrip("/"), place.rstrip("/"), same_schemes=S3):
            return True
        if parse_location(stated).scheme == FILE == parse_location(place).scheme:
            return os.path.samefile(local_path(stated), local_path(place))
    except OSError:
        return False  # one of them is not there
    except (FormatError, InputError):
        return True
    return False
