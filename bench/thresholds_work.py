"""The measured work of bench ``thresholds``: roots of a known content, and histories of commits with given settings.

Everything goes through the real commit loop, on tables in memory whose data files do not exist. A history reports
figures of each commit; plans are made now and then by a program that has cached nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.manifest.context import manifest_context
from icefloe.codecs.puffin.deletion_vector import encode_dv
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.model.entries import MANIFESTS, ContentType, Status, entries
from icefloe.model.metadata.snapshots import Operation
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from measure import Sample
from synthetic import (
    LOCATION,
    SNAPSHOT_ID,
    Bed,
    Ints,
    data_files,
    equals,
    leaf_file,
    leaf_name,
    leaf_rows,
    names_of,
    new_bed,
    vectors,
)

MANY = str(10**9)
VECTORS = f"{LOCATION}/metadata/vectors.puffin"
MAX_FILES, MAX_DVS, MAX_BYTES = "commit.root.max-data-files", "commit.root.max-dvs", "commit.root.max-bytes"
MAX_COPIES = "commit.root.max-copies"
MERGE, MIN_COUNT = "commit.manifest-merge.enabled", "commit.manifest.min-count-to-merge"
TARGET, DEAD = "commit.manifest.target-size-bytes", "commit.leaf.max-dead-percent"
MIN_DEAD, INLINE = "commit.leaf.min-dead-rows", "write.manifest-dv.inline-max-bytes"
# Nothing is done in passing, unless a sweep asks for it.
UPKEEP = {MAX_COPIES: MANY, MAX_FILES: MANY, MAX_DVS: MANY, MAX_BYTES: MANY, MERGE: "false", DEAD: "101", INLINE: MANY}
STILL = {**UPKEEP, "write.metadata.previous-versions-max": "1"}


# -- one commit on a root of a known content


def average(samples: list[Sample]) -> Sample:
    """The median of each figure."""
    return {key: round(median(sample[key] for sample in samples), 3) for key in samples[0]}


def around(bed: Bed, limit: str, repeats: int, *, deletes: bool = False) -> dict[str, Sample]:
    """A small commit by a program that has the table open, the same by one that has not, and one that must flush.

    ``plan`` is a plan before the flush, ``plan_after`` is one after it.
    """
    found: dict[str, list[Sample]] = {name: [] for name in ("warm", "cold", "plan", "flush", "plan_after")}
    for repeat in range(repeats):
        for name in ("warm", "cold", "flush"):
            fresh = bed.copy()
            if name == "flush":
                fresh.set({limit: "1"})
            if name != "cold":
                read_root(fresh.base.store, fresh.head)
            number = 10**7 + repeat
            new = _vectors(number) if deletes else data_files(LOCATION, number, 1, bed.columns)
            update = RowDelta(changes=FileChanges(added=new), read=fresh.head) if deletes else Append(added=new)
            gc.collect()
            found[name].append(fresh.commit(update, cold=name == "cold").sample())
            if name != "warm":
                found["plan" if name == "cold" else "plan_after"].append(fresh.plan(equals([0]))[0].sample())
    return {name: average(samples) for name, samples in found.items()}


def _vectors(number: int) -> pa.Table:
    return vectors(LOCATION, np.array([number]), number)


def files_in_root(count: int, columns: int, repeats: int) -> dict[str, Any]:
    """Figures for a root of data files."""
    bed = new_bed(4, columns, STILL)
    if count > 0:
        bed.commit(Append(added=data_files(LOCATION, 0, count, columns)))
    return {"rows": count, "columns": columns, **around(bed, MAX_FILES, repeats)}


def leaves_in_root(count: int, columns: int, per_leaf: int, repeats: int) -> dict[str, Any]:
    """Figures for a root of leaves, of which the first exists."""
    bed = new_bed(4, columns, STILL)
    context = manifest_context(bed.base.metadata)
    if count > 0:
        bed.install(leaf_rows(context, count, per_leaf, columns), count * per_leaf)
        bed.io.write_new(leaf_name(context, 0), leaf_file(context, 0, per_leaf, columns))
    return {"rows": count, "columns": columns, **around(bed, MAX_FILES, repeats)}


def vectors_in_root(count: int, columns: int, repeats: int, partitions: int = 2) -> dict[str, Any]:
    """Figures for a root of deletion vectors, for data files that stand in two leaves."""
    bed = new_bed(4, columns, STILL)
    half = max(count, 1_000) // partitions + 1
    bed.set({MAX_FILES: "0"})
    for start in range(partitions):
        bed.commit(Append(added=data_files(LOCATION, start * half, half, columns)))
    bed.set({MAX_FILES: MANY})
    if count > 0:
        bed.commit(
            RowDelta(changes=FileChanges(added=vectors(LOCATION, np.arange(count, dtype=np.int64), 1)), read=bed.head)
        )
    return {"rows": count, "columns": columns, **around(bed, MAX_DVS, repeats, deletes=True)}


def manifest_vectors_in_root(leaves: int, size: int, columns: int, repeats: int, *, inline: bool) -> dict[str, Any]:
    """Figures for a root whose leaves all have a deletion vector of about ``size`` bytes, inline or in one file."""
    bed = new_bed(4, columns, STILL)
    context = manifest_context(bed.base.metadata)
    per_leaf = max(20_000, size * 5)  # a tenth of the rows, two bytes for each
    rows = leaf_rows(context, leaves, per_leaf, columns)
    dice = np.random.default_rng(size)
    blobs = [_blob(dice, size, per_leaf) for _ in range(leaves)]
    made, data = [], bytearray(b"PFA1")
    for number, (blob, count) in enumerate(blobs):
        place: dict[str, object] = {"dv_inline_content": blob}
        if not inline:
            place = {"location": VECTORS, "dv_offset": len(data), "dv_size_in_bytes": len(blob)}
            place["file_size_in_bytes"] = leaves * len(blob)
            data += blob
        made.append(_vector_row(leaf_name(context, number), count) | place)
    if not inline:
        bed.io.write_new(VECTORS, bytes(data))
    bed.install(pa.concat_tables([rows, entries(made)], promote_options="permissive"), leaves * per_leaf)
    samples: dict[str, list[Sample]] = {"warm": [], "cold": []}
    for repeat in range(repeats):
        for name, found in samples.items():
            fresh = bed.copy()
            if name == "warm":
                fresh.commit(Append(added=data_files(LOCATION, 10**8, 1, columns)))
            gc.collect()
            update = Append(added=data_files(LOCATION, 10**8 + 1 + repeat, 1, columns))
            found.append(fresh.commit(update, cold=name == "cold").sample())
    mean = round(fmean(len(blob) for blob, _ in blobs))
    return {"leaves": leaves, "blob": mean, "inline": inline, **{name: average(s) for name, s in samples.items()}}


def _blob(dice: np.random.Generator, size: int, rows: int) -> tuple[bytes, int]:
    positions = BitMap64(dice.choice(rows, max(1, size // 2), replace=False))
    return encode_dv(positions), len(positions)


def _vector_row(leaf: str, count: int) -> dict[str, object]:
    return {
        "content_type": int(ContentType.MANIFEST_DV),
        "file_format": "puffin",
        "status": int(Status.EXISTING),
        "snapshot_id": SNAPSHOT_ID,
        "sequence_number": 1,
        "file_sequence_number": 1,
        "partition_spec_id": 0,
        "record_count": count,
        "referenced_file": leaf,
    }


# -- histories


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What commits do: how many files they add or remove; of ten commits, how many remove files or delete rows."""

    commits: int
    files: int
    appended: int | None = None  # files of an append, if that is another number
    removals: int = 1
    deltas: int = 2
    oldest_first: bool = False

    def kinds(self) -> Iterator[str]:
        """The kind of each commit; within ten, removals and deltas are spread out."""
        special = ["delta"] * self.deltas + ["removal"] * self.removals
        turn = ["append"] * (10 - len(special))
        for place, kind in enumerate(special):
            turn.insert((place + 1) * 10 // (len(special) + 1), kind)
        for number in range(self.commits):
            yield turn[number % 10]

    @property
    def added(self) -> int:
        """Files that are added in all."""
        return sum(kind == "append" for kind in self.kinds()) * self.new_files

    @property
    def new_files(self) -> int:
        """Files of an append."""
        return self.files if self.appended is None else self.appended


class Player:
    """A table that lives through a history, and knows which files are live without asking."""

    def __init__(self, bed: Bed, live: Ints, seed: int = 1) -> None:
        self.bed = bed
        self.live = live
        self.next = int(live.max()) + 1 if len(live) > 0 else 0
        self.dice = np.random.default_rng(seed)
        self.batch = 0
        self._pool: pa.Table | None = None
        self._pool_start = 0

    def play(self, history: History, plans: int) -> dict[str, Any]:
        """All commits, with so many plans in between; figures of both."""
        commits: list[Sample] = []
        found: list[Sample] = []
        every = max(1, history.commits // plans)
        for number, kind in enumerate(history.kinds()):
            update = getattr(self, f"_{kind}")(history)
            cost = self.bed.commit(update)
            commits.append(cost.sample())
            if number % 10 == 9:
                self.bed.forget_history()
            if number % every == every - 1:
                found.append(self._planned())
        return {"commits": summed(commits), "plans": average(found), "leaves": self.leaves(), "live": len(self.live)}

    def _append(self, history: History) -> Append:
        count = history.new_files
        if self._pool is None or self.next + count > self._pool_start + self._pool.num_rows:
            self._pool_start = self.next
            self._pool = data_files(LOCATION, self.next, max(1_000, count), self.bed.columns)
        added = self._pool.slice(self.next - self._pool_start, count)
        self.live = np.concatenate([self.live, np.arange(self.next, self.next + count, dtype=np.int64)])
        self.next += count
        return Append(added=added)

    def _removal(self, history: History) -> OverwriteFiles:
        count = min(history.files, len(self.live) // 2)
        chosen = np.arange(count) if history.oldest_first else self.dice.choice(len(self.live), count, replace=False)
        tasks = self._tasks(self.live[chosen])
        self.live = np.delete(self.live, chosen)
        return OverwriteFiles(changes=FileChanges(removed=tasks), read=self.bed.head, operation=Operation.DELETE)

    def _delta(self, history: History) -> RowDelta:
        self.batch += 1
        targets = np.sort(self.dice.choice(self.live, min(max(1, history.files // 2), len(self.live)), replace=False))
        tasks = self._tasks(targets)
        replaced = tasks.filter(pc.is_valid(tasks["dv_location"]))
        return RowDelta(
            changes=FileChanges(added=vectors(LOCATION, targets, self.batch), revectored=replaced), read=self.bed.head
        )

    def _tasks(self, numbers: Ints) -> pa.Table:
        """Planned files by number; the plan is not part of the commit that is measured."""
        tasks = self.bed.plan("true", cold=False)[1].tasks
        return tasks.filter(pc.is_in(tasks["location"], value_set=names_of(LOCATION, numbers)))

    def _planned(self) -> Sample:
        """A plan for one live file, by a program that has cached nothing, and a plan for all files."""
        gc.collect()
        wanted = int(self.dice.choice(self.live))
        cost, plan = self.bed.plan(equals([wanted]))
        if plan.files != 1:
            raise RuntimeError(f"planned {plan.files} files, not 1")
        whole, plan = self.bed.plan("true")
        if plan.files != len(self.live):
            raise RuntimeError(f"planned {plan.files} files, not {len(self.live)}")
        everything = {f"all_{key}": value for key, value in whole.sample().items()}
        return cost.sample() | everything

    def leaves(self) -> int:
        """How many leaves the root names."""
        rows = read_root(self.bed.base.store, self.bed.head).rows(*MANIFESTS)
        return int(rows.num_rows)


def summed(commits: list[Sample]) -> Sample:
    """Means over a history, with the most that one commit took, and the part of those that wrote leaves."""
    with_leaves = [c for c in commits if c["leaves"] > 0]
    quiet = [c for c in commits if c["leaves"] == 0]
    found = {
        key: round(fmean(c[key] for c in commits), 3) for key in ("cpu_ms", "wall_ms", "bytes", "files", "root_bytes")
    }
    found["most_cpu_ms"] = max(c["cpu_ms"] for c in commits)
    found["upkeeps"] = len(with_leaves)
    found["quiet_cpu_ms"] = round(fmean(c["cpu_ms"] for c in quiet), 3) if len(quiet) > 0 else 0.0
    found["quiet_bytes"] = round(fmean(c["bytes"] for c in quiet)) if len(quiet) > 0 else 0
    found["upkeep_cpu_ms"] = round(fmean(c["cpu_ms"] for c in with_leaves), 3) if len(with_leaves) > 0 else 0.0
    found["upkeep_bytes"] = round(fmean(c["bytes"] for c in with_leaves)) if len(with_leaves) > 0 else 0
    return found


def weighted(commits: Mapping[str, float], number: int, share: float) -> dict[str, float]:
    """Means in the long run, when a history was too short: upkeep counts by the share of it that was due."""
    upkeep = commits["upkeeps"] / number * min(1.0, share)
    return {
        key: commits[f"quiet_{key}"] * (1 - upkeep) + commits[f"upkeep_{key}"] * upkeep for key in ("cpu_ms", "bytes")
    }


def history_of(
    settings: Mapping[str, str], history: History, columns: int, *, fill: int, plans: int, defaults: bool = True
) -> dict[str, Any]:
    """A history on a table whose root holds ``fill`` files at first; other settings are the library's, or still."""
    bed = new_bed(4, columns, STILL)
    if fill > 0:
        bed.commit(Append(added=data_files(LOCATION, 0, fill, columns)))
    bed.set(settings, remove=tuple(UPKEEP) if defaults else ())
    player = Player(bed, np.arange(fill, dtype=np.int64))
    return {"settings": dict(settings), **player.play(history, plans)}


def removals_of(
    settings: Mapping[str, str],
    history: History,
    columns: int,
    *,
    leaves: int,
    per_leaf: int,
    plans: int,
    defaults: bool = True,
) -> dict[str, Any]:
    """A history on a table of leaves; other settings are the library's, or still."""
    bed = new_bed(4, columns, {**STILL, MAX_FILES: "0"})
    for number in range(leaves):
        bed.commit(Append(added=data_files(LOCATION, number * per_leaf, per_leaf, columns)))
    bed.set({MAX_FILES: MANY, **settings}, remove=tuple(UPKEEP) if defaults else ())
    player = Player(bed, np.arange(leaves * per_leaf, dtype=np.int64))
    return {"settings": dict(settings), **player.play(history, plans)}
