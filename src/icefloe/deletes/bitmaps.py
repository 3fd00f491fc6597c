"""Builds bitmaps from arrays of row positions (spec: Position Delete Files).

Adding positions one by one takes longer than reading them from a file, so whole arrays are added at once.
"""

from __future__ import annotations

import struct
from array import array
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from icefloe.errors import FormatError

K = TypeVar("K")

_32_BITS = 2**32
# The header of a serialized 64-bit bitmap: the number of 32-bit bitmaps, and the high 32 bits of the first.
_HEADER = struct.pack("<QI", 1, 0)


def within(positions: BitMap64, rows: int) -> BitMap64:
    """The positions below ``rows``, the row count of a file; deletes may name others, which match no row.

    >>> within(BitMap64([1, 3, 10]), 10)
    BitMap64([1, 3])
    """
    if len(positions) == 0 or positions.max() < rows:
        return positions
    return positions & all_positions(rows)


def all_positions(rows: int) -> BitMap64:
    """The positions of a file of so many rows."""
    positions = BitMap64()
    positions.add_range(0, rows)
    return positions


def add_positions(by_key: dict[K, BitMap64], key: K, positions: BitMap64) -> None:
    """Add positions to those of a key, such as a data file."""
    known = by_key.get(key)
    by_key[key] = positions if known is None else known | positions


def bitmap_of(positions: npt.NDArray[np.int64]) -> BitMap64:
    """The bitmap of positions in any order; a negative position is an error.

    >>> bitmap_of(np.array([3, 1, 3]))
    BitMap64([1, 3])
    """
    if len(positions) == 0:
        return BitMap64()
    low, high = int(positions.min()), int(positions.max())
    if low < 0:
        raise FormatError(f"row position {low} is negative", position=low)
    if high - low + 1 == len(positions) and (np.diff(positions) == 1).all():
        bitmap = BitMap64()
        bitmap.add_range(low, high + 1)
        return bitmap
    if high < _32_BITS:
        narrow = array("I")
        narrow.frombytes(positions.astype(np.uint32).tobytes())
        return BitMap64.deserialize(_HEADER + BitMap(narrow).serialize())
    words = array("Q")
    words.frombytes(positions.astype(np.uint64).tobytes())
    return BitMap64(words)
