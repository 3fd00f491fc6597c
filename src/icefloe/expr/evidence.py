"""What statistics say about one column, for many files at once.

Statistics come from the column itself and from every partition field made from it: the value of a month is a lower and
an upper bound of the timestamps in it. All masks are claims that are certain; where something is unknown they are
False (spec: Scan Planning, Manifests; null counts and bounds are optional everywhere).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.projection import source_bounds
from icefloe.model.arrow import arrow_type
from icefloe.model.entries import ContentType, column_key, partition_key, stat
from icefloe.model.partitioning import PartitionField
from icefloe.model.types import BINARY, DOUBLE, FLOAT, STRING, PrimitiveType, Type
from icefloe.transforms import Bucket, Identity, Transform, Truncate, Void, parse_transform

Mask: TypeAlias = npt.NDArray[np.bool_]


def certain(condition: Any) -> Mask:
    """An Arrow condition as a mask; null is not certain."""
    found: Mask = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    return found


@dataclass(frozen=True)
class Transformed:
    """The lowest and highest values of a transform, which say more than bounds of the column can."""

    transform: Bucket | Truncate
    lowest: Any
    highest: Any


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
    transformed: Transformed | None = None

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
            if field.source_id == field_id and transform.accepts(type_) and not isinstance(transform, Void):
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
        lowest, highest = self._bounds(key, transform.result_type(type_))
        lower, upper = (
            (None, None) if isinstance(transform, Bucket) else source_bounds(transform, lowest, highest, type_)
        )
        transformed = None
        if _says_more(transform, type_) and lowest is not None and highest is not None:
            transformed = Transformed(transform, lowest, highest)
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
            transformed=transformed,
        )

    def _bounds(self, key: str, type_: Type) -> tuple[Any, Any]:
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


def _says_more(transform: Transform, type_: PrimitiveType) -> TypeGuard[Bucket | Truncate]:
    """Whether values of a transform say more than the bounds of the column that follow from them.

    The last text with a given beginning cannot be written, so for texts and bytes the beginnings are compared.
    """
    return isinstance(transform, Bucket) or (isinstance(transform, Truncate) and type_ in (STRING, BINARY))
