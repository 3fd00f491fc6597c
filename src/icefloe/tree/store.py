"""Reads manifests through caches of decoded manifests: in memory, and optionally in a folder on local disk.

Manifests are immutable, so a decoded manifest never becomes invalid; pointers are never cached. Decoding also depends
on the schemas of the table, as a promoted column changes the type of its bounds, and for older leaves on the content
type and partition spec in the root row. The cache key includes both. Before V4 the rows of a root that was just written
have more values than its file, so a root is cached for the format version that reads it. A leaf may be decoded with
some of its statistics; it then serves requests that need no others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from threading import Lock
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.manifests import avro_leaf_version, decode_leaf, decode_root, leaf_names, with_stored_sizes
from icefloe.errors import CorruptFile
from icefloe.io.file_io import FileIO
from icefloe.limits import MIB
from icefloe.model.entries import ContentType, StatKeys
from icefloe.model.location_columns import has_name
from icefloe.tree.disk_cache import DiskCache, DiskKey

CACHE_BYTES = 256 * MIB
_HEADERS_AT_ONCE = 16
_READ_AHEAD = 4  # files; only reading runs ahead, as decoding mostly holds the interpreter lock
NO_STATISTICS: StatKeys = frozenset()

Listed = tuple[ContentType, int | None]  # content type and partition spec of a leaf, from its root row
Key = tuple[str, int, Listed | int]  # location, hash of the schemas; a root has the format version, not a root row
Wanted = StatKeys | None  # statistics keys, or all


_NOTHING: tuple[None, Wanted, int] = (None, frozenset(), 0)
_CHUNK_BYTES = 1_100  # of objects for each array, by measurement: 1,053 to 1,075 with their small buffers


class ManifestCache:
    """Decoded manifests by location; evicts the least recently used.

    Most manifests are small. A table of one row takes 1 kB of memory for each of its columns, whose buffers have a few
    bytes, so the columns are counted too.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self._tables: OrderedDict[Key, tuple[pa.Table, Wanted, int]] = OrderedDict()  # the last is the size
        self._bytes = 0
        self._max_bytes = max_bytes
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[ManifestCache], tuple[int]]:
        return ManifestCache, (self._max_bytes,)  # another process reads manifests itself

    def get(self, key: Key, wanted: Wanted = None) -> pa.Table | None:
        """The table of a key, if it has all wanted statistics; becomes the most recently used."""
        with self._lock:
            table, has, _ = self._tables.get(key, _NOTHING)
            if table is None or not _covers(has, wanted):
                return None
            self._tables.move_to_end(key)
            return table

    def known(self, key: Key) -> Wanted:
        """The statistics keys that the table of a key was decoded with; none if there is no table."""
        with self._lock:
            return self._tables.get(key, _NOTHING)[1]

    @property
    def held_bytes(self) -> int:
        """The memory that the tables take."""
        return self._bytes

    def forget(self, locations: pa.ChunkedArray) -> None:
        """Drop the tables of files that were deleted."""
        with self._lock:
            keys = list(self._tables)
            gone = pc.is_in(pa.array([key[0] for key in keys], pa.string()), value_set=locations)
            for place in np.flatnonzero(gone).tolist():
                self._bytes -= self._tables.pop(keys[place])[2]

    def put(self, key: Key, table: pa.Table, has: Wanted = None) -> None:
        """Store a table and evict others until all fit; a table larger than the cache is not stored."""
        size = held_bytes(table)
        if size > self._max_bytes:
            return
        with self._lock:
            old, known, old_size = self._tables.get(key, _NOTHING)
            if old is not None:
                if _covers(known, has):
                    return  # another thread has stored as much
                self._bytes -= old_size
            self._tables[key] = (table, has, size)
            self._tables.move_to_end(key)
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, (*_, evicted) = self._tables.popitem(last=False)
                self._bytes -= evicted


def held_bytes(table: pa.Table) -> int:
    """The memory that a table takes: its buffers, and the objects around them.

    >>> held_bytes(pa.table({"a": [1], "b": [2]}))
    2216
    """
    chunks: int = table.num_columns * (table.column(0).num_chunks if table.num_columns > 0 else 0)
    buffers: int = table.get_total_buffer_size()
    return buffers + _CHUNK_BYTES * chunks


def _covers(has: Wanted, wanted: Wanted) -> bool:
    return has is None or (wanted is not None and wanted <= has)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRequest:
    """A request to read a leaf, with the values of its root row and the statistics keys that are needed.

    Without a partition spec the leaf's own is used.
    """

    location: str
    content: ContentType  # DATA_MANIFEST or DELETE_MANIFEST
    spec_id: int | None = None
    size: int | None = None
    wanted: Wanted = None

    @property
    def listed(self) -> Listed:
        """The values of the root row that decoding depends on."""
        return (self.content, self.spec_id)


Fetch: TypeAlias = Callable[[LeafRequest], pa.Table | bytes]


