"""The schema change of appends and merges that add the columns that the table lacks (spec: Schema Evolution)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from icefloe.commit.operations.schema_updates import ChangeSchema
from icefloe.engines.engine import Engine
from icefloe.errors import InputError
from icefloe.model.arrow.missing_columns import merge_steps
from icefloe.model.evolution.steps import SchemaChange
from icefloe.model.metadata.table_metadata import TableMetadata

SchemaMode: TypeAlias = Literal["strict", "merge"]


def schema_change(
    data: Any, metadata: TableMetadata, mode: SchemaMode, engine: Engine
) -> tuple[Any, ChangeSchema | None]:
    """The rows to write, and the schema change that must precede them; none if the table has all columns.

    A stream can be opened only once, so the opened rows are returned.
    """
    if mode not in ("strict", "merge"):
        raise InputError(f"schema_mode={mode!r}: expected 'strict', or 'merge' to add columns that the table lacks")
    if mode == "strict":
        return data, None
    return missing_columns(data, metadata, engine)


def missing_columns(
    data: Any, metadata: TableMetadata, engine: Engine, is_wanted: Callable[[str], bool] = lambda name: True
) -> tuple[Any, ChangeSchema | None]:
    """The opened rows, and the schema change that adds their columns that the table lacks, as far as wanted."""
    rows, row_schema = engine.row_schema(data, metadata.schema)
    wanted = pa.schema([field for field in row_schema if is_wanted(field.name)], row_schema.metadata)
    steps = merge_steps(metadata.schema, wanted, format_version=metadata.format_version)
    return rows, None if len(steps) == 0 else schema_steps(steps, metadata)


def schema_steps(steps: tuple[SchemaChange, ...], metadata: TableMetadata) -> ChangeSchema:
    """A schema change before rows of the same commit; a retry fails if its new columns would get other ids."""
    return ChangeSchema(steps=steps, read=metadata.current_schema_id, last_column_id=metadata.last_column_id)
