"""Finds the delete files that apply to data files, by joins of sorted keys (spec: Scan Planning).

Data files are sorted so that the files that a delete file may apply to are one range: by partition and path for
position deletes, by partition and sequence number for equality deletes. Ranges are found by binary search, for all
delete files at once. The pairs in the ranges are tested in batches, so memory grows with the number of matches only.
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
from icefloe.deletes.equality_pruning import Mask, Overlap
from icefloe.deletes.partition_keys import Ints
from icefloe.errors import LimitError
from icefloe.model.entries import BOUNDS, Measure, column_key, stat
from icefloe.model.location_columns import canonical, canonical_ranges, spelled_alike
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH

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
