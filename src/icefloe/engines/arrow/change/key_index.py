"""An index of rows by key: built once, searched with the keys of other rows batch by batch.

A key becomes one 64-bit word. Numbers, dates and times are words already; other values get their number among the
distinct values of the index; several columns are combined two by two. Words of a narrow range are looked up in an
array, others in a hash table. A key with a null equals nothing; NaN equals NaN, and -0.0 equals 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.word_table import WordTable, bits_of, is_fixed_width, words_of
from icefloe.model.columns import one_array

Ints: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.int64]
_Mask: TypeAlias = npt.NDArray[np.bool_]

_NARROW_RANGE = 1 << 16
_MAX_SPARSENESS = 8  # an array may be this many times as long as the words in it
_NONE = -1


class KeyIndex:
    """The rows of some key columns; without any column, all rows have the same key."""

    def __init__(self, columns: Sequence[Any], rows: int) -> None:
        arrays = [_plain(column) for column in columns]
        self.rows = rows
        self._order: Ints  # rows, those of one key together
        self._starts: Ints  # where in _order the rows of each key start, and the end
        self._lookup: _Lookup  # from the word of a key to its number
        self._columns = [_Column(array, is_only=len(arrays) == 1) for array in arrays]
        self._folds: list[_Lookup] = []
        parts = [column.words(array) for column, array in zip(self._columns, arrays, strict=True)]
        words, is_key = self._fold(parts, rows)
        numbers = np.arange(rows) if is_key is None else np.flatnonzero(is_key)
        words = words if is_key is None else words[numbers]
        table = _array_lookup(words)
        if table is not None and (table.find(words) == np.arange(len(words))).all():  # no word repeats
            self._order, self._starts, self._lookup = numbers, np.arange(len(words) + 1), table
            return
        order = np.argsort(words, kind="stable")
        ordered = words[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) > 0 else order
        self._order = numbers[order]
        self._starts = np.concatenate([starts, [len(ordered)]])
        self._lookup = _lookup(ordered[starts])

    @property
    def is_unique(self) -> bool:
        """Whether no two rows have the same key."""
        return len(self._starts) - 1 == len(self._order)

    @property
    def repeated(self) -> Ints:
        """The first row of every key that more than one row has."""
        return self._order[self._starts[:-1][np.diff(self._starts) > 1]]

    @property
    def batch_rows(self) -> int:
        """The least number of rows to search for at once, so that preparing the search costs less than the rows."""
        return max((column.distinct for column in self._columns), default=0)

    def key_numbers(self, columns: Sequence[Any], rows: int) -> Ints:
        """For each row of other columns the number of its key in this index, -1 if no row here has it."""
        parts = [column.words(_plain(array)) for column, array in zip(self._columns, columns, strict=True)]
        words, is_key = self._fold_again(parts, rows)
        numbers = self._lookup.find(words)
        if is_key is not None:
            numbers[~is_key] = _NONE
        return numbers

    def row_counts(self, key_numbers: Ints) -> Ints:
        """How many rows here have each of these keys; 0 for -1."""
        return np.where(key_numbers < 0, 0, self._starts[key_numbers + 1] - self._starts[key_numbers])

    def pairs(self, key_numbers: Ints) -> tuple[Ints, Ints]:
        """Every index of ``key_numbers`` with each row here that has that key: the indices, and the rows."""
        indices = np.flatnonzero(key_numbers >= 0)
        firsts = self._starts[key_numbers[indices]]
        if self.is_unique:
            return indices, self._order[firsts]
        counts = self._starts[key_numbers[indices] + 1] - firsts
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) > 0 else 0) - np.repeat(ends - counts, counts)
        return np.repeat(indices, counts), self._order[np.repeat(firsts, counts) + within]

    def _fold(self, parts: list[_Part], rows: int) -> tuple[Words, _Mask | None]:
        """One word for each row of the index; records how to combine the columns of other rows."""
        if len(parts) == 0:
            return np.zeros(rows, np.int64), None
        words, is_key = parts[0].words, parts[0].is_key
        for number, part in enumerate(parts[1:], start=1):
            is_key = _both(is_key, part.is_key)
            words = words * self._columns[number].codes + part.words
            lookup = _lookup(np.unique(words if is_key is None else words[is_key]))
            self._folds.append(lookup)
            words = lookup.find(words)
        return words, is_key

    def _fold_again(self, parts: list[_Part], rows: int) -> tuple[Words, _Mask | None]:
        """One word for each of other rows; ``is_key`` is false where no row of the index has it."""
        if len(parts) == 0:
            return np.zeros(rows, np.int64), None
        words, is_key = parts[0].words, parts[0].is_key
        for number, (part, lookup) in enumerate(zip(parts[1:], self._folds, strict=True), start=1):
            is_key = _both(is_key, part.is_key)
            words = lookup.find(words * self._columns[number].codes + part.words)
            is_key = _both(is_key, words >= 0)
        return words, is_key


@dataclass(frozen=True, slots=True)
class _Part:
    """The words of one column; where ``is_key`` is false they have no meaning and equal nothing."""

    words: Words
    is_key: _Mask | None


class _Column:
    """Converts the values of one column to words; if it is not the only column, to numbers below ``codes``."""

    def __init__(self, source: pa.Array, *, is_only: bool) -> None:
        self._values: pa.Array | None = None
        self._lookup: _Lookup | None = None
        self.distinct = 0
        if not is_fixed_width(source.type):
            self._values = pc.unique(source.drop_null())
            self.distinct = self.codes = len(self._values)
        elif not is_only:
            part = _words(source)
            distinct = np.unique(part.words if part.is_key is None else part.words[part.is_key])
            self._lookup = _lookup(distinct)
            self.codes = len(distinct)

    def words(self, array: pa.Array) -> _Part:
        if self._values is not None:
            numbers = pc.index_in(array, value_set=self._values, skip_nulls=True)
            return _Part(numbers.fill_null(_NONE).to_numpy().astype(np.int64), _valid(numbers))
        part = _words(array)
        if self._lookup is None:
            return part
        codes = self._lookup.find(part.words)
        return _Part(codes, _both(part.is_key, codes >= 0))


class _Lookup(Protocol):
    """Numbers of words."""

    def find(self, words: Words) -> Ints:
        """The number of each word, -1 for a word that is not there."""
        ...


def _lookup(words: Words) -> _Lookup:
    """Numbers distinct words in their order."""
    table = _array_lookup(words)
    return _HashLookup(words) if table is None else table


def _array_lookup(words: Words) -> _ArrayLookup | None:
    """Numbers words in their order if their range is narrow; of equal words the last one's number is found."""
    first, last = (int(words.min()), int(words.max())) if len(words) > 0 else (0, -1)
    length = last - first + 1
    is_narrow = length <= max(_NARROW_RANGE, _MAX_SPARSENESS * len(words))
    return _ArrayLookup(words, first, length) if is_narrow else None


