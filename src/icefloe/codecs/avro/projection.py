"""What to read of the records of an Avro file: a shape is a record of the wanted fields by their names in the file.

A wanted value is an Arrow type, a record inside is a shape, and a map that is stored as an array of pairs is
``ByKeys``: it becomes one column for each requested key (spec: Appendix A, Avro).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class ByKeys:
    """An array of (key, value) pairs of which some keys are projected; the last of equal keys in a record wins."""

    value: pa.DataType
    keys: Collection[int]


Shape: TypeAlias = Mapping[str, Any]  # of pa.DataType, ByKeys or Shape
ColumnTree: TypeAlias = dict[str, Any]  # of pa.Array, {key: pa.Array} or ColumnTree, under the names of the shape


def arrow_struct(shape: Shape) -> pa.DataType:
    """The shape as one Arrow type, in which pairs are lists of structs."""
    return pa.struct([pa.field(name, _arrow(wanted)) for name, wanted in shape.items()])


def _arrow(wanted: Any) -> pa.DataType:
    match wanted:
        case ByKeys(value=value):
            return pa.list_(pa.struct([pa.field("key", pa.int32()), pa.field("value", value)]))
        case Mapping():
            return arrow_struct(wanted)
        case _:
            return wanted


def taken_apart(rows: pa.StructArray, shape: Shape) -> ColumnTree:
    """The projected columns of rows that have the Arrow type of the shape."""
    columns: ColumnTree = {}
    for (name, wanted), column in zip(shape.items(), rows.flatten(), strict=True):
        match wanted:
            case ByKeys(keys=keys):
                columns[name] = {key: values for key, values in split_pairs(column).items() if key in keys}
            case Mapping():
                columns[name] = taken_apart(column, wanted)
            case _:
                columns[name] = column
    return columns


def joined(parts: Sequence[tuple[int, ColumnTree]], shape: Shape) -> ColumnTree:
    """Concatenates parts; each comes with its number of rows."""
    if len(parts) == 1:
        return parts[0][1]
    merged: ColumnTree = {}
    for name, wanted in shape.items():
        mine = [(size, part[name]) for size, part in parts]
        match wanted:
            case ByKeys(value=value):
                keys = sorted({key for _, columns in mine for key in columns})
                merged[name] = {key: _concat([(n, c.get(key)) for n, c in mine], value) for key in keys}
            case Mapping():
                merged[name] = joined(mine, wanted)
            case _:
                merged[name] = _concat(mine, wanted)
    return merged


def _concat(parts: Sequence[tuple[int, pa.Array | None]], type_: pa.DataType) -> pa.Array:
    arrays = [pa.nulls(size, type_) if array is None else array for size, array in parts]
    return pa.concat_arrays(arrays) if len(arrays) > 0 else pa.array([], type_)


def split_pairs(pairs: pa.Array) -> dict[int, pa.Array]:
    """Splits a column of lists of (key, value) into one column per key; the last of equal keys in a record wins."""
    rows = np.asarray(pc.list_parent_indices(pairs))
    flat = pairs.flatten()
    keys, values = np.asarray(flat.field(0)), flat.field(1)
    order = np.argsort(keys, kind="stable")
    distinct_keys, starts = np.unique(keys[order], return_index=True)
    ends = np.append(starts[1:], len(keys))[: len(distinct_keys)]
    columns: dict[int, pa.Array] = {}
    for key, start, end in zip(distinct_keys.tolist(), starts, ends, strict=True):
        chosen = order[start:end]
        if len(chosen) == len(pairs) and np.array_equal(rows[chosen], np.arange(len(pairs))):
            columns[key] = values.take(pa.array(chosen))
            continue
        place = np.full(len(pairs), -1, dtype=np.int64)
        place[rows[chosen]] = chosen
        columns[key] = values.take(pa.array(place, mask=place < 0))
    return columns
