"""Decoded values as numpy columns, which are converted to Arrow at the end.

Texts and bytes stay in the buffer until then: columns have only their positions, and Arrow copies them once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.codecs.avro.vectorized.lanes import Longs, Mask, Source

_WIDEST_GATHERED = 16  # of values of one width, as most bounds are; longer ones are cheaper to copy one by one


@dataclass(frozen=True, slots=True)
class Values:
    """Numbers or booleans."""

    numbers: npt.NDArray[Any]
    valid: Mask | None = None

    def take(self, rows: Longs) -> Values:
        """The values of some rows."""
        return Values(self.numbers[rows], None if self.valid is None else self.valid[rows])

    def arrow(self, source: Source, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        array = pa.array(self.numbers, mask=None if self.valid is None else ~self.valid)
        return array if array.type == type_ else array.cast(type_)


@dataclass(frozen=True, slots=True)
class Slices:
    """Texts, bytes or fixed bytes, by their positions in the buffer, which increase from row to row."""

    starts: Longs
    lengths: Longs
    valid: Mask | None = None

    def take(self, rows: Longs) -> Slices:
        """The values of some rows."""
        return Slices(self.starts[rows], self.lengths[rows], None if self.valid is None else self.valid[rows])

    def arrow(self, source: Source, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        if self.valid is None:
            return _typed(self._dense(source, self.starts, self.lengths), type_)
        dense = self._dense(source, self.starts[self.valid], self.lengths[self.valid])
        index = np.cumsum(self.valid) - 1
        return _typed(dense, type_).take(pa.array(index, mask=~self.valid))

    def _dense(self, source: Source, starts: Longs, lengths: Longs) -> pa.Array:
        width = int(lengths[0]) if len(lengths) > 0 else 0
        if 0 < width <= _WIDEST_GATHERED and (lengths == width).all():
            ends = np.arange(0, width * (len(starts) + 1), width, dtype=np.int32)
            return _binary(ends, pa.py_buffer(source.gathered(starts, width)))
        # Arrow's offsets allow no gaps, so the bytes between two values become values that are not used.
        ends = np.empty(2 * len(starts), np.int32)
        ends[0::2], ends[1::2] = starts, starts + lengths
        with_gaps = _binary(ends if len(ends) > 0 else np.zeros(1, np.int32), pa.py_buffer(source.padded))
        return with_gaps.take(pa.array(np.arange(0, 2 * len(starts), 2)))


def _binary(ends: npt.NDArray[np.int32], data: pa.Buffer) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, [None, pa.py_buffer(ends), data])


def _typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)


@dataclass(frozen=True, slots=True)
class Rows:
    """Records, by the names of their fields."""

    size: int
    columns: dict[str, Column] = field(default_factory=dict)
    valid: Mask | None = None

    def take(self, rows: Longs) -> Rows:
        """The values of some rows."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        return Rows(len(rows), columns, None if self.valid is None else self.valid[rows])

    def arrow(self, source: Source, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        mask = None if self.valid is None else pa.array(~self.valid)
        if len(self.columns) == 0:
            return pa.array([{}] * self.size, type_, mask=None if self.valid is None else ~self.valid)
        arrays = [self.columns[child.name].arrow(source, child.type) for child in type_]
        return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=mask)


@dataclass(frozen=True, slots=True)
class Lists:
    """Arrays: how many items each row has, and the items of all rows one after another."""

    counts: Longs
    items: Column
    valid: Mask | None = None

    def take(self, rows: Longs) -> Lists:
        """The values of some rows."""
        counts = self.counts[rows]
        items = self.items.take(_spread((np.cumsum(self.counts) - self.counts)[rows], counts))
        return Lists(counts, items, None if self.valid is None else self.valid[rows])

    def arrow(self, source: Source, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        offsets = np.concatenate(([0], np.cumsum(self.counts))).astype(np.int32)
        mask = None if self.valid is None else pa.array(~self.valid)
        items = self.items.arrow(source, type_.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets), items, type=type_, mask=mask)


def _spread(starts: Longs, counts: Longs) -> Longs:
    """The positions ``start, start + 1, ...`` for each start, ``count`` of them, concatenated."""
    spread: Longs = np.repeat(starts - (np.cumsum(counts) - counts), counts)
    spread += np.arange(len(spread))
    return spread


@dataclass(frozen=True, slots=True)
class Nothing:
    """Values of the type null."""

    size: int
    valid: Mask | None = None

    def take(self, rows: Longs) -> Nothing:
        """The values of some rows."""
        return Nothing(len(rows))

    def arrow(self, source: Source, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        return pa.nulls(self.size, type_)


@dataclass(frozen=True, slots=True)
class ByKey:
    """Arrays of (key, value) pairs as one column per key."""

    columns: dict[int, Column]

    def take(self, rows: Longs) -> ByKey:
        """The values of some rows."""
        return ByKey({key: column.take(rows) for key, column in self.columns.items()})


Column: TypeAlias = Values | Slices | Rows | Lists | Nothing
Part: TypeAlias = tuple[Longs, Column]


def gathered(parts: list[Part], size: int) -> Column:
    """One column from parts, each with the rows that its values belong to; rows in no part are null."""
    first = parts[0][1]
    if len(parts) == 1 and len(parts[0][0]) == size:
        return first
    valid = _valid(parts, size)
    match first:
        case Values():
            numbers = np.zeros(size, first.numbers.dtype)
            for rows, part in parts:
                numbers[rows] = part.numbers  # type: ignore[union-attr]  # all parts are of one kind
            return Values(numbers, valid)
        case Slices():
            starts, lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
            for rows, part in parts:
                starts[rows], lengths[rows] = part.starts, part.lengths  # type: ignore[union-attr]
            return Slices(starts, lengths, valid)
        case Rows():
            names = list(first.columns)
            inner = {name: gathered([(rows, part.columns[name]) for rows, part in parts], size) for name in names}  # type: ignore[union-attr]
            return Rows(size, inner, valid)
        case Lists():
            counts = np.zeros(size, np.int64)
            for rows, part in parts:
                counts[rows] = part.counts  # type: ignore[union-attr]
            starts = np.cumsum(counts) - counts
            placed = [(_spread(starts[rows], part.counts), part.items) for rows, part in parts]  # type: ignore[union-attr]
            return Lists(counts, gathered(placed, int(counts.sum())), valid)
        case Nothing():
            return Nothing(size)


def _valid(parts: list[Part], size: int) -> Mask | None:
    valid = np.zeros(size, np.bool_)
    for rows, part in parts:
        valid[rows] = True if part.valid is None else part.valid
    return None if valid.all() else valid
