"""Avro values at many positions of one buffer, read together with numpy: a lane is one position (Avro specification).

A lane that runs past the end of the buffer is dead: its position stays behind the end, and whatever is read there has
no meaning. Nothing is read outside of the buffer.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Longs: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

_PADDING = 32  # so that a lane at the end, or just behind it, can read a few bytes
_CONTINUES = 0x80
_ENDS = np.uint64(0x8080808080808080)
_ONE = np.uint64(1)
_ONE_BYTE: Longs = np.ones(1, np.int64)
# Bits of eight bytes moved together: groups of 7 in bytes become groups of 14, of 28, then one number.
_STEPS = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


class Source:
    """A buffer that lanes read from."""

    def __init__(self, data: bytes) -> None:
        self.end = len(data)
        self.dead = self.end + 1
        self.data: Bytes = np.frombuffer(data + bytes(_PADDING), np.uint8)
        # Eight bytes from every position; numpy reads them although they are not aligned.
        self._words: npt.NDArray[np.uint64] = np.ndarray((self.end + _PADDING - 8,), "<u8", self.data, strides=(1,))

    def alive(self, at: Longs) -> Mask:
        """Which lanes have not run past the end."""
        return at <= self.end

    def numbers(self, at: Longs) -> tuple[Longs, Longs]:
        """The zigzag number of each lane, and where it goes on."""
        first = self.data[at]
        if len(first) == 0 or first.max() < _CONTINUES:
            raw, size = first.astype(np.uint64), _ONE_BYTE
        else:
            raw, size = self._varints(at)
        value = (raw >> _ONE) ^ (np.uint64(0) - (raw & _ONE))
        return value.view(np.int64), self._moved(at, size)

    def _varints(self, at: Longs) -> tuple[npt.NDArray[np.uint64], Longs]:
        words = self._words[at]
        ends = ~words & _ENDS
        lowest = ends & (np.uint64(0) - ends)
        size = ((np.bitwise_count(lowest - _ONE) + np.uint8(1)) >> np.uint8(3)).astype(np.int64)
        raw = words & ((lowest << _ONE) - _ONE)
        for low, high, shift in _STEPS:
            raw = (raw & low) | ((raw & high) >> shift)
        longer = np.flatnonzero(lowest == 0)
        if len(longer) > 0:
            raw[longer], size[longer] = self._long_varints(at[longer])
        return raw, size

    def _long_varints(self, at: Longs) -> tuple[npt.NDArray[np.uint64], Longs]:
        """Numbers of nine or ten bytes; a lane whose number goes on beyond that dies."""
        raw = self._words[at]
        for low, high, shift in _STEPS:
            raw = (raw & low) | ((raw & high) >> shift)
        ninth, tenth = (self.data[at + n].astype(np.uint64) for n in (8, 9))
        raw |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        size = np.where(ninth < _CONTINUES, 9, np.where(tenth <= 1, 10, self.dead))
        raw |= np.where(size == 10, tenth, np.uint64(0)) << np.uint64(63)
        return raw, size

    def slices(self, at: Longs) -> tuple[Longs, Longs, Longs]:
        """Start and length of the bytes of each lane, and where it goes on."""
        length, start = self.numbers(at)
        wrong = (length < 0) | (length > self.end)
        if wrong.any():
            length = np.where(wrong, self.dead, length)
        return start, length, self._moved(start, length)

    def fixed(self, at: Longs, size: int) -> Longs:
        """Where each lane goes on behind so many bytes."""
        return self._moved(at, min(size, self.dead))

    def unpacked(self, at: Longs, dtype: str) -> tuple[npt.NDArray[Any], Longs]:
        """A number of fixed width of each lane, and where it goes on."""
        shape = np.dtype(dtype)
        inside = np.minimum(at, self.end)
        view: npt.NDArray[Any] = np.ndarray((self.end + _PADDING - shape.itemsize,), shape, self.data, strides=(1,))
        return view[inside], self._moved(at, shape.itemsize)

    def _moved(self, at: Longs, by: Longs | int) -> Longs:
        moved: Longs = np.minimum(at + by, self.dead)
        return moved
