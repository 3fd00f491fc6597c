"""Rows of a table found by their keys: built once, asked batch by batch.

A key becomes one machine word: a number is its own, of other values the number among the distinct ones of the index,
and several columns are folded two by two. Words that lie close together are looked up in an array, others in a hash
table. A key with a null in it equals nothing; NaN equals NaN, and -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.int64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: neighbours end up far apart
_HALF = np.uint64(32)
_WORD_BITS = 64
_MIN_BITS, _MAX_BITS = 4, 28
_SMALL_SPAN = 1 << 16
_ROOM = 8  # an array may be this many times as long as the words in it
_NONE = -1
_WORD_KINDS = (pa.types.is_integer, pa.types.is_temporal, pa.types.is_boolean, pa.types.is_floating)


class KeyIndex:
    """The rows of some key columns; without any column, all rows have the same key."""

    def __init__(self, columns: Sequence[Any], rows: int) -> None:
        arrays = [_whole(column) for column in columns]
        self.rows = rows
        self._order: Ints
        self._starts: Ints
        self._lookup: _Lookup
        self._columns = [_Column(array, alone=len(arrays) == 1) for array in arrays]
        self._folds: list[_Lookup] = []
        parts = [column.words(array) for column, array in zip(self._columns, arrays, strict=True)]
        words, known = self._folded(parts, rows)
        places = np.arange(rows) if known is None else np.flatnonzero(known)
        words = words if known is None else words[places]
        table = _table(words)
        if table is not None and (table.find(words) == np.arange(len(words))).all():  # no word comes twice
            self._order, self._starts, self._lookup = places, np.arange(len(words) + 1), table
            return
        order = np.argsort(words, kind="stable")
        ordered = words[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) > 0 else order
        self._order = places[order]
        self._starts = np.concatenate([starts, [len(ordered)]])
        self._lookup = _lookup(ordered[starts])

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same key."""
        return len(self._starts) - 1 == len(self._order)

    @property
    def repeated(self) -> Ints:
        """The first row of every key that comes more than once."""
        return self._order[self._starts[:-1][np.diff(self._starts) > 1]]

    @property
    def batch_rows(self) -> int:
        """How many rows to ask for at once, at least, so that asking costs no more than the rows themselves."""
        return max((column.distinct for column in self._columns), default=0)

    def groups(self, columns: Sequence[Any], rows: int) -> Ints:
        """For each row of other columns the number of its key here, negative if it has none."""
        parts = [column.words(_whole(array)) for column, array in zip(self._columns, columns, strict=True)]
        words, known = self._refolded(parts, rows)
        found = self._lookup.find(words)
        if known is not None:
            found[~known] = _NONE
        return found

    def sizes(self, groups: Ints) -> Ints:
        """How many rows here have the keys of these numbers; none for negative ones."""
        return np.where(groups < 0, 0, self._starts[groups + 1] - self._starts[groups])

    def pairs(self, groups: Ints) -> tuple[Ints, Ints]:
        """Every place in ``groups`` with each row here of its key: the places, and the rows."""
        places = np.flatnonzero(groups >= 0)
        firsts = self._starts[groups[places]]
        if self.is_unique:
            return places, self._order[firsts]
        counts = self._starts[groups[places] + 1] - firsts
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) > 0 else 0) - np.repeat(ends - counts, counts)
        return np.repeat(places, counts), self._order[np.repeat(firsts, counts) + within]

    def _folded(self, parts: list[_Part], rows: int) -> tuple[Words, Any]:
        """The words of the index itself, and how to fold those of others."""
        if len(parts) == 0:
            return np.zeros(rows, np.int64), None
        words, known = parts[0].words, parts[0].known
        for number, part in enumerate(parts[1:], start=1):
            known = _both(known, part.known)
            words = words * self._columns[number].codes + part.words
            lookup = _lookup(np.unique(words if known is None else words[known]))
            self._folds.append(lookup)
            words = lookup.find(words)
        return words, known

    def _refolded(self, parts: list[_Part], rows: int) -> tuple[Words, Any]:
        if len(parts) == 0:
            return np.zeros(rows, np.int64), None
        words, known = parts[0].words, parts[0].known
        for number, (part, lookup) in enumerate(zip(parts[1:], self._folds, strict=True), start=1):
            known = _both(known, part.known)
            words = lookup.find(words * self._columns[number].codes + part.words)
            known = _both(known, words >= 0)
        return words, known


@dataclass(frozen=True, slots=True)
class _Part:
    """One column as words; ``known`` is false where they mean nothing."""

    words: Words
    known: npt.NDArray[np.bool_] | None


