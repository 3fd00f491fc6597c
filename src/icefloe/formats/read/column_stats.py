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
    """A file or a row group that can tell of its columns."""

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """What is known of a column of the table, whose Arrow type is given."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """A file whose writer measured it."""

    measures: Mapping[int, Measures]

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """What the writer measured."""
        found = self.measures.get(column.id)
        return NOTHING if found is None else known_measures(found)


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
    """The statistics columns of all measured columns, one row for each unit; no modes: all there is, bounds uncut."""
    found: dict[str, pa.Array] = {}
    counts: dict[str, list[int | None]] = {}
    for id_, column in schema.measured.items():
        mode = None if modes is None else modes.get(id_, DEFAULT)
        if column.type == UNKNOWN or (mode is not None and not mode.counts):
            continue
        type_, key = arrow_type(column.type), column_key(id_)
        known = [unit.known(column, type_) for unit in units]
        counts[stat("value_count", key)] = [each.values for each in known]
        counts[stat("null_value_count", key)] = [each.nulls for each in known]
        if pa.types.is_floating(type_):
            counts[stat("nan_value_count", key)] = [each.nans for each in known]
        if mode is not None and not mode.bounds:
            continue
        shape = isinstance(column.type, (Geometry, Geography))  # its bounds are corners, which are short
        down, up = bounds.kept(type_, None if mode is None or shape else mode.length)
        lower = [None if each.lower is None else down(each.lower) for each in known]
        upper = [None if each.upper is None else up(each.upper) for each in known]
        found[stat("lower_bound", key)] = bounds.to_array(lower, type_)
        found[stat("upper_bound", key)] = bounds.to_array(upper, type_)
    # One array for all of them, as making it takes longer than the few numbers in it.
    together = pa.array([count for each in counts.values() for count in each], pa.int64())
    return found | {name: together.slice(i * len(units), len(units)) for i, name in enumerate(counts)}
