"""Rows matched by key in this process: which rows of the table an upsert replaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.engines.arrow.read import FileTask, file_tasks, threads_for
from icefloe.engines.engine import Matched
from icefloe.errors import InputError
from icefloe.expr.nodes import Expr, Op, Predicate, conjunction
from icefloe.formats.parquet_reader import read_file
from icefloe.io.file_io import FileIO
from icefloe.model.arrow import arrow_field
from icefloe.model.metadata_columns import POS, ROW_ID
from icefloe.model.schema import Schema
from icefloe.model.types import DOUBLE, FLOAT
from icefloe.scan.tasks import Plan

_SOURCE = "_source_row"
_NOTHING = np.zeros(0, np.int64)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Rows of one file that the source replaces: where they lie, by which row of the source, and their ids."""

    positions: BitMap64
    sources: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]  # none for rows without an id that may be kept


def find_keys(
    io: FileIO,
    plan: Plan,
    vectors: Mapping[str, BitMap64],
    rows: pa.Table,
    on: tuple[str, ...],
    *,
    settled: int | None = None,
) -> Matched:
    """Positions of live rows whose key is one of the source's, by file; and the source with the ids of those rows."""
    schema = plan.table_schema.select(on)
    if any(field.type in (FLOAT, DOUBLE) for field in schema.fields):
        raise InputError(f"upsert: floating-point columns cannot be keys: {', '.join(on)}", keys=on)
    keys = rows.select(list(on)).append_column(_SOURCE, pa.array(np.arange(rows.num_rows))).drop_null()
    read = Schema(fields=(*schema.fields, POS, ROW_ID))

    def find(task: FileTask) -> _Found:
        batches = read_file(
            io,
            task.location,
            schema=read,
            deleted=vectors.get(task.location),
            constants=task.constants,
            lineage=task.lineage,
        )
        return _found(pa.Table.from_batches([batch]).join(keys, list(on), join_type="inner") for batch in batches)

    tasks = list(file_tasks(plan))
    with ThreadPoolExecutor(max(1, threads_for(plan)), thread_name_prefix="icefloe-match") as pool:
        found = list(pool.map(find, tasks))
    positions = {task.location: each.positions for task, each in zip(tasks, found, strict=True)}
    positions = {location: at for location, at in positions.items() if len(at) > 0}
    ids = _ids(found, rows.num_rows, 0 if settled is None else settled)
    if ids.null_count == len(ids):
        return Matched(positions=positions, rows=rows)
    return Matched(positions=positions, rows=rows.append_column(arrow_field(ROW_ID), ids), lineage=(ROW_ID,))


def _found(matches: Iterable[pa.Table]) -> _Found:
    positions, sources, ids = BitMap64(), [_NOTHING], [_NOTHING]
    for matched in matches:
        positions |= BitMap64(np.asarray(matched[POS.name]).astype(np.uint64))
        known = matched.filter(matched[ROW_ID.name].is_valid())
        sources.append(np.asarray(known[_SOURCE]))
        ids.append(np.asarray(known[ROW_ID.name]))
    return _Found(positions=positions, sources=np.concatenate(sources), ids=np.concatenate(ids))


def _ids(found: list[_Found], rows: int, settled: int) -> pa.Array:
    """The id that each row of the source goes on with: of several rows that it replaces, that of the oldest."""
    ids = np.full(rows, settled, np.int64)
    for each in found:
        np.minimum.at(ids, each.sources, each.ids)
    return pa.array(ids, mask=ids >= settled)
