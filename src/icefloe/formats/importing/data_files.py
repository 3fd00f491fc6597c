"""The data files that paths name: files, and folders with the files in them."""

from __future__ import annotations

from icefloe.errors import InputError, NoSuchFile
from icefloe.io.file_io import FileIO
from icefloe.io.local import file_location
from icefloe.io.storage_locations import plain_location
from icefloe.model.locations import FILE, spellings

THREADS = 8  # footers are small, so most of the time is spent waiting


def data_files(io: FileIO, paths: list[str]) -> list[str]:
    """The files of these paths, and the data files in folders; InputError if a file is given twice."""
    locations: list[str] = []
    paths_by_location: dict[str, str] = {}
    for path in paths:
        for location in _files(io, path):
            if location in paths_by_location:
                first = paths_by_location[location]
                raise InputError(f"{location} is given twice: by {first!r} and {path!r}", location=location)
            paths_by_location.update(dict.fromkeys(spellings(location), path))
            locations.append(location)
    return locations


def _files(io: FileIO, path: str) -> list[str]:
    location = _usual(file_location(path))
    if not path.endswith("/") and io.exists(location):
        return [location]
    inside = sorted(info.location for info in io.list(location))
    if len(inside) == 0:
        raise NoSuchFile(f"there is no file at {location}, and none below it", location=location)
    return [file for file in inside if not _is_hidden(file[len(location) :])]


def _usual(location: str) -> str:
    """A file location as listings state it: with one slash between names, and without a host."""
    parsed = plain_location(location)
    if parsed.scheme != FILE or parsed.authority != "":
        return location
    path = "/" + "/".join(parsed.segments)
    return location if location == f"file:{path}" else f"file://{path}"


def _is_hidden(path: str) -> bool:
    """Whether the name of a file says that it is not a data file, such as Spark's ``_SUCCESS`` and ``.x.crc``."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.split("/"))
