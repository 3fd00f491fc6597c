"""The columns that Parquet files contain, from their footers, which are read once for all scans of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from icefloe.formats.read.reader import stored_columns
from icefloe.io.file_io import FileIO
from icefloe.model.schema.name_mapping import NameMapping

_READERS = 16
_NO_NAMES = NameMapping()  # gives no ids to the columns of a file that has none


class Footers:
    """The ids of the columns of files; ``read`` returns those of one file, which has none without field ids."""

    def __init__(self, read: Callable[[str], frozenset[int]]) -> None:
        self._read = cache(read)

    @classmethod
    def in_storage(cls, io: FileIO) -> Footers:
        """The footers of files in a storage."""
        return cls(lambda location: stored_columns(io, location, mapping=_NO_NAMES))

    def of(self, locations: Iterable[str]) -> list[frozenset[int]]:
        """The ids of the columns of files in order, those inside structs included; several are read at once."""
        with ThreadPoolExecutor(_READERS, thread_name_prefix="icefloe-footers") as pool:
            return list(pool.map(self._read, locations))


NO_FOOTERS = Footers(lambda _: frozenset())
