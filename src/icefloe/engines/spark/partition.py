"""Partition values as folder names, computed by Spark so that rows meet in tasks and files (spec: Partitioning).

A name only has to differ where partitions differ and to be safe on every disk: the partition tuple of a file is not
read from it but computed from a row of the file. Days are UTC arithmetic, whatever the time zone of the session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.conform import quoted
from icefloe.formats.partition_values import PartitionColumn, partition_fields
from icefloe.model.partitioning import PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.types import BINARY, DOUBLE, FLOAT, STRING, TIMESTAMPTZ, UUID, Fixed, Type
from icefloe.transforms import Bucket, Day, Transform

_PLAIN_TEXT = r"^[ -}][ -~]{0,63}\z"  # printable ASCII that fits a folder name and does not start like a hash
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_LONG_BYTES = 32
_MICROS_PER_DAY = "86400000000L"


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
        found.append(PartitionFolder(name=name, text=_text(column)))
    return tuple(found)


def _text(column: PartitionColumn) -> Column:
    name = quoted(*column.path)
    if isinstance(column.transform, Bucket):
        return _computed(column.transform, column.source)(F.col(name)).cast("string")
    if isinstance(column.transform, Day):
        return _day(name, column.source).cast("string")
    return _identity(F.col(name), column.source)


def _day(name: str, source: Type) -> Column:
    """The UTC day; casting a local timestamp or a date to a date knows no time zone."""
    if source != TIMESTAMPTZ:
        return F.col(name).cast("date")
    micros = f"unix_micros({name})"
    days = f"({micros} - pmod({micros}, {_MICROS_PER_DAY})) div {_MICROS_PER_DAY}"
    return F.expr(f"date_from_unix_date(cast({days} as int))")


def _computed(transform: Transform, source: Type) -> Callable[[Column], Column]:
    """A transform that Spark does not have, computed on Arrow arrays in a task."""

    def apply(values: pa.Array) -> pa.Array:
        return transform.apply(values, source)

    compute: Callable[[Column], Column] = F.arrow_udf(apply, "int")
    return compute


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
