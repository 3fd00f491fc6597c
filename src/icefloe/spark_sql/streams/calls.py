"""Answers calls of streams: the end of the next batch that is read, the plan of its rows, and a batch that is written.

A batch is written once, by the id of its query and its number in the summary of its snapshot: a stream that restarts
may run its last batch again, and two drivers may run one batch.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.work import PlannedFiles
from icefloe.errors import InputError, UnsupportedError
from icefloe.model.metadata.snapshots import MAIN
from icefloe.rows.schema_merge import SchemaMode
from icefloe.scan.tasks import Plan
from icefloe.spark_sql.options.changelog import changes_of_request
from icefloe.spark_sql.options.known_options import CHANGES, branch_by_option
from icefloe.spark_sql.scans import session_of
from icefloe.spark_sql.streams.changes import ChangeOffset, StreamChanges
from icefloe.spark_sql.streams.files import StreamFiles, StreamOffset, new_plans
from icefloe.spark_sql.streams.history import StreamHistory
from icefloe.spark_sql.streams.messages import LatestOffset, NewestSnapshot, PlanBatch, StreamCall, WriteBatch
from icefloe.spark_sql.streams.options import key_columns, stream_options
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.spark_sql.writes import branch_of, frame_of, options_of
from icefloe.table.held_table import pointer_of
from icefloe.table.table_at import TableAt

_UPSERT_KEYS = "upsert-keys"
_Offset = TypeVar("_Offset", bound=msgspec.Struct)


class StreamCalls:
    """The streams that read tables of a catalog or their changes, and those that write them."""

    def __init__(self, loads: TableLoads) -> None:
        self._loads = loads
        self._plans = new_plans()

    def newest_snapshot(self, call: NewestSnapshot) -> str | None:
        """The id of the newest snapshot; none if the table is empty."""
        head = self._stream(call).history.head
        return None if head is None else str(head.snapshot_id)

    def latest_offset(self, call: LatestOffset) -> StreamOffset | ChangeOffset | None:
        """The end of the next batch; none while the table is empty."""
        stream = self._stream(call)
        stream = stream if call.until is None else stream.up_to(int(call.until))
        if isinstance(stream, StreamChanges):
            return stream.latest(offset_of(call.start, ChangeOffset), is_unlimited=call.is_unlimited)
        return stream.latest(offset_of(call.start, StreamOffset), is_unlimited=call.is_unlimited)

    def plan_batch(self, call: PlanBatch, java_session: Any) -> Any:
        """The rows between two offsets as a Dataset, with the columns of the table."""
        spark, stream = session_of(java_session), self._stream(call)
        if isinstance(stream, StreamChanges):
            start, end = offset_of(call.start, ChangeOffset), offset_of(call.end, ChangeOffset)
            return changes_of_request(spark, stream.request(start, end))._jdf
        plan = stream.plan(offset_of(call.start, StreamOffset), offset_of(call.end, StreamOffset))
        return _rows(spark, stream.history, plan)._jdf

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

    def _stream(self, call: StreamCall) -> StreamFiles | StreamChanges:
        loaded = self._loads.newest_of(call.handle)
        of_changes = loaded.handle.metadata_table == CHANGES
        options = stream_options(call.options, of_changes=of_changes)
        branch = branch_by_option(loaded.handle.branch, options.branch, is_selected=loaded.handle.is_selected)
        if branch is None:
            raise UnsupportedError("a stream cannot read a snapshot or a tag; read the table or one of its branches")
        base = pointer_of(loaded.table).held()
        schema = next(known for known in base.metadata.schemas if known.schema_id == loaded.handle.schema_id)
        head = base.metadata.current_snapshot_id if branch == MAIN else base.metadata.ref(branch).snapshot_id
        snapshot = None if head is None else base.metadata.snapshot(head)
        history = StreamHistory(base=base, schema=schema, head=snapshot)
        if of_changes:
            return StreamChanges(history=history, options=options)
        return StreamFiles(history=history, options=options, plans=self._plans)


def _rows(spark: SparkSession, history: StreamHistory, plan: Plan | None) -> DataFrame:
    """The rows of planned files; without a plan, none."""
    base, schema = history.base, history.schema
    if plan is None:
        none: DataFrame = TableAt(base, None, schema).scan().to_spark(spark)
        return none
    planned = PlannedFiles.of(base.store.io, base.metadata, plan)
    return dataframe(spark, planned_source(spark, planned, schema))


def offset_of(text: str, kind: type[_Offset]) -> _Offset:
    """An offset as its checkpoint stores it."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise InputError(
            f"the checkpoint has the offset {text}, which is not one of this stream ({error}); a stream of a table and"
            " a stream of its changes need checkpoints of their own"
        ) from error
