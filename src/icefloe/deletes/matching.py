"""Which delete files apply to which data files, as joins of sorted keys (spec: Scan Planning).

Data files are sorted so that those within reach of a delete file are one run of them: by partition and path for
position deletes, by partition and sequence number for equality deletes. Runs are found by binary search, for all delete
files at once. What lies in the runs is tested in batches, so memory grows with the answer and not with what was tested.
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
from icefloe.model.entries import column_key, stat
from icefloe.model.location_columns import canonical, canonical_ranges, spelled_alike
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH

Numbers: TypeAlias = npt.NDArray[Any]  # row numbers of any width

PAIRS_MAX = 1 << 28  # what one plan may hold
_BATCH = 1 << 20  # pairs tested together
_NONE = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Matches:
    """Pairs of row numbers, and which delete files had any data file within reach before statistics were looked at."""

    data: Numbers
    deletes: Numbers
    reached: Mask


@dataclass(frozen=True, slots=True)
class _Runs:
    """For each delete file a run of ``order``, which are row numbers of data files."""

    order: Ints
    starts: Ints
    ends: Ints


def match_positions(
    data: pa.Table, deletes: pa.Table, groups: tuple[Ints, Ints], table_location: str | None = None
) -> Matches:
    """Position delete files by partition, path and sequence number; ``groups`` are partition codes of both sides.

    A delete file may hold deletes of the same commit, so equal sequence numbers match. Paths may be spelled in
    another way than the locations of data files; a range of several spellings leaves the path open.
    """
    near = _near(*groups)
    paths = data["location"].combine_chunks().take(pa.array(near))
    lower, upper = (_path_bound(deletes, measure) for measure in ("lower_bound", "upper_bound"))
    if not spelled_alike(paths, lower, upper):
        paths = canonical(paths, table_location)
        lower, upper = canonical_ranges(lower, upper, table_location)
    ranks = pc.rank(pa.concat_arrays([paths, lower, upper]), tiebreaker="dense")
    own, low, high = np.split(ranks.to_numpy().astype(np.int64), [len(near), len(near) + deletes.num_rows])
    last = len(ranks) + 1
    low = np.where(_is_null(lower), 0, low)
    high = np.where(_is_null(upper), last, high)
    base, wanted = groups[0][near] * (last + 1), groups[1] * (last + 1)
    runs = _runs(base + own, near, wanted + low, wanted + high, closed=True)
    ages, limits = _numbers(data), _numbers(deletes)
    return _matches(runs, lambda d, e: ages[d] <= limits[e])


def match_equalities(data: pa.Table, deletes: pa.Table, groups: tuple[Ints, Ints], context: ManifestContext) -> Matches:
    """Equality delete files by partition, sequence number and statistics of the delete columns.

    Rows of the same commit stay, so only smaller sequence numbers match.
    """
    near = _near(*groups)
    ages, limits = _numbers(data)[near], _numbers(deletes)
    ranks = np.unique(np.concatenate([ages, limits]), return_inverse=True)[1].reshape(-1)
    last = len(ranks) + 1
    base, wanted = groups[0][near] * last, groups[1] * last
    runs = _runs(base + ranks[: len(near)], near, wanted, wanted + ranks[len(near) :], closed=False)
    return _matches(runs, Overlap(data, deletes, context).possible)


def _near(data: Ints, deletes: Ints) -> Ints:
    """The data files in partitions that have delete files."""
    wanted = np.zeros(max(int(data.max(initial=0)), int(deletes.max(initial=0))) + 1, np.bool_)
    wanted[deletes] = True
    return np.flatnonzero(wanted[data])


def _path_bound(deletes: pa.Table, measure: str) -> pa.Array:
    """The first or last data file that a position delete file may name; the one file that it says it is about."""
    named = deletes["referenced_file"].combine_chunks()
    name = stat(measure, column_key(DELETE_FILE_PATH.id))
    return named if name not in deletes.column_names else pc.coalesce(named, deletes[name].combine_chunks())


def _is_null(array: pa.Array) -> Mask:
    found: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return found


def _numbers(table: pa.Table) -> Ints:
    found: Ints = table["sequence_number"].to_numpy()
    return found


def _runs(keys: Ints, rows: Ints, first: Ints, last: Ints, *, closed: bool) -> _Runs:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.searchsorted(ordered, first, "left")
    ends = np.searchsorted(ordered, last, "right" if closed else "left")
    return _Runs(rows[order], starts, np.maximum(starts, ends))


def _matches(runs: _Runs, applies: Callable[[Ints, Ints], Mask]) -> Matches:
    found_data, found_deletes = [_NONE], [_NONE]
    total = 0
    for data, deletes in _pairs(runs):
        kept = applies(data, deletes)
        found_data.append(data[kept].astype(np.int32))
        found_deletes.append(deletes[kept].astype(np.int32))
        total += len(found_data[-1])
        if total > PAIRS_MAX:
            raise LimitError(f"more than {PAIRS_MAX} pairs of data and delete files; compact the table's deletes")
    return Matches(np.concatenate(found_data), np.concatenate(found_deletes), runs.ends > runs.starts)


def _pairs(runs: _Runs) -> Iterator[tuple[Ints, Ints]]:
    """All pairs of the runs, in batches of whole runs: row numbers of data files and of delete files."""
    lengths = runs.ends - runs.starts
    before = np.concatenate([[0], np.cumsum(lengths)])
    first = 0
    while first < len(lengths):
        end = max(first + 1, int(np.searchsorted(before, before[first] + _BATCH, "right")) - 1)
        counts = lengths[first:end]
        offsets = np.repeat(runs.starts[first:end] - (before[first:end] - before[first]), counts)
        places = np.arange(before[end] - before[first]) + offsets
        yield runs.order[places], np.repeat(np.arange(first, end), counts)
        first = end
