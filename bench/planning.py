"""Bench ``planning``: a selective filter on a column that is no partition, over very many files, and removing one file.

Each contender has a table of its own with the same entries, in a fresh process that first plans with nothing cached,
then three times more with its table still open, then removes one data file and commits.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import median, ratio, spread
from report import Table

TITLE = "planning: plan one file of many, and remove it"
WORKER = Path(__file__).resolve().parent / "planning_worker.py"
VERSIONS = {"icefloe v2": 2, "icefloe v4": 4, "pyiceberg": 2, "Apache Iceberg": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Entries of the two tables, pyiceberg having only the smaller one, and entries of a manifest."""

    small: int = 100_000
    large: int = 1_000_000
    per_manifest: int = 5_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every contender alone, one after the other."""
    found: list[dict[str, Any]] = []
    for entries in (sizes.small, sizes.large):
        for name, version in VERSIONS.items():
            if name == "pyiceberg" and entries != sizes.small:
                continue
            with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
                tell(f"planning: {name}, a table of {entries:,} files")
                _worker("make", str(version), folder, str(entries), str(sizes.per_manifest))
                seen = json.loads(_worker("run", name, folder, str(entries)))
            found.append({"contender": name, "entries": entries, **seen})
    return {"sizes": asdict(sizes), "runs": found}


def _worker(*arguments: str) -> str:
    done = subprocess.run([sys.executable, str(WORKER), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr.strip()}")
    return done.stdout


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times, and time per entry as a ratio to icefloe's."""
    rows = []
    for seen in result["runs"]:
        rate = seen["entries"] / median(seen["first"], "cpu_ms") * 1000
        times = [spread(seen[key], "wall_ms") for key in ("first", "again", "removal")]
        size = f"{seen['removal_bytes']:,}"
        rows.append(
            [seen["contender"], f"{seen['entries']:,}", *times, size, f"{rate:,.0f}", f"{seen['peak_mb']:,.0f}"]
        )
    times = ("first plan, ms", "later plans, ms", "removal, ms")
    columns = ("", "files", *times, "bytes of a removal", "entries per CPU second", "peak MB")
    note = (
        "The filter selects one file. Later plans run with the table open, so the manifests of icefloe are cached."
        " Bytes are those of the manifests and manifest lists that the removal writes."
        " Peak memory is that of the Python process after the plans; the heap of Apache Iceberg is limited to 3 GB."
        " pyiceberg removes the file with a filter that matches all its rows, the others by its location."
    )
    return [Table(title="Planning and removal", columns=columns, rows=rows, note=note), _ratios(result["runs"])]


def _ratios(runs: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    sizes = sorted({seen["entries"] for seen in runs})
    known = {(seen["contender"], seen["entries"]): seen for seen in runs}
    for entries in sizes:
        for own in ("icefloe v2", "icefloe v4"):
            for peer in ("pyiceberg", "Apache Iceberg"):
                mine, theirs = known[own, entries], known.get((peer, entries), known[peer, sizes[0]])
                share = mine["entries"] / theirs["entries"]  # of a table that may be larger than pyiceberg's
                cells = [
                    _fraction(median(mine[key], "wall_ms"), median(theirs[key], "wall_ms") * share)
                    for key in ("first", "again", "removal")
                ]
                size = _fraction(mine["removal_bytes"], theirs["removal_bytes"] * share)
                rows.append([f"{own} / {peer}", f"{entries:,}", *cells, size])
    columns = ("", "files", "first plan", "later plans", "removal", "bytes of a removal")
    note = "For the larger table, the figures of pyiceberg are those of the smaller table, times the ratio of entries."
    return Table(title="Ratios of wall time: below 1, icefloe needs less", columns=columns, rows=rows, note=note)


def _fraction(value: float, base: float) -> str:
    return f"{value / base:.4f}" if value * 100 < base else ratio(value, base)
