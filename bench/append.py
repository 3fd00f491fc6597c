"""Bench ``append``: what one small commit costs, early in a table's life and after thousands of commits.

Every contender lives in a fresh process of its own, keeps its table open and appends the same 1,000 rows of 10 columns
again and again. The processes take turns, a few commits each, so that whatever else the machine does hits all alike.
The contender ``data file only`` writes the Parquet file and nothing else: what is left of the others is their metadata.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import Sample, median, ratio, spread
from plot import Chart, Line
from report import Table
from workers import Worker

TITLE = "append: one file of 1,000 rows per commit"
FAR = ("icefloe v4", "icefloe v4, maintained")
PEERS = ("pyiceberg", "Apache Iceberg fast", "Apache Iceberg", "delta-rs", "delta-rs by path")
CONTENDERS = (*FAR, "icefloe v2", *PEERS, "data file only")
TURN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: the commits to look at, how many around each, and the rows of a commit.

    Tables of version 4 go on to ``far``, the others stop after ``peers`` commits.
    """

    first: int = 10
    middle: int = 500
    last: int = 1000
    far: int = 5000
    peers: int = 1000
    window: int = 10
    rows: int = 1000

    @property
    def points(self) -> tuple[int, ...]:
        """The commits that are looked at."""
        return self.first, self.middle, self.last, self.far

    def commits(self, contender: str) -> int:
        """The commits of a contender."""
        wanted = self.far if contender in (*FAR, "data file only") else self.peers
        return wanted + self.window // 2


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Append with every contender in turns; samples by contender and commit number."""
    total = max(map(sizes.commits, CONTENDERS))
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        workers = {
            name: Worker("append_worker.py", name, str(Path(folder) / str(i)), str(sizes.rows))
            for i, name in enumerate(CONTENDERS)
        }
        samples: dict[str, list[Sample]] = {name: [] for name in CONTENDERS}
        try:
            for turn, done in enumerate(range(0, total, TURN)):
                shift = turn % len(CONTENDERS)
                for name in CONTENDERS[shift:] + CONTENDERS[:shift]:
                    if (count := min(TURN, sizes.commits(name) - done)) > 0:
                        samples[name] += workers[name].run(count)
                if done % 100 == 0:
                    tell(f"append: {done} of {total} commits by each of {len(CONTENDERS)} contenders")
        finally:
            for worker in workers.values():
                worker.stop()
    return {
        "sizes": asdict(sizes),
        "samples": {name: _windows(found, sizes) for name, found in samples.items()},
        "series": {name: _series(found) for name, found in samples.items()},
    }


def _windows(samples: Sequence[Sample], sizes: Sizes) -> dict[str, list[Sample]]:
    """The samples of the commits around those that are looked at."""
    half = sizes.window // 2
    reached = [at for at in sizes.points if at <= len(samples)]
    around = {str(at): samples[max(0, at - half) : at + half] for at in reached}
    return {at: [{key: round(value, 3) for key, value in s.items()} for s in found] for at, found in around.items()}


def _series(samples: Sequence[Sample]) -> list[Sample]:
    """Medians of ten commits each, for the plots."""
    parts = [samples[start : start + TURN] for start in range(0, len(samples), TURN)]
    keys = ("cpu_ms", "wall_ms", "metadata_files", "metadata_bytes", "json_bytes")
    return [{key: round(median(part, key), 3) for key in keys} for part in parts]


def plots(result: Mapping[str, Any]) -> list[Chart]:
    """What a commit costs over the life of a table."""
    drawn = {
        "cpu_ms": ("append-cpu", "CPU ms per commit"),
        "metadata_bytes": ("append-bytes", "metadata bytes per commit"),
    }
    return [
        Chart(
            name=name,
            title=f"One file per commit: {label}",
            x="commit",
            y=label,
            log_y=True,
            lines=[
                Line(name=contender, points=[(TURN * (at + 1), sample[key]) for at, sample in enumerate(series)])
                for contender, series in result.get("series", {}).items()
                if max(sample[key] for sample in series) > 0
            ],
        )
        for key, (name, label) in drawn.items()
    ]


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Costs at each of the commits, and how they compare."""
    sizes, samples = result["sizes"], result["samples"]
    points = list(next(iter(samples.values())))
    return [*(_costs(samples, at) for at in points), _ratios(samples, sizes["rows"])]


def _costs(samples: Mapping[str, Any], at: str) -> Table:
    data = median(samples["data file only"][at], "cpu_ms")
    rows = []
    for name in (name for name in CONTENDERS if at in samples.get(name, {})):
        found = samples[name][at]
        own = "-" if name == "data file only" else f"{max(0.0, median(found, 'cpu_ms') - data):.1f}"
        files, size = median(found, "metadata_files"), median(found, "metadata_bytes")
        json = f"{median(found, 'json_bytes'):,.0f}" if "json_bytes" in found[0] else "-"  # earlier runs have none
        cells = [spread(found, "cpu_ms"), own, spread(found, "wall_ms"), f"{files:.0f}", f"{size:,.0f}", json]
        rows.append([name, *cells])
    return Table(
        title=f"Around commit {at}, median of {len(samples[CONTENDERS[0]][at])} commits",
        columns=("", "CPU ms", "less the data file", "wall ms", "metadata files", "metadata bytes", "metadata.json"),
        rows=rows,
    )


def _ratios(samples: Mapping[str, Any], count: int) -> Table:
    points = list(samples[PEERS[0]])
    rows = []
    for own in ("icefloe v4", "icefloe v2"):
        for peer in filter(samples.__contains__, PEERS):
            cells = [
                ratio(median(samples[own][at], key), median(samples[peer][at], key))
                for key in ("cpu_ms", "wall_ms", "metadata_bytes")
                for at in points
            ]
            rows.append([f"{own} / {peer}", *cells])
    columns = ["", *(f"{what} at {at}" for what in ("CPU", "wall", "bytes") for at in points)]
    note = (
        f"Each commit appends {count:,} rows of 10 columns. CPU is user and system time of the process, all threads."
        " Metadata files and bytes are those that a commit adds: metadata.json, manifest lists and manifests, or"
        " _delta_log; the last column is the part of metadata.json. The maintained table keeps 100 snapshots; its"
        " maintenance, after every 100 commits, is not counted. All keep the table object open, except delta-rs by"
        " path, which opens the table for every commit."
        " delta-rs writes a checkpoint every 100 commits, and opening is cheap after it, so its times vary."
        " Apache Iceberg commits from a warm JVM, with its fast append or its default append, which merges manifests."
        " pyarrow writes its data files, and its CPU is the mean of ten commits."
        " icefloe syncs every file and folder to disk before the commit; pyiceberg syncs only its catalog, delta-rs"
        " nothing (checked with strace)."
    )
    return Table(title="Ratios of medians: below 1, icefloe needs less", columns=columns, rows=rows, note=note)
