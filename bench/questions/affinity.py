"""Bench ``affinity``: delete leaves that belong to one data leaf, against delete leaves that belong to none.

The same deletion vectors are laid out in four ways: a delete leaf for each data leaf with affinity, the same delete
leaves without it, one delete leaf for all, and all vectors in the root. Plans and row deltas run on each. A row delta
keeps its vectors in the root, or writes them to delete leaves at once; only then affinity costs it something, as it
must find the data leaves of its files. Without affinity that search is off (``commit.upkeep.max-bytes``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.codecs.manifest.manifests import encode_leaf
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.model.entries import ContentType, Status, concat, put
from icefloe.tree.file_changes import FileChanges
from measure import Sample
from questions.parts import (
    committed,
    context_of,
    first_where,
    number,
    plan_samples,
    some_positions,
    times,
    write_leaves,
)
from report import Table
from synthetic import LOCATION, SNAPSHOT_ID, Bed, Ints, leaf_name, leaf_rows, names_of, new_bed, vectors
from thresholds_work import MANY, MAX_DVS, STILL

TITLE = "affinity: delete leaves that belong to a data leaf"
QUESTION = "Affinity against none: what do a plan of one file, a plan of all files and a row delta cost?"
AFFINITY, SPLIT, SHARED, ROOT = "affinity", "same leaves, no affinity", "one delete leaf", "vectors in the root"
LAYOUTS = (AFFINITY, SPLIT, SHARED, ROOT)
DELTAS = ("one file", "one data leaf", "anywhere")
SEARCH = "commit.upkeep.max-bytes"  # affinity is looked for only in leaves of so many bytes
COLUMNS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Data leaves, files of each, vectors for each of them, files of a row delta, and how often it is measured."""

    leaves: int = 20
    per_leaf: int = 5_000
    vectors: int = 1_000
    delta: int = 100
    repeats: int = 3


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Plans and row deltas on every layout."""
    dice = np.random.default_rng(1)
    targets = [some_positions(dice, sizes.per_leaf, sizes.vectors) + n * sizes.per_leaf for n in range(sizes.leaves)]
    found = []
    for layout in LAYOUTS:
        tell(f"affinity: {sizes.leaves} data leaves with {sizes.vectors:,} vectors each: {layout}")
        bed = bed_of(layout, targets, sizes.leaves, sizes.per_leaf)
        plans = plan_samples(bed, int(targets[0][0]), sizes.leaves * sizes.per_leaf, sizes.repeats)
        deltas = {
            f"{where}, {to}": _delta(bed, _chosen(targets, where, sizes), sizes, to_leaves=to == "to leaves")
            for where in DELTAS
            for to in ("to the root", "to leaves")
        }
        found.append({"layout": layout, **plans, "deltas": deltas})
    return {"sizes": asdict(sizes), "layouts": found}


def bed_of(layout: str, targets: list[Ints], leaves: int, per_leaf: int) -> Bed:
    """A table with vectors of these files, listed by data leaf, in one of the layouts."""
    bed = new_bed(4, COLUMNS, STILL)
    context = context_of(bed)
    rows = [leaf_rows(context, leaves, per_leaf, COLUMNS)]
    if layout == ROOT:
        rows.append(_entries(np.concatenate(targets), 1))
    else:
        groups = [np.concatenate(targets)] if layout == SHARED else targets
        for place, group in enumerate(groups):
            rows.append(_delete_leaf(bed, place, group, leaf_name(context, place) if layout == AFFINITY else None))
    bed.install(concat(rows), leaves * per_leaf)
    write_leaves(bed, leaves, per_leaf)
    if layout != AFFINITY:
        bed.set({SEARCH: "1"})
    return bed


def _entries(targets: Ints, batch: int) -> pa.Table:
    """Deletion vectors that were there before."""
    rows = vectors(LOCATION, targets, batch)
    for name in ("sequence_number", "file_sequence_number"):
        rows = put(rows, name, 1)
    return put(put(rows, "snapshot_id", SNAPSHOT_ID), "status", int(Status.EXISTING))


def _delete_leaf(bed: Bed, place: int, targets: Ints, affinity: str | None) -> pa.Table:
    """Write a delete leaf; its root row."""
    context, rows = context_of(bed), _entries(targets, place + 1)
    location = f"{LOCATION}/metadata/{place:08x}-de1e-4000-8000-{place * 2_654_435_761 % 2**48:012x}-m0.parquet"
    data = encode_leaf(rows, context, content=ContentType.DELETE_MANIFEST, spec_id=0)
    bed.io.write_new(location, data)
    return manifest_row(
        rows,
        context,
        location=location,
        size=len(data),
        content=ContentType.DELETE_MANIFEST,
        status=Status.EXISTING,
        snapshot_id=SNAPSHOT_ID,
        sequence_number=1,
        referenced_file=affinity,
    )


def _chosen(targets: list[Ints], where: str, sizes: Sizes) -> Ints:
    """The files of a row delta; half of them have a vector already."""
    if where == DELTAS[0]:
        return targets[0][:1]
    leaves = 1 if where == DELTAS[1] else sizes.leaves
    each = max(1, sizes.delta // 2 // leaves)
    old = np.concatenate([targets[n][:each] for n in range(leaves)])
    free = [np.setdiff1d(np.arange(sizes.per_leaf) + n * sizes.per_leaf, targets[n])[:each] for n in range(leaves)]
    return np.sort(np.concatenate([old, *free]))


def _delta(bed: Bed, chosen: Ints, sizes: Sizes, *, to_leaves: bool) -> Sample:
    """Delete rows of these files: vectors that they have are replaced."""

    def delta(fresh: Bed) -> RowDelta:
        fresh.set({MAX_DVS: "0" if to_leaves else MANY})
        tasks = fresh.plan("true")[1].tasks
        tasks = tasks.filter(pc.is_in(tasks["location"], value_set=names_of(LOCATION, chosen)))
        replaced = tasks.filter(pc.is_valid(tasks["dv_location"]))
        changes = FileChanges(added=vectors(LOCATION, chosen, 10**6), revectored=replaced)
        return RowDelta(changes=changes, read=fresh.head)

    return committed(bed, delta, sizes.repeats, cold=True)[0]


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Plans, then row deltas."""
    return [_plans(result), _deltas(result)]


