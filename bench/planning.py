"""Bench ``planning``: a selective filter on a column that is no partition, over very many files, and removing one file.

Each contender has a table of its own with the same entries, in a fresh process that first plans with nothing cached,
then three times more with its table still open, then removes one data file and commits.
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

from measure import median, ratio, spread
from report import Table

TITLE = "planning: one file of very many, and its removal"
WORKER = Path(__file__).resolve().parent / "planning_worker.py"
VERSIONS = {"icefloe v2": 2, "icefloe v4": 4, "pyiceberg": 2, "Apache Iceberg": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Entries of the table, entries of pyiceberg's smaller table, and entries of a manifest."""

    entries: int = 1_000_000
    pyiceberg: int = 100_000
    per_manifest: int = 5_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every contender alone, one after the other."""
    found: dict[str, Any] = {}
    for name, version in VERSIONS.items():
        entries = sizes.pyiceberg if name == "pyiceberg" else sizes.entries
        with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
            tell(f"planning: {name}, a table of {entries:,} files")
            _worker("make", str(version), folder, str(entries), str(sizes.per_manifest))
            found[name] = {"entries": entries, **json.loads(_worker("run", name, folder, str(entries)))}
    return {"sizes": asdict(sizes), "contenders": found}


def _worker(*arguments: str) -> str:
    done = subprocess.run([sys.executable, str(WORKER), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr.strip()}")
    return done.stdout


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times, and time per entry as a ratio to icefloe's."""
    found = result["contenders"]
    rows = []
    for name, seen in found.items():
        rate = seen["entries"] / median(seen["first"], "cpu_ms") * 1000
        cells = [f"{seen['entries']:,}", *(spread(seen[key], "wall_ms") for key in ("first", "again", "removal"))]
        rows.append([name, *cells, f"{rate:,.0f}", f"{seen['peak_mb']:,.0f}"])
    columns = ("", "files", "first plan, ms", "later plans, ms", "removal, ms", "entries per CPU second", "peak MB")
    note = (
        "The filter keeps one file. Later plans have the table open, so that icefloe finds its manifests decoded."
        " Peak memory is that of the Python process; Apache Iceberg's heap is limited to 3 GB. pyiceberg removes the"
        " file by a filter that matches all its rows, the others by its name."
    )
    return [Table(title="Planning and removal", columns=columns, rows=rows, note=note), _ratios(found)]


def _ratios(found: Mapping[str, Any]) -> Table:
    rows = []
    for own in ("icefloe v2", "icefloe v4"):
        for peer in ("pyiceberg", "Apache Iceberg"):
            cells = []
            for key in ("first", "again", "removal"):
                # Per entry, as pyiceberg's table may be smaller.
                mine, theirs = (median(found[name][key], "wall_ms") / found[name]["entries"] for name in (own, peer))
                cells.append(ratio(mine, theirs))
            rows.append([f"{own} / {peer}", *cells])
    columns = ("", "first plan", "later plans", "removal")
    return Table(title="Ratios of wall time per entry: below 1, icefloe needs less", columns=columns, rows=rows)
