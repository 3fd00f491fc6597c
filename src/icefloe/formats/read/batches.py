"""Relabels, filters and cuts Arrow batches (spec: Appendix A, Parquet).

A dictionary-encoded text takes four bytes a row, however long it is. A million such rows can be gigabytes when decoded,
more than an Arrow array can hold, so batches are cut before they are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int64]
_FEW_PARTS = 4  # up to this many parts are cut evenly, more by the sizes of their rows
_TEXTS = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
_MOST_ROWS = 15 / 16  # if at least this share of the rows is kept, columns are filtered one by one


class _Relabelled:
    """A batch that Arrow's C interface exports with another schema."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch = batch
        self._schema = schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        _, layout = self._batch.__arrow_c_array__()
        return self._schema.__arrow_c_schema__(), layout


def relabel(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a batch under a schema whose types have the same layout, at any depth, without copying.

    Names, ids, flags and extension types may differ. Arrow's casts cannot rename nested fields: they match by name.

    >>> relabel(pa.record_batch({"a": [1]}), pa.schema([pa.field("b", pa.int64(), nullable=False)])).to_pylist()
    [{'b': 1}]
    """
    return pa.record_batch(_Relabelled(batch, schema))


def without_columns(rows: int) -> pa.RecordBatch:
    """A batch without columns that has a number of rows."""
    return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])).take(pa.array(np.zeros(rows, np.int64))))


def repeated(value: pa.Scalar, rows: int) -> pa.Array:
    """The same value for every row; Arrow itself cannot repeat nested values."""
    return pa.array([value.as_py()], value.type).take(pa.array(np.zeros(rows, np.int64)))


def filtered(batch: pa.RecordBatch, keep: pa.BooleanArray) -> pa.RecordBatch:
    """The rows that a mask keeps.

    Arrow copies a batch row by row, but a column in runs of rows, which takes half of the time if most rows are kept.

    >>> filtered(pa.record_batch({"n": [1, 2, 3]}), pa.array([True, False, True])).to_pydict()
    {'n': [1, 3]}
    """
    if batch.num_columns == 0 or keep.true_count < _MOST_ROWS * len(keep):
        return batch.filter(keep)
    return pa.RecordBatch.from_arrays([column.filter(keep) for column in batch.columns], schema=batch.schema)


def in_parts(batch: pa.RecordBatch, most: int, kept: int | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a batch, in parts whose dictionary-encoded texts take up to ``most`` bytes when decoded.

    With ``kept``, only that many of the rows will be decoded.

    >>> texts = pa.array(["a", "a", "long", "long", "a"]).dictionary_encode()
    >>> [part.num_rows for part in in_parts(pa.record_batch({"s": texts}), 4)]
    [2, 1, 1, 1]
    """
    texts = [batch.column(index) for index, type_ in enumerate(batch.schema.types) if _is_dictionary_of_texts(type_)]
    lengths = [pc.binary_length(column.dictionary) for column in texts]
    widest = sum(pc.max(text_lengths).as_py() or 0 for text_lengths in lengths)
    if widest * (batch.num_rows if kept is None else kept) <= most:
        yield batch
        return
    if widest * batch.num_rows <= _FEW_PARTS * most:  # assume that every row has the longest text
        step = max(1, most // widest)
        yield from (batch.slice(start, step) for start in range(0, batch.num_rows, step))
        return
    ends = np.cumsum(sum(_sizes(column, text_lengths) for column, text_lengths in zip(texts, lengths, strict=True)))
    start, before = 0, 0
    while start < batch.num_rows:
        end = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield batch.slice(start, end - start)
        start, before = end, int(ends[end - 1])


def cut_like(batches: Iterator[pa.RecordBatch], lengths: list[int]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Batches cut where others of these lengths end: the index of the other, the row in it, and the rows.

    >>> batches = (pa.record_batch({"n": range(rows)}) for rows in (3, 4))
    >>> [(index, at, part.num_rows) for index, at, part in cut_like(batches, [2, 5])]
    [(0, 0, 2), (1, 0, 1), (1, 1, 4)]
    """
    index, at = 0, 0
    for batch in batches:
        begin = 0
        while begin < batch.num_rows and index < len(lengths):
            part = batch.slice(begin, lengths[index] - at)
            yield index, at, part
            begin, at = begin + part.num_rows, at + part.num_rows
            if at == lengths[index]:
                index, at = index + 1, 0


def _is_dictionary_of_texts(type_: pa.DataType) -> bool:
    return pa.types.is_dictionary(type_) and any(is_text(type_.value_type) for is_text in _TEXTS)


def _sizes(column: pa.DictionaryArray, lengths: pa.Array) -> Ints:
    """The length of the text of each row."""
    known: Ints = np.append(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64), 0)
    indices = column.indices
    if indices.null_count > 0:
        indices = pc.fill_null(indices.cast(pa.int64()), len(known) - 1)
    row_lengths: Ints = known[indices.to_numpy(zero_copy_only=False)]
    return row_lengths
