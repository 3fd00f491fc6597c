"""Bench ``commits``: what a one-file append and a one-file removal write, on tables of few and of many leaves.

And the bytes of manifests that a history of one-file appends writes in each format version, which are always the same.

In V4 both write one metadata file besides metadata.json, the root, whose size follows the number of leaves and not
what is in them. In v2 an append writes a manifest and the manifest list, a removal writes the leaf again. Tables are in
memory, so that CPU is that of the commit alone; most of their leaves are never opened, and do not exist.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.model.entries import ContentType
from icefloe.model.metadata.snapshots import Operation
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from icefloe.tree.store import LeafRequest
from measure import Sample, median, spread
from plot import Chart, Line
from report import Table
from synthetic import LOCATION, Bed, data_files, leaf_file, leaf_name, leaf_rows, new_bed, task_of

TITLE = "commits: one file added, one file removed"
VERSIONS = {"icefloe v4": 4, "icefloe v2": 2}
LEAVES = (1, 10, 100, 1_000)
WORKS = ("append", "removal")
COLUMNS = 10
HISTORIES = {"v4": 4, "v4, measures of v2": 4, "v3": 3, "v2": 2}
NEW_MEASURES = ("tight_bounds:", "avg_value_size_in_bytes:")  # that older versions do not have
KEEP = 100  # commits after which old snapshots are dropped, to save memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Files of a small leaf and of a large one, and how often each commit is made."""

    small: int = 100
    large: int = 10_000
    repeats: int = 5
    short: int = 400  # commits of a history
    long: int = 1000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Both commits on every table, by a program that has it open and by one that has just opened it."""
    found: list[dict[str, Any]] = []
    for per_leaf in (sizes.small, sizes.large):
        for leaves in LEAVES:
            tell(f"commits: tables of {leaves:,} leaves with {per_leaf:,} files each")
            for name, version in VERSIONS.items():
                bed = table_of(version, leaves, per_leaf, sizes.repeats)
                samples = {
                    f"{w} {t}": _commits(bed, w, leaves, per_leaf, sizes.repeats, t) for w in WORKS for t in TIMES
                }
                found.append({"contender": name, "leaves": leaves, "per_leaf": per_leaf, "samples": samples})
    tell(f"commits: histories of {sizes.long:,} one-file appends")
    histories = {
        name: history_bytes(version, (sizes.short, sizes.long), new_measures=name == "v4")
        for name, version in HISTORIES.items()
    }
    return {"sizes": asdict(sizes), "tables": found, "histories": histories}


def history_bytes(
    version: int, points: Sequence[int], columns: int = COLUMNS, *, new_measures: bool = True
) -> dict[str, int]:
    """The bytes of manifests and manifest lists or roots that one-file appends have written, by number of commits."""
    bed = new_bed(version, columns, {"write.metadata.previous-versions-max": "1"})
    total, found = 0.0, {}
    for number in range(max(points)):
        added = data_files(LOCATION, number, 1, columns)
        if not new_measures:
            added = added.select([name for name in added.column_names if not name.startswith(NEW_MEASURES)])
        total += bed.commit(Append(added=added)).sample()["bytes"]
        if number + 1 in points:
            found[str(number + 1)] = int(total)
        if number % KEEP == KEEP - 1:
            bed.forget_history()
    return found


TIMES = ("open", "opened anew")


def table_of(version: int, leaves: int, per_leaf: int, opened: int) -> Bed:
    """A table of such leaves; the first ``opened`` of them exist."""
    bed = new_bed(version, COLUMNS, {"commit.manifest-merge.enabled": "false"})
    context = manifest_context(bed.base.metadata)
    bed.install(leaf_rows(context, leaves, per_leaf, COLUMNS), leaves * per_leaf)
    for number in range(min(leaves, opened)):
        bed.io.write_new(leaf_name(context, number), leaf_file(context, number, per_leaf, COLUMNS))
    return bed


def _commits(bed: Bed, work: str, leaves: int, per_leaf: int, repeats: int, time: str) -> list[Sample]:
    """A few commits, each on the same table as it was at first."""
    samples = []
    for repeat in range(repeats + 1):
        fresh = bed.copy()
        number = (repeat % min(leaves, repeats)) * per_leaf + per_leaf // 2
        context = manifest_context(fresh.base.metadata)
        if work == "append":
            update: Any = Append(added=data_files(LOCATION, leaves * per_leaf + repeat, 1, COLUMNS), fast=True)
        else:
            gone = task_of(context, number, per_leaf)
            update = OverwriteFiles(changes=FileChanges(removed=gone), read=fresh.head, operation=Operation.DELETE)
        if time == "open":
            read_root(fresh.base.store, fresh.head)
            name = leaf_name(context, number // per_leaf)
            list(fresh.base.store.leaves([LeafRequest(location=name, content=ContentType.DATA_MANIFEST, spec_id=0)]))
        gc.collect()
        samples.append(fresh.commit(update, cold=time != "open").sample())
    return samples[1:]  # the first one pays for what a process does once


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Files, bytes and CPU of both commits; all of both versions beside each other."""
    return [*(_table(result, work) for work in WORKS), *_histories(result)]


