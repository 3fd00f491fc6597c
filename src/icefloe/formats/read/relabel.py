"""Other names, ids, flags or extension types for the same bytes, at any depth, without copying.

Arrow's casts match nested fields by name and look at flags, so they cannot rename. Its C interface hands over the
layout of an array and its labels separately: this module pairs the layout with other labels.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


class _Labelled:
    """A batch that introduces itself with another schema."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch = batch
        self._schema = schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        _, layout = self._batch.__arrow_c_array__()
        return self._schema.__arrow_c_schema__(), layout


def relabel(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a batch under a schema whose types have the same layout.

    >>> relabel(pa.record_batch({"a": [1]}), pa.schema([pa.field("b", pa.int64(), nullable=False)])).to_pylist()
    [{'b': 1}]
    """
    return pa.record_batch(_Labelled(batch, schema))
