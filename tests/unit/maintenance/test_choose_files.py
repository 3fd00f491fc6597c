"""Which files compaction chooses, compared with a plain walk through the files of each partition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.maintenance.compact.choose_files import (
    NO_GROUP,
    REASONS,
    Candidates,
    Reason,
    choose_files,
    expected_files,
    pack,
)
from icefloe.maintenance.compact.compact_options import CompactOptions, JobOrder

FILES = st.lists(
    st.tuples(
        st.integers(1, 400),  # bytes
        st.integers(1, 20),  # rows
        st.integers(0, 20),  # deleted rows
        st.integers(0, 4),  # delete files
        st.integers(0, 3),  # partition
        st.integers(0, 1),  # spec
    ),
    max_size=40,
)
OPTIONS = st.builds(
    CompactOptions,
    target_size=st.just(100),
    min_size=st.just(75),
    max_size=st.just(180),
    min_input_files=st.integers(1, 6),
    delete_file_threshold=st.sampled_from([1, 3, 2**40]),
    delete_ratio_threshold=st.sampled_from([0.1, 0.3, 1.0]),
    rewrite_all=st.booleans(),
    max_group_size=st.sampled_from([50, 300, 10**9]),
    job_order=st.sampled_from(JobOrder),
    output_spec_id=st.integers(0, 1),
    converts_specs=st.booleans(),
    max_share=st.sampled_from([0.5, 0.75, 1.0]),
)
DECISIVE = {Reason.REWRITE_ALL, Reason.MANY_DELETED_ROWS, Reason.MANY_DELETE_FILES, Reason.OLD_SPEC}


def naive_reason(file: tuple[int, ...], options: CompactOptions) -> Reason:
    size, rows, deleted, delete_files, _, spec = file
    if options.rewrite_all:
        return Reason.REWRITE_ALL
    if deleted > 0 and min(deleted, rows) / rows >= options.delete_ratio_threshold:
        return Reason.MANY_DELETED_ROWS
    if delete_files >= options.delete_file_threshold:
        return Reason.MANY_DELETE_FILES
    if options.converts_specs and spec != options.output_spec_id:
        return Reason.OLD_SPEC
    if size < options.min_size:
        return Reason.SMALL
    return Reason.LARGE if size > options.max_size else Reason.WELL_SIZED


def naive_large_shares(small: list[int], files: list[tuple[int, ...]], limit: float) -> list[int]:
    """Small files of a scope without the longest run of smallest files whose largest one is not too large."""
    ordered = sorted(small, key=lambda number: files[number][0])
    for end in range(len(ordered), 0, -1):
        sizes = [files[number][0] for number in ordered[:end]]
        if sizes[-1] <= limit * sum(sizes):
            return ordered[end:]
    return ordered


def naive_groups(files: list[tuple[int, ...]], options: CompactOptions) -> tuple[list[list[int]], list[Reason]]:
    """The groups, as sets of file numbers, and the reason of each file."""
    reasons = [naive_reason(file, options) for file in files]
    scopes = [(file[4], file[5]) if file[5] == options.output_spec_id else "other specs" for file in files]
    for scope in set(scopes):
        small = [n for n, reason in enumerate(reasons) if reason is Reason.SMALL and scopes[n] == scope]
        for number in naive_large_shares(small, files, options.max_share):
            reasons[number] = Reason.LARGE_SHARE
    by_scope: dict[object, list[int]] = {}
    for number in range(len(files)):
        if reasons[number] not in (Reason.WELL_SIZED, Reason.LARGE_SHARE):
            by_scope.setdefault(scopes[number], []).append(number)
    groups: list[list[int]] = []
    for members in by_scope.values():
        group: list[int] = []
        for number in members:
            if len(group) > 0 and sum(files[n][0] for n in group) + files[number][0] > options.max_group_size:
                groups.append(group)
                group = []
            group.append(number)
        groups.append(group)
    kept = []
    for group in groups:
        total = sum(files[n][0] for n in group)
        several = len(group) > 1 and (len(group) >= options.min_input_files or total > options.target_size)
        if several or total > options.max_size or any(reasons[n] in DECISIVE for n in group):
            kept.append(group)
        else:
            for number in group:
                reasons[number] = Reason.TOO_FEW
    return kept, reasons


def candidates(files: list[tuple[int, ...]]) -> Candidates:
    columns = [np.array([file[place] for file in files], np.int64) for place in range(6)]
    sizes, rows, deleted, delete_files, partitions, specs = columns
    return Candidates(
        sizes=sizes,
        rows=rows,
        deleted_rows=deleted,
        delete_files=delete_files,
        partitions=partitions * 2 + specs,
        spec_ids=specs,
    )


@given(FILES, OPTIONS)
def test_the_same_files_are_chosen_as_by_a_plain_walk(files: list[tuple[int, ...]], options: CompactOptions) -> None:
    chosen = choose_files(candidates(files), options)
    groups, reasons = naive_groups(files, options)
    assert [REASONS[number] for number in chosen.reasons] == reasons
    found: dict[int, list[int]] = {}
    for number, group in enumerate(chosen.groups.tolist()):
        if group != NO_GROUP:
            found.setdefault(group, []).append(number)
    assert sorted(found.values()) == sorted(groups)
    assert sorted(found) == list(range(len(groups)))
    keys = {
        JobOrder.BYTES_ASC: lambda group: sum(files[n][0] for n in group),
        JobOrder.BYTES_DESC: lambda group: -sum(files[n][0] for n in group),
        JobOrder.FILES_ASC: len,
        JobOrder.FILES_DESC: lambda group: -len(group),
    }
    if options.job_order in keys:
        order = [keys[options.job_order](found[number]) for number in sorted(found)]
        assert order == sorted(order)


@given(FILES, OPTIONS, st.integers(1, 10))
def test_no_more_files_are_chosen_than_allowed(
    files: list[tuple[int, ...]], options: CompactOptions, limit: int
) -> None:
    limited = CompactOptions(**{name: getattr(options, name) for name in options.__slots__} | {"max_files": limit})
    every, some = (choose_files(candidates(files), each) for each in (options, limited))
    taken = some.groups != NO_GROUP
    assert np.count_nonzero(taken) <= limit
    assert np.all(every.groups[taken] != NO_GROUP)
    assert all(REASONS[number] is Reason.TOO_MANY for number in some.reasons[(every.groups != NO_GROUP) & ~taken])


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_expected_files_are_neither_too_large_nor_needlessly_small(sizes: list[int]) -> None:
    options = CompactOptions(target_size=1000, min_size=750, max_size=1800, output_spec_id=0)
    for size, files in zip(sizes, expected_files(np.array(sizes, np.float64), options), strict=True):
        assert files >= 1
        assert size / files <= 1100
        assert files == 1 or size / files >= 500
        assert files <= max(1, math.ceil(size / 1000))


@pytest.mark.parametrize("files", [300_000])
def test_many_files_are_packed_by_columns(files: int) -> None:
    scopes = np.repeat(np.arange(files // 10), 10)
    groups = pack(scopes, np.full(files, 7, np.int64), limit=35)
    assert np.bincount(groups).tolist() == [5] * (files // 5)


def test_a_file_is_not_rewritten_again_and_again_for_the_sake_of_small_ones() -> None:
    options = CompactOptions(target_size=10**6, min_size=750_000, max_size=10**7, output_spec_id=0, max_share=0.75)
    sizes: list[int] = []
    rewritten, rounds = 0, 500
    for _ in range(rounds):
        sizes += [10] * 10
        chosen = choose_files(candidates([(size, 1, 0, 0, 0, 0) for size in sizes]), options)
        group = sum(size for size, number in zip(sizes, chosen.groups.tolist(), strict=True) if number != NO_GROUP)
        sizes = [size for size, number in zip(sizes, chosen.groups.tolist(), strict=True) if number == NO_GROUP]
        sizes.append(group)
        rewritten += group
    assert sum(sizes) == 100 * rounds
    assert rewritten <= 100 * rounds * 4 * math.log(rounds, 4)  # all files in every round would be 250 times the bytes
    assert len(sizes) <= 8
