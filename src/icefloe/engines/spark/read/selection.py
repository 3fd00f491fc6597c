"""Selects fields of structs on Spark.

Spark reads all fields of the schema that a relation has, so its structs have only the selected fields. Fields that only
the filter needs are read as well and removed after the filter (spec: Column Projection).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from icefloe.engines.spark.read.column_types import readable_columns
from icefloe.engines.spark.schema import struct_type
from icefloe.engines.spark.write.conform import quoted
from icefloe.expr.filter.filter_columns import filter_columns
from icefloe.expr.filter.nodes import Bound
from icefloe.formats.read.row_group_reader import merged
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field


def columns_to_read(
    schema: Schema, wanted: tuple[Field, ...], filter_: Bound, *, reads_nanoseconds: bool = False
) -> Schema:
    """The columns of a table for a scan that returns ``wanted``, each with the fields that it or its filter needs.

    Columns that are not wanted do not change, because Spark does not read them. Those that Spark cannot read at all
    are left out.
    """
    tested = {field.id: field for field in filter_columns(filter_, schema).fields}
    needed = {field.id: merged((field,), (tested.get(field.id, field),))[0] for field in wanted}
    columns = Schema(fields=tuple(needed.get(field.id, field) for field in schema.fields), schema_id=schema.schema_id)
    return readable_columns(columns, needed=frozenset({*needed, *tested}), reads_nanoseconds=reads_nanoseconds)


def select_columns(rows: DataFrame, wanted: tuple[Field, ...], read: tuple[Field, ...]) -> DataFrame:
    """The ``wanted`` columns of rows that were read as ``read``, and of structs only the fields that are wanted."""
    by_id = {field.id: field for field in read}
    chosen = rows.select(*(quoted(field.name) for field in wanted))
    cut = [field for field in wanted if field.id in by_id and field != by_id[field.id]]
    if len(cut) == 0:
        return chosen
    types = {field.name: field for field in struct_type(Schema(fields=tuple(cut)))}
    return chosen.to(StructType([types.get(field.name, field) for field in chosen.schema]))
