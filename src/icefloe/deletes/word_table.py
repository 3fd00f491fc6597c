"""A hash table of 64-bit words: built once from an array of words, searched with other arrays of words.

The words of one slot are stored next to each other. Values of most types become words by themselves, without a hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.partition_keys import Ints

Words: TypeAlias = npt.NDArray[np.uint64]

WORD_BITS = 64
HALF = np.uint64(32)
MAX_SLOT_BITS = 28
_MIN_SLOT_BITS = 4
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
_FIXED_WIDTH = (pa.types.is_integer, pa.types.is_temporal, pa.types.is_boolean, pa.types.is_floating)


def spread(words: Words) -> Words:
    """A number for each word: similar words get numbers far apart, different words different numbers."""
    numbers: Words = words >> HALF
    numbers ^= words  # in place: fresh memory for millions of words takes longer than the computation
    numbers *= _MULTIPLIER
    return numbers


def slots_of(spread_words: Words, bits: int) -> Ints:
    """The slot of each spread word in a table of ``2**bits`` slots: its first bits."""
    # numpy takes three times as long to look up unsigned indices.
    return (spread_words >> np.uint64(WORD_BITS - bits)).view(np.int64)


class WordTable:
    """Words by slot. ``order`` are the rows of the given words in the order in which they are stored."""

    def __init__(self, words: Words) -> None:
        self.bits = min(MAX_SLOT_BITS, max(_MIN_SLOT_BITS, len(words).bit_length() + 1))
        slots = slots_of(spread(words), self.bits)
        self.order: Ints = np.argsort(slots, kind="stable")
        self._words: Words = words[self.order]
        self._starts: Ints = np.concatenate([[0], np.cumsum(np.bincount(slots, minlength=1 << self.bits))])

    @property
    def nbytes(self) -> int:
        """The memory of the table in bytes."""
        return self._words.nbytes + self._starts.nbytes + self.order.nbytes

    def equal_words(self, words: Words, *, first_only: bool = False) -> Iterator[tuple[Ints, Ints]]:
        """Pairs of equal words as two arrays: indices of ``words``, and rows of the words of this table.

        With ``first_only`` a word has one pair at most; that is quicker if no word of the table repeats.
        """
        slots = slots_of(spread(words), self.bits)
        stored, ends = self._starts[slots], self._starts[slots + 1]
        indices = np.arange(len(words))
        while len(indices) > 0:  # compares with the first word of each slot, then with the second
            more = stored < ends
            indices, stored, ends = indices[more], stored[more], ends[more]
            is_equal = self._words[stored] == words[indices]
            yield indices[is_equal], self.order[stored[is_equal]]
            if first_only:
                indices, stored, ends = indices[~is_equal], stored[~is_equal], ends[~is_equal]
            stored = stored + 1


def is_fixed_width(type_: pa.DataType) -> bool:
    """Whether each value of a type is one word: numbers, booleans, dates and times."""
    return any(test(type_) for test in _FIXED_WIDTH)


def bits_of(column: pa.Array) -> pa.Array:
    """Numbers, booleans, dates and times as integers of the same bits; every NaN gets the same bits."""
    type_ = column.type
    if pa.types.is_boolean(type_):
        return column.cast(pa.int8())
    if pa.types.is_floating(type_):
        is_nan = pc.is_nan(column)
        if pc.any(is_nan).as_py() is True:
            column = pc.if_else(is_nan, pa.scalar(float("nan"), type_), column)
    elif not pa.types.is_temporal(type_):
        return column
    return column.view(pa.int64() if type_.bit_width == WORD_BITS else pa.int32())


def words_of(integers: pa.Array) -> Words:
    """Integers as words; the word of a null has no meaning."""
    filled = integers if integers.null_count == 0 else integers.fill_null(0)
    words: Words = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64)
    return words
