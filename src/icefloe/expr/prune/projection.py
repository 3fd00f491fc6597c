"""What partition values say about the values they were made from (spec: Scan Planning, Partition Transforms).

A transform that keeps order makes an interval of partition values an interval of the column. All bounds are inclusive
Arrow columns; where nothing can be said for certain they are null, and None where they are null everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.filter.nodes import Op
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    Decimal,
    PrimitiveType,
    Type,
)
from icefloe.transforms import Day, Hour, TimeTransform, Transform, Truncate, Void

_MICROS, _NANOS = 86_400_000_000, 86_400_000_000_000
_PER_DAY: dict[Type, int] = {
    DATE: 1,
    TIMESTAMP: _MICROS,
    TIMESTAMPTZ: _MICROS,
    TIMESTAMP_NS: _NANOS,
    TIMESTAMPTZ_NS: _NANOS,
}
_WIDEST_CUT = 2**30
_LAST_DATE = 2**31 - 1


def is_evidence(field: PartitionField, transform: Transform, source: Type) -> bool:
    """Whether values of a partition field say anything about its one source column of this type."""
    if len(field.other_source_ids) > 0 or isinstance(transform, Void) or not transform.accepts(source):
        return False
    # Writers that cut ints by ints overflow at such widths and give any number.
    return not (isinstance(transform, Truncate) and source in (INT, LONG) and transform.width > _WIDEST_CUT)


def source_bounds(transform: Transform, lowest: Any, highest: Any, source: PrimitiveType) -> tuple[Any, Any]:
    """Bounds of a column from the lowest and highest values of a transform of it that keeps order."""
    if isinstance(transform, TimeTransform):
        return _time_bounds(transform, lowest, highest, source)
    if not isinstance(transform, Truncate):
        return lowest, highest
    if source in (STRING, BINARY):
        return lowest, _whole(transform, highest)
    if isinstance(source, Decimal):
        return lowest, _decimal_ends(transform, highest, source)
    return _integer_bounds(transform, lowest, highest, source)


@dataclass(frozen=True, slots=True)
class Zone:
    """Integers from ``low`` up to ``end`` that a truncation puts below the lowest of their type.

    Some writers store what comes out at the other end of the type, ``stored``, which is no multiple of the width.
    """

    low: int
    end: int
    stored: int

    def touches(self, op: Op, literal: Any) -> bool:
        """Whether a number of the zone can be less than, at most or equal to a literal."""
        match op:
            case Op.LT:
                return bool(literal > self.low)
            case Op.LE:
                return bool(literal >= self.low)
            case _:
                return bool(self.low <= literal < self.end)


def wrapped_zones(transform: Truncate, source: PrimitiveType) -> list[Zone]:
    """The zones of a truncation; a long may have been an int when its file was written.

    >>> wrapped_zones(Truncate(10), INT)
    [Zone(low=-2147483648, end=-2147483640, stored=2147483646)]
    """
    found = []
    for bits in (32,) if source == INT else (32, 64) if source == LONG else ():
        low = -(2 ** (bits - 1))
        below = low - low % transform.width
        if below < low:
            found.append(Zone(low, below + transform.width, below + 2**bits))
    return found


def lowest_number(source: PrimitiveType) -> int:
    """The lowest value of an integer type, or the lowest unscaled value of a decimal type."""
    if isinstance(source, Decimal):
        return 1 - int(10**source.precision)
    return -(2**31) if source == INT else -(2**63)


def _time_bounds(transform: TimeTransform, first: Any, last: Any, source: PrimitiveType) -> tuple[Any, Any]:
    """The first and the last instant of time units; null outside the range of the type."""
    if isinstance(transform, Day) and source == DATE:
        return first, last
    if first is not None:
        first = _starts(transform, _with_rounded(_units(first)), 0, source)
    if last is not None:
        last = _starts(transform, pc.add(_units(last), 1), 1, source)
    return first, last


def lowest_results(transform: Transform, lowest: Any, source: PrimitiveType) -> Any:
    """The lowest results that a column may have, from the lowest ones that are stored for it."""
    exact = not isinstance(transform, TimeTransform) or (isinstance(transform, Day) and source == DATE)
    if exact or lowest is None:
        return lowest
    return _with_rounded(_units(lowest)).cast(pa.int32()).cast(lowest.type)


def _with_rounded(units: Any) -> Any:
    """Old writers rounded towards 1970, so a unit until then may also hold the end of the one before."""
    return pc.if_else(pc.less_equal(units, 0), pc.subtract(units, 1), units)


def _units(column: Any) -> Any:
    return column.cast(pa.int32()).cast(pa.int64())


def _starts(transform: TimeTransform, units: Any, less: int, source: PrimitiveType) -> Any:
    """The first value of the type in each unit, or the one before it; null outside the range of the type."""
    numbers: npt.NDArray[np.int64] = pc.fill_null(units, 0).to_numpy(zero_copy_only=False)
    per_day = _PER_DAY[source]
    size = per_day // 24 if isinstance(transform, Hour) else per_day
    if not isinstance(transform, Hour):
        numbers = numbers.astype(f"datetime64[{transform.unit}]").astype("datetime64[D]").astype(np.int64)
    inside = np.abs(numbers) < (_LAST_DATE if source == DATE else (2**63 - 1) // size)
    known = pc.and_(pc.is_valid(units), pa.array(inside))
    starts = np.where(inside, numbers, 0) * size - less
    found = pc.if_else(known, pa.array(starts), pa.scalar(None, pa.int64()))
    return (found.cast(pa.int32()) if source == DATE else found).cast(arrow_type(source))


def _whole(transform: Truncate, highest: Any) -> Any:
    """Texts and bytes shorter than the width: nothing was cut off, so they bound what they were made from."""
    if highest is None:
        return None
    is_text = pa.types.is_string(highest.type)
    length = pc.utf8_length(highest) if is_text else pc.binary_length(highest)
    return pc.if_else(pc.less(length, transform.width), highest, pa.scalar(None, highest.type))


def _decimal_ends(transform: Truncate, highest: Any, source: Decimal) -> Any:
    """The last number cut to each; null where that has more digits than the column."""
    if highest is None:
        return None
    wide = pa.decimal256(40, source.scale)
    ends = pc.add(highest.cast(wide), _unscaled(transform.width - 1, wide))
    fits = pc.less(ends, _unscaled(10**source.precision, wide))
    return pc.if_else(fits, ends, pa.scalar(None, ends.type)).cast(highest.type)


def _unscaled(number: int, type_: pa.DataType) -> pa.Scalar:
    return pa.array([str(number)]).cast(pa.decimal256(40, 0)).view(type_)[0]


def _integer_bounds(transform: Truncate, lowest: Any, highest: Any, source: PrimitiveType) -> tuple[Any, Any]:
    """Bounds of integers. Below the lowest number of the type some writers come out at its other end.

    So the highest interval, and whatever is no multiple of the width, may hold the lowest numbers.
    """
    if lowest is None or highest is None:
        return None, None
    last = 2**31 - 1 if source == INT else 2**63 - 1
    known = pc.less_equal(highest, last - (transform.width - 1))
    for column in (lowest, highest):
        quotient = pc.divide(column, pa.scalar(transform.width, column.type))
        known = pc.and_(known, pc.equal(pc.multiply(quotient, pa.scalar(transform.width, column.type)), column))
    unknown = pa.scalar(None, highest.type)
    # Where it is not known it may not fit either, and is replaced before the addition.
    ends = pc.add(pc.if_else(known, highest, unknown), pa.scalar(transform.width - 1, highest.type))
    return pc.if_else(known, lowest, unknown), ends
