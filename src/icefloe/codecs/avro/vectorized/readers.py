"""Readers of Avro values, one for each type, each for many lanes at once (spec: Appendix A, Avro).

Types that Iceberg files do not use have no reader: ``UnsupportedError`` makes the caller read the records in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from icefloe.codecs.avro.projection import ByKeys
from icefloe.codecs.avro.vectorized.columns import ByKey, Column, Lists, Nothing, Part, Rows, Slices, Values, gathered
from icefloe.codecs.avro.vectorized.lanes import Longs, Source
from icefloe.errors import UnsupportedError

Lanes: TypeAlias = Longs | slice
_ALL = slice(None)


class Reader(ABC):
    """Reads values of one Avro type at many positions."""

    __slots__ = ()

    @abstractmethod
    def skip(self, source: Source, at: Longs) -> Longs:
        """The position of each lane after its value."""

    @abstractmethod
    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        """The values as a column, and the position of each lane after its value."""


@dataclass(frozen=True, slots=True)
class _Number(Reader):
    """int and long."""

    def skip(self, source: Source, at: Longs) -> Longs:
        return source.past_numbers(at)

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        numbers, at = source.numbers(at)
        return Values(numbers), at


@dataclass(frozen=True, slots=True)
class _Packed(Reader):
    """float and double."""

    dtype: str

    def skip(self, source: Source, at: Longs) -> Longs:
        return source.fixed(at, np.dtype(self.dtype).itemsize)

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        numbers, at = source.unpacked(at, self.dtype)
        return Values(numbers), at


@dataclass(frozen=True, slots=True)
class _Flag(Reader):
    """boolean."""

    def skip(self, source: Source, at: Longs) -> Longs:
        return source.fixed(at, 1)

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        stored, at = source.unpacked(at, "u1")
        return Values(stored != 0), at


@dataclass(frozen=True, slots=True)
class _Null(Reader):
    """null, which takes no bytes."""

    def skip(self, source: Source, at: Longs) -> Longs:
        return at

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        return Nothing(len(at)), at


@dataclass(frozen=True, slots=True)
class Text(Reader):
    """string and bytes."""

    is_text: bool

    def skip(self, source: Source, at: Longs) -> Longs:
        """The positions after the bytes."""
        return source.slices(at)[2]

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        """The positions of the bytes."""
        starts, lengths, at = source.slices(at)
        return Slices(starts, lengths), at


@dataclass(frozen=True, slots=True)
class _FixedBytes(Reader):
    """fixed: so many bytes."""

    size: int

    def skip(self, source: Source, at: Longs) -> Longs:
        return source.fixed(at, self.size)

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        # The positions may be a view of what an array around this moves on.
        return Slices(at.copy(), np.full(len(at), self.size, np.int64)), source.fixed(at, self.size)


@dataclass(frozen=True, slots=True)
class _Optional(Reader):
    """A union of null and another type."""

    null: int
    inner: Reader

    def skip(self, source: Source, at: Longs) -> Longs:
        rows, at = self._present(source, at)
        if rows is None:
            return self.inner.skip(source, at)
        if len(rows) > 0:
            at[rows] = self.inner.skip(source, at[rows])
        return at

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        rows, at = self._present(source, at)
        if rows is None:
            return self.inner.read(source, at, wanted)
        column, at[rows] = self.inner.read(source, at[rows], wanted)
        if isinstance(column, ByKey):
            return ByKey({key: gathered([(rows, values)], len(at)) for key, values in column.columns.items()}), at
        return gathered([(rows, column)], len(at)), at

    def _present(self, source: Source, at: Longs) -> tuple[Longs | None, Longs]:
        """The lanes that have a value, none if all have; and the positions after them."""
        first = source.data.take(at, mode="clip")
        value, other = (2, 0) if self.null == 0 else (0, 2)  # numbers of branches in zigzag form
        present = first == value
        count = np.count_nonzero(present)
        if count == len(at):
            return None, source.fixed(at, 1)
        if count + np.count_nonzero(first == other) == len(at):
            return np.flatnonzero(present), source.fixed(at, 1)
        branch, at = source.numbers(at)
        at[(branch < 0) | (branch > 1)] = source.dead
        return np.flatnonzero(branch == 1 - self.null), at


@dataclass(frozen=True, slots=True)
class Record(Reader):
    """record: its fields one after another."""

    fields: tuple[tuple[str, Reader], ...]

    def skip(self, source: Source, at: Longs) -> Longs:
        """The positions after the last field."""
        for _, reader in self.fields:
            at = reader.skip(source, at)
        return at

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        """The wanted fields."""
        types = {field.name: field.type for field in wanted}
        columns: dict[str, Column] = {}
        for name, reader in self.fields:
            if name in types:
                columns[name], at = reader.read(source, at, types[name])
            else:
                at = reader.skip(source, at)
        return Rows(len(at), columns), at


@dataclass(frozen=True, slots=True)
class _Array(Reader):
    """array: blocks of items, each with its number of items."""

    items: Reader

    def skip(self, source: Source, at: Longs) -> Longs:
        at = at.copy()
        for lanes in self._steps(source, at, jump=True):
            at[lanes] = self.items.skip(source, at[lanes])
        return at

    def read(self, source: Source, at: Longs, wanted: Any) -> tuple[Any, Longs]:
        if isinstance(wanted, ByKeys):
            return self._read_keys(source, at, wanted)
        at, counts = at.copy(), np.zeros(len(at), np.int64)
        parts: list[tuple[Lanes, Longs, Column]] = []
        for lanes in self._steps(source, at):
            column, at[lanes] = self.items.read(source, at[lanes], wanted.value_type)
            parts.append((lanes, counts[lanes].copy(), column))
            counts[lanes] += 1
        if len(parts) == 0:
            no_lanes = np.zeros(0, np.int64)
            return Lists(counts, self.items.read(source, no_lanes, wanted.value_type)[0]), at
        starts = np.cumsum(counts) - counts
        placed: list[Part] = [(starts[lanes] + item, column) for lanes, item, column in parts]
        return Lists(counts, gathered(placed, int(counts.sum()))), at

    def _read_keys(self, source: Source, at: Longs, wanted: ByKeys) -> tuple[ByKey, Longs]:
        match self.items:
            case Record((("key", _Number()), ("value", value))):
                pass
            case _:
                raise UnsupportedError("pairs of another form")
        at = at.copy()
        all_rows = np.arange(len(at))
        parts: dict[int, list[Part]] = {}
        for lanes in self._steps(source, at):
            keys, here = source.numbers(at[lanes])
            alike = (keys == keys[0]).all()  # files of one table mostly have the same columns
            wanted_keys = [int(keys[0])] if alike else np.unique(keys).tolist()
            wanted_keys = [key for key in wanted_keys if key in wanted.keys]
            if len(wanted_keys) == 0:
                at[lanes] = value.skip(source, here)
                continue
            column, at[lanes] = value.read(source, here, wanted.value)
            rows = all_rows[lanes]
            for key in wanted_keys:
                mine = _ALL if alike else np.flatnonzero(keys == key)
                parts.setdefault(key, []).append((rows[mine], column if alike else column.take(mine)))
        return ByKey({key: gathered(parts[key], len(at)) for key in sorted(parts)}), at

    def _steps(self, source: Source, at: Longs, *, jump: bool = False) -> Iterator[Lanes]:
        """In each step, the lanes that have another item; the caller moves ``at`` past the item.

        With ``jump``, blocks of items that record their size in bytes are skipped.
        """
        rows = np.arange(len(at))
        while len(rows) > 0:
            source.spend(len(rows))
            left, at[rows] = source.numbers(at[rows])
            # Counts beyond the buffer are invalid, among them the lowest number, which has no absolute value.
            wild = (left > source.end) | (left < -source.end)
            if wild.any():
                at[rows[wild]] = source.dead
                left[wild] = 0
            sized = left < 0
            if sized.any():
                sizes, after = source.numbers(at[rows[sized]])
                at[rows[sized]] = source.jumped(after, sizes) if jump else after
            rows, left = rows[left != 0], left[left != 0]
            items = np.maximum(left, 0) if jump else np.abs(left)
            stepping = rows[items > 0]
            items = items[items > 0]
            for step in range(int(items.max(initial=0))):
                lanes = self._with_item(source, at, stepping, items, step)
                if isinstance(lanes, slice) or len(lanes) > 0:
                    yield lanes
                else:
                    break
            rows = rows[source.alive(at[rows])]

    @staticmethod
    def _with_item(source: Source, at: Longs, rows: Longs, left: Longs, step: int) -> Lanes:
        """The lanes that are not dead and have an item at this step of their block."""
        if left.min() <= step:
            rows = rows[left > step]
        source.spend(len(rows))
        alive = at.max() <= source.end
        if alive and len(rows) == len(at):
            return _ALL
        return rows if alive else rows[source.alive(at[rows])]


_SIMPLE: Mapping[str, Reader] = {
    "null": _Null(),
    "int": _Number(),
    "long": _Number(),
    "boolean": _Flag(),
    "float": _Packed("<f4"),
    "double": _Packed("<f8"),
    "string": Text(True),
    "bytes": Text(False),
}


def reader_of(schema: Any) -> Reader:
    """The reader for values of an Avro schema."""
    match schema:
        case str() if schema in _SIMPLE:
            return _SIMPLE[schema]
        case ["null", inner]:
            return _Optional(0, reader_of(inner))
        case [inner, "null"]:
            return _Optional(1, reader_of(inner))
        case {"type": "record", "fields": fields}:
            return Record(tuple((field["name"], reader_of(field["type"])) for field in fields))
        case {"type": "array", "items": items}:
            reader = reader_of(items)
            if _takes_nothing(reader):
                raise UnsupportedError("arrays of items without bytes")
            return _Array(reader)
        case {"type": "fixed", "size": int(size)} if size > 0:
            return _FixedBytes(size)
        case {"type": str(name)} if name in _SIMPLE:
            return _SIMPLE[name]
        case {"type": dict() | list() as inner}:
            return reader_of(inner)
        case _:
            raise UnsupportedError(f"Avro type {schema!r:.80}")


def _takes_nothing(reader: Reader) -> bool:
    """Whether values of a type take no bytes, so that an array could have any number of them."""
    match reader:
        case Record(fields):
            return all(_takes_nothing(inner) for _, inner in fields)
        case _:
            return isinstance(reader, _Null)