class _ArrayLookup:
    """Numbers of words in an array that covers the range of the words."""

    def __init__(self, words: Words, first: int, length: int) -> None:
        self._first, self._last = first, first + length - 1
        self._numbers: npt.NDArray[np.int32] = np.full(length, _NONE, np.int32)
        self._numbers[words - first] = np.arange(len(words), dtype=np.int32)

    def find(self, words: Words) -> Ints:
        """The number of each word, -1 for a word that is not there."""
        in_range = (words >= self._first) & (words <= self._last)
        if in_range.all():
            return self._numbers[words - self._first].astype(np.int64)
        numbers: Ints = np.full(len(words), _NONE, np.int64)
        numbers[in_range] = self._numbers[words[in_range] - self._first]
        return numbers


class _HashLookup:
    """Numbers of distinct words in a hash table."""

    def __init__(self, words: Words) -> None:
        self._table = WordTable(words.view(np.uint64))

    def find(self, words: Words) -> Ints:
        """The number of each word, -1 for a word that is not there."""
        numbers: Ints = np.full(len(words), _NONE, np.int64)
        for indices, rows in self._table.equal_words(words.view(np.uint64), first_only=True):
            numbers[indices] = rows
        return numbers


def _words(array: pa.Array) -> _Part:
    """Numbers, dates, times and booleans as words."""
    if pa.types.is_floating(array.type):
        array = pc.add(array.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
    return _Part(words_of(bits_of(array)).view(np.int64), _valid(array))


def _valid(array: pa.Array) -> _Mask | None:
    if array.null_count == 0:
        return None
    valid: _Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _both(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one & other


def _plain(column: Any) -> pa.Array:
    """A column as one array, without extension or dictionary type."""
    array = one_array(column)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