def _histories(result: Mapping[str, Any]) -> list[Table]:
    histories: Mapping[str, Mapping[str, int]] = result.get("histories", {})
    if len(histories) == 0:
        return []
    points = list(histories["v2"])
    rows = [
        [
            f"icefloe {name}",
            *(f"{found[at]:,}" for at in points),
            *(f"{found[at] / histories['v2'][at]:.2f}" for at in points),
        ]
        for name, found in histories.items()
    ]
    columns = ["", *(f"bytes, {at} commits" for at in points), *(f"of v2, {at}" for at in points)]
    note = (
        f"Manifests and manifest lists or roots, without metadata.json. Statistics of {COLUMNS} columns, different in"
        " every file; 100 partitions; default properties. Version 4 also records whether bounds are tight, and the"
        " average size of texts: a column of every manifest for each. These figures do not vary."
    )
    return [Table(title="Bytes of one-file appends", columns=columns, rows=rows, note=note)]


def _table(result: Mapping[str, Any], work: str) -> Table:
    rows = []
    for entry in result["tables"]:
        found: Sequence[Sample] = entry["samples"][f"{work} open"]
        anew: Sequence[Sample] = entry["samples"][f"{work} opened anew"]
        rows.append(
            [
                f"{entry['contender']}, {entry['leaves']:,} x {entry['per_leaf']:,}",
                f"{median(found, 'files'):.0f}",
                f"{median(found, 'bytes'):,.0f}",
                spread(found, "cpu_ms"),
                spread(anew, "cpu_ms"),
                f"{median(anew, 'files_read'):.0f}",
                f"{median(anew, 'bytes_read'):,.0f}",
            ]
        )
    columns = (
        "leaves x files of each",
        "files written",
        "bytes written",
        "CPU ms, table open",
        "CPU ms, table reopened",
        "files read",
        "bytes read",
    )
    note = (
        f"Median of {result['sizes']['repeats']} commits on equal tables. Files and bytes do not include metadata.json."
        f" Statistics of {COLUMNS} columns. With the table open, the root and the leaf are cached. With the table"
        " reopened, the commit reads them (files and bytes read). The plan that finds the file to remove is not"
        " counted. Small manifests are not merged here."
    )
    return Table(title=f"One-file {work}", columns=columns, rows=rows, note=note)


def plots(result: Mapping[str, Any]) -> list[Chart]:
    """Bytes over the number of leaves, large ones."""
    large = [entry for entry in result["tables"] if entry["per_leaf"] == result["sizes"]["large"]]
    lines = [
        Line(
            name=f"{name}, {work}",
            points=[
                (e["leaves"], median(e["samples"][f"{work} open"], "bytes")) for e in large if e["contender"] == name
            ],
            dash=WORKS.index(work),
            colour=number,
        )
        for number, name in enumerate(VERSIONS)
        for work in WORKS
    ]
    return [
        Chart(
            name="commits",
            title=f"Bytes of metadata that a commit writes, leaves of {result['sizes']['large']:,} files",
            x="leaves of the table",
            y="bytes besides metadata.json",
            lines=lines,
            log_x=True,
            log_y=True,
        )
    ]