def _plans(result: Mapping[str, Any]) -> Table:
    rows = [
        [
            entry["layout"],
            *(
                text
                for key in ("one", "all")
                for text in (
                    number(entry[key]["files_read"]),
                    number(entry[key]["bytes_read"]),
                    f"{entry[key]['cpu_ms']:.1f}",
                )
            ),
        ]
        for entry in result["layouts"]
    ]
    columns = (
        "layout",
        "plan of one file: files read",
        "bytes read",
        "CPU ms",
        "plan of all: files read",
        "bytes read",
        "CPU ms",
    )
    sizes = result["sizes"]
    note = (
        f"{sizes['leaves']} data leaves of {sizes['per_leaf']:,} files; {sizes['vectors']:,} files of each have a"
        f" deletion vector. Statistics of {COLUMNS} columns. The one file is found by a column that rises with the"
        f" files; partitions do not separate the leaves. Median of {sizes['repeats']}, nothing cached."
    )
    return Table(title="Plans", columns=columns, rows=rows, note=note)


def _deltas(result: Mapping[str, Any]) -> Table:
    rows = [
        [
            f"{entry['layout']}: {name}",
            number(found["files"]),
            number(found["bytes"]),
            number(found["files_read"]),
            number(found["bytes_read"]),
            f"{found['cpu_ms']:.1f}",
        ]
        for entry in result["layouts"]
        for name, found in entry["deltas"].items()
    ]
    columns = (
        "layout: files, and where the vectors go",
        "files written",
        "bytes",
        "files read",
        "bytes read",
        "CPU ms",
    )
    sizes = result["sizes"]
    note = (
        f"A row delta of one file that has a vector, of {sizes['delta']} files in one data leaf, or of about as many in"
        " all of them; half of them have a vector already. Metadata besides metadata.json. The plan before the commit"
        " and the Puffin file are not counted. Vectors go to delete leaves at once if the root may hold none."
    )
    return Table(title="Row deltas", columns=columns, rows=rows, note=note)


def answer(result: Mapping[str, Any]) -> str:
    """What affinity saves in plans, and what it costs in row deltas."""
    own, split, shared = (first_where(result["layouts"], layout=name) for name in (AFFINITY, SPLIT, SHARED))
    sizes = result["sizes"]
    to_leaves, to_root = (f"one data leaf, {to}" for to in ("to leaves", "to the root"))
    return (
        f"On {sizes['leaves']} data leaves of {sizes['per_leaf']:,} files with {sizes['vectors']:,} vectors each: with"
        f" affinity, a plan of one file reads {number(own['one']['files_read'])} files and"
        f" {number(own['one']['bytes_read'])} bytes; the same delete leaves without affinity take"
        f" {number(split['one']['files_read'])} files and {times(split['one']['bytes_read'], own['one']['bytes_read'])}"
        f" times the bytes, one delete leaf for all takes {number(shared['one']['files_read'])} files and"
        f" {times(shared['one']['bytes_read'], own['one']['bytes_read'])} times the bytes. A plan of all files reads"
        f" {number(own['all']['files_read'])} files with affinity and {number(shared['all']['files_read'])} with one"
        f" delete leaf ({times(own['all']['cpu_ms'], shared['all']['cpu_ms'])} times the CPU). A row delta of"
        f" {sizes['delta']} files of one data leaf whose vectors stay in the root writes"
        f" {number(own['deltas'][to_root]['bytes'])} bytes with affinity and"
        f" {number(shared['deltas'][to_root]['bytes'])} with one delete leaf; if its vectors go to a delete"
        " leaf it reads"
        f" {number(own['deltas'][to_leaves]['files_read'])} files to find the data leaf, and"
        f" {number(shared['deltas'][to_leaves]['files_read'])} without affinity"
        f" ({own['deltas'][to_leaves]['cpu_ms']:.0f} against {shared['deltas'][to_leaves]['cpu_ms']:.0f} ms of CPU)."
    )
