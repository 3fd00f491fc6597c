"""Numbers for rows: equal rows have equal numbers, also rows with lists, maps and structs.

Null equals null, NaN equals NaN, and 0.0 differs from -0.0, as in equality deletes. The entries of a map are compared
in their order. Each column becomes a column of numbers, and the numbers of a row become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.equality_index import comparable

Numbers: TypeAlias = npt.NDArray[np.int32]

_NUMBER_BYTES = 4


def row_numbers(rows: pa.Table) -> Numbers:
    """A number for each row.

    >>> row_numbers(pa.table({"n": [1, 2, 1], "l": [[1], None, [1]]})).tolist()
    [0, 1, 0]
    """
    return _united([_of_values(column.combine_chunks()) for column in rows.columns], rows.num_rows)


def _of_values(column: pa.Array) -> Numbers:
    """A number for each value of a column; that of null is -1."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    type_, kinds = column.type, pa.types
    if kinds.is_struct(type_):
        return _of_structs(column)
    if kinds.is_map(type_):
        column = column.take(pa.array(np.arange(len(column))))  # its entries are then all entries of its buffers
        pairs = _united([_of_values(column.keys), _of_values(column.items)], len(column.keys))
        return _of_lists(np.diff(np.asarray(column.offsets)), pairs, column.is_valid())
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
        return _of_lists(lengths, _of_values(column.flatten()), column.is_valid())
    encoded = comparable(column).dictionary_encode()
    return _filled(encoded.indices)


def _of_structs(column: pa.StructArray) -> Numbers:
    parts = [_of_values(values) for values in column.flatten()]
    numbers = _united([_mask(column.is_valid()).astype(np.int32), *parts], len(column))
    return np.where(_mask(column.is_valid()), numbers, -1).astype(np.int32)


def _of_lists(lengths: npt.NDArray[np.integer[Any]], values: Numbers, is_valid: pa.Array) -> Numbers:
    """The numbers of lists, from their lengths and the numbers of all their elements: each list is a text of bytes."""
    ends = np.cumsum(lengths, dtype=np.int64) * _NUMBER_BYTES
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    content = np.ascontiguousarray(values)
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )
    numbers = np.asarray(texts.dictionary_encode().indices, np.int32)
    return np.where(_mask(is_valid), numbers, -1).astype(np.int32)


def _united(columns: Sequence[Numbers], rows: int) -> Numbers:
    """One number for each row of several columns of numbers."""
    if len(columns) == 0 or rows == 0:
        return np.zeros(rows, np.int32)
    content = np.ascontiguousarray(np.stack(columns, axis=1))
    width = _NUMBER_BYTES * len(columns)
    texts = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(content)])
    return np.asarray(texts.dictionary_encode().indices, np.int32)


def _filled(indices: pa.Array) -> Numbers:
    return np.asarray(indices.fill_null(-1), np.int32)


def _mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(values, np.bool_)
