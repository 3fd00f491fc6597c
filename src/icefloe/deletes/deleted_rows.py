"""Loads the deletes of planned data files: vectors, position deletes and equality deletes (spec: Delete Formats).

Delete files are read on first use. Each is read once for all planned files that it applies to, and cached for them up
to a limit. Several threads may load deletes at the same time. Equality deletes apply to older data files only, so the
index of a partition's equality deletes stores the sequence number of every delete row and serves all files of the
partition.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import add_positions, all_positions
from icefloe.deletes.equality_files import DeleteFile, EqualityTest, read_index
from icefloe.deletes.equality_index import EqualityIndex
from icefloe.deletes.partition_keys import Ints, scopes
from icefloe.deletes.position_files import read_positions
from icefloe.deletes.vectors import load_vectors
from icefloe.formats.read.file_read import NO_DELETES, FileDeletes
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT, Limits
from icefloe.model.entries import ContentType, of_type
from icefloe.model.metadata.error_context import NOWHERE, Origin
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.types import Field

K = TypeVar("K")
V = TypeVar("V")

_TASK = ("location", "sequence_number", "deletes")
_VECTOR = ("dv_location", "dv_offset", "dv_size_in_bytes", "dv_cardinality")
_RECENT = 64  # data files whose deletes stay loaded, as their row groups may be read at the same time
_BITMAP_BYTES = 256
_CACHED_BYTES = 512 * 1024 * 1024  # of delete files that further data files may need


class DeletedRows:
    """The deleted rows of planned files, by data file location.

    ``tasks`` and ``deletes`` are those of a plan. ``fields`` has every field of every schema of the table by id, in its
    newest definition. ``mapping`` gives ids to columns of delete files that have none. Errors name the ``origin``.
    """

    def __init__(
        self,
        io: FileIO,
        tasks: pa.Table,
        deletes: pa.Table,
        *,
        fields: Mapping[int, Field],
        mapping: NameMapping | None = None,
        limits: Limits = DEFAULT,
        origin: Origin = NOWHERE,
    ) -> None:
        self._io = io
        self._origin = origin
        self._fields = fields
        self._mapping = mapping
        self._limits = limits
        touched = pc.or_(pc.is_valid(tasks["dv_location"]), pc.greater(pc.list_value_length(tasks["deletes"]), 0))
        self._tasks = tasks.select([*_TASK, *_VECTOR]).filter(touched)
        self._deletes = deletes
        self._is_equality = of_type(deletes, ContentType.EQUALITY_DELETES).to_numpy()
        self._recent = lru_cache(_RECENT)(self._find)
        self._named = ComputeOnce(self._read_positions, size_of=_position_bytes, limit=_CACHED_BYTES)
        self._indexes = ComputeOnce(self._read_index, size_of=lambda index: index.nbytes, limit=_CACHED_BYTES)

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        """The files that have deletes, as rows of ``_tasks``."""
        return {location: row for row, location in enumerate(self._tasks["location"].to_pylist())}

    def of(self, location: str) -> FileDeletes:
        """The deletes of one data file; none if the file is not planned."""
        if location not in self._rows:
            return NO_DELETES
        with self._origin.named():
            return self._recent(location)

    def positions(self, locations: Iterable[str]) -> dict[str, BitMap64]:
        """The positions deleted by vectors and position delete files; files without any are left out."""
        with self._origin.named():
            return self._positions([row for row in map(self._rows.get, locations) if row is not None])

    def _find(self, location: str) -> FileDeletes:
        row = self._rows[location]
        return FileDeletes(positions=self._positions([row]).get(location), tests=self._tests(row))

    def _positions(self, rows: list[int]) -> dict[str, BitMap64]:
        by_file = load_vectors(self._io, self._tasks.take(pa.array(rows, pa.int64())), self._limits)
        for row in rows:
            numbers = [number for number in self._delete_numbers(row) if not self._is_equality[number]]
            location = self._tasks["location"][row].as_py()
            for named in map(self._named, numbers):
                if location in named:
                    add_positions(by_file, location, named[location])
        return {location: positions for location, positions in by_file.items() if len(positions) > 0}

    def _delete_numbers(self, row: int) -> list[int]:
        """The delete files of one planned file, as rows of ``_deletes``."""
        numbers: list[int] = self._tasks["deletes"][row].as_py()
        return numbers

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        """Pairs of a planned file and a delete file: rows of ``_tasks`` and of ``_deletes``, sorted by the latter."""
        lists = self._tasks["deletes"].combine_chunks()
        owners, numbers = pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists).to_numpy()
        order = np.argsort(numbers, kind="stable")
        return owners[order], numbers[order]

    def _read_positions(self, number: int) -> Mapping[str, BitMap64]:
        """The positions that one position delete file deletes in the planned files that it applies to."""
        owners, numbers = self._pairs
        first, last = np.searchsorted(numbers, [number, number + 1])
        wanted = self._tasks["location"].take(pa.array(owners[first:last]))
        location, kind = (self._deletes[name][number].as_py() for name in ("location", "file_format"))
        return read_positions(self._io, location, kind, wanted.to_pylist(), self._origin.table)

    def _tests(self, row: int) -> tuple[EqualityTest, ...]:
        """The equality deletes of one file: a test for each set of delete columns and each partition scope."""
        numbers = [number for number in self._delete_numbers(row) if self._is_equality[number]]
        if len(numbers) == 0:
            return ()
        sequence_number = self._tasks["sequence_number"][row].as_py()
        groups = dict.fromkeys(int(self._groups[number]) for number in numbers)
        return tuple(EqualityTest(self._indexes(group), sequence_number) for group in groups)

    @cached_property
    def _groups(self) -> Ints:
        """A number for each delete file: the same for equal delete columns and the same partition."""
        ids = pc.binary_join(self._deletes["equality_ids"].cast(pa.list_(pa.string())), " ").combine_chunks()
        columns: Ints = ids.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
        return scopes(self._deletes) * (len(columns) + 1) + columns

    def _read_index(self, group: int) -> EqualityIndex:
        """The delete rows of one group."""
        members = np.flatnonzero(self._is_equality & (self._groups == group))
        chosen = self._deletes.take(pa.array(members))
        names = ("location", "file_format", "sequence_number")
        files = [DeleteFile(**row) for row in chosen.select(list(names)).to_pylist()]
        ids = chosen["equality_ids"][0].as_py()
        return read_index(self._io, files, [] if ids is None else ids, fields=self._fields, mapping=self._mapping)


class _Slot(Generic[V]):
    """The cache slot of one value."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: list[V] = []  # the value, once computed
        self.size = 0


