"""Bench ``billion``: a plan, a removal and an append on a table of 1,000,000,000 files, and the memory that they need.

What is simulated: no data file exists, and of the leaves only a few do. What is real: the root, with a row and
statistics of ten columns for each leaf; the leaves that the filters need, at their real size; planning and the commit
loop, which read and write those bytes. Opening any other leaf would fail, so figures cannot come from fewer files
than a real table would read. Each step runs in a fresh process, whose peak memory is reported. A filter by a column
that does not rise with the files cannot skip leaves: for it, the leaves that it would have to read are counted only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import median, spread
from questions.parts import number
from report import Table

TITLE = "billion: a table of 1,000,000,000 files (simulated)"
QUESTION = "1,000,000,000 simulated files: what do a plan, a removal and an append take, and how much memory?"
BENCH = Path(__file__).resolve().parents[1]
STEPS = ("plan", "append", "removal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Files of the two tables, files of a leaf (two sizes), and how often each step runs.

    Leaves of less than half the target size (2 MiB) would be merged by a commit, which would open them.
    """

    small: int = 10_000_000
    large: int = 1_000_000_000
    per_leaf: int = 50_000
    less_per_leaf: int = 20_000
    repeats: int = 3


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every step on every table, each in its own process."""
    found = []
    for per_leaf in (sizes.per_leaf, sizes.less_per_leaf):
        with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
            _worker("huge_worker", "leaves", folder, per_leaf, 1)
            for files in (sizes.small, sizes.large):
                tell(f"billion: a table of {files:,} files in leaves of {per_leaf:,}")
                root = _worker("huge_worker", "table", folder, files, per_leaf)
                entry = {"files": files, "per_leaf": per_leaf, "root": root}
                for step in STEPS:
                    arguments = (folder, files, per_leaf)
                    entry[step] = [_worker("questions.billion_worker", step, *arguments) for _ in range(sizes.repeats)]
                entry["unsorted"] = _worker("questions.billion_worker", "unsorted", folder, files, per_leaf)
                found.append(entry)
    return {"sizes": asdict(sizes), "tables": found}


def _worker(module: str, verb: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", module, verb, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCH)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[2:])} failed:\n{done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Steps, and what a filter by another column would have to read."""
    return [_steps(result), _unsorted(result)]


def _steps(result: Mapping[str, Any]) -> Table:
    rows = []
    for entry in result["tables"]:
        for step in STEPS:
            samples = entry[step]
            rows.append(
                [
                    f"{step}, {entry['files']:,} in leaves of {entry['per_leaf']:,}",
                    number(entry["root"]["leaves"]),
                    number(samples[0]["files_read"]),
                    number(samples[0]["bytes_read"]),
                    number(samples[0]["files"]),
                    number(samples[0]["bytes"]),
                    spread(samples, "wall_ms"),
                    spread(samples, "cpu_ms"),
                    number(median(samples, "peak_mb")),
                    number(median(samples, "idle_mb")),
                ]
            )
    columns = (
        "step, files",
        "leaves",
        "files read",
        "bytes read",
        "files written",
        "bytes written",
        "wall ms",
        "CPU ms",
        "peak MB",
        "MB before",
    )
    note = (
        f"Median of {result['sizes']['repeats']} fresh processes; brackets have the extremes. The plan selects one file"
        " by a column that rises with the files, so the root leaves one leaf to read. The removal is that of a planned"
        " file; its plan is not counted. Statistics of 10 columns. Files in memory or page cache, so no transfer.\n\n"
        "Simulated: no data file exists, and of the leaves only the one that the filter needs; the root is real, with"
        " a row of statistics for each leaf. MB before is the process with the library imported and metadata.json"
        " loaded. Bytes are without metadata.json."
    )
    return Table(title="One file of very many", columns=columns, rows=rows, note=note)


def _unsorted(result: Mapping[str, Any]) -> Table:
    rows = [
        [
            f"{entry['files']:,} in leaves of {entry['per_leaf']:,}",
            number(entry["unsorted"]["leaves"]),
            number(entry["unsorted"]["bytes"]),
            f"{entry['unsorted']['cpu_ms']:,.0f}",
        ]
        for entry in result["tables"]
    ]
    columns = ("files", "leaves left by the root", "their bytes", "pruning of the root, CPU ms")
    note = "A filter by a column whose values are anywhere. Counted from the root: these leaves are not read here."
    return Table(title="A filter by a column that does not rise", columns=columns, rows=rows, note=note)


def answer(result: Mapping[str, Any]) -> str:
    """What each step takes on the largest table."""
    largest = max(entry["files"] for entry in result["tables"])
    entry = next(entry for entry in result["tables"] if entry["files"] == largest)
    small = min(result["tables"], key=lambda e: (e["files"], -e["per_leaf"]))
    texts = [
        f"{step} {median(entry[step], 'wall_ms'):,.0f} ms and {number(median(entry[step], 'peak_mb'))} MB"
        f" ({median(small[step], 'wall_ms'):,.0f} ms and {number(median(small[step], 'peak_mb'))} MB with"
        f" {small['files']:,} files)"
        for step in STEPS
    ]
    return (
        f"With {largest:,} simulated files in {entry['root']['leaves']:,} leaves of {entry['per_leaf']:,} and"
        " statistics"
        f" of 10 columns, in a fresh process: {'; '.join(texts)}. The plan selects one file by a column that rises with"
        f" the files. The root has {number(entry['root']['root_bytes'])} bytes; every commit writes it, so an append of"
        f" one file writes {number(entry['append'][0]['bytes'])} bytes. A filter by a column that does not rise leaves"
        f" {number(entry['unsorted']['leaves'])} leaves of together {number(entry['unsorted']['bytes'])} bytes to read."
    )
