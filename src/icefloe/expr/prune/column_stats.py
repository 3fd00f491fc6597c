"""What statistics prove about one column, for many files at once (spec: Scan Planning, Manifests).

Statistics come from the column itself and from every partition field derived from it: a month is a lower and an upper
bound of the timestamps in it. A mask is True only where its claim is proved, and False where something is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.filter.nodes import IDENTITY, BoundPredicate
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.columns import one_array
from icefloe.model.counts import Counts
from icefloe.model.entries import BOUNDS, COUNTS, MANIFESTS, StatKey, column_key, partition_key, stat
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.types import (
    DOUBLE,
    FLOAT,
    UNKNOWN,
    Decimal,
    Fixed,
    Primitive,
    PrimitiveType,
    Type,
    is_primitive,
)
from icefloe.transforms import Transform, transform_of

Mask: TypeAlias = npt.NDArray[np.bool_]

_ZERO = pa.scalar(0, pa.int64())
_MANIFESTS = pa.array([int(kind) for kind in MANIFESTS], pa.int32())


def certain(condition: Any) -> Mask:
    """An Arrow condition as a mask; null is not certain."""
    array = one_array(condition)
    end = array.offset + len(array)
    validity, data = array.buffers()
    if end == 0 or data is None:
        return np.zeros(len(array), np.bool_)
    # Bits are joined while they are packed and unpacked once, which takes a tenth of the time of Arrow's way.
    size = (end + 7) // 8
    bits = np.frombuffer(data, np.uint8, size)
    if validity is not None:
        bits = bits & np.frombuffer(validity, np.uint8, size)
    return np.unpackbits(bits, count=end, bitorder="little")[array.offset :].view(np.bool_)


@dataclass(frozen=True)
class Transformed:
    """The lowest and highest values of a transform, which are more precise than bounds of the column."""

    transform: Transform
    lowest: Any
    highest: Any


@dataclass(frozen=True)
class Evidence:
    """Claims about one column from one group of statistics; bounds are Arrow columns, or None when there are none.

    The counts are consistent with each other and with the rows, or null.
    """

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
        zero = self.where(pc.equal, self.null_count, _ZERO)
        return zero if self.of_partition else zero & self.where(pc.equal, self.value_count, self.rows)

    @cached_property
    def all_null(self) -> Mask:
        """Every row is null."""
        by_values = self.where(pc.equal, self.null_count, self.value_count)
        return by_values | self.where(pc.equal, self.null_count, self.rows)

    @cached_property
    def no_nan(self) -> Mask:
        """No row is NaN."""
        return self.all_null | self.where(pc.equal, self.nan_count, _ZERO) if self.floating else ~self.nowhere

    @cached_property
    def all_nan(self) -> Mask:
        """Every row is NaN."""
        if not self.floating:
            return self.nowhere
        every = self.where(pc.equal, self.nan_count, self.value_count)
        return every & self.where(pc.equal, self.nan_count, self.rows) & self.where(pc.greater, self.rows, _ZERO)

    @cached_property
    def no_ordinary(self) -> Mask:
        """No row has a value that is neither null nor NaN."""
        if not self.floating or self.null_count is None or self.nan_count is None:
            return self.all_null
        return self.all_null | self.where(pc.equal, pc.add(self.null_count, self.nan_count), self.value_count)

    @cached_property
    def nowhere(self) -> Mask:
        """No row."""
        return np.zeros(self.size, np.bool_)

    def where(self, compare: Callable[[Any, Any], Any], column: Any, other: Any) -> Mask:
        """Where a comparison is certain; nowhere if one of its sides is not known at all."""
        return self.nowhere if column is None or other is None else certain(compare(column, other))


@dataclass(frozen=True)
class Statistics:
    """The statistics of ``size`` entries of a table from row ``start`` on, read by key."""

    table: pa.Table
    partitions: tuple[PartitionField, ...]
    start: int
    size: int

    def about(self, node: BoundPredicate) -> Iterator[Evidence]:
        """Everything known about what a predicate tests: from its column, then from partition fields made from it."""
        source = node.column_type
        yield self._evidence(column_key(node.field_id), node, IDENTITY, of_partition=False)
        for field in self.partitions:
            if field.source_id != node.field_id:
                continue
            transform = transform_of(field)
            if transform.is_evidence(source):
                yield self._evidence(partition_key(field.field_id), node, transform, of_partition=True)

    @cached_property
    def rows(self) -> Any:
        """The row count of each entry: that of the file, or of the live files of the manifest; null if unknown."""
        records = self.column("record_count", pa.int64())
        if records is not None and pc.min(records).as_py() < 0:
            records = pc.if_else(pc.less(records, 0), None, records)
        kinds = self.column("content_type", pa.int32())
        added = self.column("added_rows_count", pa.int64())
        existing = self.column("existing_rows_count", pa.int64())
        if kinds is None or added is None or existing is None:
            return records
        of_manifest = pc.is_in(kinds, value_set=_MANIFESTS)
        if pc.any(of_manifest).as_py() is not True:
            return records
        inside = pc.add(added, existing)
        # A manifest with a count of 0 may have files whose row counts are unknown.
        known = pc.and_(pc.greater(inside, 0), pc.greater_equal(pc.min_element_wise(added, existing), 0))
        return pc.if_else(of_manifest, pc.if_else(known, inside, None), records)

    @cached_property
    def no_rows(self) -> Mask:
        """Which entries have no rows at all."""
        records = self.column("record_count", pa.int64())
        return np.zeros(self.size, np.bool_) if records is None else certain(pc.equal(records, 0))

    def _evidence(self, key: StatKey, node: BoundPredicate, transform: Transform, *, of_partition: bool) -> Evidence:
        lower, upper, transformed = self._known(key, node, transform)
        values, nulls, nans = (self.column(stat(measure, key), pa.int64()) for measure in COUNTS)
        counts = Counts(values=values, nulls=nulls, nans=nans).consistent(
            self.rows, whole=of_partition or len(node.path) == 1
        )
        return Evidence(
            size=self.size,
            lower=lower,
            upper=upper,
            rows=self.rows,
            value_count=counts.values,
            null_count=counts.nulls,
            nan_count=counts.nans,
            floating=node.type in (FLOAT, DOUBLE),
            of_partition=of_partition,
            transformed=transformed,
        )

    def _known(self, key: StatKey, node: BoundPredicate, transform: Transform) -> tuple[Any, Any, Transformed | None]:
        """Bounds of the tested values, and the values of a transform if they are more precise."""
        source = node.column_type
        other = node.transform != IDENTITY and transform != node.transform
        if not node.op.takes_literals or other or not is_primitive(source):
            return None, None, None
        lowest, highest = self._bounds(key, transform.result_type(source))
        if node.transform != IDENTITY:
            return transform.lowest_results(lowest, source), highest, None
        transformed = None
        if _is_more_precise(transform, source) and lowest is not None and highest is not None:
            transformed = Transformed(transform, lowest, highest)
        return *transform.source_bounds(lowest, highest, source), transformed

    def _bounds(self, key: StatKey, type_: Type) -> tuple[Any, Any]:
        if not is_ordered(type_):
            return None, None
        wanted = arrow_type(type_)
        columns = [self.column(stat(measure, key), wanted) for measure in BOUNDS]
        if type_ in (FLOAT, DOUBLE):
            # Some writers store NaN as a bound, which is no bound.
            columns = [None if c is None else pc.if_else(pc.is_nan(c), pa.scalar(None, wanted), c) for c in columns]
        return columns[0], columns[1]

    def column(self, name: str, type_: pa.DataType) -> Any:
        """A column in the type it should have; None if it is missing, null everywhere or something else."""
        if self.table.schema.get_field_index(name) < 0:
            return None
        column = one_array(self.table[name].slice(self.start, self.size))
        if column.null_count == len(column):
            return None
        if column.type == type_:
            return column
        if not _promotes(column.type, type_):
            return None
        try:
            return column.cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None  # a file may claim bounds that its column cannot have; they are no evidence, and no error


def is_ordered(type_: Type) -> bool:
    """Whether stored bounds of a type are values of it; a geometry's are corners of a box."""
    return isinstance(type_, (Primitive, Decimal, Fixed)) and type_ != UNKNOWN


