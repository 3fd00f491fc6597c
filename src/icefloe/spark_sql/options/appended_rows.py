"""Incremental reads: the rows that appends added after a snapshot, by the reader options of Apache Iceberg."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.spark.read.column_types import select_columns
from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.work import PlannedFiles
from icefloe.scan.appends import plan_appends
from icefloe.scan.plan import selected
from icefloe.spark_sql.versions import AppendRange
from icefloe.table.table_at import TableAt


def appended_rows(spark: SparkSession, at: TableAt, span: AppendRange, columns: Sequence[str] | None) -> DataFrame:
    """The rows that appends added after a snapshot, up to another one; other snapshots are skipped.

    The rows have the columns of ``at``, and the deletes of later snapshots do not apply to them. The filters of a query
    select rows of the files, and no files.
    """
    base, metadata, schema = at._base, at.metadata, at.schema
    after = metadata.snapshot(span.after)
    until = at.snapshot if span.until is None else metadata.snapshot(span.until)
    assert until is not None  # there is a snapshot, ``after``
    plan = plan_appends(base.store, metadata, after=after, until=until, skip_others=True).counted(base.store.io)
    if plan.files == 0:
        none: DataFrame = TableAt(base, None, schema).scan(columns=columns).to_spark(spark)
        return none
    wanted = selected(base.store, metadata, schema, columns, base.name).fields
    own = tuple(field for field in wanted if field.id not in schema.by_id)
    rows = dataframe(spark, planned_source(spark, PlannedFiles.of(base.store.io, metadata, plan), schema, own))
    return select_columns(rows, wanted, (*schema.fields, *own))
