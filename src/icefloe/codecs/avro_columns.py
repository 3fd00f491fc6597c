"""What lanes have read, as numpy columns, until it becomes Arrow.

Texts and bytes stay where they are in the buffer until the end: only their places are kept, and Arrow copies them once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.codecs.avro_lanes import Longs, Mask


@dataclass(frozen=True, slots=True)
class Values:
    """Numbers or booleans."""

    numbers: npt.NDArray[Any]
    valid: Mask | None = None

    def spread(self, rows: Longs, size: int) -> Values:
        """The same values at these rows of a larger column."""
        full = np.zeros(size, self.numbers.dtype)
        full[rows] = self.numbers
        return Values(full, _spread_mask(self.valid, rows, size))

    def arrow(self, source: bytes, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        return pa.array(self.numbers, mask=None if self.valid is None else ~self.valid).cast(type_)


@dataclass(frozen=True, slots=True)
class Slices:
    """Texts, bytes or fixed bytes, by their places in the buffer, which rise from row to row."""

    starts: Longs
    lengths: Longs
    valid: Mask | None = None

    def spread(self, rows: Longs, size: int) -> Slices:
        """The same values at these rows of a larger column."""
        starts, lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
        starts[rows], lengths[rows] = self.starts, self.lengths
        return Slices(starts, lengths, _spread_mask(self.valid, rows, size))

    def arrow(self, source: bytes, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        chosen = slice(None) if self.valid is None else self.valid
        starts, lengths = self.starts[chosen], self.lengths[chosen]
        # Arrow's offsets leave no gaps, so the bytes between two values count as values, which are not taken.
        offsets = np.empty(2 * len(starts), np.int32)
        offsets[0::2], offsets[1::2] = starts, starts + lengths
        places = max(len(offsets) - 1, 0)
        buffers = [None, pa.py_buffer(offsets if places > 0 else np.zeros(1, np.int32)), pa.py_buffer(source)]
        with_gaps = pa.Array.from_buffers(pa.binary(), places, buffers)
        taken = np.arange(0, 2 * len(starts), 2)
        if self.valid is None:
            return with_gaps.take(pa.array(taken)).cast(type_)
        index = np.zeros(len(self.valid), np.int64)
        index[self.valid] = taken
        return with_gaps.take(pa.array(index, mask=~self.valid)).cast(type_)


@dataclass(frozen=True, slots=True)
class Rows:
    """Records, by the names of their fields."""

    size: int
    columns: dict[str, Column] = field(default_factory=dict)
    valid: Mask | None = None

    def spread(self, rows: Longs, size: int) -> Rows:
        """The same values at these rows of a larger column."""
        columns = {name: column.spread(rows, size) for name, column in self.columns.items()}
        return Rows(size, columns, _spread_mask(self.valid, rows, size))

    def arrow(self, source: bytes, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        mask = None if self.valid is None else pa.array(~self.valid)
        arrays = [self.columns[each.name].arrow(source, each.type) for each in type_]
        return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=mask)


@dataclass(frozen=True, slots=True)
class Lists:
    """Arrays: how many items each row has, and the items of all rows one after another."""

    counts: Longs
    items: Column
    valid: Mask | None = None

    def spread(self, rows: Longs, size: int) -> Lists:
        """The same values at these rows of a larger column."""
        counts = np.zeros(size, np.int64)
        counts[rows] = self.counts
        return Lists(counts, self.items, _spread_mask(self.valid, rows, size))

    def arrow(self, source: bytes, type_: pa.DataType) -> pa.Array:
        """As an Arrow array."""
        offsets = np.concatenate(([0], np.cumsum(self.counts))).astype(np.int32)
        mask = None if self.valid is None else pa.array(~self.valid)
        return pa.ListArray.from_arrays(
            pa.array(offsets), self.items.arrow(source, type_.value_type), type=type_, mask=mask
        )


Column: TypeAlias = Values | Slices | Rows | Lists


def _spread_mask(valid: Mask | None, rows: Longs, size: int) -> Mask:
    full = np.zeros(size, np.bool_)
    full[rows] = True if valid is None else valid
    return full


def gathered(parts: list[tuple[Longs, Column]], size: int) -> Column:
    """One column from parts, each with the rows that its values belong to; a TypeError for arrays in arrays."""
    first = parts[0][1]
    match first:
        case Values():
            numbers = np.zeros(size, first.numbers.dtype)
            for rows, part in parts:
                numbers[rows] = part.numbers  # type: ignore[union-attr]  # all parts are of one kind
            return Values(numbers, _gathered_mask(parts, size))
        case Slices():
            starts, lengths = np.zeros(size, np.int64), np.zeros(size, np.int64)
            for rows, part in parts:
                starts[rows], lengths[rows] = part.starts, part.lengths  # type: ignore[union-attr]
            return Slices(starts, lengths, _gathered_mask(parts, size))
        case Rows():
            names = list(first.columns)
            inner = {name: gathered([(rows, part.columns[name]) for rows, part in parts], size) for name in names}  # type: ignore[union-attr]
            return Rows(size, inner, _gathered_mask(parts, size))
        case _:
            raise TypeError("arrays of arrays are not gathered")


def _gathered_mask(parts: list[tuple[Longs, Column]], size: int) -> Mask | None:
    if all(part.valid is None for _, part in parts):
        return None
    full = np.zeros(size, np.bool_)
    for rows, part in parts:
        full[rows] = True if part.valid is None else part.valid
    return full
