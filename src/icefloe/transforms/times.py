"""Year, month, day and hour of dates and timestamps, counted from 1970 in UTC (spec: Partition Transforms).

Everything is rounded towards the past, also before 1970.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from icefloe.errors import InputError
from icefloe.model.types import DATE, INT, TIMESTAMP, TIMESTAMPTZ, Type
from icefloe.transforms.base import MAX_INT, Longs, Transform, masked

MICROS_PER_DAY = 86_400_000_000
MICROS_PER_HOUR = 3_600_000_000


class TimeTransform(Transform):
    """A unit of the calendar or the clock; ``unit`` is numpy's letter for it."""

    preserves_order: ClassVar[bool] = True
    unit: ClassVar[str]

    @abstractmethod
    def _count(self, array: pa.Array, source: Type) -> Longs:
        """Units from 1970 of an array; any number where it is null."""

    def accepts(self, source: Type) -> bool:
        """Dates and timestamps."""
        return source in (DATE, TIMESTAMP, TIMESTAMPTZ)

    def result_type(self, source: Type) -> Type:
        """An int, counted from 1970."""
        return INT

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

    def _count(self, array: pa.Array, source: Type) -> Longs:
        return _days(array, source).astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Month(TimeTransform):
    """The month of a date or timestamp, as months from January 1970."""

    unit: ClassVar[str] = "M"

    def __str__(self) -> str:
        return "month"

    def _count(self, array: pa.Array, source: Type) -> Longs:
        return _days(array, source).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Day(TimeTransform):
    """The day of a date or timestamp."""

    unit: ClassVar[str] = "D"

    def __str__(self) -> str:
        return "day"

    def result_type(self, source: Type) -> Type:
        """A date."""
        return DATE

    def _count(self, array: pa.Array, source: Type) -> Longs:
        return _days(array, source)

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        if source == DATE:
            return array
        return masked(self._count(array, source), pa.int32(), array).cast(pa.date32())


@dataclass(frozen=True, slots=True)
class Hour(TimeTransform):
    """The hour of a timestamp, as hours from 1970."""

    unit: ClassVar[str] = "h"

    def __str__(self) -> str:
        return "hour"

    def accepts(self, source: Type) -> bool:
        """Timestamps."""
        return source in (TIMESTAMP, TIMESTAMPTZ)

    def _count(self, array: pa.Array, source: Type) -> Longs:
        hours = _numbers(array) // MICROS_PER_HOUR
        if hours.max(initial=0) > MAX_INT or hours.min(initial=0) < -MAX_INT - 1:
            raise InputError("hour: a timestamp 2^31 hours or more from 1970 has no partition", transform=str(self))
        return hours


def _days(array: pa.Array, source: Type) -> Longs:
    if source == DATE:
        return _numbers(array.cast(pa.int32()))
    return _numbers(array) // MICROS_PER_DAY


def _numbers(array: pa.Array) -> Longs:
    numbers: Longs = array.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers
