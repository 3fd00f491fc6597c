"""Which rows equal a row of some equality delete files (spec: Equality Delete Files).

The delete rows are indexed once and asked batch by batch, by any number of threads. Values are reduced to one word for
each row: a sparse table lets most rows pass at once, a hash table finds those that may be deleted, and where the word
is a hash of the values, the values themselves decide. Null equals null. NaN equals NaN, and 0.0 is not -0.0: values are
equal when neither comes before the other in the spec's order.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.equality_pruning import Mask
from icefloe.deletes.partition_keys import Ints
from icefloe.model.schema.schema import Schema
from icefloe.transforms.murmur3 import hash_binary
from icefloe.transforms.source_columns import column_at, column_path

Words: TypeAlias = npt.NDArray[np.uint64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: neighbours end up far apart
_FOLD = np.uint64(0xC2B2AE3D27D4EB4F)
_NULL = np.uint64(0xA5A5A5A55A5A5A5A)  # stands for null among hashed words
_WORD_BITS = 64
_HALF = np.uint64(32)
_SPARSE_BITS = 4  # at most one row in 16 passes the sparse table by chance
_MIN_BITS, _MAX_BITS = 4, 28
_TOGETHER = 1 << 20  # pairs whose values are compared together
_CACHED = 1 << 16  # rows whose words stay near the processor: half of the time of a million at once


class EqualityIndex:
    """Delete rows with the columns of ``schema``, each with the sequence number of its file."""

    def __init__(self, schema: Schema, rows: pa.Table, ages: Ints) -> None:
        self.schema = schema
        self._paths = [column_path(schema, id_) for id_ in schema.measured]
        columns = self._columns(rows)
        self._is_exact = len(columns) == 1 and _is_word(columns[0].type)
        self._null_age: int | None = None
        if self._is_exact:
            nulls: Mask = columns[0].is_null().to_numpy(zero_copy_only=False)
            self._null_age = int(ages[nulls].max()) if nulls.any() else None
            columns, ages = [columns[0].drop_null()], ages[~nulls]
        self._build(columns, ages)

    def _build(self, columns: list[pa.Array], ages: Ints) -> None:
        words = self._words(columns)
        spread = _spread(words)
        order = self._distinct(columns, spread, ages)
        bits = min(_MAX_BITS, max(_MIN_BITS, len(order).bit_length() + 1))
        self._shift = np.uint64(_WORD_BITS - bits)
        sparse_bits = min(_MAX_BITS, bits + _SPARSE_BITS)
        self._sparse_shift = np.uint64(_WORD_BITS - sparse_bits)
        slots = _places(spread[order], self._shift)
        self._starts: Ints = np.concatenate([[0], np.cumsum(np.bincount(slots, minlength=1 << bits))])
        self._sparse: Mask = np.zeros(1 << sparse_bits, np.bool_)
        self._sparse[_places(spread, self._sparse_shift)] = True
        self._keys: Words = words[order]
        self._ages: Ints = ages[order]
        # Where the word is the value, it alone decides.
        self._values = [] if self._is_exact else [column.take(pa.array(order)) for column in columns]

    def _distinct(self, columns: list[pa.Array], spread: Words, ages: Ints) -> Ints:
        """The rows in the order of their slots; of equal rows only the newest, which deletes most."""
        order = np.lexsort((-ages, spread))
        again = np.flatnonzero(spread[order[1:]] == spread[order[:-1]])
        kept: Mask = np.ones(len(order), np.bool_)
        if self._is_exact:
            kept[again + 1] = False
        else:
            kept[again[self._same(columns, order[again + 1], columns, order[again])] + 1] = False
        return order[kept]

    @property
    def nbytes(self) -> int:
        """About how much memory this takes."""
        arrays = (self._keys, self._ages, self._starts, self._sparse)
        return sum(array.nbytes for array in arrays) + sum(int(column.nbytes) for column in self._values)

    def matches(self, rows: pa.RecordBatch, newer_than: int) -> Mask:
        """Which rows equal a delete row with a larger sequence number than ``newer_than``."""
        columns = self._columns(rows)
        found: Mask = np.zeros(rows.num_rows, np.bool_)
        near, words = self._near(columns, rows.num_rows)
        slots = _places(_spread(words), self._shift)
        starts, lengths = self._starts[slots], self._starts[slots + 1] - self._starts[slots]
        for step in range(int(lengths.max(initial=0))):  # the first delete row of each slot, then the second
            some = lengths > step
            rows_, deletes = near[some], starts[some] + step
            equal = (self._keys[deletes] == words[some]) & (self._ages[deletes] > newer_than)
            self._mark(found, columns, rows_[equal], deletes[equal])
        if self._is_exact and columns[0].null_count > 0:
            nulls = columns[0].is_null().to_numpy(zero_copy_only=False)
            found[nulls] = self._null_age is not None and self._null_age > newer_than
        return found

    def _near(self, columns: list[pa.Array], rows: int) -> tuple[Ints, Words]:
        """The rows that the sparse table does not let pass, and their words."""
        near, kept = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for first in range(0, rows, _CACHED):
            words = self._words([column.slice(first, _CACHED) for column in columns])
            hits = np.flatnonzero(self._sparse[_places(_spread(words), self._sparse_shift)])
            near.append(hits + first)
            kept.append(words[hits])
        return np.concatenate(near), np.concatenate(kept)

    def _mark(self, found: Mask, columns: list[pa.Array], rows: Ints, deletes: Ints) -> None:
        """Mark the rows whose values equal those of their delete rows, given that their words are equal."""
        if self._is_exact:
            found[rows] = True
            return
        found[rows[self._same(columns, rows, self._values, deletes)]] = True

    @staticmethod
    def _same(columns: list[pa.Array], rows: Ints, others: list[pa.Array], numbers: Ints) -> Mask:
        """Which of the rows have the values of others, pair by pair."""
        same: Mask = np.ones(len(rows), np.bool_)
        for first in range(0, len(rows), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            for column, values in zip(columns, others, strict=True):
                same[part] &= _equal(column.take(pa.array(rows[part])), values.take(pa.array(numbers[part])))
        return same

    def _columns(self, rows: pa.RecordBatch | pa.Table) -> list[pa.Array]:
        return [_plain(_whole(column_at(rows, path))) for path in self._paths]

    def _words(self, columns: list[pa.Array]) -> Words:
        """One word for each row: the value itself if that is enough, else a hash of the values."""
        if self._is_exact:
            return _word(columns[0])
        words: Words = np.zeros(len(columns[0]), np.uint64)
        for column in columns:
            own = _word(column) if _is_word(column.type) else _hashed(column)
            if column.null_count > 0:
                own = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, own)
            words ^= own  # in place: fresh memory for millions of words takes longer than the sums
            words *= _FOLD
            words ^= words >> _HALF
        return words


def _spread(words: Words) -> Words:
    found: Words = words >> _HALF
    found ^= words
    found *= _SPREAD
    return found


def _places(spread: Words, shift: np.uint64) -> Ints:
    """Where in a table words belong: their first bits. numpy takes three times as long to look up unsigned places."""
    return (spread >> shift).view(np.int64)


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _plain(column: pa.Array) -> pa.Array:
    """The same values in a type that compares them bit by bit."""
    kinds, type_ = pa.types, column.type
    if kinds.is_null(type_):
        return pa.nulls(len(column), pa.int8())
    if kinds.is_boolean(type_):
        return column.cast(pa.int8())
    if kinds.is_floating(type_):
        nan = pc.is_nan(column)
        if pc.any(nan).as_py():  # there is one NaN
            column = pc.if_else(nan, pa.scalar(float("nan"), type_), column)
        return column.view(_word_type(type_))
    if kinds.is_temporal(type_):
        return column.view(_word_type(type_))
    if kinds.is_decimal(type_):
        return column.view(pa.binary(type_.byte_width))
    return column if _is_word(type_) or kinds.is_fixed_size_binary(type_) else column.cast(pa.large_binary())


def _word_type(type_: pa.DataType) -> pa.DataType:
    return pa.int64() if type_.bit_width == _WORD_BITS else pa.int32()


def _is_word(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_))


def _word(column: pa.Array) -> Words:
    """The values as words; nulls get any."""
    filled = column if column.null_count == 0 else column.fill_null(0)
    found: Words = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64)
    return found


def _hashed(column: pa.Array) -> Words:
    found: Words = hash_binary(column).view(np.uint32).astype(np.uint64)
    return found


def _equal(one: pa.Array, other: pa.Array) -> Mask:
    """Which values are equal, null included, pair by pair."""
    equal = pc.or_(pc.fill_null(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null()))
    found: Mask = equal.to_numpy(zero_copy_only=False)
    return found
