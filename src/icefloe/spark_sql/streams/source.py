"""Answers calls of streams that read a table: the end of the next batch, and the plan of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.work import FinalLineage, PlannedFiles, TableFiles
from icefloe.errors import UnsupportedError
from icefloe.model.metadata.snapshots import MAIN
from icefloe.spark_sql.scans import session_of
from icefloe.spark_sql.streams.files import StreamFiles, StreamOffset, new_plans
from icefloe.spark_sql.streams.messages import LatestOffset, NewestSnapshot, PlanBatch
from icefloe.spark_sql.streams.options import stream_options
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.table.table_at import TableAt


class StreamSourceCalls:
    """The streams that read tables of a catalog."""

    def __init__(self, loads: TableLoads) -> None:
        self._loads = loads
        self._plans = new_plans()

    def newest_snapshot(self, call: NewestSnapshot) -> str | None:
        """The id of the newest snapshot; none if the table is empty."""
        head = self._files(call.handle, call.options).head
        return None if head is None else str(head.snapshot_id)

    def latest_offset(self, call: LatestOffset) -> StreamOffset | None:
        """The end of the next batch; none while the table is empty."""
        files = self._files(call.handle, call.options)
        files = files if call.until is None else files.up_to(int(call.until))
        return files.latest(_offset(call.start), is_unlimited=call.is_unlimited)

    def plan_batch(self, call: PlanBatch, java_session: Any) -> Any:
        """The optimised logical plan of the rows between two offsets, with the columns of the table."""
        spark, files = session_of(java_session), self._files(call.handle, call.options)
        plan, base = files.plan(_offset(call.start), _offset(call.end)), files.base
        if plan is None:
            rows = TableAt(base, None, files.schema).scan().to_spark(spark)
        else:
            planned = PlannedFiles(
                table=TableFiles(io=base.store.io, metadata=base.metadata),
                plan=plan,
                deleted_rows=plan.deleted_rows(base.store.io),
                final_lineage=FinalLineage.of(base.metadata),
            )
            rows = dataframe(spark, planned_source(spark, planned, files.schema))
        return rows._jdf.queryExecution().optimizedPlan()

    def _files(self, key: str, options: Mapping[str, str]) -> StreamFiles:
        loaded, given = self._loads.newest_of(key), stream_options(options)
        branch = loaded.handle.branch if given.branch is None else given.branch
        if branch is None:
            raise UnsupportedError("a stream cannot read a snapshot or a tag; read the table or one of its branches")
        base = loaded.table._pointer.held()
        schema = next(known for known in base.metadata.schemas if known.schema_id == loaded.handle.schema_id)
        head = base.metadata.current_snapshot_id if branch == MAIN else base.metadata.ref(branch).snapshot_id
        snapshot = None if head is None else base.metadata.snapshot(head)
        return StreamFiles(base=base, schema=schema, head=snapshot, options=given, plans=self._plans)


def _offset(text: str) -> StreamOffset:
    return msgspec.json.decode(text, type=StreamOffset)
