"""Answers calls of streams that read a table: the end of the next batch, and the plan of its rows."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.work import FinalLineage, PlannedFiles, TableFiles
from icefloe.errors import InputError, UnsupportedError
from icefloe.model.metadata.snapshots import MAIN
from icefloe.scan.tasks import Plan
from icefloe.spark_sql.options.changelog import changes_of_request
from icefloe.spark_sql.options.known_options import branch_by_option
from icefloe.spark_sql.options.read_options import CHANGES
from icefloe.spark_sql.scans import session_of
from icefloe.spark_sql.streams.changes import ChangeOffset, StreamChanges
from icefloe.spark_sql.streams.files import StreamFiles, StreamOffset, new_plans
from icefloe.spark_sql.streams.history import StreamHistory
from icefloe.spark_sql.streams.messages import LatestOffset, NewestSnapshot, PlanBatch, StreamCall
from icefloe.spark_sql.streams.options import stream_options
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.table.held_table import pointer_of
from icefloe.table.table_at import TableAt

_Offset = TypeVar("_Offset", bound=msgspec.Struct)


class StreamSourceCalls:
    """The streams that read tables of a catalog, and their changes."""

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
    planned = PlannedFiles(
        table=TableFiles(io=base.store.io, metadata=base.metadata),
        plan=plan,
        deleted_rows=plan.deleted_rows(base.store.io),
        final_lineage=FinalLineage.of(base.metadata),
    )
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