def _promotes(measured: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether bounds of the measured type, from before or after a promotion, are exact bounds of the wanted type."""
    kinds = pa.types
    if kinds.is_integer(measured):
        return bool(kinds.is_integer(wanted) or kinds.is_date32(wanted))
    if kinds.is_floating(measured):
        return bool(kinds.is_floating(wanted) and measured.bit_width <= wanted.bit_width)
    if kinds.is_decimal(measured):
        return bool(kinds.is_decimal(wanted))
    if kinds.is_date32(measured):
        return bool(kinds.is_timestamp(wanted) or wanted == pa.int32())
    if kinds.is_timestamp(measured):
        return bool(kinds.is_timestamp(wanted) and (measured.tz is None) == (wanted.tz is None))
    is_text = kinds.is_large_string(measured) or kinds.is_string_view(measured) or kinds.is_dictionary(measured)
    return bool((is_text and kinds.is_string(wanted)) or (kinds.is_binary(wanted) and not kinds.is_string(measured)))


def _is_more_precise(transform: Transform, type_: PrimitiveType) -> bool:
    """Whether values of a transform are more precise than the column bounds that follow from them.

    The greatest text with a prefix cannot be written, so for texts and bytes the prefixes are compared.
    """
    return not transform.preserves_order or transform.prefix_length(type_) is not None
