"""The engine that works on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession

from icefloe.engines.capabilities import Capabilities, RowOperation
from icefloe.engines.engine import MergeMatches, MergeSource, UpsertMatches, UpsertSource
from icefloe.engines.merge_plan import MergePlan
from icefloe.engines.spark.change.delete import find_rows, rewrite_without
from icefloe.engines.spark.change.upsert import find_keys, find_keys_and_ids, upsert_source
from icefloe.engines.spark.read.read import rows_with_positions
from icefloe.engines.spark.read.scan import planned_source, read_scan
from icefloe.engines.spark.session import SPARK, spark_internals
from icefloe.engines.spark.write.write import write
from icefloe.engines.work import PlannedFiles, Positions, ScanRequest, TableFiles
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Bound
from icefloe.expr.filter.row_filter import to_sql
from icefloe.expr.value.expressions import Value
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.model.schema.types import Field


class SparkEngine:
    """Rows as DataFrames of one classic session."""

    def __init__(self, spark: SparkSession) -> None:
        spark_internals(spark)
        self._spark = spark

    @property
    def capabilities(self) -> Capabilities:
        """What is supported on Spark."""
        return SPARK

    def read(self, scan: ScanRequest) -> DataFrame:
        """The rows as a DataFrame, which plans its files when a query runs."""
        return read_scan(self._spark, scan)

    def count(self, scan: ScanRequest) -> int:
        """The number of rows, counted by Spark."""
        return int(self.read(scan).count())

    def write(self, table: TableFiles, rows: Any, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
        """Write rows to new data files; returns their entries."""
        return write(_frame(rows), metadata=table.metadata, io=table.io, lineage=lineage)

    def find_rows(self, files: PlannedFiles) -> dict[str, BitMap64]:
        """The positions of live rows that match the plan's filter, by file."""
        if files.plan.files == 0:
            return {}
        rows = rows_with_positions(self._spark, planned_source(files, files.plan.table_schema))
        return find_rows(rows, to_sql(cast(Bound, files.plan.filter)))

    @contextmanager
    def upsert_source(self, table: TableFiles, rows: Any, on: tuple[str, ...]) -> Iterator[UpsertSource]:
        """The source, evaluated once and persisted for the duration."""
        with upsert_source(_frame(rows), table.metadata.schema, on) as source:
            yield source

    def find_keys(self, files: PlannedFiles, source: UpsertSource) -> UpsertMatches:
        """The live rows with a key of the source."""
        if files.plan.files == 0:
            return UpsertMatches(positions={}, rows=source.rows)
        keys = files.plan.table_schema.select(source.on)
        if len(files.lineage) == 0:
            return find_keys(rows_with_positions(self._spark, planned_source(files, keys)), source)
        rows = rows_with_positions(self._spark, planned_source(files, keys, (ROW_ID,)))
        return find_keys_and_ids(rows, source, next_row_id=files.final_lineage.next_row_id)

    def write_survivors(self, files: PlannedFiles, positions: Positions) -> pa.Table:
        """Write the rows that files keep to new files; returns the entries."""
        touched = files.only(positions)
        source = planned_source(touched, files.metadata.schema, touched.lineage)
        final = None if files.is_all_final else files.final_lineage
        return rewrite_without(self._spark, source, positions, files.table, final=final)

    def write_key_deletes(self, table: TableFiles, source: UpsertSource) -> pa.Table:
        """Not supported yet."""
        raise SPARK.refusal(RowOperation.EQUALITY_DELETES)

    def write_updated(
        self, files: PlannedFiles, positions: Positions, values: Mapping[str, Value], *, copy_others: bool
    ) -> pa.Table:
        """Not supported yet."""
        raise SPARK.refusal(RowOperation.UPDATE)

    def source_columns(self, rows: Any) -> tuple[DataFrame, tuple[str, ...]]:
        """The DataFrame, and the names of its columns."""
        frame = _frame(rows)
        return frame, tuple(frame.columns)

    def merge_source(self, table: TableFiles, rows: Any, plan: MergePlan) -> AbstractContextManager[MergeSource]:
        """Not supported yet."""
        raise SPARK.refusal(RowOperation.MERGE)

    def find_merged(self, files: PlannedFiles, source: MergeSource) -> MergeMatches:
        """Not supported yet."""
        raise SPARK.refusal(RowOperation.MERGE)

    def write_merged(self, files: PlannedFiles, source: MergeSource, matches: MergeMatches) -> pa.Table:
        """Not supported yet."""
        raise SPARK.refusal(RowOperation.MERGE)


def _frame(rows: Any) -> DataFrame:
    if not isinstance(rows, DataFrame):
        raise InputError(f"expected a Spark DataFrame, got {type(rows).__name__}")
    return rows
