"""Rows matched by key in this process: which rows of the table an upsert replaces.

The keys of the source are indexed once. Of the table only the key columns are read, of files and row groups whose
statistics leave room for one of the keys.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import bitmap_of
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.arrow.change.key_index import Ints, KeyIndex
from icefloe.engines.arrow.read.row_positions import located_rows
from icefloe.engines.engine import Keyed, Matched
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Expr, Op, Predicate, conjunction
from icefloe.expr.value.implied_filter import filter_literal
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_field
from icefloe.model.schema.metadata_columns import POS, ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, FLOAT
from icefloe.scan.tasks import Plan

FEW_KEYS = 100  # so many are listed in a filter; of more only the least and the greatest


def unique_keys(rows: pa.Table, on: tuple[str, ...]) -> KeyIndex:
    """The rows of a source by key, of which none may come twice; those with a null match nothing and may repeat."""
    index = KeyIndex([rows[name] for name in on], rows.num_rows)
    repeated = index.repeated
    if len(repeated) > 0:
        key = _shown(rows.select(list(on)).slice(int(repeated[0]), 1))
        raise InputError(
            f"upsert: {len(repeated)} keys come more than once, such as {key}; keep one row of each", keys=on
        )
    return index


def key_range(rows: pa.Table, on: tuple[str, ...]) -> Expr:
    """A filter that every matching row satisfies: each key is one of the source's, or between its ends if many."""
    return conjunction(values_range(name, rows[name]) for name in on)


def values_range(name: str, values: pa.ChunkedArray) -> Expr:
    """A filter that a column satisfies wherever it equals one of these values."""
    if pa.types.is_floating(values.type) or pa.types.is_boolean(values.type):
        return ALWAYS_TRUE  # a NaN has no place between the others
    if values.null_count == len(values):
        return ALWAYS_FALSE
    distinct = pc.unique(values).drop_null() if len(values) <= FEW_KEYS else None
    try:
        if distinct is not None:
            return Predicate(Op.IN, name, tuple(filter_literal(value) for value in distinct))
        ends = pc.min_max(values)
        least, greatest = filter_literal(ends["min"]), filter_literal(ends["max"])
    except OverflowError:  # a filter has no dates after the year 9999, a table may
        return ALWAYS_TRUE
    return conjunction([Predicate(Op.GE, name, (least,)), Predicate(Op.LE, name, (greatest,))])


def _shown(row: pa.Table) -> str:
    """A key for a message."""
    try:
        return str(row.to_pylist()[0])
    except OverflowError:
        return "one after the year 9999"


def find_keys(
    io: FileIO,
    plan: Plan,
    drops: DeletedRows,
    source: Keyed,
    *,
    settled: int | None = None,
) -> Matched:
    """Positions of live rows whose key is one of the source's, by file; and the source with the ids of those rows."""
    rows, on, index = source.rows, source.on, source.index
    schema = plan.table_schema.select(on)
    if any(field.type in (FLOAT, DOUBLE) for field in schema.fields):
        raise InputError(f"upsert: floating-point columns cannot be keys: {', '.join(on)}", keys=on)
    read = Schema(fields=(*schema.fields, POS, ROW_ID))
    positions: dict[str, BitMap64] = {}
    last = 0 if settled is None else settled
    ids: Ints = np.full(rows.num_rows, last, np.int64)
    with closing(located_rows(io, plan, drops, read, at_least=index.batch_rows)) as chunks:
        for chunk in chunks:
            columns = [chunk.rows.column(name) for name in on]
            places, sources = index.pairs(index.key_numbers(columns, chunk.rows.num_rows))
            at = chunk.positions[places]
            for file, part in chunk.by_file(places):
                known = positions.get(file)
                positions[file] = bitmap_of(at[part]) if known is None else known | bitmap_of(at[part])
            kept = chunk.rows.column(ROW_ID.name).take(pa.array(places)).fill_null(last).to_numpy()
            np.minimum.at(ids, sources, kept)  # of several rows that one replaces, the id of the oldest stays
    if (ids >= last).all():
        return Matched(positions=positions, rows=rows)
    column = pa.array(ids, mask=ids >= last)
    return Matched(positions=positions, rows=rows.append_column(arrow_field(ROW_ID), column), lineage=(ROW_ID,))
