"""The engine that works on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefloe.codecs.puffin.theta_sketch import ThetaSketch
from icefloe.engines.engine import MergedRows, MergeMatches, MergeSource, UpdatedRows, UpsertMatches, UpsertSource
from icefloe.engines.merge_plan import MergePlan
from icefloe.engines.spark.change.conditions import condition_of
from icefloe.engines.spark.change.merge_rows import find_merged, write_merged
from icefloe.engines.spark.change.merge_source import latest_changes, merge_source
from icefloe.engines.spark.change.rewrite import (
    find_rows,
    remaining_rows,
    rewrite_rows,
    sql_of,
    tested_columns,
    update_rows,
)
from icefloe.engines.spark.change.upsert import find_keys, upsert_source, write_key_deletes
from icefloe.engines.spark.change.values import with_short_aliases
from icefloe.engines.spark.read.changed_rows import read_changes
from icefloe.engines.spark.read.distinct_values import distinct_sketches
from icefloe.engines.spark.read.file_sets import SparkFileSets
from icefloe.engines.spark.read.read import rows_with_positions
from icefloe.engines.spark.read.scan import planned_source, read_scan
from icefloe.engines.spark.schema import arrow_frame
from icefloe.engines.spark.session import spark_internals
from icefloe.engines.spark.write.conform import row_schema, with_spelling_of
from icefloe.engines.spark.write.write import write
from icefloe.engines.work import (
    ChangeKeys,
    ChangeRequest,
    Condition,
    NewLayout,
    PlannedFiles,
    Positions,
    ScanRequest,
    TableFiles,
)
from icefloe.env import Env
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.value.expressions import Value, value_text
from icefloe.expr.value.nodes import SparkText
from icefloe.formats.importing.folder import ImportedFolder
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.model.text.spark_schema_json import spark_schema_json, without_field_ids
from icefloe.progress import Progress


class SparkEngine:
    """Rows as DataFrames of one classic session."""

    def __init__(self, spark: SparkSession) -> None:
        spark_internals(spark)
        self._spark = spark

    @property
    def summary(self) -> Mapping[str, str]:
        """Spark, its version and the application, by the keys of Apache Iceberg."""
        application = str(self._spark.sparkContext.applicationId)
        return {"engine-name": "spark", "engine-version": str(self._spark.version), "spark.app.id": application}

    @property
    def file_sets(self) -> SparkFileSets:
        """Sets of files as DataFrames."""
        return SparkFileSets(self._spark)

    def row_schema(self, rows: Any, schema: Schema) -> tuple[DataFrame, pa.Schema]:
        """The DataFrame, and its schema in Arrow's types."""
        frame = _frame(rows)
        return frame, row_schema(frame, schema)

    def read(self, scan: ScanRequest) -> DataFrame:
        """The rows as a DataFrame, which plans its files when a query runs."""
        return read_scan(self._spark, scan)

    def read_folder(self, folder: ImportedFolder, schema: Schema) -> DataFrame:
        """The rows by Spark's own reader, with the partition columns of the paths."""
        columns = StructType.fromJson(without_field_ids(spark_schema_json(schema)))
        reader = self._spark.read.schema(columns).option("basePath", folder.location)
        return reader.format(folder.file_format).load(folder.location)

    def count(self, scan: ScanRequest) -> int:
        """The number of rows, counted by Spark."""
        return int(self.read(scan).count())

    def distinct_sketches(
        self, scan: ScanRequest, columns: Mapping[tuple[str, ...], Field], progress: Progress
    ) -> dict[int, ThetaSketch]:
        """A sketch of each column, computed by one query; it reports no progress."""
        return distinct_sketches(self._spark, scan, columns)

    def frame(self, rows: pa.Table) -> DataFrame:
        """The rows as a DataFrame."""
        return arrow_frame(self._spark, rows)

    def read_changes(self, request: ChangeRequest) -> DataFrame:
        """The changed rows as a DataFrame; the files are planned now, and read when a query runs."""
        return read_changes(self._spark, request)

    def write(self, table: TableFiles, rows: Any, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
        """Write rows to new data files; returns their entries."""
        return write(_frame(rows), metadata=table.metadata, io=table.io, lineage=lineage)

    def condition(self, where: str | Expr | None, schema: Schema) -> Condition:
        """Any condition in Spark SQL, analysed by Spark."""
        return condition_of(self._spark, where, schema)

    def find_rows(self, files: PlannedFiles, condition: Condition) -> dict[str, BitMap64]:
        """The positions of live rows for which the condition is true, by file."""
        if files.plan.files == 0:
            return {}
        tested = tested_columns(condition, files.plan)
        rows = rows_with_positions(self._spark, planned_source(self._spark, files, files.plan.table_schema, tested))
        return find_rows(rows, sql_of(condition, files.plan), planned_rows=files.rows)

    @contextmanager
    def upsert_source(self, table: TableFiles, rows: Any, on: tuple[str, ...]) -> Iterator[UpsertSource]:
        """The source, evaluated once and persisted for the duration."""
        with upsert_source(_frame(rows), table.metadata.schema, on) as source:
            yield source

    def find_keys(self, files: PlannedFiles, source: UpsertSource) -> UpsertMatches:
        """The live rows with a key of the source."""
        return find_keys(self._spark, files, source)

    def write_survivors(self, files: PlannedFiles, positions: Positions) -> pa.Table:
        """Write the rows that files keep to new files; returns the entries."""
        rows, lineage = remaining_rows(self._spark, files, positions)
        return write(rows, metadata=files.metadata, io=files.io, lineage=lineage, is_rewrite=True)

    def rewrite(self, files: PlannedFiles, layout: NewLayout) -> pa.Table:
        """Write all live rows to new files; returns the entries."""
        return rewrite_rows(self._spark, files, layout)

    def write_key_deletes(self, table: TableFiles, source: UpsertSource) -> pa.Table:
        """Write the keys of the source to equality delete files, by tasks; returns their entries."""
        return write_key_deletes(table, source)

    def update_rows(
        self, files: PlannedFiles, condition: Condition, values: Mapping[str, Value], *, copy_others: bool
    ) -> UpdatedRows:
        """Write updated rows to new files, alone or with the other rows of their files."""
        return update_rows(self._spark, files, condition, values, copy_others=copy_others)

    def value(self, text: str | Value, env: Env) -> Value:
        """A value in Spark SQL; a parsed value is computed from its text."""
        sql = value_text(text)
        return Value(sql, SparkText(with_short_aliases(sql)))

    def source_columns(self, rows: Any, schema: Schema) -> tuple[DataFrame, tuple[str, ...]]:
        """The DataFrame, and the names of its columns, spelled as in the table."""
        frame = with_spelling_of(_frame(rows), schema)
        return frame, tuple(frame.columns)

    def latest_changes(self, rows: Any, by: ChangeKeys) -> DataFrame:
        """The last change of each key."""
        return latest_changes(_frame(rows), by)

    def merge_source(self, table: TableFiles, rows: Any, plan: MergePlan) -> AbstractContextManager[MergeSource]:
        """The source, evaluated once and persisted for the duration."""
        return merge_source(self._spark, _frame(rows), plan)

    def find_merged(self, files: PlannedFiles, source: MergeSource) -> MergeMatches:
        """Decide which clause applies to each row."""
        return find_merged(self._spark, files, source.prepared)

    def write_merged(self, files: PlannedFiles, source: MergeSource, matches: MergeMatches) -> MergedRows:
        """Write the updated and the inserted rows to new data files."""
        return write_merged(files, matches)


def _frame(rows: Any) -> DataFrame:
    if not isinstance(rows, DataFrame):
        raise InputError(f"expected a Spark DataFrame, got {type(rows).__name__}")
    return rows
