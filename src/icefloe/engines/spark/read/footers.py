"""The columns that Parquet files contain, from their footers, which are read once for all scans of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from icefloe.formats.read.reader import stored_columns
from icefloe.io.file_io import FileIO
from icefloe.model.schema.name_mapping import NameMapping

_READERS = 16
_NO_NAMES = NameMapping()  # gives no ids to the columns of a file that has none


class Footers:
    """The ids of the columns of files; a file without field ids has none.

    Called for one file, as ``footers(location)``.
    """

    def __init__(self, io: FileIO) -> None:
        self._read = cache(lambda location: stored_columns(io, location, mapping=_NO_NAMES))

    def __call__(self, location: str) -> frozenset[int]:
        """The ids of the columns of one file, those inside structs included."""
        return self._read(location)

    def of(self, locations: Iterable[str]) -> list[frozenset[int]]:
        """The ids of the columns of files in order; several footers are read at the same time."""
        with ThreadPoolExecutor(_READERS, thread_name_prefix="icefloe-footers") as pool:
            return list(pool.map(self._read, locations))
