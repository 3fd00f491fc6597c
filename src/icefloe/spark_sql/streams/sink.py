"""Answers calls that write a batch of a stream.

A batch is committed once, by the id of its query and its number in the summary of its snapshot: a stream that restarts
may run its last batch again, and two drivers may run one batch.
"""

from __future__ import annotations

from typing import Any

from icefloe.spark_sql.streams.messages import WriteBatch
from icefloe.spark_sql.streams.options import key_columns
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.spark_sql.writes import branch_of, frame_of

_UPSERT_KEYS = "upsert-keys"


class StreamSinkCalls:
    """The writes of streams to the tables of a catalog."""

    def __init__(self, loads: TableLoads) -> None:
        self._loads = loads

    def write_batch(self, call: WriteBatch, java_rows: Any) -> None:
        """Commit a batch, unless it is committed: complete mode replaces all rows, and keys replace rows with them."""
        loaded = self._loads.newest_of(call.handle)
        rows, branch = frame_of(java_rows), branch_of(loaded, call.options)
        keys = key_columns(call.options, _UPSERT_KEYS)
        if call.mode == "overwrite all":
            loaded.table.overwrite(rows, overwrite_all=True, branch=branch, query=call.query, batch=call.batch)
        elif keys is not None:
            loaded.table.upsert(rows, on=keys, branch=branch, query=call.query, batch=call.batch)
        else:
            loaded.table.append(rows, branch=branch, query=call.query, batch=call.batch)
