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
from icefloe.model.entries import column_key, stat
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UNKNOWN, Field, Geography, Geometry


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One column of one unit."""

    values: int | None = None
    nulls: int | None = None
    nans: int | None = None
    lower: Raw | None = None
    upper: Raw | None = None


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
    )


def stat_columns(units: Sequence[Source], schema: Schema, modes: Modes | None) -> dict[str, pa.Array]:
    """The statistics of all measured columns, one row for each unit; without modes all of them, bounds untruncated."""
    arrays: dict[str, pa.Array] = {}
    counts: dict[str, list[int | None]] = {}
    for id_, column in schema.measured.items():
        mode = None if modes is None else modes.get(id_, DEFAULT)
        if column.type == UNKNOWN or (mode is not None and not mode.counts):
            continue
        type_, key = arrow_type(column.type), column_key(id_)
        per_unit = [unit.known(column, type_) for unit in units]
        counts[stat("value_count", key)] = [stats.values for stats in per_unit]
        counts[stat("null_value_count", key)] = [stats.nulls for stats in per_unit]
        if pa.types.is_floating(type_):
            counts[stat("nan_value_count", key)] = [stats.nans for stats in per_unit]
        if mode is not None and not mode.bounds:
            continue
        shape = isinstance(column.type, (Geometry, Geography))  # its bounds are corners, which are short
        down, up = bounds.kept(type_, None if mode is None or shape else mode.length)
        lower = [None if stats.lower is None else down(stats.lower) for stats in per_unit]
        upper = [None if stats.upper is None else up(stats.upper) for stats in per_unit]
        arrays[stat("lower_bound", key)] = bounds.to_array(lower, type_)
        arrays[stat("upper_bound", key)] = bounds.to_array(upper, type_)
    # One array for all counts: building many small arrays would take longer than filling them.
    together = pa.array([count for column_counts in counts.values() for count in column_counts], pa.int64())
    return arrays | {name: together.slice(i * len(units), len(units)) for i, name in enumerate(counts)}
