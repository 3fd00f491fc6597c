"""Bench ``huge``: planning a table of a hundred million files with a selective filter on a column that is no partition.

The root is real, with a row for each leaf and statistics of ten columns. Of the leaves only those that the filters need
exist; opening any other one would fail. The same leaves serve tables of all sizes, so that plans of one answer differ
in nothing but the size of the table. Each plan is made by a fresh process, which also tells the memory it needed.
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
from plot import Chart, Line
from report import Table

TITLE = "huge: planning up to 100,000,000 files"
WORKER = Path(__file__).resolve().parent / "huge_worker.py"
ANSWERS = (1, 10, 100)
PLACES = ("together", "apart")
LEAF_SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
MEGABYTES_PER_SECOND = 100  # of an object store


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Files of the three tables, files of a leaf, leaves that an answer is spread over, and how often it is planned."""

    small: int = 1_000_000
    middle: int = 10_000_000
    large: int = 100_000_000
    per_leaf: int = 50_000
    spread: int = 10
    repeats: int = 3


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Plans of every answer on every table, and the root of the largest one with leaves of other sizes."""
    plans: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        tell(f"huge: writing {sizes.spread} leaves of {sizes.per_leaf:,} files")
        _worker("leaves", folder, sizes.per_leaf, sizes.spread)
        for files in (sizes.small, sizes.middle, sizes.large):
            tell(f"huge: a table of {files:,} files")
            root = json.loads(_worker("table", folder, files, sizes.per_leaf))
            for answer in ANSWERS:
                for place in PLACES if answer > 1 else PLACES[:1]:
                    leaves = min(answer, sizes.spread) if place == "apart" else 1
                    arguments = (folder, files, sizes.per_leaf, answer, leaves)
                    found = [json.loads(_worker("plan", *arguments)) for _ in range(sizes.repeats)]
                    plans.append({"files": files, "answer": answer, "place": place, "root": root, "samples": found})
        roots = []
        for files in (sizes.small, sizes.middle, sizes.large):
            tell(f"huge: roots of {files:,} files in leaves of several sizes")
            roots += json.loads(_worker("roots", files, *LEAF_SIZES))
    return {"sizes": asdict(sizes), "plans": plans, "roots": roots}


def _worker(verb: str, *arguments: object) -> str:
    command = [sys.executable, str(WORKER), verb, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[2:])} failed:\n{done.stderr.strip()}")
    return done.stdout


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Plans, and roots of a hundred million files."""
    return [_plans(result), _roots(result)]


def _plans(result: Mapping[str, Any]) -> Table:
    rows = []
    for plan in result["plans"]:
        first, again = ([{**s[key]} for s in plan["samples"]] for key in ("first", "again"))
        one = plan["samples"][0]
        rows.append(
            [
                f"{plan['answer']} of {plan['files']:,}" + (f", {plan['place']}" if plan["answer"] > 1 else ""),
                f"{one['leaves_read']:,} of {plan['root']['leaves']:,}",
                spread(first, "wall_ms"),
                spread(first, "cpu_ms"),
                spread(again, "wall_ms"),
                f"{one['bytes_read']:,}",
                f"{median(plan['samples'], 'peak_mb'):,.0f}",
                f"{median(plan['samples'], 'idle_mb'):,.0f}",
            ]
        )
    columns = (
        "selected files",
        "leaves read",
        "first plan, wall ms",
        "CPU ms",
        "plan again, wall ms",
        "bytes read",
        "peak MB",
        "MB before",
    )
    sizes = result["sizes"]
    note = (
        f"Median of {sizes['repeats']} fresh processes. Leaves of {sizes['per_leaf']:,} files, statistics of 10"
        f" columns. The selected files are in one leaf (together) or in up to {sizes['spread']} leaves (apart). The"
        " first plan reads the root and the leaves; the second uses the cached ones. MB before is the memory of the"
        " process after importing the library and loading metadata.json."
    )
    return Table(title="Selective plans", columns=columns, rows=rows, note=note)


def _roots(result: Mapping[str, Any]) -> Table:
    rows = [
        [
            f"{root['files']:,}, leaves of {root['per_leaf']:,}",
            f"{root['leaves']:,}",
            f"{root['root_bytes']:,}",
            f"{root['leaf_bytes']:,}",
            f"{root['decode']['wall_ms']:,.0f}",
            f"{root['encode']['wall_ms']:,.0f}",
            f"{root['plan']['cpu_ms']:,.0f}",
            f"{_transfer_ms(root['bytes_read']):,.0f}",
        ]
        for root in result["roots"]
    ]
    columns = (
        "files",
        "leaves",
        "bytes of the root",
        "bytes of a leaf",
        "decode root, ms",
        "encode root, ms",
        "plan of one file, CPU ms",
        "transfer ms",
    )
    note = (
        "The root has one entry per leaf. Every commit writes the root, and every plan reads it. A plan of one file"
        f" also reads its leaf. Transfer is the time for both at {MEGABYTES_PER_SECOND} MB/s."
    )
    return Table(title="Roots by size of the table and of its leaves", columns=columns, rows=rows, note=note)


def _transfer_ms(size: float) -> float:
    return size / MEGABYTES_PER_SECOND / 1000


def plots(result: Mapping[str, Any]) -> list[Chart]:
    """Time over the size of the table."""
    lines = []
    for answer in ANSWERS:
        for place in PLACES if answer > 1 else PLACES[:1]:
            mine = [p for p in result["plans"] if (p["answer"], p["place"]) == (answer, place)]
            points = [(p["files"], median([s["first"] for s in p["samples"]], "wall_ms")) for p in mine]
            name = f"{answer} file" + (f"s, {place}" if answer > 1 else "")
            lines.append(Line(name=name, points=points, dash=PLACES.index(place)))
    return [
        Chart(
            name="huge",
            title="First plan of a new process, by the size of the table",
            x="files of the table",
            y="wall ms",
            lines=lines,
            log_x=True,
        ),
        _plot_leaves(result),
    ]


def _plot_leaves(result: Mapping[str, Any]) -> Chart:
    lines = []
    for files in dict.fromkeys(root["files"] for root in result["roots"]):
        mine = [root for root in result["roots"] if root["files"] == files]
        points = [(r["leaf_bytes"], r["plan"]["cpu_ms"] + _transfer_ms(r["bytes_read"])) for r in mine]
        lines.append(Line(name=f"{files:,} files", points=points))
    return Chart(
        name="huge-leaf-size",
        title="A plan of one file, by the size of leaves",
        x="bytes of a leaf",
        y="ms of CPU and transfer",
        lines=lines,
        log_x=True,
        log_y=True,
    )
