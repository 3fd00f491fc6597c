"""Bench ``thresholds``: when to flush the root, rewrite a leaf, merge leaves, and keep deletion vectors inline (V4).

The proposal asks for numbers from which defaults can be chosen. One part measures a commit and a plan on roots of a
known content: data files, leaves, deletion vectors, with statistics of few and of many columns. The other part plays
histories of commits (appends, removals, row deltas) with one setting changed at a time, and counts what they cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from thresholds_tables import OFF, WIDTH, WIDTHS, plots, tables
from thresholds_work import (
    DEAD,
    MAX_DVS,
    MAX_FILES,
    MERGE,
    MIN_COUNT,
    MIN_DEAD,
    TARGET,
    History,
    files_in_root,
    history_of,
    leaves_in_root,
    manifest_vectors_in_root,
    removals_of,
    vectors_in_root,
    weighted,
)

TITLE = "thresholds: the figures behind the defaults of version 4"
ROWS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
BLOBS = (500, 2_000, 8_000, 32_000, 128_000)
__all__ = ["TITLE", "Sizes", "plots", "run", "tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Commits of a history, files of an append, samples of a figure, and rows of the largest root."""

    commits: int = 120
    files: int = 20
    repeats: int = 3
    most: int = 10_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """All sweeps."""
    rows = [count for count in ROWS if count <= sizes.most]
    found: dict[str, Any] = {"sizes": asdict(sizes)}
    found["files"] = []
    for columns in WIDTHS:
        tell(f"thresholds: roots of data files, statistics of {columns} columns")
        found["files"] += [files_in_root(count, columns, sizes.repeats) for count in rows]
    tell("thresholds: roots of leaves, of deletion vectors")
    found["leaves"] = [leaves_in_root(count, WIDTH, 5_000, sizes.repeats) for count in rows]
    found["vectors"] = [vectors_in_root(count, WIDTH, sizes.repeats) for count in (*rows, 3 * rows[-1])]
    tell("thresholds: roots of manifest deletion vectors")
    found["inline"] = [
        manifest_vectors_in_root(leaves, size, WIDTH, sizes.repeats, inline=inline)
        for leaves in (10, 100, 1_000)
        for size in BLOBS
        for inline in (True, False)
        if leaves * size <= sizes.most * 1_600
    ]
    found["flush"] = _flushes(sizes, rows, tell)
    found["vector_flush"] = _vector_flushes(sizes, tell)
    found["dead"] = _deaths(sizes, tell)
    found["merge"] = _merges(sizes, tell)
    return found


def _flushes(sizes: Sizes, rows: Sequence[int], tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Histories with different limits of files in the root, each begun so that its root is half full on average."""
    history = History(commits=sizes.commits, files=sizes.files)
    found = []
    for limit in rows:
        tell(f"thresholds: {sizes.commits} commits, flushed at {limit:,} data files")
        fill = max(0, limit - history.added // 2)
        settings = {MAX_FILES: str(limit)}
        result = history_of(settings, history, WIDTH, fill=fill, plans=5)
        found.append(
            {"limit": limit, "mean": weighted(result["commits"], sizes.commits, history.added / limit), **result}
        )
    return found


def _vector_flushes(sizes: Sizes, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Histories of row deltas with different limits of deletion vectors in the root."""
    history = History(commits=sizes.commits // 2, files=2 * sizes.files, removals=0, deltas=8)
    found = []
    for limit in (10, 100, 1_000, 10_000):
        tell(f"thresholds: {history.commits} commits, flushed at {limit:,} deletion vectors")
        settings = {MAX_DVS: str(limit)}
        result = removals_of(settings, history, WIDTH, leaves=2, per_leaf=sizes.most // 2, plans=5)
        found.append({"limit": limit, **result})
    return found


def _deaths(sizes: Sizes, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Removals from a table of leaves, anywhere or the oldest files first, until two thirds are gone."""
    leaves, per_leaf = 10, max(50, sizes.most // 10)
    gone = leaves * per_leaf * 2 // 3
    commits = max(10, sizes.commits // 2)
    found = []
    for oldest in (False, True):
        files = max(1, gone * 10 // (8 * commits))
        history = History(commits=commits, files=files, appended=1, removals=8, deltas=0, oldest_first=oldest)
        for percent in (10, 25, 50, 75, 101):
            tell(f"thresholds: removals, leaves written again at {percent} %, oldest first: {oldest}")
            settings = {DEAD: str(percent), MIN_DEAD: "1"}
            result = removals_of(settings, history, WIDTH, leaves=leaves, per_leaf=per_leaf, plans=5, defaults=False)
            found.append({"percent": percent, "oldest": oldest, **result})
    return found


def _merges(sizes: Sizes, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """Appends, with or without room in the root, and with different rules when leaves are merged."""
    history = History(commits=sizes.commits, files=sizes.files, removals=0, deltas=0)
    target = 8 * 2**20
    cases = [(0, fewest, target) for fewest in (OFF, "5", "10", "30", "100")]
    cases += [(5 * sizes.files, fewest, target) for fewest in (OFF, "5", "10", "30")]
    cases += [(5 * sizes.files, "10", size) for size in (2**16, 2**18, 2**20)]
    found = []
    for limit, fewest, target in cases:
        tell(f"thresholds: {sizes.commits} appends, {limit} files in the root, {fewest} leaves merged up to {target:,}")
        settings = {MAX_FILES: str(limit), MERGE: "false" if fewest == OFF else "true", TARGET: str(target)}
        settings |= {} if fewest == OFF else {MIN_COUNT: fewest}
        result = history_of(settings, history, WIDTH, fill=0, plans=8, defaults=False)
        found.append({"limit": limit, "fewest": fewest, "target": target, **result})
    return found
