"""Rows matched by key in this process: which rows of the table an upsert replaces."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.engines.arrow.read import FileTask, file_tasks, threads_for
from icefloe.errors import InputError
from icefloe.expr.nodes import Expr, Op, Predicate, conjunction
from icefloe.formats.parquet_reader import POSITION, read_file
from icefloe.io.file_io import FileIO
from icefloe.model.types import DOUBLE, FLOAT
from icefloe.scan.tasks import Plan


def check_unique(rows: pa.Table, on: tuple[str, ...]) -> None:
    """Refuse a source in which two rows have the same key; keys with a null match nothing and may repeat."""
    keys = rows.select(list(on)).drop_null()
    counts = keys.group_by(list(on)).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts["count_all"], 1)).drop_columns(["count_all"])
    if twice.num_rows > 0:
        raise InputError(
            f"upsert: {twice.num_rows} keys come more than once, such as {twice.slice(0, 1).to_pylist()[0]};"
            " keep one row of each",
            keys=on,
        )


def key_range(rows: pa.Table, on: tuple[str, ...]) -> Expr:
    """A filter that every matching row satisfies: each key between the least and the greatest of the source."""
    parts = []
    for name in on:
        if pa.types.is_floating(rows.schema.field(name).type):
            continue  # a NaN has no place between the others
        ends = pc.min_max(rows[name])
        if ends["min"].is_valid:
            parts.append(Predicate(Op.GE, name, (ends["min"].as_py(),)))
            parts.append(Predicate(Op.LE, name, (ends["max"].as_py(),)))
    return conjunction(parts)


def find_keys(
    io: FileIO, plan: Plan, vectors: Mapping[str, BitMap64], rows: pa.Table, on: tuple[str, ...]
) -> dict[str, BitMap64]:
    """Positions of live rows whose key is one of the source's, by file."""
    schema = plan.table_schema.select(on)
    if any(field.type in (FLOAT, DOUBLE) for field in schema.fields):
        raise InputError(f"upsert: floating-point columns cannot be keys: {', '.join(on)}", keys=on)
    keys = rows.select(list(on)).drop_null()

    def find(task: FileTask) -> BitMap64:
        found = BitMap64()
        deleted, constants = vectors.get(task.location), task.constants
        batches = read_file(io, task.location, schema=schema, deleted=deleted, constants=constants, row_positions=True)
        for batch in batches:
            matched = pa.Table.from_batches([batch]).join(keys, keys=list(on), join_type="left semi")
            found |= BitMap64(np.asarray(matched[POSITION.name]).astype(np.uint64))
        return found

    tasks = list(file_tasks(plan))
    with ThreadPoolExecutor(max(1, threads_for(plan)), thread_name_prefix="icefloe-match") as pool:
        positions = list(pool.map(find, tasks))
    return {task.location: found for task, found in zip(tasks, positions, strict=True) if len(found) > 0}
