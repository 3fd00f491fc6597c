"""Which pieces of a file to read for a filter, and which parts of them (spec: Scan Planning).

Statistics rule out pieces. Inside of those that are left, the pages of a file may rule out runs of rows, which is worth
a look only where values lie together: where some piece is ruled out already, or there is only one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.formats.read.data_file import Piece, StoredFile
from icefloe.model.schema.schema import Schema

Choice: TypeAlias = tuple[Piece, bool]  # rows to read, and whether every one of them matches

RUNS = 16  # at most in a piece: runs with less than this part of its rows between them are read as one


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One of ``of`` parts of a file with about equally many pieces; parts can be read at the same time."""

    index: int
    of: int

    def among(self, count: int) -> range:
        """Which of ``count`` things in a row are in this part.

        >>> [list(Share(index=i, of=2).among(5)) for i in range(2)]
        [[0, 1], [2, 3, 4]]
        """
        return range(count * self.index // self.of, count * (self.index + 1) // self.of)


WHOLE = Share(index=0, of=1)


def chosen(file: StoredFile, filter: Bound, tested: Schema, share: Share) -> list[Choice]:
    """The parts of a share of a file that statistics do not rule out; ``tested`` has the columns of the filter."""
    if filter == ALWAYS_TRUE:
        candidates = [(piece, True) for piece in file.pieces if piece.rows > 0]
        return [candidates[index] for index in share.among(len(candidates))]
    statistics = file.statistics(tested)
    matches = [int(Match.SOME)] * len(file.pieces)
    if statistics is not None:
        matches = evaluate(filter, statistics).to_pylist()
    candidates = [
        (piece, match == Match.ALL)
        for piece, match in zip(file.pieces, matches, strict=True)
        if match != Match.NONE and piece.rows > 0
    ]
    lies_together = len(candidates) < len(file.pieces) or len(candidates) == 1
    mine = [candidates[index] for index in share.among(len(candidates))]
    if not lies_together:
        return mine
    return [
        part for piece, every in mine for part in ([(piece, every)] if every else _within(file, piece, filter, tested))
    ]


def _within(file: StoredFile, piece: Piece, filter: Bound, tested: Schema) -> list[Choice]:
    """The runs of rows of a piece that its pages do not rule out."""
    runs = file.runs(piece, tested)
    if runs is None:
        return [(piece, False)]
    matches = evaluate(filter, runs.statistics).to_pylist()
    kept = [(part, match == Match.ALL) for part, match in zip(runs.pieces, matches, strict=True) if match != Match.NONE]
    return joined(piece, kept)


def joined(piece: Piece, parts: Iterable[Choice]) -> list[Choice]:
    """Join parts of a piece that are near to each other; the whole piece if the parts cover most of it.

    >>> piece = Piece(index=0, start=100, rows=64)
    >>> near = [Piece(index=0, start=start, rows=2) for start in (100, 104, 160)]
    >>> [(part.start, part.rows, every) for part, every in joined(piece, ((part, True) for part in near))]
    [(100, 6, False), (160, 2, True)]
    """
    joined_parts: list[Choice] = []
    for part, every in parts:
        before, all_before = joined_parts[-1] if len(joined_parts) > 0 else (None, False)
        if before is None or part.start - before.end > piece.rows // RUNS:
            joined_parts.append((part, every))
            continue
        whole = replace(before, rows=part.end - before.start)
        joined_parts[-1] = (whole, all_before and every and part.start == before.end)
    return [(piece, False)] if 2 * sum(part.rows for part, _ in joined_parts) > piece.rows else joined_parts
