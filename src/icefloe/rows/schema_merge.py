"""Rows that bring columns of their own: the schema change that makes room for them (spec: Schema Evolution)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import pyarrow as pa

from icefloe.commit.operations.schema_updates import ChangeSchema
from icefloe.engines.engine import is_spark
from icefloe.errors import InputError, UnsupportedError
from icefloe.model.arrow.conform import as_table
from icefloe.model.arrow.missing_columns import merge_steps
from icefloe.model.evolution.steps import SchemaChange
from icefloe.model.metadata.table_metadata import TableMetadata

SchemaMode: TypeAlias = Literal["strict", "merge"]


def schema_change(data: Any, metadata: TableMetadata, mode: SchemaMode) -> tuple[Any, ChangeSchema | None]:
    """The rows to write, and the change that the table needs before them, if it needs one.

    A stream can be opened only once, so the rows come back as what was opened.
    """
    if mode not in ("strict", "merge"):
        raise InputError(f"schema_mode={mode!r}: expected 'strict', or 'merge' to add columns that the table lacks")
    if mode == "strict":
        return data, None
    if is_spark(data):
        raise UnsupportedError("schema_mode='merge' takes Arrow data; for a DataFrame, change the schema first")
    rows = _opened(data)
    steps = merge_steps(metadata.schema, rows.schema, format_version=metadata.format_version)
    return rows, None if len(steps) == 0 else schema_steps(steps, metadata)


def schema_steps(steps: tuple[SchemaChange, ...], metadata: TableMetadata) -> ChangeSchema:
    """A schema change that rows are written after, in the same commit: its new columns must get the ids of now."""
    return ChangeSchema(steps=steps, read=metadata.current_schema_id, last_column_id=metadata.last_column_id)


def _opened(data: Any) -> pa.Table | pa.RecordBatchReader:
    if isinstance(data, (pa.Table, pa.RecordBatch)) or not hasattr(data, "__arrow_c_stream__"):
        return as_table(data)
    return pa.RecordBatchReader.from_stream(data)
