"""Answers calls about scans: the plan that replaces the scan of a table in a query."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icefloe.spark_sql.messages import PlanScan
from icefloe.spark_sql.metadata_tables import METADATA_TABLES
from icefloe.spark_sql.table_loads import LoadedTable, TableLoads


class ScanCalls:
    """The scans of the tables of a catalog. The Java class ``KeptPlans`` keeps the plans that are returned."""

    def __init__(self, loads: TableLoads) -> None:
        self._loads = loads

    def plan_scan(self, call: PlanScan, java_session: Any) -> Any:
        """The optimised logical plan of a scan, with its columns in the order of the call."""
        loaded = self._loads.find(call.handle)
        rows = _rows(session_of(java_session), loaded.selected_by(call.options), list(call.columns))
        return rows._jdf.queryExecution().optimizedPlan()


def _rows(spark: SparkSession, loaded: LoadedTable, columns: list[str]) -> DataFrame:
    kind = loaded.handle.metadata_table
    if kind is not None:
        return spark.createDataFrame(METADATA_TABLES[kind](loaded.at.metadata)).select(*columns)
    scan = loaded.at.scan() if len(columns) == 0 else loaded.at.scan(columns=columns)
    rows: DataFrame = scan.to_spark(spark)
    return rows.select() if len(columns) == 0 else rows  # without columns, only the number of rows is wanted


def session_of(java_session: Any) -> SparkSession:
    """The Python object of a session of the JVM."""
    context = SparkSession.active().sparkContext
    return SparkSession(context, jsparkSession=java_session)
