"""Which FileIO serves a location: chosen by the location's scheme, one shared instance for each."""

from __future__ import annotations

import re

from icefloe.errors import UnsupportedError
from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")

LOCAL = LocalFileIO()
MEMORY = MemoryFileIO()

_BY_SCHEME: dict[str, FileIO] = {"": LOCAL, "file": LOCAL, "memory": MEMORY}


def file_io(location: str) -> FileIO:
    """The FileIO for a location.

    >>> type(file_io("file:///wh/db/t")).__name__
    'LocalFileIO'
    """
    match = _SCHEME.match(location)
    scheme = "" if match is None else match[1].lower()
    found = _BY_SCHEME.get(scheme)
    if found is None:
        known = ", ".join(sorted(name for name in _BY_SCHEME if name != ""))
        raise UnsupportedError(
            f"no storage for scheme {scheme!r} of location {location!r}; known schemes: {known}", location=location
        )
    return found
