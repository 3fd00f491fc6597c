"""Answers calls about aggregates of a scan: a plan of values from metadata, united with those of files to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from icefloe.engines.spark.read.scan import read_scan
from icefloe.engines.spark.schema import spark_type
from icefloe.engines.spark.session import local_frame
from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.schema.types import Field
from icefloe.scan.aggregates import Aggregate, aggregate_files, can_answer
from icefloe.spark_sql.conditions import filter_of
from icefloe.spark_sql.options.session_names import is_case_sensitive
from icefloe.spark_sql.scan_messages import PlanAggregates
from icefloe.spark_sql.scans import session_of
from icefloe.spark_sql.table_loads import LoadedTable, TableLoads
from icefloe.table.scan import request_of

_SHARE_TO_READ_MAX = 0.5  # of the rows; above it, reading all files in one scan is about as fast


class AggregateCalls:
    """The aggregates of scans of the tables of a catalog, as far as their metadata answers them."""

    def __init__(self, loads: TableLoads) -> None:
        self._loads = loads

    def plan_aggregates(self, call: PlanAggregates, java_session: Any) -> Any:
        """The optimised logical plan of aggregates; nothing if the files have to be read anyway."""
        loaded = self._loads.find(call.handle).selected_by(call.options)
        columns = {field.name: field for field in loaded.at.schema.fields}
        named = (*call.groups, *(each.column for each in call.aggregates if each.column is not None))
        if loaded.handle.metadata_table is not None or loaded.appends is not None or not columns.keys() >= set(named):
            return None
        groups = [columns[name] for name in call.groups]
        aggregates = [
            Aggregate(function=each.function, column=None if each.column is None else columns[each.column])
            for each in call.aggregates
        ]
        if not can_answer(loaded.at.metadata, groups, aggregates):
            return None
        rows = _rows(call, loaded, java_session, groups, aggregates)
        return None if rows is None else rows._jdf.queryExecution().optimizedPlan()


def _rows(
    call: PlanAggregates, loaded: LoadedTable, java_session: Any, groups: list[Field], aggregates: list[Aggregate]
) -> DataFrame | None:
    try:
        filter_ = filter_of(call.where, loaded.at.schema, case_sensitive=is_case_sensitive())
    except (UnsupportedError, InputError):  # a condition that only Spark evaluates, or on a metadata column
        return None
    columns = tuple(dict.fromkeys([*groups, *(each.column for each in aggregates if each.column is not None)]))
    names = tuple(field.name for field in columns)
    request = request_of(loaded.at.scan(filter_, columns=names if len(names) > 0 else None))
    plan = request.plan(bounded=tuple(field.id for field in columns))
    known = aggregate_files(request.io, loaded.at.metadata, plan, groups, aggregates)
    if known.share_to_read > _SHARE_TO_READ_MAX:
        return None
    spark = session_of(java_session, call.options)
    answered = local_frame(spark, known.groups, _result(groups, aggregates))
    if len(known.to_read) == 0:
        return answered
    rows = read_scan(spark, replace(request, files=known.to_read.combine_chunks()))
    return _merged(answered.union(_partial(rows, groups, aggregates)), len(groups), aggregates)


def _result(groups: Sequence[Field], aggregates: Sequence[Aggregate]) -> StructType:
    fields = [StructField(str(place), spark_type(field), True) for place, field in enumerate(groups)]
    for place, each in enumerate(aggregates, start=len(groups)):
        is_count = each.column is None or each.function == "count"
        type_ = LongType() if each.column is None or is_count else spark_type(each.column)
        fields.append(StructField(str(place), type_, not is_count))
    return StructType(fields)


def _partial(rows: DataFrame, groups: Sequence[Field], aggregates: Sequence[Aggregate]) -> DataFrame:
    """What each row adds to its group."""
    one, none = F.lit(1).cast("bigint"), F.lit(0).cast("bigint")
    columns = [F.col(quoted(field.name)) for field in groups]
    for each in aggregates:
        if each.column is None:
            columns.append(one)
            continue
        value = F.col(quoted(each.column.name))
        columns.append(F.when(value.isNull(), none).otherwise(one) if each.function == "count" else value)
    return rows.select(*columns)


def _merged(parts: DataFrame, keys: int, aggregates: Sequence[Aggregate]) -> DataFrame:
    """The aggregates of parts of groups."""
    if len(aggregates) == 0:
        return parts.distinct()
    merge = {"count": lambda part: F.coalesce(F.sum(part), F.lit(0).cast("bigint")), "min": F.min, "max": F.max}
    results = zip(parts.columns[keys:], aggregates, strict=True)
    return parts.groupBy(*parts.columns[:keys]).agg(*(merge[each.function](name) for name, each in results))
