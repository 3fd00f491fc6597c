"""Year, month, day and hour of dates and timestamps, counted from 1970 in UTC (spec: Partition Transforms).

Everything is rounded towards the past, also before 1970.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.schema.types import DATE, INT, TIMESTAMP, TIMESTAMP_NS, TIMESTAMPTZ, TIMESTAMPTZ_NS, Type
from icefloe.transforms.base import MAX_INT, Longs, Transform, masked, numbers, parts

Ints = npt.NDArray[np.int32]

_TICKS_PER_SECOND: dict[Type, int] = {
    TIMESTAMP: 1_000_000,
    TIMESTAMPTZ: 1_000_000,
    TIMESTAMP_NS: 1_000_000_000,
    TIMESTAMPTZ_NS: 1_000_000_000,
}
_SECONDS_PER_HOUR, _SECONDS_PER_DAY = 3_600, 86_400
_DAYS_PER_4_YEARS, _DAYS_PER_400_YEARS = 1_461, 146_097
_MARCH_OF_YEAR_0 = -719_468  # the first of it, in days from 1970


class TimeTransform(Transform):
    """A unit of the calendar or the clock; ``unit`` is numpy's letter for it."""

    preserves_order: ClassVar[bool] = True
    unit: ClassVar[str]

    @abstractmethod
    def _count(self, array: pa.Array, source: Type) -> Ints:
        """Units from 1970 of an array; any number where it is null."""

    def accepts(self, source: Type) -> bool:
        """Dates and timestamps."""
        return source == DATE or source in _TICKS_PER_SECOND

    def result_type(self, source: Type) -> Type:
        """An int, counted from 1970."""
        return INT

    def satisfies_order_of(self, other: Transform, source: Type) -> bool:
        """Smaller units order larger ones."""
        return isinstance(other, TimeTransform) and _FROM_SMALL.index(self.unit) <= _FROM_SMALL.index(other.unit)

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        return masked(self._count(array, source), pa.int32(), array)

    def text(self, value: int) -> str:
        """A partition value as people write it, which is also how folders are named.

        >>> Year().text(56), Month().text(682), Day().text(20_772), Hour().text(498_537)
        ('2026', '2026-11', '2026-11-15', '2026-11-15-09')
        """
        return str(np.int64(value).astype(f"datetime64[{self.unit}]")).replace("T", "-")


@dataclass(frozen=True, slots=True)
class Year(TimeTransform):
    """The year of a date or timestamp, as years from 1970."""

    unit: ClassVar[str] = "Y"

    def __str__(self) -> str:
        return "year"

    def _count(self, array: pa.Array, source: Type) -> Ints:
        return _months(_days(array, source), 12)


@dataclass(frozen=True, slots=True)
class Month(TimeTransform):
    """The month of a date or timestamp, as months from January 1970."""

    unit: ClassVar[str] = "M"

    def __str__(self) -> str:
        return "month"

    def _count(self, array: pa.Array, source: Type) -> Ints:
        return _months(_days(array, source), 1)


@dataclass(frozen=True, slots=True)
class Day(TimeTransform):
    """The day of a date or timestamp."""

    unit: ClassVar[str] = "D"

    def __str__(self) -> str:
        return "day"

    def result_type(self, source: Type) -> Type:
        """A date."""
        return DATE

    def _count(self, array: pa.Array, source: Type) -> Ints:
        return _days(array, source)

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        return array if source == DATE else masked(_days(array, source), pa.date32(), array)


@dataclass(frozen=True, slots=True)
class Hour(TimeTransform):
    """The hour of a timestamp, as hours from 1970."""

    unit: ClassVar[str] = "h"

    def __str__(self) -> str:
        return "hour"

    def accepts(self, source: Type) -> bool:
        """Timestamps."""
        return source in _TICKS_PER_SECOND

    def _count(self, array: pa.Array, source: Type) -> Ints:
        ticks, per_hour = numbers(array, np.int64), _SECONDS_PER_HOUR * _TICKS_PER_SECOND[source]
        first, end = (-MAX_INT - 1) * per_hour, (MAX_INT + 1) * per_hour
        if ticks.min(initial=0) < first or ticks.max(initial=0) >= end:
            outside = (ticks < first) | (ticks >= end)
            if (outside & pc.is_valid(array).to_numpy(zero_copy_only=False)).any():
                raise InputError("hour: a timestamp 2^31 hours or more from 1970 has no partition", transform=str(self))
        return _divided(ticks, per_hour)


_FROM_SMALL = [transform.unit for transform in (Hour, Day, Month, Year)]


def _days(array: pa.Array, source: Type) -> Ints:
    if source == DATE:
        return numbers(array, np.int32)
    return _divided(numbers(array, np.int64), _SECONDS_PER_DAY * _TICKS_PER_SECOND[source])


def _divided(ticks: Longs, per_unit: int) -> Ints:
    """Whole units; ``unsafe`` because numpy does not know that they are ints."""
    return np.floor_divide(ticks, per_unit, out=np.empty(len(ticks), np.int32), dtype=np.int64, casting="unsafe")


def _months(days: Ints, per_unit: int) -> Ints:
    """Units of so many months, from January 1970, that days from 1970 are in; numpy has no vector code for this.

    Years begin in March here: then leap days come last, and months repeat their lengths every five, in 153 days.
    Quarters of days make centuries and years, whose days are no whole numbers, exact.
    """
    found = np.empty(len(days), np.int32)
    for part in parts(len(days)):
        quarters = (days[part].astype(np.int64) - _MARCH_OF_YEAR_0) * 4 + 3
        century = quarters // _DAYS_PER_400_YEARS
        quarters -= century * _DAYS_PER_400_YEARS
        quarters |= 3
        year = quarters // _DAYS_PER_4_YEARS
        day = (quarters - year * _DAYS_PER_4_YEARS) // 4
        months = (century * 100 + year) * 12 + (day * 5 + 2) // 153 + (2 - 1970 * 12)
        found[part] = months if per_unit == 1 else months // per_unit
    return found
