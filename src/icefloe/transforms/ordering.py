"""Sorts rows by a sort order (spec: Sorting).

Every key is converted to Arrow columns that Arrow can sort directly. Floating-point numbers become integers, whose
order is total. Nulls get their own column, because each sort key has its own null order. Texts and bytes are compared
as unsigned bytes, as Arrow does.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.schema.schema import Schema
from icefloe.transforms.source_columns import column_at, column_path
from icefloe.transforms.transform import transform_of

_Key = tuple[pa.Array, str]


def sort_indices(table: pa.Table, order: SortOrder, schema: Schema) -> pa.Array:
    """The row numbers of a table in a sort order; rows that are equal in every key stay in their order.

    Columns are found by their names in ``schema``, those inside structs by their path.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> from icefloe.model.text.partition_text import sort_order
    >>> schema = parse_ddl("x double")
    >>> rows = pa.table({"x": [float("nan"), 0.0, None, -0.0, float("-inf")]})
    >>> sort_indices(rows, sort_order(["x"], schema), schema).to_pylist()
    [2, 4, 3, 1, 0]
    """
    keys = [key for field in order.fields for key in _keys(table, field, schema)]
    if len(keys) == 0:
        return pa.array(np.arange(table.num_rows, dtype=np.uint64))
    names = [str(number) for number in range(len(keys))]
    columns = pa.table([values for values, _ in keys], names=names)
    directions = [(name, direction) for name, (_, direction) in zip(names, keys, strict=True)]
    return pc.sort_indices(columns, sort_keys=directions)


def _keys(table: pa.Table, field: SortField, schema: Schema) -> Iterator[_Key]:
    """The columns to sort by for one key, with their directions: where nulls go, then the values."""
    transform = transform_of(field)
    if transform.is_void:
        return
    path = column_path(schema, field.source_id)
    if len(path) == 0:
        raise InputError(f"cannot sort by column {field.source_id}: there is none of this id outside lists and maps")
    values = transform.apply(column_at(table, path), schema.by_id[field.source_id].type)
    if values.null_count == len(values):
        return
    if values.null_count > 0:
        yield values.is_null(), "descending" if field.null_order == "nulls-first" else "ascending"
    yield ordered(values), "ascending" if field.direction == "asc" else "descending"


def ordered(values: pa.Array) -> pa.Array:
    """The values in a form that Arrow sorts correctly: floating-point numbers become integers, others are unchanged.

    ``-NaN < -Infinity < -value < -0 < 0 < value < Infinity < NaN``, and all NaN of one sign are equal.

    >>> ordered(pa.array([-0.0, 0.0])).to_pylist()
    [-1, 0]
    """
    if pa.types.is_float64(values.type):
        return _ordered_floats(values, np.int64)
    if pa.types.is_float32(values.type):
        return _ordered_floats(values, np.int32)
    return values


def _ordered_floats(values: pa.Array, integers: type[np.int32] | type[np.int64]) -> pa.Array:
    """Bits compare like integers for positive numbers and the other way round for negative ones."""
    floats = values.fill_null(0).to_numpy(zero_copy_only=False)
    sign = np.signbit(floats)
    bits: npt.NDArray[np.int32] | npt.NDArray[np.int64] = floats.view(integers)
    highest = np.iinfo(integers).max
    flipped = np.where(sign, bits ^ highest, bits)
    is_nan = np.isnan(floats)
    flipped[is_nan] = np.where(sign[is_nan], np.iinfo(integers).min, highest)
    mask = None if values.null_count == 0 else values.is_null().to_numpy(zero_copy_only=False)
    return pa.array(flipped, mask=mask)
