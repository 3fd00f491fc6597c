"""Batches of rows as Java gives them to tasks, made safe for Arrow.

Java leaves out the offsets of texts, lists and maps inside a column that has none of them. The Arrow format allows it,
but ``nbytes`` of such a column reads these offsets: it returns any number, or the process crashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa


def with_offsets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; columns whose lists or maps have no values are copied, which writes their offsets."""
    for batch in batches:
        if any(_lacks_values(column) for column in batch.columns):
            rows = pa.array(np.arange(batch.num_rows))
            columns = [column.take(rows) if _lacks_values(column) else column for column in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        else:
            yield batch


def _lacks_values(array: pa.Array) -> bool:
    """Whether an array has lists or maps without any value, at any depth."""
    match array:
        case pa.StructArray():
            parts = [array.field(place) for place in range(array.type.num_fields)]
            return any(_lacks_values(part) for part in parts)
        case pa.MapArray():
            parts = [array.keys, array.items]
        case pa.ListArray() | pa.LargeListArray():
            parts = [array.values]
        case _:
            return False
    return any(len(part) == 0 or _lacks_values(part) for part in parts)
