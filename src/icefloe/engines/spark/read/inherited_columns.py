"""Metadata columns on Spark: file, position and row lineage (spec: Reserved Field IDs).

Location, first row id and sequence number are constants of a file. The reader provides the position of a row, and
generated code computes the row id. Lineage that a file stores for rewritten rows is read by field id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField

from icefloe.errors import UnsupportedError
from icefloe.model.schema.metadata_columns import FILE, LAST_UPDATED, LINEAGE, POS, ROW_ID, SPEC_ID
from icefloe.model.schema.types import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class FileConstant:
    """A value that is the same for all rows of a file: its name and type, and the values of planned files."""

    field: StructField
    values: Callable[[pa.Table], pa.Array | pa.ChunkedArray]

    @property
    def name(self) -> str:
        """The column under which rows have it."""
        return str(self.field.name)


def of_task(name: str, type_: DataType, column: str) -> FileConstant:
    """A column of the plan as a constant."""
    return FileConstant(field=StructField(name, type_, True), values=lambda tasks: tasks[column])


_LOCATION = of_task("_icefloe_file", StringType(), "location")
_FIRST = of_task("_icefloe_first_row_id", LongType(), "first_row_id")
_NUMBER = of_task("_icefloe_sequence_number", LongType(), "sequence_number")
_SPEC = of_task("_icefloe_spec_id", IntegerType(), "partition_spec_id")
_NEEDS = {FILE: (_LOCATION,), POS: (), SPEC_ID: (_SPEC,), ROW_ID: (_FIRST,), LAST_UPDATED: (_FIRST, _NUMBER)}


class InheritedColumns:
    """The metadata columns that one DataFrame returns."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        for field in fields:
            if field not in _NEEDS:
                known = ", ".join(known.name for known in _NEEDS)
                raise UnsupportedError(
                    f"the metadata column {field.name!r} is not read on Spark yet; there are: {known}", field=field.name
                )
        self.fields = fields
        self.stored = tuple(replace(field, name=_stored(field)) for field in fields if field in LINEAGE)
        needed = {constant.name: constant for field in fields for constant in _NEEDS[field]}
        self.constants = tuple(needed.values())

    def fill(self, rows: DataFrame, row_index: str) -> DataFrame:
        """The rows with these columns, without the columns from which they are computed."""
        if len(self.fields) == 0:
            return rows
        filled = rows.withColumns({field.name: _value(field, row_index) for field in self.fields})
        return filled.drop(*(field.name for field in self.stored), *(constant.name for constant in self.constants))


def _stored(field: Field) -> str:
    return f"_icefloe{field.name}"


def _value(field: Field, row_index: str) -> Column:
    if field == FILE:
        return F.col(_LOCATION.name)
    if field == POS:
        return F.col(row_index)
    if field == SPEC_ID:
        return F.col(_SPEC.name)
    inherited = F.col(_FIRST.name) + F.col(row_index) if field == ROW_ID else F.col(_NUMBER.name)
    # A file without a first row id is older than the row lineage of the table: its rows have none, whatever it stores.
    return F.when(F.col(_FIRST.name).isNotNull(), F.coalesce(F.col(_stored(field)), inherited))


NO_COLUMNS = InheritedColumns(())