class ComputeOnce(Generic[K, V]):
    """Computes a value for each key; other threads wait while it is computed. A failed computation is not cached.

    The least recently used values are evicted while the total size, by ``size_of``, is above ``limit``.

    >>> doubled = ComputeOnce(lambda key: key * 2)
    >>> doubled(4), doubled(4)
    (8, 8)
    """

    def __init__(
        self, compute: Callable[[K], V], *, size_of: Callable[[V], int] = lambda value: 0, limit: int = 0
    ) -> None:
        self._compute = compute
        self._size_of = size_of
        self._limit = limit
        self._lock = threading.Lock()
        self._slots: OrderedDict[K, _Slot[V]] = OrderedDict()

    def __call__(self, key: K) -> V:
        """The value of a key."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
        with slot.lock:
            if len(slot.values) == 0:
                slot.values.append(self._compute(key))
                self._evict(key, slot)
            return slot.values[0]

    def _evict(self, newest: K, slot: _Slot[V]) -> None:
        with self._lock:
            slot.size = self._size_of(slot.values[0])
            total = sum(other.size for other in self._slots.values())
            for key in list(self._slots):
                if total <= self._limit:
                    break
                if key != newest and self._slots[key].size > 0:
                    total -= self._slots.pop(key).size


def all_except(positions: BitMap64, rows: int) -> FileDeletes:
    """Deletes of all ``rows`` rows of a file but those at these positions."""
    return FileDeletes(positions=all_positions(rows) - positions)


def _position_bytes(named: Mapping[str, BitMap64]) -> int:
    """About how much memory the positions of some files take."""
    return sum(_BITMAP_BYTES + 2 * len(positions) for positions in named.values())
