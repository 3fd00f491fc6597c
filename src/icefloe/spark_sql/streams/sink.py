"""Answers calls that write a batch of a stream.

A batch is committed once, by the id of its query and its number in the summary of its snapshot: a stream that restarts
may run its last batch again, and two drivers may run one batch.
"""

from __future__ import annotations

from typing import Any

from icefloe.errors import InputError
from icefloe.rows.schema_merge import SchemaMode
from icefloe.spark_sql.streams.messages import WriteBatch
from icefloe.spark_sql.streams.options import key_columns
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.spark_sql.writes import branch_of, frame_of, options_of

_UPSERT_KEYS = "upsert-keys"


class StreamSinkCalls:
    """The writes of streams to the tables of a catalog."""

    def __init__(self, loads: TableLoads) -> None:
        self._loads = loads

    def write_batch(self, call: WriteBatch, java_rows: Any) -> None:
        """Commit a batch, unless it is committed: complete mode replaces all rows, and keys replace rows with them."""
        loaded = self._loads.newest_of(call.handle)
        rows, keys = frame_of(java_rows), key_columns(call.options, _UPSERT_KEYS)
        options = options_of(loaded, call.options, rows, overwrites=False, more=(_UPSERT_KEYS,))
        branch, table = branch_of(loaded, options.branch), loaded.table._writing(options.settings)
        if options.merges_schema and (call.mode != "append" or keys is not None):
            raise InputError(
                "option mergeSchema: only streams that append add columns; leave it out, or add them before"
            )
        if call.mode == "overwrite all":
            table.overwrite(rows, overwrite_all=True, branch=branch, query=call.query, batch=call.batch)
        elif keys is not None:
            table.upsert(rows, on=keys, branch=branch, query=call.query, batch=call.batch)
        else:
            mode: SchemaMode = "merge" if options.merges_schema else "strict"
            table.append(rows, schema_mode=mode, branch=branch, query=call.query, batch=call.batch)
