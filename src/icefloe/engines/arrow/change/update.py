"""Updates on Arrow: writes rows at given positions with new values (spec: Reserved Field IDs).

Values are computed for the updated rows only. An updated row keeps its id; the commit sets the sequence number of its
last change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.deleted_rows import all_except
from icefloe.engines.arrow.write import rewrite_files, rewrite_schema, rows_to_rewrite
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.expr.value.expressions import Value, columns_of, evaluate_value
from icefloe.expr.value.struct_fields import path_of
from icefloe.formats.read.file_read import FileRead, Mask
from icefloe.model.arrow.conform import arrow_type, conform
from icefloe.model.schema.metadata_columns import LAST_UPDATED, POS
from icefloe.model.schema.schema import Schema


def write_updated(
    files: PlannedFiles, positions: Positions, values: Mapping[str, Value], *, copy_others: bool
) -> pa.Table:
    """Write the rows at these positions to new files, with new values; returns the entries.

    With ``copy_others`` the other live rows of their files are written too, unchanged.
    """
    touched = files.only(positions)
    schema = rewrite_schema(touched)

    def updated(part: FileRead) -> Iterator[pa.RecordBatch]:
        for batch in rows_to_rewrite(touched, part, all_except(positions[part.location], part.row_count)):
            yield set_columns(batch, values, schema)

    def all_rows(part: FileRead) -> Iterator[pa.RecordBatch]:
        with_positions = replace(part, schema=Schema(fields=(*schema.fields, POS)))
        for batch in rows_to_rewrite(touched, with_positions, files.deleted_rows.of(part.location)):
            is_updated = is_in(np.asarray(batch.column(batch.num_columns - 1)), positions[part.location])
            yield _with_updates(batch.drop_columns([POS.name]), is_updated, values, schema)

    return rewrite_files(touched, all_rows if copy_others else updated)


def is_in(positions: npt.NDArray[np.int64], wanted: BitMap64) -> Mask:
    """Which of these ascending positions are wanted."""
    if len(positions) == 0:
        return np.zeros(0, np.bool_)
    covered = BitMap64()
    covered.add_range(int(positions[0]), int(positions[-1]) + 1)
    in_range = np.asarray((wanted & covered).to_array()).astype(np.int64)
    return np.isin(positions, in_range, assume_unique=True)


def _with_updates(
    rows: pa.RecordBatch, is_updated: Mask, values: Mapping[str, Value], schema: Schema
) -> pa.RecordBatch:
    """The batch with new values in some of its rows."""
    if not is_updated.any():
        return rows
    new = set_columns(rows.filter(pa.array(is_updated)), values, schema)
    if is_updated.all():
        return new
    # New values are appended to the old column, and updated rows take their value from there.
    sources = np.arange(rows.num_rows)
    sources[is_updated] = rows.num_rows + np.arange(new.num_rows)
    changed = {*values, LAST_UPDATED.name}
    for index, field in enumerate(rows.schema):
        if field.name in changed:
            both = pa.concat_arrays([rows.column(index), new.column(index)])
            rows = rows.set_column(index, field, both.take(pa.array(sources)))
    return rows


def set_columns(rows: pa.RecordBatch, values: Mapping[str, Value], schema: Schema) -> pa.RecordBatch:
    """Rows with new values, computed from the old ones and conformed to their columns.

    The columns of the rows are those of ``schema``, lineage columns included.
    """
    names = {name for value in values.values() for name in columns_of(value)}
    paths = {name: path_of(name, schema.fields) for name in names}
    columns = {name: column_at(rows, path) for name, path in paths.items() if path is not None}
    for name, value in values.items():
        field = schema.field(name)
        computed = evaluate_value(value, columns, rows.num_rows, wanted=arrow_type(field.type))
        conformed = conform(pa.table({field.name: computed}), Schema(fields=(field,))).column(0)
        index = rows.schema.get_field_index(field.name)
        old = rows.schema.field(index)
        rows = rows.set_column(index, old, _one_array(conformed, old.type))
    index = rows.schema.get_field_index(LAST_UPDATED.name)
    if index >= 0:
        rows = rows.set_column(index, rows.schema.field(index), pa.nulls(rows.num_rows, pa.int64()))
    return rows


def _one_array(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([*column.chunks, pa.nulls(0, type_)])


def column_at(rows: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    """A column, or a field inside structs, by its indices; null where a struct around it is null."""
    return rows.column(path[0]) if len(path) == 1 else pc.struct_field(rows.column(path[0]), list(path[1:]))
