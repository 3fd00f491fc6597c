"""Year, month, day and hour of dates and timestamps, counted from 1970 in UTC (spec: Partition Transforms).

Values are rounded towards the past, also before 1970.
"""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import DATE, INT, TIMESTAMP, TIMESTAMP_NS, TIMESTAMPTZ, TIMESTAMPTZ_NS, Type
from icefloe.transforms.base import BEYOND, MAX_INT, Limits, Longs, Transform, masked, numbers, parts

Ints = npt.NDArray[np.int32]

_TICKS_PER_SECOND: dict[Type, int] = {
    TIMESTAMP: 1_000_000,
    TIMESTAMPTZ: 1_000_000,
    TIMESTAMP_NS: 1_000_000_000,
    TIMESTAMPTZ_NS: 1_000_000_000,
}
_SECONDS_PER_HOUR, _SECONDS_PER_DAY = 3_600, 86_400
_MICROS_PER_DAY = 86_400_000_000
_MICROS_PER_HOUR = 3_600_000_000
_DAYS_PER_4_YEARS, _DAYS_PER_400_YEARS = 1_461, 146_097
_MARCH_OF_YEAR_0 = -719_468  # the first of it, in days from 1970
_EPOCH = dt.datetime(1970, 1, 1)
_FIRST_DATE, _LAST_DATE = ((day - _EPOCH.date()).days for day in (dt.date.min, dt.date.max))


