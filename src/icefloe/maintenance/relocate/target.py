"""Which locations a table can be relocated to: never one that overlaps with a table, nor a whole disk or bucket."""

from __future__ import annotations

import os
import re
from itertools import islice

from icefloe.catalogs.catalog import Pointers
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.stage import METADATA_FOLDER
from icefloe.commit.table_location import is_inside, is_same_folder, read_metadata
from icefloe.errors import IcefloeError, InputError, UnsupportedError
from icefloe.io.file_io import FileIO
from icefloe.io.local import file_location, local_path
from icefloe.io.storage_locations import plain_location
from icefloe.maintenance.containment import is_root
from icefloe.model.locations import FILE, S3, parse_location

_ONE_SLASH = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+:/(?!/)", re.IGNORECASE)
_WHOLE = "is a whole disk or bucket; give a folder in it"
_LOOKED_AT = 100  # metadata files at the new location that are compared with the table


def checked_target(table: TablePointer, base: Base, new_location: str, *, switch: bool) -> str:
    """The new location of a table, without a slash at its end; InputError if the table cannot be there."""
    new, old = file_location(new_location), base.metadata.location
    if _ONE_SLASH.match(new_location) is not None:
        raise _refused(table, new_location, "has one slash after its scheme; write scheme://name/path")
    if new.lower() == f"{FILE}:":
        raise _refused(table, new_location, _WHOLE)
    if not plain_location(new).is_plain:
        raise _refused(table, new, "has a '.' or '..' segment, which some programs would decode; write it without")
    if is_root(new):
        raise _refused(table, new, _WHOLE)
    if is_same_folder(new, old):
        raise _refused(table, new, "is its location already")
    if _overlap(new, old):
        raise _refused(table, new, f"overlaps with its location {old}; choose a folder beside it")
    if switch and getattr(table.catalog, "names_locations", False):
        raise UnsupportedError(
            f"table {table}: its catalog determines its location, so the entry cannot be switched to {new}. Plan with"
            " switch=False and register the new metadata file in another catalog",
            table=str(table),
        )
    for name, pointer in _others(table.catalog, table).items():
        if is_inside(new, pointer, same_schemes=S3):
            raise _refused(table, new, f"has the metadata of table {name}")
    return new


def check_unused(table: TablePointer, base: Base, io: FileIO, new: str) -> None:
    """InputError if there are metadata files of another table at the new location."""
    names = (info.location for info in io.list(f"{new}/{METADATA_FOLDER}"))
    for location in islice((name for name in names if name.endswith(".metadata.json")), _LOOKED_AT):
        try:
            metadata, _ = read_metadata(io, location)
        except UnsupportedError:
            continue  # a copy of this or another table that names another location; its names are never reused
        except IcefloeError as error:
            raise _refused(table, new, f"has {location}, which cannot be read: {error}") from error
        if metadata.table_uuid != base.metadata.table_uuid:
            raise _refused(table, new, f"has another table: {location} has uuid {metadata.table_uuid}")


def _overlap(one: str, other: str) -> bool:
    inside = is_inside(one, other, same_schemes=S3) or is_inside(other, one, same_schemes=S3)
    if inside or not parse_location(one).scheme == FILE == parse_location(other).scheme:
        return inside
    real = [f"{os.path.realpath(local_path(location))}/" for location in (one, other)]
    return real[0].startswith(real[1]) or real[1].startswith(real[0])


def _others(catalog: Pointers, table: TablePointer) -> dict[str, str]:
    others = getattr(catalog, "others", None)
    return {} if others is None else dict(others(table.identifier))


def _refused(table: TablePointer, new: str, reason: str) -> InputError:
    return InputError(f"table {table} cannot be relocated to {new}: that {reason}", location=new, table=str(table))
