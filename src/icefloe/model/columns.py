"""Arrow columns as one array, and as numbers of their distinct values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = pa.Array | pa.ChunkedArray


def one_array(column: Column) -> pa.Array:
    """A column as one array, which is not copied if it is one already."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def distinct_codes(column: Column) -> npt.NDArray[np.int64]:
    """A number for each value, from 0 in order of appearance, equal for equal values; null is a value.

    >>> distinct_codes(pa.array(["b", None, "b"])).tolist()
    [0, 1, 0]
    """
    encoded = pc.dictionary_encode(one_array(column), null_encoding="encode")
    codes: npt.NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def joint_codes(columns: Iterable[Column], count: int) -> npt.NDArray[np.int64]:
    """A number for each of ``count`` rows, equal for rows that are equal in all columns; null is a value."""
    codes = np.zeros(count, np.int64)
    for column in columns:
        more = distinct_codes(column)
        codes = distinct_codes(pa.array(codes * (int(more.max(initial=0)) + 1) + more))
    return codes