class TimeTransform(Transform):
    """A unit of the calendar or the clock; ``unit`` is numpy's letter for it."""

    preserves_order: ClassVar[bool] = True
    name: ClassVar[str]
    unit: ClassVar[str]

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def _count(self, array: pa.Array, source: Type) -> Ints:
        """Units from 1970 of an array; any number where it is null."""

    def accepts(self, source: Type) -> bool:
        """Dates and timestamps."""
        return source == DATE or source in _TICKS_PER_SECOND

    def result_type(self, source: Type) -> Type:
        """An int, counted from 1970."""
        return INT

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        return masked(self._count(array, source), pa.int32(), array)

    def display(self, value: object) -> object:
        """A count from 1970 as text such as ``2026-11``; other values are unchanged.

        >>> Year().display(56), Month().display(682), Day().display(20_772), Hour().display(498_537)
        ('2026', '2026-11', '2026-11-15', '2026-11-15-09')
        """
        if not isinstance(value, int):
            return value
        return str(np.int64(value).astype(f"datetime64[{self.unit}]")).replace("T", "-")

    def _is_exact(self, source: Type) -> bool:
        """Whether old writers stored the right value; before 1970 they rounded towards it."""
        return False

    def source_bounds(self, lowest: Any, highest: Any, source: Type) -> tuple[Any, Any]:
        """The first and the last instant of the units; null outside the range of the type."""
        if self._is_exact(source):
            return lowest, highest
        first = None if lowest is None else self._starts(_with_rounded(_units(lowest)), 0, source)
        last = None if highest is None else self._starts(pc.add(_units(highest), 1), 1, source)
        return first, last

    def lowest_results(self, lowest: Any, source: Type) -> Any:
        """One unit earlier until 1970, where old writers rounded up."""
        if self._is_exact(source) or lowest is None:
            return lowest
        return _with_rounded(_units(lowest)).cast(pa.int32()).cast(lowest.type)

    def _starts(self, units: Any, less: int, source: Type) -> Any:
        """The first value of the type in each unit, or the one before it; null outside the range of the type."""
        counts: Longs = pc.fill_null(units, 0).to_numpy(zero_copy_only=False)
        starts, size = self._first_ticks(counts), self._tick_size(source)
        inside = np.abs(starts) < (MAX_INT if source == DATE else (2**63 - 1) // size)
        known = pc.and_(pc.is_valid(units), pa.array(inside))
        ticks = pa.array(np.where(inside, starts, 0) * size - less)
        instants = pc.if_else(known, ticks, pa.scalar(None, pa.int64()))
        return (instants.cast(pa.int32()) if source == DATE else instants).cast(arrow_type(source))

    def _first_ticks(self, units: Longs) -> Longs:
        """The first day of each unit."""
        return units.astype(f"datetime64[{self.unit}]").astype("datetime64[D]").astype(np.int64)

    def _tick_size(self, source: Type) -> int:
        """How many values of the source type are in one unit of ``_first_ticks``."""
        return 1 if source == DATE else _SECONDS_PER_DAY * _TICKS_PER_SECOND[source]

    def limits(self, source: Type) -> Limits:
        """The start of a unit, and that of the next one."""
        return Limits(
            lambda unit: _instant(self._start(_unit(unit)), source),
            lambda unit: _instant(self._start(_unit(unit) + 1), source),
        )

    def _start(self, unit: int) -> int:
        """The first microsecond of a unit, counted from 1970."""
        first = int(self._first_ticks(np.array([unit], np.int64))[0])
        return first * self._tick_size(TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Year(TimeTransform):
    """The year of a date or timestamp, as years from 1970."""

    name: ClassVar[str] = "year"
    unit: ClassVar[str] = "Y"

    def _count(self, array: pa.Array, source: Type) -> Ints:
        return _months(_days(array, source), 12)

    def spark_sql(self, column: str, source: Type) -> str:
        """The year less 1970."""
        return f"(year({_spark_day(column, source)}) - 1970)"

    def spark_folder(self, column: str, source: Type) -> str:
        """The year."""
        return f"CAST(year({_spark_day(column, source)}) AS STRING)"


@dataclass(frozen=True, slots=True)
class Month(TimeTransform):
    """The month of a date or timestamp, as months from January 1970."""

    name: ClassVar[str] = "month"
    unit: ClassVar[str] = "M"

    def _count(self, array: pa.Array, source: Type) -> Ints:
        return _months(_days(array, source), 1)

    def spark_sql(self, column: str, source: Type) -> str:
        """Twelve months for each year from 1970, and those of the year."""
        day = _spark_day(column, source)
        return f"((year({day}) - 1970) * 12 + month({day}) - 1)"

    def spark_folder(self, column: str, source: Type) -> str:
        """The year and the month."""
        day = _spark_day(column, source)
        return f"concat(CAST(year({day}) AS STRING), '-', lpad(CAST(month({day}) AS STRING), 2, '0'))"


@dataclass(frozen=True, slots=True)
class Day(TimeTransform):
    """The day of a date or timestamp."""

    name: ClassVar[str] = "day"
    unit: ClassVar[str] = "D"

    def result_type(self, source: Type) -> Type:
        """A date."""
        return DATE

    def _count(self, array: pa.Array, source: Type) -> Ints:
        return _days(array, source)

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        return array if source == DATE else masked(_days(array, source), pa.date32(), array)

    def _is_exact(self, source: Type) -> bool:
        return source == DATE

    def spark_sql(self, column: str, source: Type) -> str:
        """The day in UTC, as a date."""
        return _spark_day(column, source)

    def spark_folder(self, column: str, source: Type) -> str:
        """The date."""
        return f"CAST({_spark_day(column, source)} AS STRING)"


@dataclass(frozen=True, slots=True)
class Hour(TimeTransform):
    """The hour of a timestamp, as hours from 1970."""

    name: ClassVar[str] = "hour"
    unit: ClassVar[str] = "h"

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

    def _first_ticks(self, units: Longs) -> Longs:
        """The hours themselves."""
        return units

    def _tick_size(self, source: Type) -> int:
        return _SECONDS_PER_HOUR * _TICKS_PER_SECOND[source]

    def spark_sql(self, column: str, source: Type) -> str:
        """Hours from 1970; those of a local timestamp do not depend on a time zone."""
        if source == TIMESTAMPTZ:
            return f"CAST({_spark_units(column, _MICROS_PER_HOUR)} AS INT)"
        return f"(unix_date({_spark_day(column, source)}) * 24 + hour({column}))"

    def spark_folder(self, column: str, source: Type) -> str:
        """The date and the hour."""
        hour = f"hour({column})"
        if source == TIMESTAMPTZ:
            hour = f"(pmod(unix_micros({column}), {_MICROS_PER_DAY}L) div {_MICROS_PER_HOUR}L)"
        day = _spark_day(column, source)
        return f"concat(CAST({day} AS STRING), '-', lpad(CAST({hour} AS STRING), 2, '0'))"


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
    units = np.empty(len(days), np.int32)
    for part in parts(len(days)):
        quarters = (days[part].astype(np.int64) - _MARCH_OF_YEAR_0) * 4 + 3
        century = quarters // _DAYS_PER_400_YEARS
        quarters -= century * _DAYS_PER_400_YEARS
        quarters |= 3
        year = quarters // _DAYS_PER_4_YEARS
        day = (quarters - year * _DAYS_PER_4_YEARS) // 4
        months = (century * 100 + year) * 12 + (day * 5 + 2) // 153 + (2 - 1970 * 12)
        units[part] = months if per_unit == 1 else months // per_unit
    return units


def _with_rounded(units: Any) -> Any:
    """Old writers rounded towards 1970, so a unit until then may also hold the end of the one before."""
    return pc.if_else(pc.less_equal(units, 0), pc.subtract(units, 1), units)


def _units(column: Any) -> Any:
    return column.cast(pa.int32()).cast(pa.int64())


def _unit(value: Any) -> int:
    return (value - _EPOCH.date()).days if isinstance(value, dt.date) else int(value)


def _instant(start: int, source: Type) -> Any:
    """A number of microseconds as a value of a type; the least value for what is before all values."""
    if source in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
        return None if start * 1000 >= 2**63 else max(start * 1000, -(2**63))
    if not _FIRST_DATE <= start // _MICROS_PER_DAY <= _LAST_DATE:
        return BEYOND
    instant = _EPOCH + dt.timedelta(microseconds=start)
    if source == DATE:
        return instant.date()
    return instant.replace(tzinfo=dt.UTC) if source == TIMESTAMPTZ else instant


def _spark_day(column: str, source: Type) -> str:
    """The UTC day; a cast of a local timestamp or a date does not depend on a time zone."""
    if source != TIMESTAMPTZ:
        return f"CAST({column} AS DATE)"
    return f"date_from_unix_date(CAST({_spark_units(column, _MICROS_PER_DAY)} AS INT))"


def _spark_units(column: str, size: int) -> str:
    """How many units from 1970, rounded towards the past; Spark's own division rounds towards 1970."""
    count = f"unix_micros({column})"
    return f"(({count} - pmod({count}, {size}L)) div {size}L)"
