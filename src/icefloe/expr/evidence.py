"""What statistics say about one column, for many files at once.

Statistics come from the column itself and from every partition field made from it: the value of a day is a lower and
an upper bound of the timestamps in it. All masks are claims that are certain; where something is unknown they are
False (spec: Scan Planning, Manifests; null counts and bounds are optional everywhere).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.arrow import arrow_type
from icefloe.model.entries import ContentType, column_key, partition_key, stat
from icefloe.model.partitioning import PartitionField
from icefloe.model.types import DATE, DOUBLE, FLOAT, INT, PrimitiveType
from icefloe.transforms import Bucket, Day, Identity, Transform, parse_transform

Mask: TypeAlias = npt.NDArray[np.bool_]

_DAY = 86_400_000_000
_LAST_DAY = (2**63 - 1) // _DAY - 1  # beyond it the end of a day is no timestamp


def certain(condition: Any) -> Mask:
    """An Arrow condition as a mask; null is not certain."""
    found: Mask = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    return found


@dataclass(frozen=True)
class Evidence:
    """Claims about one column from one group of statistics; bounds are Arrow columns, or None when there are none."""

    size: int
    lower: Any
    upper: Any
    rows: Any  # how many rows there are, null where unknown
    value_count: Any
    null_count: Any
    nan_count: Any
    floating: bool
    of_partition: bool
    buckets: tuple[Bucket, Any, Any] | None = None  # the transform, lowest and highest bucket

    @cached_property
    def no_nulls(self) -> Mask:
        """No row is null. Fewer values than rows mean nulls in a parent struct, unless it is a partition value."""
        zero = self._where(lambda: pc.equal(self.null_count, 0), self.null_count)
        complete = self._where(lambda: pc.greater_equal(self.value_count, self.rows), self.value_count, self.rows)
        if self.of_partition:
            return zero
        return zero & complete

    @cached_property
    def all_null(self) -> Mask:
        """Every row is null."""
        by_values = self._where(
            lambda: pc.greater_equal(self.null_count, self.value_count), self.null_count, self.value_count
        )
        return by_values | self._where(lambda: pc.greater_equal(self.null_count, self.rows), self.null_count, self.rows)

    @cached_property
    def no_nan(self) -> Mask:
        """No row is NaN."""
        if not self.floating:
            return np.ones(self.size, np.bool_)
        return self.all_null | self._where(lambda: pc.equal(self.nan_count, 0), self.nan_count)

    @cached_property
    def all_nan(self) -> Mask:
        """Every row is NaN."""
        if not self.floating:
            return np.zeros(self.size, np.bool_)
        counts = (self.nan_count, self.value_count, self.rows)
        every = self._where(
            lambda: pc.greater_equal(self.nan_count, pc.max_element_wise(*counts[1:], skip_nulls=False)), *counts
        )
        return every & ~self._where(lambda: pc.equal(self.rows, 0), self.rows)

    @cached_property
    def no_ordinary(self) -> Mask:
        """No row has a value that is neither null nor NaN."""
        if not self.floating:
            return self.all_null
        counts = (self.null_count, self.nan_count, self.value_count)
        return self.all_null | self._where(
            lambda: pc.greater_equal(pc.add(self.null_count, self.nan_count), self.value_count), *counts
        )

    def _where(self, condition: Any, *needed: Any) -> Mask:
        """The certain rows of a condition over columns that must all exist."""
        if any(column is None for column in needed):
            return np.zeros(self.size, np.bool_)
        return certain(condition())


@dataclass(frozen=True)
class Statistics:
    """The statistics columns of an entry table, read by key."""

    table: pa.Table
    partitions: tuple[PartitionField, ...]

    def about(self, field_id: int, type_: PrimitiveType) -> Iterator[Evidence]:
        """Everything known about a column: its own statistics, then those of partition fields made from it."""
        yield self._evidence(column_key(field_id), type_, Identity(), of_partition=False)
        for field in self.partitions:
            transform = parse_transform(field.transform)
            if (
                field.source_id == field_id
                and isinstance(transform, (Identity, Day, Bucket))
                and transform.accepts(type_)
            ):
                yield self._evidence(partition_key(field.field_id), type_, transform, of_partition=True)

    @cached_property
    def rows(self) -> Any:
        """How many rows each entry stands for: those of the file, or of the live files of the manifest."""
        records = self._column("record_count", pa.int64())
        kinds = self._column("content_type", pa.int32())
        added = self._column("added_rows_count", pa.int64())
        existing = self._column("existing_rows_count", pa.int64())
        if kinds is None or added is None or existing is None:
            return records
        manifests = pa.array([int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)], pa.int32())
        return pc.if_else(pc.is_in(kinds, value_set=manifests), pc.add(added, existing), records)

    def _evidence(self, key: str, type_: PrimitiveType, transform: Transform, *, of_partition: bool) -> Evidence:
        lower, upper, buckets = None, None, None
        if isinstance(transform, Bucket):
            lowest, highest = self._bounds(key, INT)
            buckets = None if lowest is None or highest is None else (transform, lowest, highest)
        elif isinstance(transform, Day) and type_ != DATE:
            lower, upper = _day_bounds(*self._bounds(key, DATE), arrow_type(type_))
        else:
            lower, upper = self._bounds(key, type_)
        return Evidence(
            size=self.table.num_rows,
            lower=lower,
            upper=upper,
            rows=self.rows,
            value_count=self._column(stat("value_count", key), pa.int64()),
            null_count=self._column(stat("null_value_count", key), pa.int64()),
            nan_count=self._column(stat("nan_value_count", key), pa.int64()),
            floating=type_ in (FLOAT, DOUBLE),
            of_partition=of_partition,
            buckets=buckets,
        )

    def _bounds(self, key: str, type_: PrimitiveType) -> tuple[Any, Any]:
        wanted = arrow_type(type_)
        found = [self._column(stat(measure, key), wanted) for measure in ("lower_bound", "upper_bound")]
        if type_ in (FLOAT, DOUBLE):
            # Writers have stored NaN as a bound; it bounds nothing.
            found = [None if c is None else pc.if_else(pc.is_nan(c), pa.scalar(None, wanted), c) for c in found]
        return found[0], found[1]

    def _column(self, name: str, type_: pa.DataType) -> Any:
        """A column in the type it should have; None if it is missing or something else."""
        if self.table.schema.get_field_index(name) < 0:
            return None
        column = self.table[name]
        if column.type == type_:
            return column
        try:
            return column.cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None


def _day_bounds(first: Any, last: Any, type_: pa.DataType) -> tuple[Any, Any]:
    """The first and the last timestamp of days; days outside the range of timestamps are unknown."""
    if first is None or last is None:
        return None, None
    first, last = _days(first), _days(last)
    # Old writers rounded towards 1970, so a day until then may also hold the end of the day before.
    first = pc.if_else(pc.less_equal(first, 0), pc.subtract(first, 1), first)
    start = pc.multiply(first, _DAY)
    end = pc.subtract(pc.multiply(pc.add(last, 1), _DAY), 1)
    return start.cast(type_), end.cast(type_)


def _days(column: Any) -> Any:
    days = column.cast(pa.int32()).cast(pa.int64())
    return pc.if_else(pc.less(pc.abs(days), _LAST_DAY), days, pa.scalar(None, pa.int64()))
