"""Finds the delete files that apply to data files, by joins of sorted keys (spec: Scan Planning).

Data files are sorted so that the files that a delete file may apply to are one range: by partition and path for
position deletes, by partition and sequence number for equality deletes. Ranges are found by binary search, for all
delete files at once. The pairs in the ranges are tested in batches, so memory grows with the number of matches only.

A row is deleted if it equals a delete row in all delete columns, where null equals null. So an equality delete file is
skipped if statistics show that, in one of its columns, the two files have no value in common, null included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.deletes.partition_keys import Ints, Mask
from icefloe.errors import LimitError
from icefloe.expr.prune.column_stats import certain, is_ordered
from icefloe.model.counts import Counts
from icefloe.model.entries import BOUNDS, Measure, StatKey, column_key, known_measures, stat
from icefloe.model.location_columns import canonical, canonical_ranges, spelled_alike
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH
from icefloe.model.schema.types import DOUBLE, FLOAT, Type

Numbers: TypeAlias = npt.NDArray[Any]  # row numbers of any width

PAIRS_MAX = 1 << 28  # of one plan
BATCH = 1 << 20  # pairs tested together
_NONE = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Matches:
    """Pairs of row numbers, and which delete files have any data file in range, statistics aside."""

    data: Numbers
    deletes: Numbers
    in_range: Mask


@dataclass(frozen=True, slots=True)
class _Ranges:
    """For each delete file a range of ``order``, which are row numbers of data files."""

    order: Ints
    starts: Ints
    ends: Ints


def match_positions(
    data: pa.Table, deletes: pa.Table, partitions: tuple[Ints, Ints], table_location: str | None = None
) -> Matches:
    """Match position delete files by partition, path and sequence number; ``partitions`` are codes of both sides.

    Position deletes apply to files of the same commit, so equal sequence numbers match. Paths may be spelled in
    another way than the locations of data files; a range of several spellings is not used.
    """
    candidates = _in_partitions_with_deletes(*partitions)
    paths = data["location"].combine_chunks().take(pa.array(candidates))
    lower, upper = (_path_bound(deletes, measure) for measure in BOUNDS)
    if not spelled_alike(paths, lower, upper):
        paths = canonical(paths, table_location)
        lower, upper = canonical_ranges(lower, upper, table_location)
    ranks = pc.rank(pa.concat_arrays([paths, lower, upper]), tiebreaker="dense")
    own, low, high = np.split(ranks.to_numpy().astype(np.int64), [len(candidates), len(candidates) + deletes.num_rows])
    last = len(ranks) + 1
    low = np.where(_is_null(lower), 0, low)
    high = np.where(_is_null(upper), last, high)
    base, wanted = partitions[0][candidates] * (last + 1), partitions[1] * (last + 1)
    ranges = _ranges(base + own, candidates, wanted + low, wanted + high, closed=True)
    data_numbers, delete_numbers = _sequence_numbers(data), _sequence_numbers(deletes)
    return _matches(ranges, lambda d, e: data_numbers[d] <= delete_numbers[e])


def match_equalities(
    data: pa.Table, deletes: pa.Table, partitions: tuple[Ints, Ints], context: ManifestContext
) -> Matches:
    """Match equality delete files by partition, sequence number and statistics of the delete columns.

    Equality deletes do not apply to rows of the same commit, so only lower sequence numbers match.
    """
    candidates = _in_partitions_with_deletes(*partitions)
    data_numbers, delete_numbers = _sequence_numbers(data)[candidates], _sequence_numbers(deletes)
    ranks = np.unique(np.concatenate([data_numbers, delete_numbers]), return_inverse=True)[1].reshape(-1)
    last = len(ranks) + 1
    base, wanted = partitions[0][candidates] * last, partitions[1] * last
    count = len(candidates)
    ranges = _ranges(base + ranks[:count], candidates, wanted, wanted + ranks[count:], closed=False)
    return _matches(ranges, Overlap(data, deletes, context).possible)


def _in_partitions_with_deletes(data: Ints, deletes: Ints) -> Ints:
    """The data files in partitions that have delete files."""
    wanted = np.zeros(max(int(data.max(initial=0)), int(deletes.max(initial=0))) + 1, np.bool_)
    wanted[deletes] = True
    return np.flatnonzero(wanted[data])


def _path_bound(deletes: pa.Table, measure: Measure) -> pa.Array:
    """The lowest or highest path in a position delete file: the file that it references, or else a bound."""
    named = deletes["referenced_file"].combine_chunks()
    name = stat(measure, column_key(DELETE_FILE_PATH.id))
    return named if name not in deletes.column_names else pc.coalesce(named, deletes[name].combine_chunks())


def _is_null(array: pa.Array) -> Mask:
    mask: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def _sequence_numbers(table: pa.Table) -> Ints:
    numbers: Ints = table["sequence_number"].to_numpy()
    return numbers


def _ranges(keys: Ints, rows: Ints, first: Ints, last: Ints, *, closed: bool) -> _Ranges:
    """The rows sorted by key, and the range of keys from ``first`` to ``last``, which belongs to it if ``closed``."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.searchsorted(ordered, first, "left")
    ends = np.searchsorted(ordered, last, "right" if closed else "left")
    return _Ranges(rows[order], starts, np.maximum(starts, ends))


def _matches(ranges: _Ranges, applies: Callable[[Ints, Ints], Mask]) -> Matches:
    data_rows, delete_rows = [_NONE], [_NONE]
    total = 0
    for data, deletes in _pairs(ranges):
        matching = applies(data, deletes)
        data_rows.append(data[matching].astype(np.int32))
        delete_rows.append(deletes[matching].astype(np.int32))
        total += len(data_rows[-1])
        if total > PAIRS_MAX:
            raise LimitError(f"more than {PAIRS_MAX} pairs of data and delete files; compact the table's deletes")
    return Matches(np.concatenate(data_rows), np.concatenate(delete_rows), ranges.ends > ranges.starts)


def _pairs(ranges: _Ranges) -> Iterator[tuple[Ints, Ints]]:
    """All pairs of the ranges, in batches of whole ranges: row numbers of data files and of delete files."""
    lengths = ranges.ends - ranges.starts
    before = np.concatenate([[0], np.cumsum(lengths)])
    first = 0
    while first < len(lengths):
        end = max(first + 1, int(np.searchsorted(before, before[first] + BATCH, "right")) - 1)
        counts = lengths[first:end]
        offsets = np.repeat(ranges.starts[first:end] - (before[first:end] - before[first]), counts)
        positions = np.arange(before[end] - before[first]) + offsets
        yield ranges.order[positions], np.repeat(np.arange(first, end), counts)
        first = end


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
