"""Upserts on Spark: finds the rows of a table that have a key of a DataFrame, or writes equality deletes for the keys.

Of the table only the key columns are read, and only files whose range of keys overlaps that of the frame. A key with a
null equals nothing, as in SQL, so such rows are always added. The frame is evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.engines.engine import UpsertMatches, UpsertSource
from icefloe.engines.spark.change.kept_rows import keep_rows
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.change.rewrite import final_row_id
from icefloe.engines.spark.change.source_keys import Key, ends_of, has_ordered_values, range_filter
from icefloe.engines.spark.failures import translated
from icefloe.engines.spark.read.read import rows_with_positions
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.spark.write.conform import conformed
from icefloe.engines.spark.write.task_files import TaskWork, without_history, write_by_tasks, write_folder
from icefloe.engines.work import PlannedFiles, TableFiles
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, Expr
from icefloe.expr.text.spark_sql import quoted
from icefloe.io.file_io import FileIO
from icefloe.model.entries import empty
from icefloe.model.metadata.properties import DATA_PATH
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, is_primitive


@contextmanager
def upsert_source(frame: DataFrame, schema: Schema, on: Sequence[str]) -> Iterator[UpsertSource]:
    """A frame that conforms to the table, persisted for the duration; InputError if a key occurs twice in it."""
    fields = _key_fields(schema, on)
    _check_has_columns(frame, fields)
    with ExitStack() as persisted:
        with translated():
            rows = keep_rows(conformed(frame, schema), persisted)
            filter_ = _key_filter(rows, fields)
        yield UpsertSource(rows=rows, on=tuple(on), filter=filter_, prepared=persisted)


def find_keys(spark: SparkSession, files: PlannedFiles, source: UpsertSource) -> UpsertMatches:
    """The live rows with a key of the source, and the source with the ids of these rows, as far as these are final."""
    if files.plan.files == 0:
        return UpsertMatches(positions={}, rows=source.rows)
    columns, lineage = files.plan.table_schema.select(source.on), (ROW_ID,) if len(files.lineage) > 0 else ()
    rows = rows_with_positions(spark, planned_source(spark, files, columns, lineage))
    matching, id_ = rows.frame.join(_keys(source), on=list(source.on), how="left_semi"), F.col(ROW_ID.name)
    with translated():
        if len(lineage) > 0:
            matching = keep_rows(matching.withColumn(ROW_ID.name, final_row_id(files)), source.prepared)
        positions = positions_of(matching, rows.files, planned_rows=files.rows).positions
        has_ids = len(positions) > 0 and len(lineage) > 0
        if not has_ids or matching.select(F.max(id_)).toArrow().column(0)[0].as_py() is None:
            return UpsertMatches(positions=positions, rows=source.rows)
    # A row that replaces several keeps the lowest id.
    ids = matching.groupBy(*(F.col(quoted(name)) for name in source.on)).agg(F.min(id_).alias(ROW_ID.name))
    with_ids = source.rows.join(ids, on=list(source.on), how="left")
    return UpsertMatches(positions=positions, rows=with_ids, lineage=(ROW_ID,))


def _key_fields(schema: Schema, on: Sequence[str]) -> tuple[Field, ...]:
    if len(on) == 0 or len(set(on)) < len(on):
        raise InputError(f"on={list(on)}: name one or more different key columns")
    fields = schema.select(tuple(on)).fields
    nested = [field.name for field in fields if not is_primitive(field.type)]
    if len(nested) > 0:
        raise InputError(f"column {nested[0]!r} is nested and cannot be a key", field=nested[0])
    return fields


def _check_has_columns(frame: DataFrame, fields: tuple[Field, ...]) -> None:
    columns = {name.lower() for name in frame.columns}
    missing = [field.name for field in fields if field.name.lower() not in columns]
    if len(missing) > 0:
        raise InputError(f"the frame lacks the key column {', '.join(missing)}", field=missing[0])


def _with_keys(frame: DataFrame, on: Sequence[str]) -> DataFrame:
    """The rows whose keys are all non-null."""
    return frame.where(reduce(and_, [F.col(quoted(name)).isNotNull() for name in on]))


def _keys(source: UpsertSource) -> DataFrame:
    """The keys of the source without nulls."""
    return _with_keys(source.rows, source.on).select(*(quoted(name) for name in source.on))


def _key_filter(frame: DataFrame, fields: tuple[Field, ...]) -> Expr:
    """The range of the keys as a filter; the same pass checks that each key occurs once."""
    keys = [Key(column=field.name, value=F.col(quoted(field.name))) for field in fields]
    columns = [key.value for key in keys]
    per_key = _with_keys(frame, [field.name for field in fields]).groupBy(*columns).agg(F.count("*").alias("__rows"))
    ordered = [key for key, field in zip(keys, fields, strict=True) if has_ordered_values(field)]
    example = F.max_by(F.to_json(F.struct(*columns)), "__rows")
    found = per_key.agg(F.max("__rows"), example, *ends_of(ordered)).toArrow()
    most, key, *ends = (column[0].as_py() for column in found.columns)
    if most is None:
        return ALWAYS_FALSE
    if most > 1:
        raise InputError(f"{most} rows have the key {key}; keep one row per key", key=key)
    return range_filter(ordered, ends)


def write_key_deletes(table: TableFiles, source: UpsertSource) -> pa.Table:
    """Write the keys of the source without nulls to equality delete files; returns their entries."""
    metadata, columns = table.metadata, table.metadata.schema.select(source.on).fields
    keys = _keys(source)
    with write_folder(keys.sparkSession, metadata, table.io) as folder:
        properties = {**metadata.properties, DATA_PATH.name: folder}
        work = _key_writer(replace(without_history(metadata), properties=properties), columns)
        return write_by_tasks(keys.hint("rebalance"), folder, table.io, work)


def _key_writer(metadata: TableMetadata, columns: tuple[Field, ...]) -> TaskWork:
    """The function that writes the keys of a task to files at the data location of ``metadata``."""

    def write(io: FileIO, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        keys = [batch for batch in batches if batch.num_rows > 0]
        if len(keys) == 0:
            return empty()
        return write_equality_deletes(io, pa.Table.from_batches(keys), columns, metadata=metadata)

    return write
