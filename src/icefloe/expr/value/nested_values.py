"""Builds structs, lists and maps from columns of values, one for every row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def lists_of(columns: Sequence[pa.Array], rows: int, element: pa.DataType) -> pa.ListArray:
    """One list per row, with the values of several columns of one type.

    >>> lists_of([pa.array([1, 2]), pa.array([3, None])], 2, pa.int64()).to_pylist()
    [[1, 3], [2, None]]
    """
    count = len(columns)
    values = pa.concat_arrays([*columns, pa.nulls(0, element)])
    row_by_row = np.arange(count * rows).reshape(count, rows).T.ravel()
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * count)
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(row_by_row)))


def maps_of(keys: pa.ListArray, values: pa.ListArray) -> pa.MapArray:
    """Maps from lists of keys and lists of values of the same lengths."""
    return pa.MapArray.from_arrays(keys.offsets, keys.values, values.values)


def check_map_keys(columns: Sequence[pa.Array]) -> None:
    """ValueError if a key of a map is null, or two keys of one row are equal."""
    if any(column.null_count > 0 for column in columns):
        raise ValueError("a key of a map is null")
    for one, other in combinations(columns, 2):
        if pc.any(pc.equal(one, other)).as_py():
            raise ValueError("two keys of a map are equal")


def with_field(struct: pa.StructArray, path: tuple[str, ...], value: pa.Array) -> pa.StructArray:
    """The structs with new values of one field, which may be inside a nested struct."""
    index = struct.type.get_field_index(path[0])
    columns = struct.flatten()
    columns[index] = value if len(path) == 1 else with_field(columns[index], path[1:], value)
    # All fields become optional here; whether a required one is null is checked when the whole column is known.
    names = [struct.type.field(number).name for number in range(struct.type.num_fields)]
    return pa.StructArray.from_arrays(
        columns, fields=[pa.field(n, c.type) for n, c in zip(names, columns, strict=True)]
    )


def field_type(struct: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    """The type of a field inside a struct, by its path."""
    for name in path:
        struct = struct.field(name).type
    return struct
