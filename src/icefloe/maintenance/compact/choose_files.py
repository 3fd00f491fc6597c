"""Chooses the files that compaction rewrites and packs them into groups, by columns (spec: Row-level Deletes).

The rules are those of Apache Iceberg: a file is a candidate if its size is outside the range of sizes, or if it has too
many deletes. Candidates of a partition are packed into groups of a limited size. A group is rewritten if that reduces
the number of files, splits large ones or drops deleted rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from icefloe.maintenance.compact.compact_options import CompactOptions, JobOrder

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NO_GROUP = -1
_SMALL_REST = 1.1  # times the target: files of up to that size take the rest that would be a small file


class Reason(Enum):
    """Why a file is or is not rewritten; the value is a sentence for people."""

    WELL_SIZED = "already well sized"
    REWRITE_ALL = "rewrite-all is set"
    MANY_DELETED_ROWS = "deleted rows above delete-ratio-threshold"
    MANY_DELETE_FILES = "delete files above delete-file-threshold"
    OLD_SPEC = "old partition spec"
    SMALL = "smaller than min-file-size-bytes"
    LARGE = "larger than max-file-size-bytes"
    TOO_FEW = "too few files in its partition"
    LARGE_SHARE = "larger than max-file-share of the small files in its partition"
    TOO_MANY = "beyond max-files-to-rewrite"
    OVER_BUDGET = "its group is over the budget"


REASONS = tuple(Reason)  # reasons are stored as their numbers in it
_NUMBER = {reason: number for number, reason in enumerate(REASONS)}
_LEFT = (Reason.WELL_SIZED, Reason.LARGE_SHARE)
_DECISIVE = (Reason.REWRITE_ALL, Reason.MANY_DELETED_ROWS, Reason.MANY_DELETE_FILES, Reason.OLD_SPEC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The considered files, as columns; ``partitions`` has equal numbers for files of one spec and partition."""

    sizes: Ints
    rows: Ints
    deleted_rows: Ints  # as far as metadata states them
    delete_files: Ints  # that apply, deletion vectors included
    partitions: Ints
    spec_ids: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFiles:
    """The reason of each file, and its group, ``NO_GROUP`` if it is not rewritten."""

    reasons: Ints
    groups: Ints


def choose_files(files: Candidates, options: CompactOptions) -> ChosenFiles:
    """Which files are rewritten, and together with which others; groups are numbered in the order of the work."""
    reasons = _reasons(files, options)
    # Files of other specs can be written together: their rows get new partitions.
    scope_of = np.where(files.spec_ids == options.output_spec_id, files.partitions, -1)
    small = np.flatnonzero(reasons == _NUMBER[Reason.SMALL])
    reasons[small[_large_shares(scope_of[small], files.sizes[small], options.max_share)]] = _NUMBER[Reason.LARGE_SHARE]
    candidates = np.flatnonzero(~np.isin(reasons, [_NUMBER[reason] for reason in _LEFT]))
    groups: Ints = np.full(len(files.sizes), NO_GROUP, np.int64)
    if len(candidates) == 0:
        return ChosenFiles(reasons=reasons, groups=groups)
    scopes = scope_of[candidates]
    order = np.argsort(scopes, kind="stable")
    candidates = candidates[order]
    packed = pack(scopes[order], files.sizes[candidates], options.max_group_size)
    kept = _worthwhile(packed, files.sizes[candidates], reasons[candidates], options)
    reasons[candidates[~kept]] = _NUMBER[Reason.TOO_FEW]
    candidates, packed = candidates[kept], packed[kept]
    numbered = _in_job_order(packed, files.sizes[candidates], options.job_order)
    within = _within_limit(numbered, options.max_files)
    reasons[candidates[~within]] = _NUMBER[Reason.TOO_MANY]
    groups[candidates[within]] = _from_zero(numbered[within])
    return ChosenFiles(reasons=reasons, groups=groups)


def _reasons(files: Candidates, options: CompactOptions) -> Ints:
    ratios = np.minimum(files.deleted_rows, files.rows) / np.maximum(files.rows, 1)
    old_spec = files.spec_ids != options.output_spec_id
    rules = (
        (Reason.REWRITE_ALL, np.full(len(files.sizes), options.rewrite_all)),
        (Reason.MANY_DELETED_ROWS, (files.deleted_rows > 0) & (ratios >= options.delete_ratio_threshold)),
        (Reason.MANY_DELETE_FILES, files.delete_files >= options.delete_file_threshold),
        (Reason.OLD_SPEC, old_spec & options.converts_specs),
        (Reason.SMALL, files.sizes < options.min_size),
        (Reason.LARGE, files.sizes > options.max_size),
    )
    chosen: Ints = np.select(
        [mask for _, mask in rules], [_NUMBER[reason] for reason, _ in rules], _NUMBER[Reason.WELL_SIZED]
    ).astype(np.int64)
    return chosen


