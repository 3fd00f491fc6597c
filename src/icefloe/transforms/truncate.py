"""Values cut to a width: numbers to a multiple, texts and bytes to a prefix (spec: Truncate Transform Details).

Numbers are rounded towards minus infinity; a decimal is cut in units of its last digit. A result that the column's
type cannot hold is refused: it could only be stored as another value.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError, InputError, UnsupportedError
from icefloe.model.schema.types import BINARY, INT, LONG, MAX_DECIMAL_PRECISION, STRING, Decimal, Type
from icefloe.transforms.base import (
    MAX_INT,
    DecimalSteps,
    Limits,
    Longs,
    Numbers,
    ResultNumbers,
    Transform,
    masked,
    numbers,
    parts,
)

_WORD = 2**64
_WIDEST_CUT = 2**30
_EXACT = decimal.Context(prec=100)
_LAST_CHARACTER, _BEFORE_SURROGATES, _AFTER_SURROGATES = "\U0010ffff", "\ud7ff", "\ue000"
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
            # Below the lowest number the multiplication overflowed.
            self._check(array, cut > values, source)
        return masked(cut, array.type, array)

    def _decimals(self, array: pa.Array, source: Decimal) -> pa.Array:
        pairs = numbers(array, np.dtype((np.uint64, 2)))
        cut = np.empty_like(pairs)
        for part in parts(len(pairs)):
            low, high = np.ascontiguousarray(pairs[part].T)  # vector instructions need each half to be contiguous
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

    def is_evidence(self, source: Type) -> bool:
        """Writers that cut ints by ints overflow at large widths and store any number."""
        return self.accepts(source) and not (source in (INT, LONG) and self.width > _WIDEST_CUT)

    def source_bounds(self, lowest: Any, highest: Any, source: Type) -> tuple[Any, Any]:
        """The lowest result and the last value that is cut to the highest one."""
        if source in (STRING, BINARY):
            return lowest, None if highest is None else self._uncut(highest)
        if isinstance(source, Decimal):
            return lowest, None if highest is None else self._decimal_ends(highest, source)
        return (None, None) if lowest is None or highest is None else self._integer_bounds(lowest, highest, source)

    def _uncut(self, highest: Any) -> Any:
        """Texts and bytes shorter than the width: nothing was cut off, so they bound what they were made from."""
        is_text = pa.types.is_string(highest.type)
        length = pc.utf8_length(highest) if is_text else pc.binary_length(highest)
        return pc.if_else(pc.less(length, self.width), highest, pa.scalar(None, highest.type))

    def _decimal_ends(self, highest: Any, source: Decimal) -> Any:
        """The last number cut to each; null where that has more digits than the column."""
        wide = pa.decimal256(40, source.scale)
        ends = pc.add(highest.cast(wide), _wide_decimal(self.width - 1, wide))
        fits = pc.less(ends, _wide_decimal(10**source.precision, wide))
        return pc.if_else(fits, ends, pa.scalar(None, ends.type)).cast(highest.type)

    def _integer_bounds(self, lowest: Any, highest: Any, source: Type) -> tuple[Any, Any]:
        """Bounds of integers. For values near the lowest of the type, some writers overflow to its other end.

        So the highest interval, and results that are no multiples of the width, may contain the lowest numbers.
        """
        known = pc.less_equal(highest, -_lowest_number(source) - self.width)
        for column in (lowest, highest):
            width = pa.scalar(self.width, column.type)
            known = pc.and_(known, pc.equal(pc.multiply(pc.divide(column, width), width), column))
        unknown = pa.scalar(None, highest.type)
        # Where it is not known it may not fit either, and is replaced before the addition.
        ends = pc.add(pc.if_else(known, highest, unknown), pa.scalar(self.width - 1, highest.type))
        return pc.if_else(known, lowest, unknown), ends

    @property
    def result_numbers(self) -> ResultNumbers:
        """Multiples of the width."""
        return ResultNumbers(step=self.width)

    def prefix_length(self, source: Type) -> int | None:
        """The width, of texts and bytes."""
        return self.width if source in (STRING, BINARY) else None

    def limits(self, source: Type) -> Limits:
        """Multiples of the width; for texts and bytes, the beginning and what follows everything that starts so."""
        width = self.width
        if source in (STRING, BINARY):
            return Limits(
                lambda value: value if len(value) <= width else successor(value[:width]),
                lambda value: _next(value) if len(value) < width else successor(value[:width]),
            )
        return Limits(
            lambda value: _number(-(-_unscaled(value, source) // width) * width, source),
            lambda value: _number(_unscaled(value, source) // width * width + width, source),
        )

    def spark_sql(self, column: str, source: Type) -> str:
        """A substring, or the number less its remainder."""
        if source in (STRING, BINARY):
            return f"substring({column}, 1, {self.width})"
        return f"({column} - pmod({column}, {self._spark_step(source)}))"

    def _spark_step(self, source: Type) -> str:
        if not isinstance(source, Decimal):
            return f"{self.width}L" if source == LONG else str(self.width)
        if source.precision >= MAX_DECIMAL_PRECISION:
            raise UnsupportedError(f"Spark cannot compute {self} of {source} without rounding", type=str(source))
        digits = max(len(str(self.width)), source.scale)
        return f"CAST('{_scaled(self.width, source):f}' AS DECIMAL({digits}, {source.scale}))"

    def spark_method(self, source: Type) -> DecimalSteps | None:
        """Decimals are cut by Java: in Spark SQL a result may have one digit too many."""
        return DecimalSteps(self.width) if isinstance(source, Decimal) else None

    def spark_key(self, column: str, source: Type) -> str | None:
        """A substring; for integers, a decimal wide enough that no value overflows."""
        if isinstance(source, Decimal):
            return None
        if source in (STRING, BINARY):
            return self.spark_sql(column, source)
        return f"(CAST({column} AS DECIMAL(20, 0)) - pmod(CAST({column} AS BIGINT), {self.width}L))"


def _floor(values: npt.NDArray[np.signedinteger], width: int) -> npt.NDArray[np.signedinteger]:
    """The multiples of a width at or below numbers; numpy divides by one number with vector instructions."""
    multiples = values // values.dtype.type(width)
    multiples *= values.dtype.type(width)
    return multiples


def _is_below(pairs: npt.NDArray[np.uint64], lowest: int) -> npt.NDArray[np.bool_]:
    """Which 128-bit numbers, given as a low and a high half, are less than a number."""
    lowest_high, lowest_low = divmod(lowest, _WORD)
    low, high = pairs[:, 0], pairs[:, 1].view(np.int64)
    below: npt.NDArray[np.bool_] = (high < lowest_high) | ((high == lowest_high) & (low < np.uint64(lowest_low)))
    return below


def _wide_decimal(number: int, type_: pa.DataType) -> pa.Scalar:
    """A decimal of a wide type from its digits without the point."""
    return pa.array([str(number)]).cast(pa.decimal256(40, 0)).view(type_)[0]


def _lowest_number(source: Type) -> int:
    """The lowest value of an integer type, or the lowest unscaled value of a decimal type."""
    if isinstance(source, Decimal):
        return 1 - int(10**source.precision)
    return -(2**31) if source == INT else -(2**63)


def _unscaled(value: Any, source: Type) -> int:
    return int(value.scaleb(source.scale, _EXACT)) if isinstance(source, Decimal) else int(value)


def _scaled(number: int, source: Type) -> Any:
    return decimal.Decimal(number).scaleb(-source.scale, _EXACT) if isinstance(source, Decimal) else number


def _number(number: int, source: Type) -> Any:
    """A number as a value of a type: the least value for what is below all, None for what is above all."""
    lowest = _lowest_number(source)
    highest = -lowest if isinstance(source, Decimal) else -lowest - 1
    return None if number > highest else _scaled(max(number, lowest), source)


def _next(value: Any) -> Any:
    """The least text or bytes above these."""
    return value + ("\0" if isinstance(value, str) else b"\0")


def successor(prefix: Any) -> Any:
    """The least text or bytes above all that start with these; None if there is none.

    >>> successor("ab"), successor(bytes([1, 255])), successor(bytes([255]))
    ('ac', b'\\x02', None)
    """
    if isinstance(prefix, bytes):
        kept = prefix.rstrip(b"\xff")
        return None if len(kept) == 0 else kept[:-1] + bytes([kept[-1] + 1])
    kept = prefix.rstrip(_LAST_CHARACTER)
    if len(kept) == 0:
        return None
    return kept[:-1] + (_AFTER_SURROGATES if kept[-1] == _BEFORE_SURROGATES else chr(ord(kept[-1]) + 1))
