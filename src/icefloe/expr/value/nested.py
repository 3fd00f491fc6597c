"""Structs, lists and maps made of values, one of each for every row."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def lists_of(columns: Sequence[pa.Array], rows: int, element: pa.DataType) -> pa.ListArray:
    """Lists of the values that columns of one type have in a row.

    >>> lists_of([pa.array([1, 2]), pa.array([3, None])], 2, pa.int64()).to_pylist()
    [[1, 3], [2, None]]
    """
    count = len(columns)
    together = pa.concat_arrays([*columns, pa.nulls(0, element)])
    places = np.arange(count * rows).reshape(count, rows).T.ravel()
    ends = pa.array(np.arange(rows + 1, dtype=np.int32) * count)
    return pa.ListArray.from_arrays(ends, together.take(pa.array(places)))


def maps_of(keys: pa.ListArray, values: pa.ListArray) -> pa.MapArray:
    """Maps of as many keys as values in each row."""
    return pa.MapArray.from_arrays(keys.offsets, keys.values, values.values)


def check_keys(columns: Sequence[pa.Array]) -> None:
    """Refuse keys of a map that are null, and two that are equal in one row, with a ValueError."""
    if any(column.null_count > 0 for column in columns):
        raise ValueError("a key of a map is null")
    for one, other in combinations(columns, 2):
        if pc.any(pc.equal(one, other)).as_py():
            raise ValueError("two keys of a map are equal")


def with_field(struct: pa.StructArray, path: tuple[str, ...], value: pa.Array) -> pa.StructArray:
    """The structs with other values of one field, which may be inside of a struct in them."""
    place = struct.type.get_field_index(path[0])
    columns = struct.flatten()
    columns[place] = value if len(path) == 1 else with_field(columns[place], path[1:], value)
    # Which fields are required is checked when the whole column is known.
    names = [struct.type.field(at).name for at in range(struct.type.num_fields)]
    return pa.StructArray.from_arrays(
        columns, fields=[pa.field(n, c.type) for n, c in zip(names, columns, strict=True)]
    )


def field_type(struct: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    """The type of a field inside of a struct."""
    for name in path:
        struct = struct.field(name).type
    return struct
