"""Reading manifests through a bounded cache of decoded ones.

Manifests are immutable, so a decoded manifest is good for ever; pointers are never cached. The key holds the shape
of the schema as well, because a promoted column changes the type of its bounds.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import pyarrow as pa

from icefloe.codecs.context import ManifestContext
from icefloe.codecs.manifests import decode_leaf, decode_root
from icefloe.io.file_io import FileIO

CACHE_BYTES = 256 * 1024 * 1024

Key = tuple[str, int, int, int]


class ManifestCache:
    """Decoded manifests by location, least recently used out first."""

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._tables: OrderedDict[Key, pa.Table] = OrderedDict()
        self._bytes = 0
        self._max_bytes = max_bytes
        self._lock = Lock()

    def get(self, key: Key) -> pa.Table | None:
        """The table under a key, now the most recently used."""
        with self._lock:
            table = self._tables.get(key)
            if table is not None:
                self._tables.move_to_end(key)
            return table

    def put(self, key: Key, table: pa.Table) -> None:
        """Keep a table, and let the oldest go until all fit; a table larger than the cache is not kept."""
        size = table.nbytes
        if size > self._max_bytes:
            return
        with self._lock:
            if (old := self._tables.pop(key, None)) is not None:
                self._bytes -= old.nbytes
            self._tables[key] = table
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, gone = self._tables.popitem(last=False)
                self._bytes -= gone.nbytes


class ManifestStore:
    """The manifests of one table: where they are, how they decode, and those already decoded."""

    def __init__(self, io: FileIO, context: ManifestContext, cache: ManifestCache) -> None:
        self.io = io
        self.context = context
        self.cache = cache

    def root(self, location: str) -> pa.Table:
        """All rows of a root, as stored."""
        key = self._key(location)
        table = self.cache.get(key)
        if table is None:
            table = decode_root(self.io.read(location), self.context, where=location)
            self.cache.put(key, table)
        return table

    def leaf(self, location: str, *, delete: bool) -> pa.Table:
        """All rows of a leaf, as stored."""
        key = self._key(location)
        table = self.cache.get(key)
        if table is None:
            table = decode_leaf(self.io.read(location), self.context, where=location, delete=delete)
            self.cache.put(key, table)
        return table

    def remember(self, location: str, table: pa.Table) -> None:
        """Keep the rows of a manifest that was just written."""
        self.cache.put(self._key(location), table)

    def _key(self, location: str) -> Key:
        context = self.context
        return (location, context.schema.schema_id, len(context.specs), len(context.expressions))
