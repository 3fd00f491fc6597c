"""Chooses the FileIO of a location by its scheme, with one shared instance per storage and settings.

Local files and memory are built in. Object stores go through obstore, which is optional. Any other scheme is tried with
Arrow's own file systems and then with fsspec's, if it is installed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import pyarrow as pa
from pyarrow import fs

from icefloe.errors import StorageError, UnsupportedError
from icefloe.io.arrow_fs import ArrowFileIO, fsspec_file_io
from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.io.storage_locations import OBJECT_STORES, plain_location, scheme_family, storage_properties
from icefloe.lazy import load_optional
from icefloe.model.locations import FILE, Location

LOCAL = LocalFileIO()
MEMORY = MemoryFileIO()

_BUILT_IN: dict[str, FileIO] = {FILE: LOCAL, "memory": MEMORY}

_Key = tuple[frozenset[str], str, frozenset[tuple[str, str]]]
_OPEN: dict[_Key, FileIO] = {}
_LOCK = threading.Lock()


def file_io(location: str, properties: Mapping[str, str] | None = None) -> FileIO:
    """The FileIO for a location; ``properties`` are those of the catalog or table, as ``s3.endpoint``.

    >>> type(file_io("file:///wh/db/t")).__name__
    'LocalFileIO'
    """
    parsed = plain_location(location)
    built_in = _BUILT_IN.get(parsed.scheme)
    if built_in is not None:
        return built_in
    settings = storage_properties(properties or {})
    family = scheme_family(parsed.scheme)
    if len(family) > 0:
        # One instance serves every bucket, since a table may have files in several.
        return _shared((family, "", frozenset(settings.items())), lambda: _object_store(parsed.scheme, settings))
    key = (frozenset({parsed.scheme}), parsed.authority, frozenset[tuple[str, str]]())
    return _shared(key, lambda: _file_system(parsed, location))


def _shared(key: _Key, make: Callable[[], FileIO]) -> FileIO:
    with _LOCK:
        if key not in _OPEN:
            _OPEN[key] = make()
        return _OPEN[key]


def _object_store(scheme: str, settings: Mapping[str, str]) -> FileIO:
    module = load_optional("icefloe.io.object_store", needed_by=f"the storage of {scheme}:// locations")
    opened: FileIO = module.ObjectStoreFileIO(scheme, settings)
    return opened


def _file_system(parsed: Location, location: str) -> FileIO:
    root = f"{parsed.scheme}://{parsed.authority}"
    try:
        file_system, base = fs.FileSystem.from_uri(f"{root}/")
        return ArrowFileIO(file_system, root=f"{root}/", base=base)
    except pa.ArrowInvalid:  # a scheme that Arrow does not know
        return _from_fsspec(parsed, root, location)
    except OSError as error:
        raise StorageError(f"cannot open the storage of {location}: {error}", location=location) from error


def _from_fsspec(parsed: Location, root: str, location: str) -> FileIO:
    known = ", ".join(sorted({*_BUILT_IN, *(scheme for family in OBJECT_STORES for scheme in family)}))
    problem = f"no storage for scheme {parsed.scheme!r} of location {location!r}; known schemes: {known}"
    fsspec = load_optional("fsspec", needed_by=f"{problem}; any other")
    try:
        file_system = fsspec.filesystem(parsed.scheme)
    except ValueError as error:
        raise UnsupportedError(f"{problem} and those of fsspec", location=location) from error
    except ImportError as error:
        raise UnsupportedError(f"cannot open the storage of {location}: {error}", location=location) from error
    base = str(file_system._strip_protocol(f"{root}/"))
    return fsspec_file_io(file_system, root=f"{root}/", base=base)
