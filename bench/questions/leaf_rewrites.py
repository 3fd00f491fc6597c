"""Bench ``leaf_rewrites``: files are removed from a leaf by a manifest deletion vector, or by writing the leaf again.

Both run through the real commit loop on a V4 table. For the second, the rule of versions 1 to 3 is put into the commit
code, here only: the leaf is written with the remaining entries as EXISTING and the removed ones as DELETED. The next
commit and plans show what each leaves behind: a vector that every root repeats, or dead entries in the leaf. The third
way is the compaction of V4: the removal adds a vector, and the next commit writes the leaf without its dead entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.version_rules import VersionRules, rules
from icefloe.tree import apply_changes
from icefloe.tree.file_changes import FileChanges
from questions.parts import committed, context_of, leafy_bed, number, plan_samples, some_positions, times
from report import Table
from synthetic import LOCATION, Bed, Ints, data_files, tasks_of
from thresholds_work import DEAD, MIN_DEAD

TITLE = "leaf_rewrites: manifest deletion vectors, or leaves written again"
QUESTION = "Manifest vectors against rewriting the leaf, by share of removed entries: what do a commit and a plan cost?"
VECTOR, REWRITE, COMPACTED = "vector", "rewrite", "vector, compacted by the next commit"
WAYS = (VECTOR, REWRITE, COMPACTED)
SHARES = (1, 5, 10, 25, 50, 80)
PLACES = ("anywhere", "oldest first")
COLUMNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Leaves of the table, files of a leaf, and how often a figure is measured."""

    leaves: int = 10
    per_leaf: int = 30_000
    repeats: int = 3


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Remove each share of one leaf's files in both ways."""
    bed = leafy_bed(sizes.leaves, sizes.per_leaf, COLUMNS)
    found = []
    for place in PLACES:
        for share in SHARES:
            tell(f"leaf_rewrites: {share} % of {sizes.per_leaf:,} files, {place}")
            count = max(1, sizes.per_leaf * share // 100)
            dice = np.random.default_rng(share)
            gone = some_positions(dice, sizes.per_leaf, count) if place == PLACES[0] else np.arange(count)
            found += [_removal(bed, gone, sizes, way) | {"share": share, "place": place} for way in WAYS]
    return {"sizes": asdict(sizes), "removals": found}


def _removal(bed: Bed, gone: Ints, sizes: Sizes, way: str) -> dict[str, Any]:
    def removal(fresh: Bed) -> OverwriteFiles:
        tasks = tasks_of(context_of(fresh), gone, sizes.per_leaf)
        return OverwriteFiles(changes=FileChanges(removed=tasks), read=fresh.head, operation=Operation.DELETE)

    def append(fresh: Bed) -> Append:
        return Append(added=data_files(LOCATION, sizes.leaves * sizes.per_leaf, 1, COLUMNS))

    files = sizes.leaves * sizes.per_leaf - len(gone)
    with leaves_rewritten() if way == REWRITE else nullcontext():
        commit, after = committed(bed, removal, sizes.repeats, cold=True)
    if way == COMPACTED:
        after.set({DEAD: "1", MIN_DEAD: "1"})
    following, last = committed(after, append, sizes.repeats, cold=True)
    live = int(np.setdiff1d(np.arange(sizes.per_leaf), gone)[0])
    return {"way": way, "commit": commit, "next": following, **plan_samples(last, live, files + 1, sizes.repeats)}


@contextmanager
def leaves_rewritten() -> Iterator[None]:
    """Let V4 commits rewrite a leaf from which files are removed, as in versions 1 to 3: for this comparison only."""

    def without_vectors(version: int) -> VersionRules:
        return replace(rules(version), manifest_deletion_vectors=False)

    apply_changes.rules = without_vectors  # type: ignore[assignment]
    try:
        yield
    finally:
        apply_changes.rules = rules


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Bytes and files first, then times."""
    return [_bytes(result), _times(result)]


def _name(entry: Mapping[str, Any]) -> str:
    return f"{entry['share']} % {entry['place']}, {entry['way']}"


def _bytes(result: Mapping[str, Any]) -> Table:
    rows = [
        [
            _name(e),
            number(e["commit"]["files"]),
            number(e["commit"]["bytes"]),
            number(e["commit"]["root_bytes"]),
            number(e["commit"]["bytes_read"]),
            number(e["next"]["bytes"]),
            number(e["one"]["bytes_read"]),
            number(e["all"]["bytes_read"]),
        ]
        for e in result["removals"]
    ]
    columns = (
        "removed from one leaf",
        "files written",
        "bytes written",
        "of these the root",
        "bytes read",
        "next commit, bytes written",
        "plan of one file, bytes read",
        "plan of all, bytes read",
    )
    return Table(title="Bytes", columns=columns, rows=rows, note=_conditions(result["sizes"]))


def _times(result: Mapping[str, Any]) -> Table:
    keys = ("commit", "next", "one", "all")
    rows = [[_name(e), *(f"{e[key]['cpu_ms']:.1f}" for key in keys)] for e in result["removals"]]
    columns = ("removed from one leaf", "commit", "next commit", "plan of one file", "plan of all")
    note = f"CPU ms, median of {result['sizes']['repeats']}, by a program that has cached nothing but metadata.json."
    return Table(title="CPU", columns=columns, rows=rows, note=note)


def _conditions(sizes: Mapping[str, int]) -> str:
    return (
        f"A table of {sizes['leaves']} leaves of {sizes['per_leaf']:,} files, statistics of {COLUMNS} columns. One"
        " commit removes a share of one leaf's files, at random positions or those of the oldest files. The next"
        " commit appends one file; plans follow it. The planned file is in the leaf from which files were removed. But"
        " for the compaction of the third way, no manifest is merged or rewritten in passing, and vectors of any size"
        " are inline. Without metadata.json."
    )


def answer(result: Mapping[str, Any]) -> str:
    """For which shares which way writes and plans with fewer bytes."""
    removals = [entry for entry in result["removals"] if entry["place"] == PLACES[0]]
    by_way = [[entry for entry in removals if entry["way"] == way] for way in WAYS]
    pairs = list(zip(by_way[0], by_way[1], strict=True))
    low, high, compacted = pairs[0], pairs[-1], by_way[2][-1]
    smaller = [vector["share"] for vector, rewrite in pairs if vector["commit"]["bytes"] < rewrite["commit"]["bytes"]]
    less_read = [
        vector["share"] for vector, rewrite in pairs if rewrite["all"]["bytes_read"] < vector["all"]["bytes_read"]
    ]
    extra = [vector["next"]["bytes"] - rewrite["next"]["bytes"] for vector, rewrite in pairs]
    sizes = result["sizes"]
    return (
        f"On {sizes['leaves']} leaves of {sizes['per_leaf']:,} files, files removed at random positions of one leaf:"
        f" the vector's commit writes fewer bytes at {_list(smaller)} of removed entries"
        f" ({number(low[0]['commit']['bytes'])} against {number(low[1]['commit']['bytes'])} at {low[0]['share']} %,"
        f" {times(low[1]['commit']['bytes'], low[0]['commit']['bytes'])} times as many for the rewrite;"
        f" {number(high[0]['commit']['bytes'])} against {number(high[1]['commit']['bytes'])} at {high[0]['share']} %)."
        f" A vector costs every later root between {number(min(extra))} and {number(max(extra))} bytes until the leaf"
        f" is compacted. A plan of all files reads fewer bytes after the rewrite at {_list(less_read)}"
        f" (at {high[0]['share']} %: {number(high[1]['all']['bytes_read'])} against"
        f" {number(high[0]['all']['bytes_read'])} bytes, {high[1]['all']['cpu_ms']:.0f} against"
        f" {high[0]['all']['cpu_ms']:.0f} ms of CPU); the rewrite of one commit still lists the removed entries, as"
        f" versions 1 to 3 do. Compacted by the next commit, which writes {number(compacted['next']['bytes'])} bytes at"
        f" {compacted['share']} %, a plan of all reads {number(compacted['all']['bytes_read'])} bytes"
        f" ({compacted['all']['cpu_ms']:.0f} ms)."
    )


def _list(shares: Sequence[int]) -> str:
    return "no share" if len(shares) == 0 else "shares of " + ", ".join(str(share) for share in shares) + " %"
