"""Upserts on Arrow: finds the rows of a table that have a key of the source.

The keys of the source are indexed once. Of the table only the key columns are read, and only files and row groups whose
statistics do not exclude all keys.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import add_positions, bitmap_of
from icefloe.engines.arrow.change.key_index import Ints, KeyIndex
from icefloe.engines.arrow.read.row_positions import rows_with_positions
from icefloe.engines.engine import UpsertMatches, UpsertSource
from icefloe.engines.work import PlannedFiles
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Expr, Op, Predicate, conjunction
from icefloe.expr.value.implied_filter import filter_literal
from icefloe.model.arrow.conform import arrow_field
from icefloe.model.schema.metadata_columns import POS, ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, FLOAT

MAX_LISTED_KEYS = 100  # a filter lists so many keys; of more it has the least and the greatest


def indexed_source(rows: pa.Table, on: tuple[str, ...]) -> UpsertSource:
    """A source with an index of its keys; InputError if a key repeats. A key with a null matches nothing."""
    index = KeyIndex([rows[name] for name in on], rows.num_rows)
    repeated = index.repeated
    if len(repeated) > 0:
        key = _key_text(rows.select(list(on)).slice(int(repeated[0]), 1))
        raise InputError(
            f"upsert: {len(repeated)} keys come more than once, such as {key}; keep one row of each", keys=on
        )
    filter_ = conjunction(values_filter(name, rows[name]) for name in on)
    return UpsertSource(rows=rows, on=on, filter=filter_, prepared=index)


def values_filter(name: str, values: pa.ChunkedArray) -> Expr:
    """A filter that is true wherever a column equals one of these values: a list of them, or their range if many."""
    if pa.types.is_floating(values.type) or pa.types.is_boolean(values.type):
        return ALWAYS_TRUE  # NaN is in no range
    if values.null_count == len(values):
        return ALWAYS_FALSE
    distinct = pc.unique(values).drop_null() if len(values) <= MAX_LISTED_KEYS else None
    try:
        if distinct is not None:
            return Predicate(Op.IN, name, tuple(filter_literal(value) for value in distinct))
        ends = pc.min_max(values)
        least, greatest = filter_literal(ends["min"]), filter_literal(ends["max"])
    except OverflowError:  # a filter has no dates after the year 9999, a table may
        return ALWAYS_TRUE
    return conjunction([Predicate(Op.GE, name, (least,)), Predicate(Op.LE, name, (greatest,))])


def _key_text(row: pa.Table) -> str:
    try:
        return str(row.to_pylist()[0])
    except OverflowError:
        return "one after the year 9999"


def find_keys(files: PlannedFiles, source: UpsertSource) -> UpsertMatches:
    """The live rows with a key of the source, and the source with the final row ids of these rows."""
    rows, on, index = source.rows, source.on, source.prepared
    keys = files.plan.table_schema.select(on)
    if any(field.type in (FLOAT, DOUBLE) for field in keys.fields):
        raise InputError(f"upsert: floating-point columns cannot be keys: {', '.join(on)}", keys=on)
    schema = Schema(fields=(*keys.fields, POS, ROW_ID))
    positions: dict[str, BitMap64] = {}
    next_row_id = files.final_lineage.next_row_id
    row_ids: Ints = np.full(rows.num_rows, next_row_id, np.int64)
    with closing(rows_with_positions(files, schema, min_rows=index.batch_rows)) as chunks:
        for chunk in chunks:
            columns = [chunk.rows.column(name) for name in on]
            matching, source_rows = index.pairs(index.key_numbers(columns, chunk.rows.num_rows))
            matching_positions = chunk.positions[matching]
            for file, part in chunk.by_file(matching):
                add_positions(positions, file, bitmap_of(matching_positions[part]))
            replaced = chunk.rows.column(ROW_ID.name).take(pa.array(matching)).fill_null(next_row_id).to_numpy()
            np.minimum.at(row_ids, source_rows, replaced)  # a row that replaces several keeps the lowest id
    if (row_ids >= next_row_id).all():
        return UpsertMatches(positions=positions, rows=rows)
    with_ids = rows.append_column(arrow_field(ROW_ID), pa.array(row_ids, mask=row_ids >= next_row_id))
    return UpsertMatches(positions=positions, rows=with_ids, lineage=(ROW_ID,))
