"""Finds the rows that equal a row of some equality delete files (spec: Equality Delete Files).

The delete rows are indexed once; threads then test batches of data rows. Each row is reduced to one word. A sparse
table of flags rules out most rows, a hash table finds the rest, and where the word is a hash of the values, the values
are compared. Null equals null. NaN equals NaN, and 0.0 differs from -0.0: values are equal if neither comes before the
other in the spec's sort order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.partition_keys import Ints, Mask
from icefloe.deletes.word_table import HALF, MAX_SLOT_BITS, Words, WordTable, bits_of, slots_of, spread, words_of
from icefloe.model.columns import one_array
from icefloe.model.schema.schema import Schema
from icefloe.transforms.murmur3 import hash_binary
from icefloe.transforms.source_columns import column_at, column_path

FOLD = np.uint64(0xC2B2AE3D27D4EB4F)
_NULL = np.uint64(0xA5A5A5A55A5A5A5A)  # the word of null among hashed words
_SPARSE_BITS = 4  # at most one row in 16 passes the sparse table by chance
COMPARED_TOGETHER = 1 << 20  # pairs of rows
_ROWS_IN_CACHE = 1 << 16  # words that fit the processor's cache: half of the time of a million at once


class EqualityIndex:
    """Delete rows with the columns of ``schema``; ``sequence_numbers`` has that of each row's delete file."""

    def __init__(self, schema: Schema, rows: pa.Table, sequence_numbers: Ints) -> None:
        self.schema = schema
        self._paths = [column_path(schema, id_) for id_ in schema.measured]
        columns = self._columns(rows)
        self._is_exact = len(columns) == 1 and _is_integer(columns[0].type)  # the word is the value
        self._null_number: int | None = None
        if self._is_exact:
            nulls: Mask = columns[0].is_null().to_numpy(zero_copy_only=False)
            self._null_number = int(sequence_numbers[nulls].max()) if nulls.any() else None
            columns, sequence_numbers = [columns[0].drop_null()], sequence_numbers[~nulls]
        self._build(columns, sequence_numbers)

    def _build(self, columns: list[pa.Array], sequence_numbers: Ints) -> None:
        words = self._words(columns)
        spread_words = spread(words)
        kept = self._distinct(columns, spread_words, sequence_numbers)
        self._table = WordTable(words[kept])
        self._sparse_bits = min(MAX_SLOT_BITS, self._table.bits + _SPARSE_BITS)
        self._sparse: Mask = np.zeros(1 << self._sparse_bits, np.bool_)
        self._sparse[slots_of(spread_words, self._sparse_bits)] = True
        self._sequence_numbers: Ints = sequence_numbers[kept]
        self._values = [] if self._is_exact else [column.take(pa.array(kept)) for column in columns]

    def _distinct(self, columns: list[pa.Array], spread_words: Words, sequence_numbers: Ints) -> Ints:
        """The numbers of the rows to keep: of equal rows the one with the largest sequence number."""
        order = np.lexsort((-sequence_numbers, spread_words))
        again = np.flatnonzero(spread_words[order[1:]] == spread_words[order[:-1]])
        kept: Mask = np.ones(len(order), np.bool_)
        if self._is_exact:
            kept[again + 1] = False
        else:
            kept[again[self._same(columns, order[again + 1], columns, order[again])] + 1] = False
        return order[kept]

    @property
    def nbytes(self) -> int:
        """About how much memory the index takes."""
        arrays = (self._sequence_numbers, self._sparse)
        own = sum(array.nbytes for array in arrays) + sum(int(column.nbytes) for column in self._values)
        return own + self._table.nbytes

    def matches(self, rows: pa.RecordBatch, newer_than: int) -> Mask:
        """Which rows equal a delete row with a sequence number above ``newer_than``."""
        columns = self._columns(rows)
        matched: Mask = np.zeros(rows.num_rows, np.bool_)
        candidates, words = self._candidates(columns, rows.num_rows)
        for indices, deletes in self._table.equal_words(words):
            newer = self._sequence_numbers[deletes] > newer_than
            self._mark(matched, columns, candidates[indices[newer]], deletes[newer])
        if self._is_exact and columns[0].null_count > 0:
            nulls = columns[0].is_null().to_numpy(zero_copy_only=False)
            matched[nulls] = self._null_number is not None and self._null_number > newer_than
        return matched

    def _candidates(self, columns: list[pa.Array], rows: int) -> tuple[Ints, Words]:
        """The rows that the sparse table does not rule out, and their words."""
        candidates, kept = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for first in range(0, rows, _ROWS_IN_CACHE):
            words = self._words([column.slice(first, _ROWS_IN_CACHE) for column in columns])
            hits = np.flatnonzero(self._sparse[slots_of(spread(words), self._sparse_bits)])
            candidates.append(hits + first)
            kept.append(words[hits])
        return np.concatenate(candidates), np.concatenate(kept)

    def _mark(self, matched: Mask, columns: list[pa.Array], rows: Ints, deletes: Ints) -> None:
        """Mark the rows whose values equal those of their delete rows, given that their words are equal."""
        if self._is_exact:
            matched[rows] = True
            return
        matched[rows[self._same(columns, rows, self._values, deletes)]] = True

    @staticmethod
    def _same(columns: list[pa.Array], rows: Ints, others: list[pa.Array], other_rows: Ints) -> Mask:
        """For each pair of a row and another row, whether their values are equal."""
        same: Mask = np.ones(len(rows), np.bool_)
        for first in range(0, len(rows), COMPARED_TOGETHER):
            part = slice(first, first + COMPARED_TOGETHER)
            for column, values in zip(columns, others, strict=True):
                same[part] &= _equal(column.take(pa.array(rows[part])), values.take(pa.array(other_rows[part])))
        return same

    def _columns(self, rows: pa.RecordBatch | pa.Table) -> list[pa.Array]:
        return [comparable(one_array(column_at(rows, path))) for path in self._paths]

    def _words(self, columns: list[pa.Array]) -> Words:
        """One word for each row: the value itself if there is one integer column, else a hash of the values."""
        if self._is_exact:
            return words_of(columns[0])
        words: Words = np.zeros(len(columns[0]), np.uint64)
        for column in columns:
            own = words_of(column) if _is_integer(column.type) else _hashed(column)
            if column.null_count > 0:
                own = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, own)
            words ^= own  # in place: fresh memory for millions of words takes longer than the computation
            words *= FOLD
            words ^= words >> HALF
        return words


def comparable(column: pa.Array) -> pa.Array:
    """The same values as integers or bytes, which are equal exactly where the values are."""
    kinds, type_ = pa.types, column.type
    if kinds.is_null(type_):
        return pa.nulls(len(column), pa.int8())
    if kinds.is_decimal(type_):
        return column.view(pa.binary(type_.byte_width))
    column = bits_of(column)
    is_plain = _is_integer(column.type) or kinds.is_fixed_size_binary(column.type)
    return column if is_plain else column.cast(pa.large_binary())


def _is_integer(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_))


def _hashed(column: pa.Array) -> Words:
    hashes: Words = hash_binary(column).view(np.uint32).astype(np.uint64)
    return hashes


def _equal(one: pa.Array, other: pa.Array) -> Mask:
    """For each pair of values, whether they are equal; null equals null."""
    equal = pc.or_(pc.fill_null(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null()))
    same: Mask = equal.to_numpy(zero_copy_only=False)
    return same
