"""Batches cut to where their texts, once put together, take a bounded amount of memory (spec: Appendix A, Parquet).

Texts that are read by their dictionaries take four bytes for a row, however long they are. A million rows of them can
be gigabytes as plain texts, more than an Arrow array can hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int64]
_FEW = 4  # parts: so many are cut evenly, more of them by what the rows really take


def in_parts(batch: pa.RecordBatch, most: int, kept: int | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a batch, in parts whose dictionary-encoded texts take up to ``most`` bytes when decoded.

    With ``kept``, only that many of the rows will be decoded.

    >>> texts = pa.array(["a", "a", "long", "long", "a"]).dictionary_encode()
    >>> [part.num_rows for part in in_parts(pa.record_batch({"s": texts}), 4)]
    [2, 1, 1, 1]
    """
    texts = [batch.column(place) for place, type_ in enumerate(batch.schema.types) if _is_by_dictionary(type_)]
    lengths = [pc.binary_length(column.dictionary) for column in texts]
    widest = sum(pc.max(text_lengths).as_py() or 0 for text_lengths in lengths)
    if widest * (batch.num_rows if kept is None else kept) <= most:
        yield batch
        return
    if widest * batch.num_rows <= _FEW * most:  # assume the longest text in every row, without looking at the rows
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
    """Batches cut where others of these lengths end: which of the others, where in it, and the rows.

    >>> batches = (pa.record_batch({"n": range(rows)}) for rows in (3, 4))
    >>> [(place, at, part.num_rows) for place, at, part in cut_like(batches, [2, 5])]
    [(0, 0, 2), (1, 0, 1), (1, 1, 4)]
    """
    place, at = 0, 0
    for batch in batches:
        begin = 0
        while begin < batch.num_rows and place < len(lengths):
            part = batch.slice(begin, lengths[place] - at)
            yield place, at, part
            begin, at = begin + part.num_rows, at + part.num_rows
            if at == lengths[place]:
                place, at = place + 1, 0


def _is_by_dictionary(type_: pa.DataType) -> bool:
    kinds = pa.types
    if not kinds.is_dictionary(type_):
        return False
    values = type_.value_type
    return bool(
        kinds.is_string(values)
        or kinds.is_binary(values)
        or kinds.is_large_string(values)
        or kinds.is_large_binary(values)
    )


def _sizes(column: pa.DictionaryArray, lengths: pa.Array) -> Ints:
    """The length of the text of each row."""
    known: Ints = np.append(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64), 0)
    indices = column.indices
    if indices.null_count > 0:
        indices = pc.fill_null(indices.cast(pa.int64()), len(known) - 1)
    row_lengths: Ints = known[indices.to_numpy(zero_copy_only=False)]
    return row_lengths
