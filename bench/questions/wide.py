"""Bench ``wide``: what statistics of many columns cost a root, and what helps.

Roots with one file and with a hundred are written by the real commit loop, for tables of few and of very many columns,
with statistics as the metrics modes of a table leave them: all, counts only, of some columns, of partition columns
only. The footer of a root names every stored measure of every column; it is the floor of its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.commit.operations.append import Append
from icefloe.model.entries import StatColumn, column_key, partition_key, with_stats
from icefloe.model.metadata.properties import METRICS_MAX_INFERRED
from questions.parts import committed, first_where, number, planned, times
from report import Table
from synthetic import LOCATION, Bed, data_files, equals, new_bed
from thresholds_work import STILL

TITLE = "wide: statistics of many columns"
QUESTION = "What do wide tables cost (the floor of a root at 100 and 1,000 columns), and what helps?"
WIDTHS = (10, 100, 1_000)
ALL, COUNTS, BOUNDS, SOME, NONE = "all", "counts only", "bounds only", "32 columns", "partition column only"
MODES = (ALL, COUNTS, BOUNDS, SOME, NONE)
KEPT = 32
FILES = (1, 100)
OF_COUNTS = ("value_count", "null_value_count", "nan_value_count")
OF_BOUNDS = ("lower_bound", "upper_bound")
# The partition field, its column, and the column that plans filter by.
ALWAYS = (partition_key(1000), column_key(1), column_key(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Columns of the widest table, and how often a figure is measured."""

    most: int = 1_000
    repeats: int = 3


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Roots of every width and mode, and what versions 2 and 3 write for the same files."""
    found = []
    for columns in (width for width in WIDTHS if width <= sizes.most):
        for files in FILES:
            entries = data_files(LOCATION, 0, files + 1, columns)
            for mode in MODES:
                tell(f"wide: {files} files, {columns:,} columns, statistics: {mode}")
                rows = with_mode(entries, mode)
                for version in (4, 2, 3) if mode in (ALL, NONE) else (4,):
                    found.append({"columns": columns, "files": files, "mode": mode, "version": version})
                    found[-1] |= _append(version, columns, rows, files, sizes.repeats)
    return {"sizes": asdict(sizes), "roots": found}


def with_mode(entries: pa.Table, mode: str) -> pa.Table:
    """The entries with the statistics of a mode."""

    def keeps(column: StatColumn) -> bool:
        if column.key in ALWAYS or mode == ALL:
            return True
        if mode == COUNTS:
            return column.measure in OF_COUNTS
        if mode == BOUNDS:
            return column.measure in OF_BOUNDS
        return mode == SOME and column.key.id <= KEPT

    return with_stats(entries, keeps)


def _append(version: int, columns: int, rows: pa.Table, files: int, repeats: int) -> dict[str, Any]:
    """Append one file to a table that has the others, and plan one file."""
    bed = new_bed(version, columns, STILL)
    if files > 1:
        bed.commit(Append(added=rows.slice(0, files - 1)))

    def append(fresh: Bed) -> Append:
        return Append(added=rows.slice(files - 1, 1))

    sample, after = committed(bed, append, repeats, cold=True)
    plan = planned(after, equals([files - 1]), 1, repeats)
    found: dict[str, Any] = {"commit": sample, "plan": plan}
    head = after.head
    if version == 4 and head is not None and head.root is not None:
        data = after.io.inner.read(head.root)
        footer = int.from_bytes(data[-8:-4], "little")
        stored = pq.ParquetFile(pa.BufferReader(data)).metadata.num_columns
        found |= {"footer_bytes": footer, "stored_columns": stored}
    return found


def tables(result: Mapping[str, Any]) -> list[Table]:
    """V4 by mode, and the versions beside each other."""
    return [_modes(result), _versions(result)]


def _modes(result: Mapping[str, Any]) -> Table:
    rows = []
    for entry in (root for root in result["roots"] if root["version"] == 4):
        whole = first_where(result["roots"], version=4, columns=entry["columns"], files=entry["files"], mode=ALL)
        size = entry["commit"]["root_bytes"]
        rows.append(
            [
                f"{entry['columns']:,} columns, {entry['files']} files, {entry['mode']}",
                number(size),
                number(entry["footer_bytes"]),
                f"{100 * entry['footer_bytes'] / size:.0f} %",
                number(entry["stored_columns"]),
                number(entry["footer_bytes"] / entry["stored_columns"]),
                times(size, whole["commit"]["root_bytes"]),
                f"{entry['commit']['cpu_ms']:.1f}",
                f"{entry['plan']['cpu_ms']:.1f}",
            ]
        )
    columns = (
        "table, statistics",
        "bytes of the root",
        "of these the footer",
        "share",
        "Parquet columns",
        "footer bytes of one",
        "/ all statistics",
        "append, CPU ms",
        "plan of one file, CPU ms",
    )
    note = (
        "One file is appended to a table that has the others in its root. Partition column and filter column always"
        f" have statistics. Median of {result['sizes']['repeats']}, nothing cached but metadata.json. By default a new"
        f" table has statistics of its first {METRICS_MAX_INFERRED.default} columns only, unless properties ask for"
        " more; here all columns have them where the row says so."
    )
    return Table(title="Roots of version 4", columns=columns, rows=rows, note=note)


def _versions(result: Mapping[str, Any]) -> Table:
    rows = []
    for entry in (root for root in result["roots"] if root["mode"] in (ALL, NONE)):
        own = first_where(
            result["roots"], version=4, columns=entry["columns"], files=entry["files"], mode=entry["mode"]
        )
        rows.append(
            [
                f"{entry['columns']:,} columns, {entry['files']} files, {entry['mode']}: v{entry['version']}",
                number(entry["commit"]["files"]),
                number(entry["commit"]["bytes"]),
                times(own["commit"]["bytes"], entry["commit"]["bytes"]),
                number(entry["commit"]["bytes_read"]),
                number(entry["plan"]["bytes_read"]),
                f"{entry['commit']['cpu_ms']:.1f}",
                f"{entry['plan']['cpu_ms']:.1f}",
            ]
        )
    columns = (
        "table, statistics: version",
        "files written",
        "bytes written",
        "V4 / this",
        "bytes read by the append",
        "bytes read by the plan",
        "append, CPU ms",
        "plan, CPU ms",
    )
    note = (
        "The same append in versions 2 and 3: a manifest of one file and a manifest list. Manifests are not merged"
        " here, and the table of a hundred files was written by two commits."
    )
    return Table(title="The same append in other versions", columns=columns, rows=rows, note=note)


def answer(result: Mapping[str, Any]) -> str:
    """The floor at each width, and what each mode saves at the widest."""
    roots = [root for root in result["roots"] if root["version"] == 4]
    widest = max(root["columns"] for root in roots)
    floors = ", ".join(
        f"{number(first_where(roots, columns=width, files=1, mode=ALL)['commit']['root_bytes'])} bytes with"
        f" {width:,} columns ({number(first_where(roots, columns=width, files=1, mode=ALL)['footer_bytes'])} of them"
        " footer)"
        for width in sorted({root["columns"] for root in roots})
    )
    whole = first_where(roots, columns=widest, files=1, mode=ALL)["commit"]["root_bytes"]
    savings = ", ".join(
        f"{mode}: {number(first_where(roots, columns=widest, files=1, mode=mode)['commit']['root_bytes'])}"
        f" ({100 * first_where(roots, columns=widest, files=1, mode=mode)['commit']['root_bytes'] / whole:.0f} %)"
        for mode in MODES[1:]
    )
    least = min(MODES, key=lambda mode: first_where(roots, columns=widest, files=1, mode=mode)["commit"]["root_bytes"])
    two = first_where(result["roots"], version=2, columns=widest, files=1, mode=ALL)["commit"]["bytes"]
    return (
        f"A root of one file with statistics of all columns has {floors}. Every later commit writes that floor again,"
        f" however small it is. At {widest:,} columns the bytes of such a root are, by statistics kept: {savings}. The"
        f" same append writes {number(two)} bytes in version 2: V4 writes {times(whole, two)} times as many. The least"
        f" bytes of these has: {least}. Table properties select the statistics:"
        " `write.metadata.metrics.default` for all"
        " columns (`none`, `counts`, `truncate(n)`, `full`), `write.metadata.metrics.column.<name>` for one."
    )
