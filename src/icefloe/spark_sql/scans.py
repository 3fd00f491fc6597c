"""Answers calls about scans: the plan that replaces the scan of a table in a query, and what row changes have read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.read.scan import read_scan
from icefloe.engines.spark.schema import arrow_frame
from icefloe.engines.spark.session import child_session
from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, disjunction
from icefloe.model.schema.schema import Schema
from icefloe.rows.replacement import ReadRows
from icefloe.scan.metadata_filter import split_filter
from icefloe.scan.tasks import Plan
from icefloe.spark_sql.conditions import pushed_filter
from icefloe.spark_sql.kept import Kept
from icefloe.spark_sql.options.appended_rows import appended_rows
from icefloe.spark_sql.options.changelog import changes_of
from icefloe.spark_sql.options.known_options import CHANGES, split_settings
from icefloe.spark_sql.options.session_names import is_case_sensitive
from icefloe.spark_sql.scan_messages import PlanScan
from icefloe.spark_sql.table_loads import LoadedTable, TableLoads
from icefloe.table.scan import request_of

_FILTERS_KEPT, _PLANS_KEPT = 64, 4  # of row changes that have not ended


class Reads:
    """What the scans of row changes have read, to find conflicting commits and to plan the files once.

    The plan of a statement that fails is kept until others replace it, so there are few.
    """

    def __init__(self) -> None:
        self._filters = Kept[str, list[Expr]](_FILTERS_KEPT)
        self._plans = Kept[str, Plan](_PLANS_KEPT)

    def observer(self, operation: str) -> Callable[[Expr, Plan], None]:
        """The function that records the filter and the plan of a scan, by the id of the row change."""
        filters = self._filters.get(operation)
        if filters is None:
            filters = []
            self._filters.put(operation, filters)

        def record(filter_: Expr, plan: Plan) -> None:
            filters.append(filter_)
            self._plans.put(operation, plan)

        return record

    def files(self, operation: str) -> pa.ChunkedArray | None:
        """The locations of the files that a row change reads, if its only scan has been planned."""
        filters, plan = self._filters.get(operation), self._plans.get(operation)
        return plan.tasks["location"] if filters is not None and len(filters) == 1 and plan is not None else None

    def take(self, operation: str, schema: Schema) -> ReadRows:
        """What a row change has read, by the columns of the table; its record is removed."""
        filters, plan = self._filters.pop(operation), self._plans.pop(operation)
        if filters is None:
            return ReadRows(filter=ALWAYS_TRUE)
        on_columns = disjunction([_on_columns(part, schema) for part in filters])
        return ReadRows(filter=on_columns, plan=plan if len(filters) == 1 else None)


def _on_columns(filter_: Expr, schema: Schema) -> Expr:
    on_table, _ = split_filter(filter_, schema)
    try:
        bind(on_table, schema)
    except InputError:  # a filter on values as Spark reads them, which the table has in another type
        return ALWAYS_TRUE
    return on_table


class ScanCalls:
    """The scans of the tables of a catalog. The Java class ``KeptPlans`` keeps the plans that are returned."""

    def __init__(self, loads: TableLoads, reads: Reads) -> None:
        self._loads = loads
        self._reads = reads

    def plan_scan(self, call: PlanScan, java_session: Any) -> Any:
        """The optimised logical plan of a scan, with its columns in the order of the call."""
        loaded = self._loads.find(call.handle)
        observer = None if call.operation is None else self._reads.observer(call.operation)
        selected = loaded.selected_by(call.options)
        spark = session_of(java_session, call.options)
        if loaded.handle.metadata_table == CHANGES:
            rows = changes_of(spark, selected.at, list(call.columns), call.options)
        else:
            rows = _rows(spark, selected, call, observer)
        return rows._jdf.queryExecution().optimizedPlan()


def _rows(
    spark: SparkSession, loaded: LoadedTable, call: PlanScan, observer: Callable[[Expr, Plan], None] | None
) -> DataFrame:
    kind, columns = loaded.handle.metadata_table, list(call.columns)
    if kind is not None:
        return arrow_frame(spark, loaded.at.inspect.rows(kind)).select(*columns)
    wanted = None if len(columns) == 0 else columns  # without columns, only the number of rows is wanted
    if loaded.appends is not None:
        rows: DataFrame = appended_rows(spark, loaded.at, loaded.appends, wanted)
    else:
        pushed = pushed_filter(call.filters, loaded.at.schema, case_sensitive=is_case_sensitive())
        request = request_of(loaded.at.scan(columns=wanted))
        rows = read_scan(spark, replace(request, pushed=pushed, observer=observer))
    return rows.select() if wanted is None else rows


def session_of(java_session: Any, options: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """The Python object of a session of the JVM, with the settings that the options of a read ask for."""
    session = SparkSession(SparkSession.active().sparkContext, jsparkSession=java_session)
    splits = split_settings(options)
    return session if len(splits) == 0 else child_session(session, splits)
