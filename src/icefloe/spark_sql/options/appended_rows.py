"""Incremental reads: the rows that appends added after a snapshot, by the reader options of Apache Iceberg."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.spark.read.selection import select_columns
from icefloe.engines.work import PlannedFiles
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.scan.appends import plan_appends
from icefloe.scan.plan import selected
from icefloe.scan.tasks import Plan
from icefloe.spark_sql.versions import AppendRange
from icefloe.table.scan import Scan
from icefloe.table.table_at import TableAt


class AppendedAt(TableAt):
    """A table with only the rows that appends added after a snapshot, up to another one; other snapshots are skipped.

    The rows have the columns of ``at``, and the deletes of later snapshots do not apply to them.
    """

    def __init__(self, at: TableAt, span: AppendRange) -> None:
        metadata = at.metadata
        until = at.snapshot if span.until is None else metadata.snapshot(span.until)
        super().__init__(at._base, until, at.schema)
        self._after = metadata.snapshot(span.after)

    def scan(self, where: str | Expr | None = None, columns: Iterable[str] | None = None) -> Scan:
        """Read the rows."""
        return _AppendedScan(self, self._after, where, columns)


class _AppendedScan(Scan):
    def __init__(self, at: TableAt, after: Snapshot, where: str | Expr | None, columns: Iterable[str] | None) -> None:
        super().__init__(at._base, at.snapshot, where, columns, at.schema)
        self._after = after

    def plan(self, more: Expr = ALWAYS_TRUE, *, trace: bool = False) -> Plan:
        base, until = self._request.base, self._request.snapshot
        assert until is not None
        plan = plan_appends(base.store, base.metadata, after=self._after, until=until, skip_others=True)
        return plan.counted(base.store.io)

    def to_spark(self, spark: Any, **options: Any) -> Any:
        """The rows as a DataFrame; the filters of a query select rows of the files, and no files."""
        request, plan = self._request, self.plan()
        base, columns = request.base, request.table_schema
        if plan.files == 0:
            return TableAt(base, None, columns).scan(columns=request.columns).to_spark(spark)
        wanted = selected(base.store, base.metadata, columns, request.columns, base.name).fields
        own = tuple(field for field in wanted if field.id not in columns.by_id)
        files = PlannedFiles.of(base.store.io, base.metadata, plan)
        rows = dataframe(spark, planned_source(spark, files, columns, own))
        return select_columns(rows, wanted, (*columns.fields, *own))
