"""Partition values as folder names, computed by Spark so that rows meet in tasks and files (spec: Partitioning).

A name only has to differ where partitions differ and to be safe on every disk: the partition tuple of a file is not
read from it but computed from a row of the file. Times are those of UTC, whatever the time zone of the session.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.spark.write.transform_columns import computed, truncated_number, utc_day, utc_hour
from icefloe.formats.write.partition_values import PartitionColumn, partition_fields
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BINARY, DOUBLE, FLOAT, INT, LONG, STRING, TIMESTAMPTZ, UUID, Fixed, Type
from icefloe.transforms import Bucket, Hour, Month, TimeTransform, Truncate, Year

_PLAIN_TEXT = r"^[ -}][ -~]{0,63}\z"  # printable ASCII that fits a folder name and does not start like a hash
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_LONG_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFolder:
    """A level of folders: the name of the column that Spark splits by, and how to compute it."""

    name: str
    text: Column


def partition_folders(schema: Schema, spec: PartitionSpec) -> tuple[PartitionFolder, ...]:
    """One level for each partition field that is not void, under names that no column of the table has."""
    taken = {field.name.lower() for field in schema.fields}
    found = []
    for column in partition_fields(schema, spec):
        name = column.field.name
        while name.lower() in taken:
            name = f"{name}_{column.field.field_id}"
        taken.add(name.lower())
        # Never null, as Spark would sort the rows again by what it makes of a null, and undo the order within a folder.
        text = F.coalesce(_text(column), F.lit(_NULL_FOLDER))
        found.append(PartitionFolder(name=name, text=text))
    return tuple(found)


def _text(column: PartitionColumn) -> Column:
    name, source, transform = quoted(*column.path), column.source, column.transform
    if isinstance(transform, TimeTransform):
        return _time(transform, name, source)
    if isinstance(transform, Truncate) and source in (STRING, BINARY):
        return _identity(F.substring(name, 1, transform.width), source)
    if isinstance(transform, Truncate) and source in (INT, LONG):
        # A value that the column's type cannot hold is refused later, by the name of its row.
        return truncated_number(name, transform.width).cast("string")
    if isinstance(transform, (Bucket, Truncate)):
        return computed(transform, source, StringType(), pa.string())(F.col(name))
    return _identity(F.col(name), source)


def _time(transform: TimeTransform, name: str, source: Type) -> Column:
    day = utc_day(name, source)
    match transform:
        case Year():
            return F.year(day).cast("string")
        case Month():
            return F.concat(F.year(day).cast("string"), F.lit("-"), _two_digits(F.month(day)))
        case Hour():
            return F.concat(day.cast("string"), F.lit("-"), _two_digits(utc_hour(name, source)))
    return day.cast("string")


def _two_digits(number: Column) -> Column:
    return F.lpad(number.cast("string"), 2, "0")


def _identity(column: Column, source: Type) -> Column:
    if source == STRING:
        is_plain = column.rlike(_PLAIN_TEXT) & (column != _NULL_FOLDER)
        return F.when(is_plain, column).otherwise(_hashed(column))
    if source in (BINARY, UUID) or isinstance(source, Fixed):
        is_short = F.length(column) <= _LONG_BYTES
        return F.when(is_short, F.concat(F.lit("x"), F.hex(column))).otherwise(_hashed(column))
    if source in (FLOAT, DOUBLE):
        return (column + F.lit(0.0)).cast("string")  # there is one zero
    return F.unix_micros(column).cast("string") if source == TIMESTAMPTZ else column.cast("string")


def _hashed(column: Column) -> Column:
    return F.concat(F.lit("~"), F.sha2(column, 256))
