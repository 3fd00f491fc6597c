"""Avro records into Arrow columns, all records at once (spec: Appendix A, Avro).

Records have no index: where one ends is known only after reading it. But the first text of a record, the path of a
file, begins like that of its neighbours, so its occurrences in the buffer tell where records probably are. From all of
these places numpy reads to the end of the record and on to the first text of the next one. If that chain leads from the
first byte of the buffer to its last one, and has as many records as the blocks say, then it is what reading in order
gives. If not, or if the records have a form that is not read so, ``UnsupportedError`` asks the caller to read in order.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.codecs.avro_columns import Column, Lists, Rows, Slices, Values, gathered
from icefloe.codecs.avro_lanes import Longs, Source
from icefloe.errors import UnsupportedError

FEWEST_RECORDS = 48  # with fewer, reading in order is faster
_MOST_ITEMS = 20_000  # in one array of one record
_PREFIX_BYTES = 16
_ROUNDS = 12


class Reader(ABC):
    """What reads values of one Avro type at many positions."""

    __slots__ = ()

    @abstractmethod
    def skip(self, source: Source, at: Longs) -> Longs:
        """Where each lane goes on behind its value."""

    @abstractmethod
    def read(self, source: Source, at: Longs, type_: Any) -> tuple[Column, Longs]:
        """The values, of which those in the Arrow type are wanted, and where each lane goes on."""


@dataclass(frozen=True, slots=True)
class _Number(Reader):
    """int and long."""

    def skip(self, source: Source, at: Longs) -> Longs:
        return source.numbers(at)[1]

    def read(self, source: Source, at: Longs, type_: Any) -> tuple[Column, Longs]:
        numbers, at = source.numbers(at)
        return Values(numbers), at


@dataclass(frozen=True, slots=True)
class _Packed(Reader):
    """boolean, float and double."""

    dtype: str

    def skip(self, source: Source, at: Longs) -> Longs:
        return source.fixed(at, np.dtype(self.dtype).itemsize)

    def read(self, source: Source, at: Longs, type_: Any) -> tuple[Column, Longs]:
        numbers, at = source.unpacked(at, self.dtype)
        return Values(numbers), at


@dataclass(frozen=True, slots=True)
class _Text(Reader):
    """string and bytes."""

    is_text: bool

    def skip(self, source: Source, at: Longs) -> Longs:
        return source.slices(at)[2]

    def read(self, source: Source, at: Longs, type_: Any) -> tuple[Column, Longs]:
        starts, lengths, at = source.slices(at)
        return Slices(starts, lengths), at


@dataclass(frozen=True, slots=True)
class _FixedBytes(Reader):
    """fixed: so many bytes."""

    size: int

    def skip(self, source: Source, at: Longs) -> Longs:
        return source.fixed(at, self.size)

    def read(self, source: Source, at: Longs, type_: Any) -> tuple[Column, Longs]:
        return Slices(at, np.full(len(at), self.size, np.int64)), source.fixed(at, self.size)


@dataclass(frozen=True, slots=True)
class _Optional(Reader):
    """A union of null and another type."""

    null: int
    inner: Reader

    def skip(self, source: Source, at: Longs) -> Longs:
        rows, at = self._present(source, at)
        if len(rows) == len(at):
            return self.inner.skip(source, at)
        at[rows] = self.inner.skip(source, at[rows])
        return at

    def read(self, source: Source, at: Longs, type_: Any) -> tuple[Column, Longs]:
        rows, at = self._present(source, at)
        column, moved = self.inner.read(source, at[rows], type_)
        if len(rows) == len(at):
            return column, moved
        at[rows] = moved
        return column.spread(rows, len(at)), at

    def _present(self, source: Source, at: Longs) -> tuple[Longs, Longs]:
        branch, at = source.numbers(at)
        wrong = (branch < 0) | (branch > 1)
        if wrong.any():
            at = np.where(wrong, source.dead, at)
        return np.flatnonzero(branch == 1 - self.null), at


@dataclass(frozen=True, slots=True)
class _Record(Reader):
    """record: its fields one after another."""

    fields: tuple[tuple[str, Reader], ...]

    def skip(self, source: Source, at: Longs) -> Longs:
        for _, reader in self.fields:
            at = reader.skip(source, at)
        return at

    def read(self, source: Source, at: Longs, type_: Any) -> tuple[Column, Longs]:
        wanted = {each.name: each.type for each in type_}
        columns: dict[str, Column] = {}
        for name, reader in self.fields:
            if name in wanted:
                columns[name], at = reader.read(source, at, wanted[name])
            else:
                at = reader.skip(source, at)
        return Rows(len(at), columns), at


@dataclass(frozen=True, slots=True)
class _Array(Reader):
    """array: blocks of items, each with its number of items."""

    items: Reader

    def skip(self, source: Source, at: Longs) -> Longs:
        at = at.copy()
        for rows, _ in self._steps(source, at):
            at[rows] = self.items.skip(source, at[rows])
        return at

    def read(self, source: Source, at: Longs, type_: Any) -> tuple[Column, Longs]:
        at, counts = at.copy(), np.zeros(len(at), np.int64)
        parts: list[tuple[Longs, Longs, Column]] = []
        for rows, item in self._steps(source, at):
            column, at[rows] = self.items.read(source, at[rows], type_.value_type)
            parts.append((rows, item, column))
            counts[rows] = item + 1
        if len(parts) == 0:
            nobody = np.zeros(0, np.int64)
            return Lists(counts, self.items.read(source, nobody, type_.value_type)[0]), at
        starts = np.cumsum(counts) - counts
        placed = [(starts[rows] + item, column) for rows, item, column in parts]
        return Lists(counts, gathered(placed, int(counts.sum()))), at

    def _steps(self, source: Source, at: Longs) -> Iterator[tuple[Longs, Longs]]:
        """The lanes that have another item, with its index, as often as there are any; they move ``at`` themselves."""
        rows, done = np.arange(len(at)), np.zeros(len(at), np.int64)
        while len(rows) > 0:
            left, at[rows] = source.numbers(at[rows])
            sized = rows[left < 0]
            if len(sized) > 0:
                at[sized] = source.numbers(at[sized])[1]  # the size in bytes, for those who skip
            left = np.where(source.alive(at[rows]), np.abs(left), 0)
            if left.max() > _MOST_ITEMS:
                at[rows[left > _MOST_ITEMS]] = source.dead
                left = np.where(left > _MOST_ITEMS, 0, left)
            rows, left = rows[left > 0], left[left > 0]
            for step in range(int(left.max(initial=0))):
                here = rows[left > step] if step > 0 or left.min() == 0 else rows
                here = here[source.alive(at[here])]
                yield here, done[here]
                done[here] += 1
            rows = rows[source.alive(at[rows])]


_SIMPLE: Mapping[str, Reader] = {
    "int": _Number(),
    "long": _Number(),
    "boolean": _Packed("?"),
    "float": _Packed("<f4"),
    "double": _Packed("<f8"),
    "string": _Text(True),
    "bytes": _Text(False),
}


def reader_of(schema: Any) -> Reader:
    """What reads values of an Avro schema."""
    match schema:
        case str() if schema in _SIMPLE:
            return _SIMPLE[schema]
        case ["null", inner]:
            return _Optional(0, reader_of(inner))
        case [inner, "null"]:
            return _Optional(1, reader_of(inner))
        case {"type": "record", "fields": fields}:
            return _Record(tuple((each["name"], reader_of(each["type"])) for each in fields))
        case {"type": "array", "items": items}:
            reader = reader_of(items)
            if isinstance(reader, (_Array, _Optional)) or _holds_arrays(reader):
                raise UnsupportedError("arrays inside arrays")
            return _Array(reader)
        case {"type": "fixed", "size": int(size)} if size > 0:
            return _FixedBytes(size)
        case {"type": str(name)} if name in _SIMPLE:
            return _SIMPLE[name]
        case {"type": dict() | list() as inner}:
            return reader_of(inner)
        case _:
            raise UnsupportedError(f"Avro type {schema!r:.80}")


def _holds_arrays(reader: Reader) -> bool:
    match reader:
        case _Record(fields):
            return len(fields) == 0 or any(_holds_arrays(inner) for _, inner in fields)
        case _Optional(_, inner):
            return _holds_arrays(inner)
        case _:
            return isinstance(reader, _Array)


def decode_together(data: bytes, counts: Longs, ends: Longs, schema: Any, type_: pa.DataType) -> pa.StructArray:
    """All records of a buffer of blocks, as a struct of the wanted fields; ``counts`` and ``ends`` are the blocks'."""
    record = reader_of(schema)
    if not isinstance(record, _Record):
        raise UnsupportedError("not a record")
    source = Source(data)
    starts = _Chain(source, data, record).starts(int(counts.sum()))
    column, stops = record.read(source, starts, type_)
    if not np.array_equal(stops[:-1], starts[1:]) or stops[-1] != source.end:
        raise UnsupportedError("records do not end where the next ones begin")
    if not np.array_equal(stops[np.cumsum(counts) - 1], ends):
        raise UnsupportedError("records do not end where their blocks do")
    return column.arrow(data, type_)