def _large_shares(scopes: Ints, sizes: Ints, limit: float) -> Mask:
    """Which small files are so large that merging the smaller ones of their scope with them does not pay.

    The others are as many of the smallest files as possible, such that the largest of them has at most the share
    ``limit`` of their bytes. So each rewrite makes files larger by a factor, and the number of times that a row is
    rewritten is logarithmic, however often small files are added.
    """
    is_large: Mask = np.zeros(len(sizes), np.bool_)
    if limit >= 1 or len(sizes) == 0:
        return is_large
    order = np.lexsort((sizes, scopes))
    ordered, ordered_scopes = sizes[order], scopes[order]
    is_start = np.concatenate([[True], ordered_scopes[1:] != ordered_scopes[:-1]])
    starts, scope_number = np.flatnonzero(is_start), np.cumsum(is_start) - 1
    totals = np.cumsum(ordered)
    up_to = totals - (totals - ordered)[starts][scope_number]
    places = np.arange(len(ordered))
    last = np.maximum.reduceat(np.where(ordered <= limit * up_to, places, -1), starts)
    is_large[order] = places > last[scope_number]
    return is_large


def pack(scopes: Ints, sizes: Ints, limit: int) -> Ints:
    """Numbers of groups, rising: consecutive files of one scope, as many as have at most ``limit`` bytes together.

    ``scopes`` is sorted. Only scopes that do not fit one group are walked through, group by group.
    """
    if len(scopes) == 0:
        return np.empty(0, np.int64)
    starts = np.flatnonzero(np.concatenate([[True], scopes[1:] != scopes[:-1]]))
    ends = np.append(starts[1:], len(scopes))
    totals = np.concatenate([[0], np.cumsum(sizes)])
    is_start = np.zeros(len(scopes), np.bool_)
    is_start[starts] = True
    for scope in np.flatnonzero(totals[ends] - totals[starts] > limit):
        first, end = int(starts[scope]), int(ends[scope])
        while first < end:
            is_start[first] = True
            last = int(np.searchsorted(totals[: end + 1], totals[first] + limit, "right")) - 1
            first = max(first + 1, last)
    groups: Ints = np.cumsum(is_start).astype(np.int64) - 1
    return groups


def _worthwhile(groups: Ints, sizes: Ints, reasons: Ints, options: CompactOptions) -> Mask:
    """Which files are in a group that is worth rewriting."""
    counts, totals = np.bincount(groups), np.bincount(groups, weights=sizes)
    decisive = np.isin(reasons, [_NUMBER[reason] for reason in _DECISIVE])
    due = (counts > 1) & ((counts >= options.min_input_files) | (totals > options.target_size))
    due |= totals > options.max_size
    due |= np.bincount(groups, weights=decisive) > 0
    mask: Mask = due[groups]
    return mask


def _in_job_order(groups: Ints, sizes: Ints, order: JobOrder) -> Ints:
    """The groups numbered in the order in which they are rewritten."""
    groups = _from_zero(groups)
    if order is JobOrder.NONE or len(groups) == 0:
        return groups
    by_bytes = order in (JobOrder.BYTES_ASC, JobOrder.BYTES_DESC)
    keys = np.bincount(groups, weights=sizes) if by_bytes else np.bincount(groups).astype(np.float64)
    if order in (JobOrder.BYTES_DESC, JobOrder.FILES_DESC):
        keys = -keys
    numbers = np.empty(len(keys), np.int64)
    numbers[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    renumbered: Ints = numbers[groups]
    return renumbered


def _within_limit(groups: Ints, limit: int) -> Mask:
    """Which files are the first ``limit`` ones in the order of groups; a single file of a larger group is left out."""
    ranks = np.empty(len(groups), np.int64)
    ranks[np.argsort(groups, kind="stable")] = np.arange(len(groups))
    within: Mask = ranks < limit
    if within.all():
        return within
    lonely = (np.bincount(groups, weights=within) == 1) & (np.bincount(groups) > 1)
    kept: Mask = within & ~lonely[groups]
    return kept


def _from_zero(groups: Ints) -> Ints:
    """The same groups, in the same order, numbered without gaps."""
    numbers: Ints = np.unique(groups, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


def expected_files(sizes: npt.NDArray[np.float64], options: CompactOptions) -> Ints:
    """How many files so many bytes are written to: files of about the target size, without a small one at the end."""
    target = options.target_size
    whole = np.floor(sizes / target)
    rest = sizes - whole * target
    per_file = sizes / np.maximum(whole, 1)
    fits = (rest < options.min_size) & (per_file <= min(_SMALL_REST * target, options.max_size))
    files: Ints = np.maximum(1, np.where((rest == 0) | ((whole > 0) & fits), whole, whole + 1)).astype(np.int64)
    return files
