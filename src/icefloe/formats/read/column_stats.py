"""What files or row groups tell of their columns, as the statistics columns of entries (spec: Manifests).

Bounds travel as comparable plain values (see ``bounds``) until all units of a column become one Arrow array.
An unknown count or bound is null, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from icefloe.formats.write import bounds
from icefloe.formats.write.bounds import Raw
from icefloe.formats.write.measure import Measures
from icefloe.formats.write.metrics import DEFAULT, Modes
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import Measure, column_key, stat
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UNKNOWN, Field, Geography, Geometry, has_value_sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One column of one unit; the bounds are ``exact`` if they are known to be values of the column."""

    values: int | None = None
    nulls: int | None = None
    nans: int | None = None
    lower: Raw | None = None
    upper: Raw | None = None
    exact: bool = False
    value_bytes: int | None = None  # of all values together, uncompressed


_MAX_INT = 2**31 - 1
NOTHING = Known()


class Source(Protocol):
    """A file or a row group that has statistics of its columns."""

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The known statistics of a column of the table; ``type_`` is its Arrow type."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """A file whose writer measured it."""

    measures: Mapping[int, Measures]

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The statistics that the writer measured."""
        measures = self.measures.get(column.id)
        return NOTHING if measures is None else known_measures(measures)


def known_measures(measures: Measures) -> Known:
    """The same with comparable bounds."""
    return Known(
        values=measures.values,
        nulls=measures.nulls,
        nans=measures.nans,
        lower=None if measures.lower is None else bounds.raw(measures.lower),
        upper=None if measures.upper is None else bounds.raw(measures.upper),
        exact=True,
        value_bytes=measures.value_bytes,
    )


def stat_columns(units: Sequence[Source], schema: Schema, modes: Modes | None) -> dict[str, pa.Array]:
    """The statistics of all measured columns, one row for each unit.

    Without modes all columns have them, with untruncated bounds, but not what only entries record: whether bounds are
    tight, and average sizes.
    """
    arrays: dict[str, pa.Array] = {}
    counts: dict[str, list[int | None]] = {}
    for id_, column in schema.measured.items():
        mode = None if modes is None else modes.get(id_, DEFAULT)
        if column.type == UNKNOWN or (mode is not None and not mode.counts):
            continue
        type_, key = arrow_type(column.type), column_key(id_)
        per_unit = [unit.known(column, type_) for unit in units]
        counts[stat(Measure.VALUES, key)] = [stats.values for stats in per_unit]
        counts[stat(Measure.NULLS, key)] = [stats.nulls for stats in per_unit]
        if pa.types.is_floating(type_):
            counts[stat(Measure.NANS, key)] = [stats.nans for stats in per_unit]
        if mode is not None and has_value_sizes(column.type):
            sizes = pa.array([_average(stats) for stats in per_unit], pa.int32())
            arrays |= {} if sizes.null_count == len(sizes) else {stat(Measure.AVERAGE_SIZE, key): sizes}
        if mode is not None and not mode.bounds:
            continue
        shape = isinstance(column.type, (Geometry, Geography))  # its bounds are corners, which are short
        down, up = bounds.kept(type_, None if mode is None or shape else mode.length)
        lower = [None if stats.lower is None else down(stats.lower) for stats in per_unit]
        upper = [None if stats.upper is None else up(stats.upper) for stats in per_unit]
        arrays[stat(Measure.LOWER, key)] = bounds.to_array(lower, type_)
        arrays[stat(Measure.UPPER, key)] = bounds.to_array(upper, type_)
        if mode is not None and not shape:
            kept = zip(per_unit, lower, upper, strict=True)
            tight = pa.array([_is_tight(*bounded) for bounded in kept], pa.bool_())
            arrays |= {} if tight.null_count == len(tight) else {stat(Measure.TIGHT, key): tight}
    # One array for all counts: building many small arrays would take longer than filling them.
    together = pa.array([count for column_counts in counts.values() for count in column_counts], pa.int64())
    return arrays | {name: together.slice(i * len(units), len(units)) for i, name in enumerate(counts)}


def _average(stats: Known) -> int | None:
    """The average size of the values that are not null, in bytes; none if it is unknown or there are no values."""
    if stats.value_bytes is None or stats.values is None or stats.nulls is None or stats.values <= stats.nulls:
        return None
    return min(round(stats.value_bytes / (stats.values - stats.nulls)), _MAX_INT)


def _is_tight(stats: Known, lower: Raw | None, upper: Raw | None) -> bool | None:
    """Whether bounds are the least and the greatest value; none if that is unknown or there are no bounds.

    A zero of a floating-point column has lost its sign, so it is not known to be the value.
    """
    if lower is None or upper is None:
        return None
    if not (bounds.is_whole(stats.lower, lower) and bounds.is_whole(stats.upper, upper)):
        return False
    unsigned = any(isinstance(bound, float) and bound == 0.0 for bound in (lower, upper))
    return True if stats.exact and not unsigned else None
