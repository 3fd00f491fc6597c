"""Metadata columns on Spark: file, position, partition and row lineage (spec: Reserved Field IDs).

Location, partition values, first row id and sequence number are constants of a file. The reader provides the position
of a row, and generated code computes the row id. Lineage that a file stores for rewritten rows is read by field id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, StructField

from icefloe.engines.spark.schema import spark_type
from icefloe.errors import UnsupportedError
from icefloe.model.schema.metadata_columns import FILE, LAST_UPDATED, LINEAGE, PARTITION_ID, POS, ROW_ID, SPEC_ID
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    Struct,
)
from icefloe.scan.partition_values import partition_tuples


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
_PARTITION_TYPES = frozenset(
    {BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BINARY, UUID, DATE, TIMESTAMP, TIMESTAMPTZ}
)  # of which Spark takes constants of files


class InheritedColumns:
    """The metadata columns that one DataFrame returns."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self.stored = tuple(replace(field, name=_stored(field)) for field in fields if field in LINEAGE)
        needed = {constant.name: constant for field in fields for constant in _needs(field)}
        self.constants = tuple(needed.values())

    def fill(self, rows: DataFrame, row_index: str) -> DataFrame:
        """The rows with these columns, without the columns from which they are computed."""
        if len(self.fields) == 0:
            return rows
        filled = rows.withColumns({field.name: _value(field, row_index) for field in self.fields})
        return filled.drop(*(field.name for field in self.stored), *(constant.name for constant in self.constants))


def _needs(field: Field) -> Iterable[FileConstant]:
    if field.id == PARTITION_ID and isinstance(field.type, Struct):
        return map(_partition_value, field.type.fields)
    if field not in _NEEDS:
        known = ", ".join((*(known.name for known in _NEEDS), "_partition"))
        raise UnsupportedError(
            f"the metadata column {field.name!r} is not read on Spark yet; there are: {known}", field=field.name
        )
    return _NEEDS[field]


def _partition_value(part: Field) -> FileConstant:
    """The value of a partition field as a constant of the file."""
    if part.type not in _PARTITION_TYPES and not isinstance(part.type, (Decimal, Fixed)):
        name = f"_partition.{part.name}"
        raise UnsupportedError(f"{name!r} is a {part.type}, which is not read on Spark; leave it out", field=name)
    type_ = Struct((part,))

    def values(tasks: pa.Table) -> pa.Array:
        column = partition_tuples(tasks, type_).field(0)
        return column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column

    return FileConstant(field=StructField(f"_icefloe_partition_{part.id}", spark_type(part), True), values=values)


def _stored(field: Field) -> str:
    return f"_icefloe{field.name}"


def _value(field: Field, row_index: str) -> Column:
    if field == FILE:
        return F.col(_LOCATION.name)
    if field == POS:
        return F.col(row_index)
    if field == SPEC_ID:
        return F.col(_SPEC.name)
    if isinstance(field.type, Struct):
        return F.struct(*(F.col(f"_icefloe_partition_{part.id}").alias(part.name) for part in field.type.fields))
    inherited = F.col(_FIRST.name) + F.col(row_index) if field == ROW_ID else F.col(_NUMBER.name)
    # A file without a first row id is older than the row lineage of the table: its rows have none, whatever it stores.
    return F.when(F.col(_FIRST.name).isNotNull(), F.coalesce(F.col(_stored(field)), inherited))


NO_COLUMNS = InheritedColumns(())
