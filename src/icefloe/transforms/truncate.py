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
from icefloe.model.arrow import arrow_type
from icefloe.model.types import BINARY, INT, LONG, STRING, Decimal, Type
from icefloe.transforms.base import MAX_INT, Longs, Transform, masked

_WORD = 2**64


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

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        if source == STRING:
            return pc.utf8_slice_codeunits(array, 0, self.width)
        if source == BINARY:
            return pc.binary_slice(array, 0, self.width)
        return self._decimals(array, source) if isinstance(source, Decimal) else self._integers(array, source)

    def _integers(self, array: pa.Array, source: Type) -> pa.Array:
        values: Longs = array.cast(pa.int64()).fill_null(0).to_numpy()
        cut = values - values % self.width
        # Below the lowest long the subtraction comes out at the other end.
        outside = (cut > values) | (cut < -MAX_INT - 1 if source == INT else False)
        if outside.any():
            raise self._no_room(int(values[outside][0]), source)
        return masked(cut, arrow_type(source), array)

    def _decimals(self, array: pa.Array, source: Decimal) -> pa.Array:
        low, high = _words(array)
        # The remainder of a 128-bit number from those of its halves; no step leaves 64 bits.
        halves = (high % self.width) * (_WORD % self.width) + (low % np.uint64(self.width)).astype(np.int64)
        rest = (halves % self.width).astype(np.uint64)
        cut_low, cut_high = low - rest, high - (low < rest)
        valid = pc.is_valid(array)
        lowest_high, lowest_low = divmod(1 - 10**source.precision, _WORD)
        outside = (cut_high < lowest_high) | ((cut_high == lowest_high) & (cut_low < np.uint64(lowest_low)))
        outside &= valid.to_numpy(zero_copy_only=False)
        if outside.any():
            raise self._no_room(array[int(np.argmax(outside))].as_py(), source)
        data = pa.py_buffer(np.column_stack([cut_low, cut_high.view(np.uint64)]).tobytes())
        cut = pa.Array.from_buffers(array.type, len(array), [None, data])
        return cut if array.null_count == 0 else pc.if_else(valid, cut, pa.scalar(None, array.type))

    def _no_room(self, value: object, source: Type) -> InputError:
        return InputError(f"{self} of {value} is below the lowest {source}; such a row has no partition", value=value)


def _words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], Longs]:
    """The low and the high half of each unscaled value."""
    stored = np.frombuffer(array.buffers()[1] or b"", np.uint64)
    pairs = stored[array.offset * 2 : (array.offset + len(array)) * 2].reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1].view(np.int64)
