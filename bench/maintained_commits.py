"""Bench ``maintained_commits``: thousands of appends to one table that is maintained after every hundred of them.

Each contender appends the same small file again and again from one process, and runs the maintenance of its library as
a scheduler would. A commit must cost as much late in the life of the table as early. The cost also depends on the
commits since the last maintenance, so commits are compared at the same place in their hundred, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maintained_worker import CONTENDERS, OWN
from measure import Sample, median, ratio, spread
from plot import Chart, Line
from report import Table
from workers import Worker

TITLE = "maintained_commits: one file per commit, maintained every 100 commits"
HALF = 5  # commits on each side of the one that is looked at
KEYS = ("cpu_ms", "wall_ms", "metadata_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Commits of icefloe and of the others, commits between two runs of maintenance, and rows of a commit."""

    commits: int = 10_000
    peers: int = 500
    every: int = 100
    rows: int = 1000
    retain: int = 1

    def of(self, contender: str) -> int:
        """The commits of a contender: whole turns."""
        wanted = self.commits if contender == OWN else self.peers
        return -(-wanted // self.every) * self.every


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Append and maintain with one contender after the other; a sample of each commit and of each maintenance."""
    found = {}
    for name in CONTENDERS:
        tell(f"maintained_commits: {sizes.of(name):,} commits of {name}")
        with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
            settings = (str(Path(folder) / "t"), str(sizes.rows), str(sizes.retain))
            worker = Worker("maintained_worker.py", name, *settings)
            commits: list[Sample] = []
            upkeep: list[Sample] = []
            try:
                for turn in range(sizes.of(name) // sizes.every):
                    *samples, last = worker.run(sizes.every)
                    commits += samples
                    upkeep.append(last)
                    if turn % 10 == 9:
                        tell(
                            f"maintained_commits: {len(commits):,} commits of {name}, maintained in {_seconds(last)} s"
                        )
            finally:
                worker.stop()
        found[name] = {
            "windows": {str(at): _window(commits, at, sizes.every) for at in _points(len(commits), sizes.every)},
            "turns": [_turn(commits[start : start + sizes.every]) for start in range(0, len(commits), sizes.every)],
            "upkeep": [{key: round(value, 1) for key, value in sample.items()} for sample in upkeep],
        }
    return {"sizes": asdict(sizes), "contenders": found}


def _points(total: int, every: int) -> list[int]:
    """Commits that are looked at: powers of ten, and the tenth after the maintenance before the last turn."""
    powers = [10**n for n in range(1, 8) if 10**n <= total]
    return sorted({*powers, total - every + 10, total})


def _window(commits: Sequence[Sample], at: int, every: int) -> list[Sample]:
    """The commits around one of them; at the end of a turn those before it, as maintenance follows."""
    chosen = commits[at - 2 * HALF : at] if at % every == 0 else commits[max(0, at - HALF) : at + HALF]
    return [{key: round(value, 3) for key, value in sample.items()} for sample in chosen]


def _turn(commits: Sequence[Sample]) -> Sample:
    """The means of the commits between two runs of maintenance."""
    return {key: round(sum(sample[key] for sample in commits) / len(commits), 3) for key in KEYS}


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Single commits, whole turns, and maintenance."""
    return [_single(result), _turns(result), _upkeep(result)]


def _single(result: Mapping[str, Any]) -> Table:
    rows = []
    for name, found in result["contenders"].items():
        first = found["windows"]["10"]
        for at, samples in found["windows"].items():
            rows.append(
                [
                    f"{name}, commit {int(at):,}",
                    spread(samples, "cpu_ms"),
                    spread(samples, "wall_ms"),
                    f"{median(samples, 'metadata_bytes'):,.0f}",
                    ratio(median(samples, "cpu_ms"), median(first, "cpu_ms")),
                    ratio(median(samples, "metadata_bytes"), median(first, "metadata_bytes")),
                ]
            )
    columns = ("", "CPU ms", "wall ms", "metadata bytes", "CPU / commit 10", "bytes / commit 10")
    sizes = result["sizes"]
    note = (
        f"Median of {2 * HALF} commits around the given one; where maintenance follows it, of those before it. A commit"
        f" whose number is a multiple of {sizes['every']} is the last before maintenance, when metadata.json has"
        f" {sizes['every']} more snapshots than after it; the others are the tenth after maintenance, as commit 10 is."
        f" Each commit appends {sizes['rows']:,} rows of 10 columns. Retention: {sizes['retain']} snapshots, 10 former"
        " metadata files. Metadata bytes are those that a commit adds: metadata.json, manifest lists and manifests, or"
        " _delta_log."
    )
    return Table(title="Commits early and late in the life of a table", columns=columns, rows=rows, note=note)


def _turns(result: Mapping[str, Any]) -> Table:
    rows = []
    every = result["sizes"]["every"]
    for name, found in result["contenders"].items():
        turns = found["turns"]
        for at in sorted({1, 2, *(n for n in (10, 50) if n <= len(turns)), len(turns)}):
            turn = turns[at - 1]
            shares = [ratio(turn[key], turns[0][key]) for key in ("cpu_ms", "metadata_bytes")]
            cells = [f"{turn['cpu_ms']:.1f}", f"{turn['wall_ms']:.1f}", f"{turn['metadata_bytes']:,.0f}"]
            rows.append([f"{name}, commits {(at - 1) * every + 1:,} to {at * every:,}", *cells, *shares])
    columns = ("", "CPU ms", "wall ms", "metadata bytes", "CPU / first turn", "bytes / first turn")
    note = f"Means of the {every} commits between two runs of maintenance, without the maintenance."
    return Table(title="Mean of all commits between two runs of maintenance", columns=columns, rows=rows, note=note)


def _upkeep(result: Mapping[str, Any]) -> Table:
    rows = []
    for name, found in result["contenders"].items():
        upkeep = found["upkeep"]
        for at in sorted({1, 2, *(n for n in (10, 50) if n <= len(upkeep)), len(upkeep)}):
            one = upkeep[at - 1]
            rows.append(
                [
                    f"{name}, run {at} of {len(upkeep)}",
                    f"{one['wall_ms']:,.0f}",
                    f"{one['cpu_ms']:,.0f}",
                    f"{sum(sample['cpu_ms'] for sample in upkeep[:at]) / at / result['sizes']['every']:.1f}",
                    f"{one['data_files']:,.0f}",
                    f"{one['metadata_files_kept']:,.0f}",
                    f"{one['metadata_bytes_kept']:,.0f}",
                    f"{one['peak_mb']:,.0f}",
                ]
            )
    columns = (
        "",
        "wall ms",
        "CPU ms",
        "CPU ms per commit so far",
        "data files after",
        "metadata files after",
        "metadata bytes after",
        "peak MB",
    )
    note = (
        "icefloe: Table.maintain, which compacts data files, rewrites manifests and lets snapshots expire. delta-rs:"
        " optimize.compact, vacuum, a checkpoint and cleanup_metadata. pyiceberg only lets snapshots expire; it has no"
        " compaction, and deletes no files. CPU per commit is that of all maintenance so far, divided by the commits."
        " Peak MB is the most memory of the process until then."
    )
    return Table(title="Maintenance", columns=columns, rows=rows, note=note)


def plots(result: Mapping[str, Any]) -> list[Chart]:
    """What a commit costs over the life of a table."""
    every = result["sizes"]["every"]
    return [
        Chart(
            name=f"maintained-commits-{what}",
            title=f"One file per commit, maintained every {every} commits: {label}",
            x="commit",
            y=label,
            log_y=True,
            lines=[
                Line(name=name, points=[((at + 1) * every, turn[key]) for at, turn in enumerate(found["turns"])])
                for name, found in result["contenders"].items()
            ],
        )
        for what, key, label in (
            ("cpu", "cpu_ms", "mean CPU ms per commit"),
            ("bytes", "metadata_bytes", "mean metadata bytes per commit"),
        )
    ]


def _seconds(sample: Sample) -> str:
    return f"{sample['wall_ms'] / 1000:.1f}"