class ManifestStore:
    """The manifests of one table: reads, decodes and caches them."""

    def __init__(
        self, io: FileIO, context: ManifestContext, cache: ManifestCache, disk: DiskCache | None = None
    ) -> None:
        self.io = io
        self.context = context
        self.cache = cache
        self.disk = disk

    def with_context(self, context: ManifestContext) -> ManifestStore:
        """A store of the same manifests that decodes with other schemas and specs."""
        other = copy(self)
        other.context = context
        return other

    def root(self, location: str) -> pa.Table:
        """All rows of a root, as stored."""
        key = self._key(location, self.context.format_version)
        table = self.cache.get(key)
        if table is None:
            table = decode_root(self.read(location), self.context, where=location)
            self.cache.put(key, table)
        return table

    def leaves(self, requests: Sequence[LeafRequest]) -> Iterator[pa.Table]:
        """All rows of several leaves in order; the files of the next leaves are read while one is decoded."""
        with self._reading_ahead(requests) as fetch:
            for request in requests:
                yield self._leaf(request, fetch)

    def may_contain(self, requests: Sequence[LeafRequest], column: str, names: pa.Array) -> Iterator[bool]:
        """Whether each leaf, in order, may have one of these names in a column of locations, in a row of any status.

        Of leaves that are not decoded already no more than that column is. Names in ``referenced_file`` may be spelled
        in another way, so they are compared by the names of files.
        """
        with self._reading_ahead(requests) as fetch:
            for request in requests:
                known = self.cache.get(self._leaf_key(request), request.wanted)
                fetched = fetch(request) if known is None else known
                if isinstance(fetched, bytes):
                    yield leaf_names(fetched, self.context, where=request.location, column=column, names=names)
                else:
                    yield has_name(fetched[column], names, column)

    @contextmanager
    def _reading_ahead(self, requests: Sequence[LeafRequest]) -> Iterator[Fetch]:
        """A function that fetches leaves that are not in the cache, and reads the files of the next ones ahead."""
        missing = [r for r in requests if self.cache.get(self._leaf_key(r), r.wanted) is None]
        if len(missing) <= 1:
            yield self._fetch
            return
        ahead: dict[LeafRequest, Future[pa.Table | bytes]] = {}
        pending = iter(missing)

        def fetch(request: LeafRequest) -> pa.Table | bytes:
            for further in islice(pending, _READ_AHEAD - len(ahead)):
                ahead[further] = pool.submit(self._fetch, further)
            return ahead.pop(request).result() if request in ahead else self._fetch(request)

        with ThreadPoolExecutor(_READ_AHEAD, thread_name_prefix="icefloe-read") as pool:
            try:
                yield fetch
            finally:
                for future in ahead.values():
                    future.cancel()

    def remember_root(self, location: str, table: pa.Table) -> None:
        """Cache the rows of a root that was just written."""
        self.cache.put(self._key(location, self.context.format_version), with_stored_sizes(table, self.context))

    def remember_leaf(self, location: str, table: pa.Table, *, content: ContentType, spec_id: int) -> None:
        """Cache the rows of a leaf that was just written."""
        self.cache.put(self._key(location, (content, spec_id)), with_stored_sizes(table, self.context))

    def _leaf(self, request: LeafRequest, fetch: Fetch) -> pa.Table:
        key = self._leaf_key(request)
        table = self.cache.get(key, request.wanted)
        if table is not None:
            return table
        fetched = fetch(request)
        on_disk = self._disk_key(request)
        # The folder stores manifests with all statistics, so that one file serves every request.
        has = None if on_disk is not None else _united(request.wanted, self.cache.known(key))
        if isinstance(fetched, bytes):
            table = decode_leaf(
                fetched,
                self.context,
                where=request.location,
                content=request.content,
                spec_id=request.spec_id,
                wanted=has,
            )
            if self.disk is not None and on_disk is not None:
                self.disk.put(on_disk, table)
        else:
            table, has = fetched, request.wanted
        self.cache.put(key, table, has)
        return table

    def _fetch(self, request: LeafRequest) -> pa.Table | bytes:
        """A leaf from the folder on disk, or the bytes of its file."""
        key = self._disk_key(request)
        cached = None if self.disk is None or key is None else self.disk.get(key, request.wanted)
        return self.read(request.location) if cached is None else cached

    def read(self, location: str) -> bytes:
        """The bytes of a manifest, if it is not too large."""
        return self.io.read(location, self.context.limits.manifest_bytes)

    def avro_versions(self, locations: Sequence[str], sizes: Sequence[int]) -> list[int | None]:
        """The format versions in the headers of leaves, read in parallel; none for a leaf that is not Avro."""
        with ThreadPoolExecutor(_HEADERS_AT_ONCE, thread_name_prefix="icefloe-read") as pool:
            return list(pool.map(self._avro_version, locations, sizes))

    def _avro_version(self, location: str, size: int) -> int | None:
        fetch = partial(self.io.read_range, location)
        try:
            return avro_leaf_version(fetch, size, where=location)
        except CorruptFile:  # the size that a manifest list states may be wrong
            return avro_leaf_version(fetch, self.io.size(location), where=location)

    def _disk_key(self, request: LeafRequest) -> DiskKey | None:
        if self.disk is None or request.size is None:
            return None
        return DiskKey(
            location=request.location,
            length=request.size,
            schemas=self.context.fingerprint,
            content=request.content,
            spec_id=request.spec_id,
        )

    def _leaf_key(self, request: LeafRequest) -> Key:
        return self._key(request.location, request.listed)

    def _key(self, location: str, listed: Listed | int) -> Key:
        return (location, self.context.shape, listed)


def _united(one: Wanted, other: Wanted) -> Wanted:
    return None if one is None or other is None else one | other
