"""Bench ``retained``: the bytes of metadata that time travel keeps, over a window of snapshots.

Histories of small commits run through the real commit loop in versions 2, 3 and 4, with the defaults of the library.
What the last snapshots of a history reference is counted once for each file: roots and manifest lists, leaves and
manifests, and Puffin files of manifest vectors. Data files and their deletes are not counted, as they are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.model.entries import MANIFESTS, ContentType, put
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from measure import Sample
from questions.parts import first_where, number, times
from report import Table
from synthetic import LOCATION, Bed, data_files, names_of, new_bed, vectors

TITLE = "retained: metadata that a window of snapshots keeps"
QUESTION = "How many bytes are retained over a time-travel window, beside versions 2 and 3?"
VERSIONS = (2, 3, 4)
APPENDS, REPLACED, DELTAS = "one file added", "one file replaced", "rows of one file deleted"
WORKS = (APPENDS, REPLACED, DELTAS)
COLUMNS = (10, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Commits of a history, snapshots of the window, and files of the table before it."""

    commits: int = 400
    window: int = 100
    files: int = 1_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Every history in every version; wide tables have appends only."""
    found = []
    for columns in COLUMNS:
        for work in WORKS if columns == min(COLUMNS) else WORKS[:1]:
            for version in VERSIONS:
                tell(f"retained: {sizes.commits} commits, {work}, {columns} columns, v{version}")
                found.append(
                    {"version": version, "work": work, "columns": columns, **_history(version, work, columns, sizes)}
                )
    return {"sizes": asdict(sizes), "histories": found}


def _history(version: int, work: str, columns: int, sizes: Sizes) -> dict[str, Any]:
    """Bytes after all commits: written in all, referenced by the window, referenced by the last snapshot."""
    bed = new_bed(version, columns, {"write.metadata.previous-versions-max": "1"})
    if sizes.files > 0:
        bed.commit(Append(added=data_files(LOCATION, 0, sizes.files, columns)))
    bytes_written, files_written = 0.0, 0.0
    pool = data_files(LOCATION, sizes.files, sizes.commits, columns)
    for turn in range(sizes.commits):
        sample: Sample = bed.commit(_update(bed, work, pool, turn, sizes)).sample()
        bytes_written += sample["bytes"]
        files_written += sample["files"]
        _forget_metadata_files(bed)
    snapshots = sorted(bed.base.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number)
    window = _referenced(bed, snapshots[-sizes.window :])
    return {
        "bytes_written": bytes_written,
        "files_written": files_written,
        "json_bytes": bed.io.size(bed.pointer.load().pointer),
        **window,
        **{f"head_{key}": value for key, value in _referenced(bed, snapshots[-1:]).items()},
    }


def _update(bed: Bed, work: str, pool: pa.Table, turn: int, sizes: Sizes) -> Append | OverwriteFiles | RowDelta:
    added = pool.slice(turn, 1)
    if work == APPENDS:
        return Append(added=added)
    chosen = np.array([turn * 7 % max(1, sizes.files)], np.int64)
    tasks = bed.plan("true", cold=False)[1].tasks
    tasks = tasks.filter(pc.is_in(tasks["location"], value_set=names_of(LOCATION, chosen)))
    if work == REPLACED:
        if tasks.num_rows == 0:  # replaced before
            tasks = bed.plan("true", cold=False)[1].tasks.slice(0, 1)
        changes = FileChanges(added=added, removed=tasks)
        return OverwriteFiles(changes=changes, read=bed.head, operation=Operation.OVERWRITE)
    deletes = vectors(LOCATION, chosen, turn)
    if not bed.base.metadata.rules.deletion_vectors:
        return RowDelta(changes=FileChanges(added=_position_deletes(deletes)), read=bed.head)
    replaced = tasks.filter(pc.is_valid(tasks["dv_location"]))
    return RowDelta(changes=FileChanges(added=deletes, revectored=replaced), read=bed.head)


def _position_deletes(rows: pa.Table) -> pa.Table:
    """Position delete files of one data file each, as version 2 has them."""
    for name in ("dv_offset", "dv_size_in_bytes"):
        rows = put(rows, name, pa.nulls(rows.num_rows, pa.int64()))
    names = pc.replace_substring(rows["location"], ".puffin", "-deletes.parquet")
    return put(put(rows, "location", names), "file_format", "parquet")


def _forget_metadata_files(bed: Bed) -> None:
    """Delete former metadata.json files: a long run needs the memory, and they are the same in all versions."""
    now = bed.pointer.load().pointer
    old = [i.location for i in bed.io.list(LOCATION) if i.location.endswith(".json") and i.location != now]
    bed.io.delete(old)


def _referenced(bed: Bed, snapshots: list[Snapshot]) -> dict[str, int]:
    """The metadata files that snapshots reference, each once: their number and bytes, roots apart."""
    store = bed.base.store
    roots, others = set(), set()
    for snapshot in snapshots:
        rows = read_root(store, snapshot).rows(*MANIFESTS, ContentType.MANIFEST_DV)
        roots.add(snapshot.root)
        others |= set(rows["location"].drop_null().to_pylist())
    size = {"root_bytes": sum(map(bed.io.size, roots)), "leaf_bytes": sum(map(bed.io.size, others))}
    return {"roots": len(roots), "leaves": len(others), **size, "bytes": sum(size.values())}


def tables(result: Mapping[str, Any]) -> list[Table]:
    """One table: versions beside each other."""
    rows = []
    for entry in result["histories"]:
        base = first_where(result["histories"], version=2, work=entry["work"], columns=entry["columns"])
        rows.append(
            [
                f"{entry['work']}, {entry['columns']} columns, v{entry['version']}",
                *(number(entry[key]) for key in ("root_bytes", "leaf_bytes", "bytes")),
                times(entry["bytes"], base["bytes"]),
                number(entry["roots"] + entry["leaves"]),
                number(entry["head_bytes"]),
                number(entry["bytes_written"]),
                times(entry["bytes_written"], base["bytes_written"]),
            ]
        )
    columns = (
        "every commit",
        "roots or lists of the window",
        "its leaves or manifests",
        "together, bytes",
        "/ v2",
        "files",
        "of the last snapshot alone",
        "written by all commits",
        "/ v2",
    )
    sizes = result["sizes"]
    note = (
        f"{sizes['commits']} commits after {sizes['files']:,} files; the window has the last {sizes['window']}"
        " snapshots. Defaults of the library, with merges and flushes. Statistics of all columns. Without"
        " metadata.json,"
        " data files and their deletes."
    )
    return [Table(title="Bytes that a window retains", columns=columns, rows=rows, note=note)]


def answer(result: Mapping[str, Any]) -> str:
    """The bytes of the window by version, and those of appends to wide tables."""
    texts = []
    for columns in COLUMNS:
        for work in WORKS:
            mine = [e for e in result["histories"] if (e["work"], e["columns"]) == (work, columns)]
            if len(mine) > 0:
                two, three, four = (first_where(mine, version=version) for version in VERSIONS)
                texts.append(
                    f"{work}, {columns} columns: {number(four['bytes'])} bytes, {times(four['bytes'], two['bytes'])}"
                    f" times those of v2 and {times(four['bytes'], three['bytes'])} times those of v3 (written by all"
                    f" commits: {times(four['bytes_written'], two['bytes_written'])} times those of v2)"
                )
    sizes = result["sizes"]
    return (
        f"Metadata that the last {sizes['window']} of {sizes['commits']} snapshots of a table of"
        f" {sizes['files']:,} files"
        f" reference, in version 4. {'; '.join(texts)}. A V4 root repeats the entries that are not in a leaf"
        " yet, where a"
        " manifest list references manifests that several snapshots share."
    )
