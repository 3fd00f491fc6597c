"""Partition values as folder names, by which Spark groups rows to tasks and files (spec: Partitioning).

Names of different partitions differ, and are valid on every file system. The partition tuple of a file is computed from
a row of the file, not from its folder. Times are in UTC, whatever the time zone of the session.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.write.transform_columns import transform_key, transform_text
from icefloe.formats.write.partition_values import PartitionColumn, partition_fields
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BINARY, DOUBLE, FLOAT, STRING, TIMESTAMPTZ, UUID, Fixed, Type

_PLAIN_TEXT = r"^[ -}][ -~]{0,63}\z"  # printable ASCII that fits a folder name and does not start like a hash
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_LONG_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFolder:
    """A level of folders: the name of the column that Spark splits by, and how to compute it."""

    name: str
    text: Column


def partition_folders(spark: SparkSession, schema: Schema, spec: PartitionSpec) -> tuple[PartitionFolder, ...]:
    """One level per partition field that is not void, with names that no column of the table has."""
    taken = {field.name.lower() for field in schema.fields}
    folders = []
    for column in partition_fields(schema, spec):
        name = column.field.name
        while name.lower() in taken:
            name = f"{name}_{column.field.field_id}"
        taken.add(name.lower())
        # Never null: Spark would sort rows again by its text for null, and lose the order within a folder.
        text = F.coalesce(_text(spark, column), F.lit(_NULL_FOLDER))
        folders.append(PartitionFolder(name=name, text=text))
    return tuple(folders)


def _text(spark: SparkSession, column: PartitionColumn) -> Column:
    text = transform_text(spark, column.transform, column.path, column.source)
    if text is not None:
        return text
    # Values that do not fit the type of the column are refused later.
    return _plain_text(transform_key(spark, column.transform, column.path, column.source), column.result)


def _plain_text(column: Column, type_: Type) -> Column:
    if type_ == STRING:
        is_plain = column.rlike(_PLAIN_TEXT) & (column != _NULL_FOLDER)
        return F.when(is_plain, column).otherwise(_hashed(column))
    if type_ in (BINARY, UUID) or isinstance(type_, Fixed):
        is_short = F.length(column) <= _LONG_BYTES
        return F.when(is_short, F.concat(F.lit("x"), F.hex(column))).otherwise(_hashed(column))
    if type_ in (FLOAT, DOUBLE):
        return (column + F.lit(0.0)).cast("string")  # there is one zero
    return F.unix_micros(column).cast("string") if type_ == TIMESTAMPTZ else column.cast("string")


def _hashed(column: Column) -> Column:
    return F.concat(F.lit("~"), F.sha2(column, 256))
