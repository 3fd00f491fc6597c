"""Values cut to a width: numbers to a multiple, texts and bytes to a prefix (spec: Truncate Transform Details).

Numbers are rounded towards minus infinity; a decimal is cut in units of its last digit. A result that the column's
type cannot hold is refused: it could only be stored as another value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError, InputError
from icefloe.model.schema.types import BINARY, INT, LONG, STRING, Decimal, Type
from icefloe.transforms.base import MAX_INT, Longs, Numbers, Transform, masked, numbers, parts

_WORD = 2**64
_LONG_DIGITS = 18  # every number of so many digits is a long


@dataclass(frozen=True, slots=True)
class Truncate(Transform):
    """The value cut to a width."""

    preserves_order: ClassVar[bool] = True
    width: int

    def __post_init__(self) -> None:
        if not 1 <= self.width <= MAX_INT:
            raise FormatError(f"truncate[{self.width}]: the width is 1 to {MAX_INT}", transform=str(self))

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    def accepts(self, source: Type) -> bool:
        """Ints, longs, decimals, strings and binaries."""
        return source in (INT, LONG, STRING, BINARY) or isinstance(source, Decimal)

    def result_type(self, source: Type) -> Type:
        """The type of the column."""
        return source

    def satisfies_order_of(self, other: Transform, source: Type) -> bool:
        """Longer prefixes order shorter ones, multiples of a width those of its multiples.

        >>> Truncate(10).satisfies_order_of(Truncate(20), LONG), Truncate(10).satisfies_order_of(Truncate(4), STRING)
        (True, True)
        """
        if not isinstance(other, Truncate):
            return False
        return self.width >= other.width if source in (STRING, BINARY) else other.width % self.width == 0

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        if source == STRING:
            return pc.utf8_slice_codeunits(array, 0, self.width)
        if source == BINARY:
            return pc.binary_slice(array, 0, self.width)
        return self._decimals(array, source) if isinstance(source, Decimal) else self._integers(array, source)

    def _integers(self, array: pa.Array, source: Type) -> pa.Array:
        values: Numbers = numbers(array, np.int32 if source == INT else np.int64)
        cut = _floor(values, self.width)
        if values.min(initial=0) < np.iinfo(values.dtype).min + self.width:
            # Below the lowest number the multiplication came out at the other end.
            self._check(array, cut > values, source)
        return masked(cut, array.type, array)

    def _decimals(self, array: pa.Array, source: Decimal) -> pa.Array:
        pairs = numbers(array, np.dtype((np.uint64, 2)))
        cut = np.empty_like(pairs)
        for part in parts(len(pairs)):
            low, high = np.ascontiguousarray(pairs[part].T)  # vector code wants each half in one piece
            if source.precision <= _LONG_DIGITS:
                longs = _floor(low.view(np.int64), self.width)
                outside = longs <= -(10**source.precision)
                cut[part, 0], cut[part, 1] = longs.view(np.uint64), (longs >> 63).view(np.uint64)
            else:
                rest = self._rest(low, high.view(np.int64))
                cut[part, 0], cut[part, 1] = low - rest, high - (low < rest)
                outside = _is_below(cut[part], 1 - 10**source.precision)
            self._check(array[part], outside, source)
        return masked(cut, array.type, array)

    def _rest(self, low: npt.NDArray[np.uint64], high: Longs) -> npt.NDArray[np.uint64]:
        """The remainder of 128-bit numbers from those of their halves; no step leaves 64 bits."""
        highs = (high - _floor(high, self.width)) * (_WORD % self.width)
        lows = (low - low // np.uint64(self.width) * np.uint64(self.width)).view(np.int64)
        sums = highs + lows
        return (sums - _floor(sums, self.width)).view(np.uint64)

    def _check(self, array: pa.Array, outside: npt.NDArray[np.bool_], source: Type) -> None:
        """Refuse a value whose result is outside its type; null slots are ignored."""
        if not outside.any():
            return
        rows = np.flatnonzero(outside & pc.is_valid(array).to_numpy(zero_copy_only=False))
        if len(rows) > 0:
            value = array[int(rows[0])].as_py()
            raise InputError(
                f"{self} of {value} is below the lowest {source}; such a row has no partition", value=value
            )


def _floor(values: npt.NDArray[np.signedinteger], width: int) -> npt.NDArray[np.signedinteger]:
    """The multiples of a width at or below numbers; numpy divides by one number with vector instructions."""
    found = values // values.dtype.type(width)
    found *= values.dtype.type(width)
    return found


def _is_below(pairs: npt.NDArray[np.uint64], lowest: int) -> npt.NDArray[np.bool_]:
    """Which 128-bit numbers, given as a low and a high half, are less than a number."""
    lowest_high, lowest_low = divmod(lowest, _WORD)
    low, high = pairs[:, 0], pairs[:, 1].view(np.int64)
    below: npt.NDArray[np.bool_] = (high < lowest_high) | ((high == lowest_high) & (low < np.uint64(lowest_low)))
    return below
