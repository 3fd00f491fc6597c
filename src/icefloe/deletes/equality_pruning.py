"""Skips equality delete files that cannot delete any row of a data file, by statistics (spec: Equality Delete Files).

A row is deleted if it equals a delete row in all delete columns, where null equals null. So a delete file can be
skipped if, in one of its columns, the two files have no value in common, null included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.deletes.partition_keys import Ints
from icefloe.expr.prune.column_stats import certain, is_ordered
from icefloe.model.counts import Counts
from icefloe.model.entries import BOUNDS, Measure, StatKey, column_key, known_measures, stat
from icefloe.model.schema.types import DOUBLE, FLOAT, Type

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Side:
    """One column of all data files, or of all delete files: bounds as ranks, and what is certain about nulls."""

    lower: Ints
    upper: Ints
    no_nulls: Mask
    all_null: Mask


@dataclass(frozen=True, slots=True)
class _Column:
    uses: Mask  # which delete files compare this column
    data: _Side
    deletes: _Side

    def disjoint(self, data: Ints, deletes: Ints) -> Mask:
        """Which pairs have no value of this column in common."""
        ours, theirs = self.data, self.deletes
        values = (ours.upper[data] < theirs.lower[deletes]) | (theirs.upper[deletes] < ours.lower[data])
        values |= ours.all_null[data] | theirs.all_null[deletes]
        nulls = ours.no_nulls[data] | theirs.no_nulls[deletes]
        disjoint: Mask = self.uses[deletes] & values & nulls
        return disjoint


class Overlap:
    """Tests pairs of data files and equality delete files by their statistics."""

    def __init__(self, data: pa.Table, deletes: pa.Table, context: ManifestContext) -> None:
        ids = deletes["equality_ids"].combine_chunks()
        values, owners = pc.list_flatten(ids).to_numpy(), pc.list_parent_indices(ids).to_numpy()
        top = frozenset(field.id for field in context.schema.fields)
        self._columns: list[_Column] = []
        for field_id in np.unique(values).tolist():
            type_ = context.types.get(field_id)
            if type_ is None or not _has_counts(data, deletes, column_key(field_id)):
                continue
            uses = np.zeros(deletes.num_rows, np.bool_)
            uses[owners[values == field_id]] = True
            whole = field_id in top
            self._columns.append(_column(uses, data, deletes, column_key(field_id), type_, whole=whole))

    def possible(self, data: Ints, deletes: Ints) -> Mask:
        """For each pair of files, given by row numbers, whether a row of the one may equal a row of the other."""
        possible = np.ones(len(data), np.bool_)
        for column in self._columns:
            possible &= ~column.disjoint(data, deletes)
        return possible


def _has_counts(data: pa.Table, deletes: pa.Table, key: StatKey) -> bool:
    """Whether null counts are known on one side; if on neither, any two files may have nulls in common."""
    name = stat(Measure.NULLS, key)
    return name in data.column_names or name in deletes.column_names


def _column(uses: Mask, data: pa.Table, deletes: pa.Table, key: StatKey, type_: Type, *, whole: bool) -> _Column:
    bounds = _ranks([_bound(t, m, key, type_) for t in (data, deletes) for m in BOUNDS])
    ours = _side(data, key, bounds[0], bounds[1], whole=whole)
    return _Column(uses, ours, _side(deletes, key, bounds[2], bounds[3], whole=whole))


def _bound(table: pa.Table, measure: Measure, key: StatKey, type_: Type) -> Any:
    """The bounds of a column; null if its type has no order, and for floats, as bounds do not include NaN."""
    name = stat(measure, key)
    if name not in table.column_names or not is_ordered(type_) or type_ in (FLOAT, DOUBLE):
        return pa.nulls(table.num_rows)
    return table[name]


def _ranks(columns: list[Any]) -> list[Ints]:
    """Bounds as ranks among all of them; an unknown lower bound has the lowest rank, an upper one the highest."""
    joined = pa.concat_tables([pa.table({"v": column}) for column in columns], promote_options="permissive")
    values = joined["v"].combine_chunks()
    if values.null_count == len(values):
        ranks = np.zeros(len(values), np.int64)
    else:
        ranks = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    unknown = certain(pc.is_null(values))
    parts = np.split(ranks, np.cumsum([len(column) for column in columns])[:-1])
    holes = np.split(unknown, np.cumsum([len(column) for column in columns])[:-1])
    last = len(values) + 1
    return [np.where(h, 0 if n % 2 == 0 else last, p) for n, (p, h) in enumerate(zip(parts, holes, strict=True))]


def _side(table: pa.Table, key: StatKey, lower: Ints, upper: Ints, *, whole: bool) -> _Side:
    rows = table["record_count"]
    counts = Counts.of(known_measures(table, key)).consistent(rows, whole=whole)
    unknown = pa.nulls(table.num_rows, pa.int64())
    values, nulls = (unknown if count is None else count for count in (counts.values, counts.nulls))
    # If there are fewer values than rows, a parent struct is null in some rows.
    complete = certain(pc.and_(pc.equal(nulls, 0), pc.equal(values, rows)))
    return _Side(
        lower=lower,
        upper=upper,
        no_nulls=complete,
        all_null=certain(pc.equal(nulls, values)) | certain(pc.equal(nulls, rows)),
    )
