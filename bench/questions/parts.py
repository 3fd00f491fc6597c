"""What several of these benches share: tables of leaves, deletion vectors by hand, samples of commits and plans."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from icefloe.codecs.manifest.context import ManifestContext, manifest_context
from icefloe.codecs.puffin.deletion_vector import encode_dv
from icefloe.commit.draft import Update
from icefloe.model.entries import ContentType, Status
from icefloe.tree.root import read_root
from measure import Sample
from synthetic import SNAPSHOT_ID, Bed, Ints, equals, leaf_file, leaf_name, leaf_rows, new_bed
from thresholds_work import STILL, average

Row = dict[str, object]


def leafy_bed(leaves: int, per_leaf: int, columns: int, *, version: int = 4, exist: int | None = None) -> Bed:
    """A table of data leaves, of which the first ``exist`` (all without) can be read; commits do nothing in passing."""
    bed = new_bed(version, columns, STILL)
    context = context_of(bed)
    bed.install(leaf_rows(context, leaves, per_leaf, columns), leaves * per_leaf)
    write_leaves(bed, leaves if exist is None else exist, per_leaf)
    return bed


def write_leaves(bed: Bed, count: int, per_leaf: int) -> None:
    """Write the files of the first data leaves."""
    context = context_of(bed)
    for number in range(count):
        bed.io.write_new(leaf_name(context, number), leaf_file(context, number, per_leaf, bed.columns))


def context_of(bed: Bed) -> ManifestContext:
    """How the manifests of a table are encoded."""
    return manifest_context(bed.base.metadata)


def vector_row(leaf: str, positions: BitMap64, status: Status, snapshot_id: int = SNAPSHOT_ID) -> Row:
    """The root row of an inline manifest deletion vector."""
    return {
        "content_type": int(ContentType.MANIFEST_DV),
        "file_format": "puffin",
        "status": int(status),
        "snapshot_id": snapshot_id,
        "sequence_number": 1,
        "file_sequence_number": 1,
        "partition_spec_id": 0,
        "record_count": len(positions),
        "referenced_file": leaf,
        "dv_inline_content": encode_dv(positions),
    }


def some_positions(dice: np.random.Generator, among: int, count: int) -> Ints:
    """Random positions, in order."""
    chosen: Ints = np.sort(dice.choice(among, count, replace=False)).astype(np.int64)
    return chosen


def committed(bed: Bed, update: Callable[[Bed], Update], repeats: int, *, cold: bool = False) -> tuple[Sample, Bed]:
    """The median cost of a commit on copies of a table, and the last copy after it.

    The first commit is not counted. The root is cached unless the commit is ``cold``.
    """
    samples: list[Sample] = []
    last = bed
    for _ in range(repeats + 1):
        last = bed.copy()
        change = update(last)
        if not cold:
            read_root(last.base.store, last.head)
        gc.collect()
        samples.append(last.commit(change, cold=cold).sample())
    return average(samples[1:]), last


def planned(bed: Bed, where: str, files: int, repeats: int) -> Sample:
    """The median cost of a plan by a program that has cached nothing; RuntimeError unless it finds ``files`` files."""
    samples: list[Sample] = []
    for _ in range(repeats + 1):
        gc.collect()
        cost, plan = bed.plan(where)
        if plan.files != files:
            raise RuntimeError(f"planned {plan.files} files, not {files}, for {where}")
        samples.append(cost.sample())
    return average(samples[1:])


def plan_samples(bed: Bed, one: int, files: int, repeats: int) -> dict[str, Sample]:
    """Plans of one file by its number, and of all files."""
    return {"one": planned(bed, equals([one]), 1, repeats), "all": planned(bed, "true", files, repeats)}


def with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    """The rows with one more column, or with other values in it."""
    field = pa.field(name, values.type)
    index = rows.schema.get_field_index(name)
    return rows.append_column(field, values) if index < 0 else rows.set_column(index, field, values)


def number(value: float) -> str:
    """A figure for a table: whole from 100 on."""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def times(value: float, base: float) -> str:
    """A ratio for a sentence."""
    if base == 0:
        return "-"
    share = value / base
    return f"{share:,.0f}" if share >= 20 else f"{share:.1f}" if share >= 2 else f"{share:.2f}"


def first_where(entries: Sequence[Mapping[str, Any]], **wanted: object) -> Mapping[str, Any]:
    """The first entry of a result with these values."""
    return next(entry for entry in entries if all(entry[key] == value for key, value in wanted.items()))
