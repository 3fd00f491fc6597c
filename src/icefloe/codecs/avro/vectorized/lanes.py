"""Reads Avro values at many positions of one buffer with numpy; a lane is one position (Avro specification).

A lane that runs past the end of the buffer is dead: its position stays past the end, and values read there have no
meaning. Nothing is read outside the buffer. Lanes that do not start at a record may overlap, so the number of steps is
bounded by the size of the buffer: without a bound, a few megabytes could take hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from icefloe.errors import UnsupportedError

Longs: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

PADDING = bytes(32)  # so that a lane at or just past the end can read a few bytes
_MOST_STEPS = 40_000  # of numpy calls for items of arrays, whose fixed cost counts when lanes are few
_WORK_PER_BYTE, _LEAST_WORK = 4, 100_000
_CONTINUES = 0x80
_ENDS = np.uint64(0x8080808080808080)
_ONE = np.uint64(1)
# Bits of eight bytes moved together: groups of 7 in bytes become groups of 14, of 28, then one number.
_STEPS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_SMALL: Longs = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(_CONTINUES)], np.int64)


class Source:
    """A buffer for lanes; it ends with ``PADDING``, which is not part of the data."""

    def __init__(self, padded: bytes) -> None:
        self.padded = padded
        self.end = len(padded) - len(PADDING)
        self.dead = self.end + 1
        self.data: Bytes = np.frombuffer(padded, np.uint8)
        self._words: npt.NDArray[np.uint64] = self._from_anywhere("<u8")
        self._steps_left = _MOST_STEPS
        self._work_left = _WORK_PER_BYTE * self.end + _LEAST_WORK

    @classmethod
    def of(cls, blocks: Sequence[bytes]) -> tuple[Source, Longs]:
        """The buffer of some blocks, one after the other, and where each ends in it."""
        ends: Longs = np.cumsum([len(block) for block in blocks], dtype=np.int64)
        return cls(b"".join([*blocks, PADDING])), ends

    def _from_anywhere(self, dtype: str) -> npt.NDArray[Any]:
        """The values of a fixed width at every position, aligned or not."""
        shape = np.dtype(dtype)
        return np.ndarray((len(self.padded) - shape.itemsize,), shape, self.data, strides=(1,))

    def spend(self, lanes: int) -> None:
        """Account for one step of this many lanes."""
        self._steps_left -= 1
        self._work_left -= lanes
        if self._steps_left < 0 or self._work_left < 0:
            raise UnsupportedError("arrays are too long to be read together")

    def alive(self, at: Longs) -> Mask:
        """Which lanes have not run past the end."""
        return at <= self.end

    def numbers(self, at: Longs) -> tuple[Longs, Longs]:
        """The zigzag number of each lane, and the position after it."""
        first = self.data.take(at, mode="clip")
        if len(first) == 0 or first.max() < _CONTINUES:
            return _SMALL.take(first, mode="clip"), self._moved(at, 1)
        raw, size = self._varints(at)
        odd = raw & _ONE
        raw >>= _ONE
        raw ^= np.negative(odd, out=odd)
        return raw.view(np.int64), self._moved(at, size)

    def past_numbers(self, at: Longs) -> Longs:
        """The position of each lane after a number."""
        first = self.data.take(at, mode="clip")
        if len(first) == 0 or first.max() < _CONTINUES:
            return self._moved(at, 1)
        ends = ~self._words[at]
        ends &= _ENDS
        if ends.min() == 0:  # a number of nine bytes or more
            return self._moved(at, self._varints(at)[1])
        lowest = np.negative(ends)
        lowest &= ends
        lowest -= _ONE
        size = np.bitwise_count(lowest).astype(np.int64)
        size += 1
        size >>= 3
        return self._moved(at, size)

    def jumped(self, at: Longs, by: Longs) -> Longs:
        """The position of each lane after a length read from the file and that many bytes."""
        return self._moved(at, np.where((by < 0) | (by > self.end), self.dead, by))

    def _varints(self, at: Longs) -> tuple[npt.NDArray[np.uint64], Longs]:
        words = self._words[at]
        ends = ~words
        ends &= _ENDS
        lowest = np.negative(ends)
        lowest &= ends
        kept = lowest - _ONE  # every bit below the one that ends the number; all bits when none does
        size = np.bitwise_count(kept).astype(np.int64)
        size += 1
        size >>= 3
        words &= kept
        for low, high, shift in _STEPS:
            upper = words & high
            upper >>= shift
            words &= low
            words |= upper
        if lowest.min() == 0:
            longer = np.flatnonzero(lowest == 0)
            words[longer], size[longer] = self._long_varints(words[longer], at[longer])
        return words, size

    def _long_varints(self, raw: npt.NDArray[np.uint64], at: Longs) -> tuple[npt.NDArray[np.uint64], Longs]:
        """Numbers of nine or ten bytes, of which eight are read; a lane with a longer number dies."""
        ninth, tenth = (self.data[at + n].astype(np.uint64) for n in (8, 9))
        raw = raw | ((ninth & np.uint64(0x7F)) << np.uint64(56))
        size = np.where(ninth < _CONTINUES, 9, np.where(tenth <= 1, 10, self.dead))
        raw |= np.where(size == 10, tenth, np.uint64(0)) << np.uint64(63)
        return raw, size

    def slices(self, at: Longs) -> tuple[Longs, Longs, Longs]:
        """Start and length of the bytes of each lane, and the position after them."""
        length, start = self.numbers(at)
        if len(length) > 0 and (length.min() < 0 or length.max() > self.end):
            length = np.where((length < 0) | (length > self.end), self.dead, length)
        return start, length, self._moved(start, length)

    def fixed(self, at: Longs, size: int) -> Longs:
        """The position of each lane after ``size`` bytes."""
        return self._moved(at, min(size, self.dead))

    def unpacked(self, at: Longs, dtype: str) -> tuple[npt.NDArray[Any], Longs]:
        """The fixed-width number of each lane, and the position after it."""
        return self._from_anywhere(dtype)[at], self._moved(at, np.dtype(dtype).itemsize)

    def gathered(self, starts: Longs, width: int) -> Bytes:
        """The bytes of values of one width, concatenated."""
        if width in (4, 8):
            wide: Bytes = self._from_anywhere(f"<u{width}")[starts].view(np.uint8)
            return wide
        places = (starts[:, None] + np.arange(width)).ravel()
        gathered: Bytes = self.data[places]
        return gathered

    def _moved(self, at: Longs, by: Longs | int) -> Longs:
        moved: Longs = at + by
        np.minimum(moved, self.dead, out=moved)
        return moved
