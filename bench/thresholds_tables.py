"""The tables and plots of bench ``thresholds``, from its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from measure import Sample
from plot import Chart, Line
from report import Table

WIDTHS = (5, 20, 100)
WIDTH = 20  # where the width is not what is changed
OFF = "off"
MEGABYTES_PER_SECOND, ROUND_TRIP_MS = 100, 30  # of an object store, where a column says so


def tables(result: Mapping[str, Any]) -> list[Table]:
    """One table for each sweep."""
    return [
        _roots(result, "files", "data files", FILES_NOTE.format(**result["sizes"])),
        _long_run(result),
        _roots(result, "leaves", "leaves", "An entry of a leaf costs as much as one of a data file. One leaf is read."),
        _roots(result, "vectors", "deletion vectors", "The commit is a row delta with one deletion vector."),
        _inline(result),
        _histories(result),
        _vector_histories(result),
        _dead(result),
        _merged(result),
    ]


FILES_NOTE = (
    "Median of {repeats}. One file is added to a root with this number of data files. The table is open and the root is"
    " cached, or the table is reopened and the root is read. Transfer is the time for the bytes of the root at"
    f" {MEGABYTES_PER_SECOND} MB/s; a round trip to an object store takes about {ROUND_TRIP_MS} ms. The plan selects"
    " one file, without any cache."
)


def _roots(result: Mapping[str, Any], key: str, what: str, note: str) -> Table:
    rows = []
    for entry in result[key]:
        warm, cold, plan, flush, after = (entry[k] for k in ("warm", "cold", "plan", "flush", "plan_after"))
        rows.append(
            [
                f"{entry['rows']:,}, {entry['columns']} columns",
                f"{warm['root_bytes']:,.0f}",
                f"{transfer_ms(warm['root_bytes']):.1f}",
                *(f"{each['cpu_ms']:.1f}" for each in (warm, cold, plan)),
                f"{flush['cpu_ms']:.1f}",
                f"{flush['bytes']:,.0f}",
                f"{after['cpu_ms']:.1f}",
                f"{after['bytes_read']:,.0f}",
            ]
        )
    columns = (
        f"{what} in the root",
        "bytes of the root",
        "transfer ms",
        "commit, CPU ms",
        "commit, table reopened",
        "plan, CPU ms",
        "flush, CPU ms",
        "flush, bytes",
        "plan after it, CPU ms",
        "bytes read",
    )
    return Table(title=f"Roots of {what}", columns=columns, rows=rows, note=note)


def transfer_ms(size: float) -> float:
    """What bytes take on the way to an object store."""
    return size / MEGABYTES_PER_SECOND / 1000


def long_run(entries: Sequence[Mapping[str, Any]], limit: int, files: int) -> dict[str, float]:
    """What a commit of so many files costs in the long run: while the root fills up to a limit, and its flush."""
    inside = [entry for entry in entries if entry["rows"] <= limit]
    at = np.array([0.0, *(entry["rows"] for entry in inside)])
    found = {}
    for key in ("cpu_ms", "bytes"):
        first = inside[0]["warm"][key]
        cost = np.array([first, *(entry["warm"][key] for entry in inside)])
        filling = float(np.trapezoid(cost, at) / at[-1]) if at[-1] > 0 else first
        more = inside[-1]["flush"][key] - inside[-1]["warm"][key]  # than a commit on a full root
        found[key] = filling + more * min(1.0, files / limit)
    found["ms"] = found["cpu_ms"] + transfer_ms(found["bytes"])
    return found


def _long_run(result: Mapping[str, Any]) -> Table:
    rows = []
    for limit in _limits(result):
        cells = []
        for _, mine in _curves(result):
            found = long_run(mine, limit, 1)
            cells += [f"{found['cpu_ms']:.1f}", f"{found['bytes']:,.0f}", f"{found['ms']:.1f}"]
        rows.append([f"{limit:,}", *cells])
    columns = [
        "flush at",
        *(f"{text}, {name}" for name, _ in _curves(result) for text in ("CPU ms", "bytes", "CPU and transfer ms")),
    ]
    note = (
        "The mean over a cycle of commits of one file, or of one deletion vector, computed from the other tables: the"
        " root grows to the limit, then its entries are flushed to a leaf."
    )
    return Table(title="A small commit in the long run", columns=columns, rows=rows, note=note)


def _curves(result: Mapping[str, Any]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """What fills a root: data files with statistics of some columns, and deletion vectors."""
    found = [(f"{n} columns", [entry for entry in result["files"] if entry["columns"] == n]) for n in WIDTHS]
    return [*found, ("deletion vectors", result["vectors"])]


def _limits(result: Mapping[str, Any]) -> list[int]:
    return sorted({entry["rows"] for entry in result["files"]})


def _inline(result: Mapping[str, Any]) -> Table:
    rows = []
    pairs = zip(result["inline"][::2], result["inline"][1::2], strict=True)
    for inline, apart in pairs:
        rows.append(
            [
                f"{inline['leaves']:,} of {inline['blob']:,} bytes",
                f"{inline['warm']['root_bytes']:,.0f}",
                f"{apart['warm']['root_bytes']:,.0f}",
                *(f"{each[key]['cpu_ms']:.1f}" for key in ("warm", "cold") for each in (inline, apart)),
                f"{transfer_ms(inline['warm']['root_bytes'] - apart['warm']['root_bytes']):.1f}",
            ]
        )
    columns = (
        "vectors",
        "root, inline",
        "root, in a file",
        "commit CPU ms, inline",
        "in a file",
        "table reopened, inline",
        "in a file",
        "transfer ms that a file saves",
    )
    note = (
        "Every leaf of the table has a deletion vector. A one-file append copies inline vectors to the next root."
        " Vectors in a file are only referenced, but a reader of a leaf also reads its vector: one more round trip of"
        f" {ROUND_TRIP_MS} ms, unless both are read at the same time."
    )
    return Table(title="Manifest deletion vectors, inline or in a file", columns=columns, rows=rows, note=note)


def _history_cells(entry: Mapping[str, Any], cpu_ms: float, size: float) -> list[str]:
    commits, plans = entry["commits"], entry["plans"]
    return [
        f"{cpu_ms:.1f}",
        f"{commits['most_cpu_ms']:.0f}",
        f"{size:,.0f}",
        f"{commits['files']:.2f}",
        f"{entry['leaves']:,}",
        f"{plans['cpu_ms']:.1f}",
        f"{plans['bytes_read']:,.0f}",
        f"{plans['all_cpu_ms']:.1f}",
        f"{plans['all_files_read']:.0f}",
    ]


HISTORY = (
    "commit, CPU ms",
    "most",
    "commit, bytes",
    "files",
    "leaves at the end",
    "plan of one file, CPU ms",
    "bytes read",
    "plan of all, CPU ms",
    "files read",
)


def _histories(result: Mapping[str, Any]) -> Table:
    rows = [[f"{e['limit']:,}", *_history_cells(e, e["mean"]["cpu_ms"], e["mean"]["bytes"])] for e in result["flush"]]
    sizes = result["sizes"]
    note = (
        f"{sizes['commits']} commits: 7 in 10 add {sizes['files']} files, 2 delete rows of {sizes['files'] // 2} files"
        f" and 1 removes {sizes['files']} files, at random. {WIDTH} columns. Commit figures are means; if the history"
        " is shorter than a cycle, flushes are counted in proportion. Plans run 5 times, without any cache."
    )
    return Table(title="Histories by data files in the root", columns=("flush at", *HISTORY), rows=rows, note=note)


def _vector_histories(result: Mapping[str, Any]) -> Table:
    rows = [_plain_row(f"{e['limit']:,}", e) for e in result["vector_flush"]]
    note = "8 in 10 commits delete rows of random files in two leaves; the others add files."
    return Table(
        title="Histories by deletion vectors in the root", columns=("flush at", *HISTORY), rows=rows, note=note
    )


def _plain_row(name: str, entry: Mapping[str, Any]) -> list[str]:
    commits: Sample = entry["commits"]
    return [name, *_history_cells(entry, commits["cpu_ms"], commits["bytes"])]


def _dead(result: Mapping[str, Any]) -> Table:
    rows = []
    for entry in result["dead"]:
        percent = "never" if entry["percent"] > 100 else f"{entry['percent']} %"
        rows.append(_plain_row(f"{percent}, {'oldest first' if entry['oldest'] else 'anywhere'}", entry))
    note = (
        "8 in 10 commits remove files, until two thirds are removed; the others add a file. A leaf with this share of"
        " dead entries is rewritten by a commit that does not change it otherwise."
    )
    return Table(title="Histories by dead entries of a leaf", columns=("rewrite at", *HISTORY), rows=rows, note=note)


def _merged(result: Mapping[str, Any]) -> Table:
    rows = [
        _plain_row(f"{e['limit']} in the root, {e['fewest']} leaves, {e['target'] / 2**20:g} MiB", e)
        for e in result["merge"]
    ]
    note = (
        f"Every commit adds {result['sizes']['files']} files, to the root up to a limit, or to a new leaf. The first"
        " column has that limit, the minimum number of leaves to merge, and the target size."
    )
    return Table(title="Histories by merges of leaves", columns=("merge at", *HISTORY), rows=rows, note=note)


# -- plots


def plots(result: Mapping[str, Any]) -> list[Chart]:
    """The curves that the defaults are read from."""
    return [_plot_roots(result), _plot_long_run(result), _plot_histories(result)]


def _plot_roots(result: Mapping[str, Any]) -> Chart:
    lines = [
        Line(
            name=f"data files, {columns} columns",
            points=[(e["rows"], e["warm"]["root_bytes"]) for e in result["files"] if e["columns"] == columns],
        )
        for columns in WIDTHS
    ]
    for key, name in (("leaves", "leaves"), ("vectors", "deletion vectors")):
        points = [(e["rows"], e["warm"]["root_bytes"]) for e in result[key]]
        lines.append(Line(name=f"{name}, {WIDTH} columns", points=points, dash=1))
    return Chart(
        name="thresholds-root-bytes",
        title="Bytes of a root",
        x="rows of the root",
        y="bytes",
        lines=lines,
        log_x=True,
        log_y=True,
    )


def _plot_long_run(result: Mapping[str, Any]) -> Chart:
    lines = []
    for number, (name, mine) in enumerate(_curves(result)):
        for dash, files in enumerate((1, 20)):
            points = [(limit, long_run(mine, limit, files)["ms"]) for limit in _limits(result)]
            lines.append(Line(name=f"{name}, {files} at once", points=points, dash=dash, colour=number))
    return Chart(
        name="thresholds-long-run",
        title="A commit in the long run: CPU and transfer",
        x="rows in the root at which it is flushed",
        y="ms of CPU and transfer",
        lines=lines,
        log_x=True,
        log_y=True,
    )


def _plot_histories(result: Mapping[str, Any]) -> Chart:
    found = result["flush"]
    picked: tuple[tuple[str, Callable[[Mapping[str, Any]], float]], ...] = (
        ("commit", lambda e: float(e["mean"]["cpu_ms"])),
        ("plan of one file", lambda e: float(e["plans"]["cpu_ms"])),
        ("plan of all files", lambda e: float(e["plans"]["all_cpu_ms"])),
    )
    lines = [Line(name=name, points=[(e["limit"], value(e)) for e in found]) for name, value in picked]
    return Chart(
        name="thresholds-histories",
        title=f"A history of {result['sizes']['commits']} commits: CPU of a commit and of plans",
        x="data files in the root at which it is flushed",
        y="CPU ms",
        lines=lines,
        log_x=True,
    )
