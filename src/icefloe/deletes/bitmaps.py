"""Sets of row positions made of arrays of them (spec: Position Delete Files).

Adding numbers to a bitmap one by one takes longer than reading them from a file; arrays of machine words go in at once.
"""

from __future__ import annotations

import struct
from array import array

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from icefloe.errors import FormatError

_WIDE = 2**32
_ONE_BUCKET = struct.pack(
    "<QI", 1, 0
)  # of a 64-bit bitmap: how many 32-bit ones follow, and the high half of the first


def within(positions: BitMap64, rows: int) -> BitMap64:
    """The positions that a file with so many rows has; deletes may name others, which delete nothing.

    >>> within(BitMap64([1, 3, 10]), 10)
    BitMap64([1, 3])
    """
    if len(positions) == 0 or positions.max() < rows:
        return positions
    there = BitMap64()
    there.add_range(0, rows)
    return positions & there


def bitmap_of(positions: npt.NDArray[np.int64]) -> BitMap64:
    """The set of some positions, in any order; negative ones are refused.

    >>> bitmap_of(np.array([3, 1, 3]))
    BitMap64([1, 3])
    """
    if len(positions) == 0:
        return BitMap64()
    low, high = int(positions.min()), int(positions.max())
    if low < 0:
        raise FormatError(f"row position {low} is negative", position=low)
    if high - low + 1 == len(positions) and (np.diff(positions) == 1).all():
        run = BitMap64()
        run.add_range(low, high + 1)
        return run
    if high < _WIDE:
        narrow = array("I")
        narrow.frombytes(positions.astype(np.uint32).tobytes())
        return BitMap64.deserialize(_ONE_BUCKET + BitMap(narrow).serialize())
    words = array("Q")
    words.frombytes(positions.astype(np.uint64).tobytes())
    return BitMap64(words)
