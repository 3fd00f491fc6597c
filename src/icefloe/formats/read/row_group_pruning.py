"""Selects the rows of a file to read for a filter, by the statistics of row groups and pages (spec: Scan Planning).

The pages of a row group are looked at only where values are likely to be clustered: if statistics rule out some row
group, or if there is only one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.formats.read.data_file import RowRange, StoredFile
from icefloe.formats.read.file_read import FilePart
from icefloe.model.schema.schema import Schema

Selected: TypeAlias = tuple[RowRange, bool]  # rows to read, and whether all of them match the filter

MOST_RANGES = 16  # in a row group: ranges with less than this part of its rows between them are joined


def selected_rows(file: StoredFile, filter: Bound, tested: Schema, part: FilePart) -> list[Selected]:
    """The rows of a part of a file that may match a filter; ``tested`` has the columns of the filter."""
    if filter == ALWAYS_TRUE:
        return list(part.of([(group, True) for group in file.row_groups if group.rows > 0]))
    statistics = file.statistics(tested)
    matches = [int(Match.SOME)] * len(file.row_groups)
    if statistics is not None:
        matches = evaluate(filter, statistics).to_pylist()
    groups = [
        (group, match == Match.ALL)
        for group, match in zip(file.row_groups, matches, strict=True)
        if match != Match.NONE and group.rows > 0
    ]
    is_clustered = len(groups) < len(file.row_groups) or len(groups) == 1
    selected: list[Selected] = []
    for group, all_match in part.of(groups):
        pages = _selected_pages(file, group, filter, tested) if is_clustered and not all_match else None
        selected += [(group, all_match)] if pages is None else pages
    return selected


def _selected_pages(file: StoredFile, group: RowRange, filter: Bound, tested: Schema) -> list[Selected] | None:
    """The ranges of rows whose pages may match; none if the pages have no statistics."""
    pages = file.page_ranges(group, tested)
    if pages is None:
        return None
    matches = evaluate(filter, pages.statistics).to_pylist()
    may_match = (
        (rows, match == Match.ALL) for rows, match in zip(pages.ranges, matches, strict=True) if match != Match.NONE
    )
    return joined_ranges(group, may_match)


def joined_ranges(group: RowRange, ranges: Iterable[Selected]) -> list[Selected]:
    """Join ranges of a row group that are close to each other; the whole group if the ranges cover most of it.

    >>> group = RowRange(group=0, start=100, rows=64)
    >>> close = [RowRange(group=0, start=start, rows=2) for start in (100, 104, 160)]
    >>> [(rows.start, rows.rows, all_match) for rows, all_match in joined_ranges(group, ((r, True) for r in close))]
    [(100, 6, False), (160, 2, True)]
    """
    joined: list[Selected] = []
    for rows, all_match in ranges:
        last, all_last = joined[-1] if len(joined) > 0 else (None, False)
        if last is None or rows.start - last.end > group.rows // MOST_RANGES:
            joined.append((rows, all_match))
        else:
            both = replace(last, rows=rows.end - last.start)
            joined[-1] = (both, all_last and all_match and rows.start == last.end)
    return [(group, False)] if 2 * sum(rows.rows for rows, _ in joined) > group.rows else joined