class _Column:
    """How the values of one column become words; beside other columns they are numbered from 0 to ``codes``."""

    def __init__(self, source: pa.Array, *, alone: bool) -> None:
        self._values: pa.Array | None = None
        self._lookup: _Lookup | None = None
        self.distinct = 0
        if not _is_word(source.type):
            self._values = pc.unique(source.drop_null())
            self.distinct = self.codes = len(self._values)
        elif not alone:
            part = _words(source)
            found = np.unique(part.words if part.known is None else part.words[part.known])
            self._lookup = _lookup(found)
            self.codes = len(found)

    def words(self, array: pa.Array) -> _Part:
        if self._values is not None:
            found = pc.index_in(array, value_set=self._values, skip_nulls=True)
            return _Part(found.fill_null(_NONE).to_numpy().astype(np.int64), _valid(found))
        part = _words(array)
        if self._lookup is None:
            return part
        codes = self._lookup.find(part.words)
        return _Part(codes, _both(part.known, codes >= 0))


class _Lookup(Protocol):
    """The numbers of words."""

    def find(self, words: Words) -> Ints:
        """The number of each word, -1 for one that is not there."""
        ...


def _lookup(words: Words) -> _Lookup:
    """The numbers of distinct words in their order."""
    table = _table(words)
    return _Hashed(words) if table is None else table


def _table(words: Words) -> _Table | None:
    """The numbers of words in their order, if they lie close together; of equal ones the last counts."""
    first, last = (int(words.min()), int(words.max())) if len(words) > 0 else (0, -1)
    span = last - first + 1
    return _Table(words, first, span) if span <= max(_SMALL_SPAN, _ROOM * len(words)) else None


class _Table:
    """Words that lie close together: their numbers stand in an array."""

    def __init__(self, words: Words, first: int, span: int) -> None:
        self._first, self._last = first, first + span - 1
        self._numbers: npt.NDArray[np.int32] = np.full(span, _NONE, np.int32)
        self._numbers[words - first] = np.arange(len(words), dtype=np.int32)

    def find(self, words: Words) -> Ints:
        """The number of each word, -1 for one that is not there."""
        near = (words >= self._first) & (words <= self._last)
        if near.all():
            return self._numbers[words - self._first].astype(np.int64)
        found: Ints = np.full(len(words), _NONE, np.int64)
        found[near] = self._numbers[words[near] - self._first]
        return found


class _Hashed:
    """Distinct words that lie far apart: those of one slot stand together."""

    def __init__(self, words: Words) -> None:
        bits = min(_MAX_BITS, max(_MIN_BITS, len(words).bit_length() + 1))
        self._shift = np.uint64(_WORD_BITS - bits)
        slots = self._slots(words)
        self._order: Ints = np.argsort(slots, kind="stable")
        self._words: Words = words[self._order]
        self._starts: Ints = np.concatenate([[0], np.cumsum(np.bincount(slots, minlength=1 << bits))])

    def _slots(self, words: Words) -> Ints:
        unsigned = words.view(np.uint64)
        return (((unsigned ^ (unsigned >> _HALF)) * _SPREAD) >> self._shift).astype(np.int64)

    def find(self, words: Words) -> Ints:
        """The number of each word, -1 for one that is not there."""
        found: Ints = np.full(len(words), _NONE, np.int64)
        near = np.arange(len(words))
        slots = self._slots(words)
        at, ends = self._starts[slots], self._starts[slots + 1]
        while len(near) > 0:  # the first word of each slot, then the second
            left = at < ends
            near, at, ends = near[left], at[left], ends[left]
            hit = self._words[at] == words[near]
            found[near[hit]] = self._order[at[hit]]
            near, at, ends = near[~hit], at[~hit] + 1, ends[~hit]
        return found


def _is_word(type_: pa.DataType) -> bool:
    return any(test(type_) for test in _WORD_KINDS)


def _words(array: pa.Array) -> _Part:
    """Numbers, dates, times and truth values as words."""
    known = _valid(array)
    type_ = array.type
    if pa.types.is_floating(type_):
        array = array.cast(pa.float64())
        filled = array.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
        return _Part(np.where(np.isnan(filled), np.nan, filled).view(np.int64), known)
    if pa.types.is_temporal(type_):
        array = array.view(pa.int64() if type_.bit_width == _WORD_BITS else pa.int32())
    elif pa.types.is_boolean(type_):
        array = array.cast(pa.int8())
    filled = (array if array.null_count == 0 else array.fill_null(0)).to_numpy(zero_copy_only=False)
    return _Part(filled.astype(np.int64, copy=False), known)


def _valid(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    if array.null_count == 0:
        return None
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _both(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one & other


def _whole(column: Any) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
