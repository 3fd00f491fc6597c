"""Answers calls about scans: the plan that replaces the scan of a table in a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.schema import arrow_frame
from icefloe.engines.spark.session import child_session
from icefloe.expr.filter.nodes import Expr
from icefloe.spark_sql.conditions import pushed_filter
from icefloe.spark_sql.messages import PlanScan
from icefloe.spark_sql.options.appended_rows import appended_rows
from icefloe.spark_sql.options.changelog import changes_of
from icefloe.spark_sql.options.read_options import CHANGES, split_settings
from icefloe.spark_sql.options.session_names import is_case_sensitive
from icefloe.spark_sql.read_filters import ReadFilters
from icefloe.spark_sql.table_loads import LoadedTable, TableLoads
from icefloe.table.scan import rows_of_query


class ScanCalls:
    """The scans of the tables of a catalog. The Java class ``KeptPlans`` keeps the plans that are returned."""

    def __init__(self, loads: TableLoads, filters: ReadFilters) -> None:
        self._loads = loads
        self._filters = filters

    def plan_scan(self, call: PlanScan, java_session: Any) -> Any:
        """The optimised logical plan of a scan, with its columns in the order of the call."""
        loaded = self._loads.find(call.handle)
        observer = None if call.operation is None else self._filters.observer(call.operation)
        selected = loaded.selected_by(call.options)
        spark, splits = session_of(java_session), split_settings(call.options)
        spark = spark if len(splits) == 0 else child_session(spark, splits)
        if loaded.handle.metadata_table == CHANGES:
            rows = changes_of(spark, selected.at, list(call.columns), call.options)
        else:
            rows = _rows(spark, selected, call, observer)
        return rows._jdf.queryExecution().optimizedPlan()


def _rows(
    spark: SparkSession, loaded: LoadedTable, call: PlanScan, observer: Callable[[Expr], None] | None
) -> DataFrame:
    kind, columns = loaded.handle.metadata_table, list(call.columns)
    if kind is not None:
        return arrow_frame(spark, loaded.at.inspect.rows(kind)).select(*columns)
    wanted = None if len(columns) == 0 else columns  # without columns, only the number of rows is wanted
    if loaded.appends is not None:
        rows: DataFrame = appended_rows(spark, loaded.at, loaded.appends, wanted)
    else:
        pushed = pushed_filter(call.filters, loaded.at.schema, case_sensitive=is_case_sensitive())
        rows = rows_of_query(loaded.at.scan(columns=wanted), spark, pushed, observer)
    return rows.select() if wanted is None else rows


def session_of(java_session: Any) -> SparkSession:
    """The Python object of a session of the JVM."""
    context = SparkSession.active().sparkContext
    return SparkSession(context, jsparkSession=java_session)
