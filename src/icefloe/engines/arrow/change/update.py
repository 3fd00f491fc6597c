"""Rows updated in this process: new values for some columns of rows that were found (spec: Reserved Field IDs).

Values are computed for the rows that are updated and for no others. Such a row keeps its id; the sequence number of its
last change is left to the commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.arrow.read.read import FileTask
from icefloe.engines.arrow.write.moved_rows import choose_files, moved, moving_rows, write_moved
from icefloe.engines.engine import Horizon, Positions, lineage_of
from icefloe.expr.value.expressions import Value, columns_of, evaluate_value
from icefloe.expr.value.struct_fields import path_of
from icefloe.formats.read.row_mask import FileDrops, Mask
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_type, conform
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import LAST_UPDATED, POS
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import Plan


def write_updated(
    io: FileIO,
    plan: Plan,
    drops: DeletedRows,
    found: Positions,
    values: Mapping[str, Value],
    metadata: TableMetadata,
    *,
    others: bool,
    horizon: Horizon | None = None,
) -> pa.Table:
    """Write the rows at the positions that were found again, with new values; the new entries.

    With ``others`` the other live rows of those files are written too, as they are.
    """
    touched = choose_files(plan, found)
    lineage = lineage_of(touched)
    schema = Schema(fields=(*metadata.schema.fields, *lineage))

    def rows(part: FileTask) -> Iterator[pa.RecordBatch]:
        wanted = found[part.location]
        if others:
            lost = drops.of(part.location)
            for batch in moving_rows(io, part, lost, schema, row_positions=True, horizon=horizon):
                chosen = _are_in(np.asarray(batch.column(batch.num_columns - 1)), wanted)
                yield _updated(batch.drop_columns([POS.name]), chosen, values, schema)
            return
        lost = FileDrops(positions=_all_but(wanted, part.row_count))
        for batch in moving_rows(io, part, lost, schema, horizon=horizon):
            yield set_columns(batch, values, schema)

    return write_moved(io, moved(touched, rows), metadata, lineage)


def _all_but(positions: BitMap64, rows: int) -> BitMap64:
    every = BitMap64()
    every.add_range(0, rows)
    return every - positions


def _are_in(positions: npt.NDArray[np.int64], wanted: BitMap64) -> Mask:
    """Which of some positions, in order, are wanted ones."""
    if len(positions) == 0:
        return np.zeros(0, np.bool_)
    around = BitMap64()
    around.add_range(int(positions[0]), int(positions[-1]) + 1)
    near = np.asarray((wanted & around).to_array()).astype(np.int64)
    return np.isin(positions, near, assume_unique=True)


def _updated(rows: pa.RecordBatch, chosen: Mask, values: Mapping[str, Value], schema: Schema) -> pa.RecordBatch:
    """The batch with new values in the rows that are chosen."""
    if not chosen.any():
        return rows
    new = set_columns(rows.filter(pa.array(chosen)), values, schema)
    if chosen.all():
        return new
    # Each column of new values behind that of the old ones; a row that is updated takes its place there.
    places = np.arange(rows.num_rows)
    places[chosen] = rows.num_rows + np.arange(new.num_rows)
    changed = {*values, LAST_UPDATED.name}
    for index, field in enumerate(rows.schema):
        if field.name in changed:
            both = pa.concat_arrays([rows.column(index), new.column(index)])
            rows = rows.set_column(index, field, both.take(pa.array(places)))
    return rows


def set_columns(rows: pa.RecordBatch, values: Mapping[str, Value], schema: Schema) -> pa.RecordBatch:
    """Rows with new values, which are computed from the old ones and made to fit their columns.

    The columns of the rows are those of ``schema``; among them may be those of row lineage.
    """
    names = {name for value in values.values() for name in columns_of(value)}
    paths = {name: path_of(name, schema.fields) for name in names}
    read = {name: column_of(rows, path) for name, path in paths.items() if path is not None}
    for name, value in values.items():
        field = schema.field(name)
        computed = evaluate_value(value, read, rows.num_rows, wanted=arrow_type(field.type))
        fitted = conform(pa.table({field.name: computed}), Schema(fields=(field,))).column(0)
        index = rows.schema.get_field_index(field.name)
        old = rows.schema.field(index)
        rows = rows.set_column(index, old, _joined(fitted, old.type))
    index = rows.schema.get_field_index(LAST_UPDATED.name)
    if index >= 0:
        rows = rows.set_column(index, rows.schema.field(index), pa.nulls(rows.num_rows, pa.int64()))
    return rows


def _joined(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([*column.chunks, pa.nulls(0, type_)])


def column_of(rows: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    """A column by its place, which may lead into structs; null wherever a struct around it is."""
    return rows.column(path[0]) if len(path) == 1 else pc.struct_field(rows.column(path[0]), list(path[1:]))