class _Chain:
    """The search for the places where records begin."""

    def __init__(self, source: Source, data: bytes, record: _Record) -> None:
        self._source = source
        self._data = data
        fields = _flat(record)
        first = next((i for i, reader in enumerate(fields) if reader == _Text(True)), None)
        if first is None:
            raise UnsupportedError("no text to recognise records by")
        self._head, self._tail = fields[:first], fields[first:]

    def starts(self, count: int) -> Longs:
        """Where each record begins."""
        texts = np.empty(0, np.int64)
        ends = following = texts
        missing = int(self._skip(self._head, np.zeros(1, np.int64))[0])
        first = missing
        for _ in range(_ROUNDS):
            new = np.setdiff1d(self._alike(missing), texts)
            texts = np.concatenate([texts, new])
            new_ends = self._skip(self._tail, new)
            ends = np.concatenate([ends, new_ends])
            following = np.concatenate([following, self._skip(self._head, new_ends)])
            order = np.argsort(texts)
            texts, ends, following = texts[order], ends[order], following[order]
            chain, missing = self._follow(first, texts, ends, following, count)
            if missing < 0:
                return np.concatenate([[0], ends[chain[:-1]]])
        raise UnsupportedError("the first texts of records are too different")

    def _skip(self, readers: list[Reader], at: Longs) -> Longs:
        for reader in readers:
            at = reader.skip(self._source, at)
        return at

    def _alike(self, text: int) -> Longs:
        """Where texts may be that begin like the one at a position, that one among them."""
        start, length, _ = (int(each[0]) for each in self._source.slices(np.array([text], np.int64)))
        if start >= self._source.end or length > self._source.end - start or length <= 0:
            raise UnsupportedError("no text where one should be")
        prefix = self._data[start : start + min(length, _PREFIX_BYTES)]
        found = np.array([match.start() for match in re.finditer(re.escape(prefix), self._data)], np.int64) - 1
        found = found[found >= 0]
        for _ in range(2):  # the length of a text before it may take several bytes
            found = np.where((found > 0) & (self._source.data[found - 1] >= 0x80), found - 1, found)
        return np.unique(np.append(found, text))

    def _follow(self, first: int, texts: Longs, ends: Longs, following: Longs, count: int) -> tuple[Longs, int]:
        """The texts of the records in order, or the place of one that is not known yet."""
        index = np.minimum(np.searchsorted(texts, following), len(texts) - 1)
        known = (texts[index] == following).tolist()
        after, last = index.tolist(), (ends == self._source.end).tolist()
        here = int(np.searchsorted(texts, first))
        chain = [here]
        while not last[here]:
            if not known[here]:
                return np.array(chain), int(following[here])
            here = after[here]
            chain.append(here)
            if len(chain) > count:
                raise UnsupportedError("more records than the blocks say")
        if len(chain) != count:
            raise UnsupportedError("fewer records than the blocks say")
        return np.array(chain), -1


def _flat(record: _Record) -> list[Reader]:
    """The readers of a record in order, those of required records inside it one by one."""
    found: list[Reader] = []
    for _, reader in record.fields:
        found += _flat(reader) if isinstance(reader, _Record) else [reader]
    return found
