"""Results of transforms as columns: sort keys, and the names of partition folders (spec: Partition Transforms).

The Spark SQL of most transforms is part of the transform: ``spark_key`` and ``spark_folder``. Buckets and truncated
decimals are calls of Java methods: hashes are those of Spark's own Murmur3. So no transform of the specification needs
a Python worker. Any other transform is computed on Arrow arrays in tasks.

By the names of folders Spark groups rows to tasks and files. Names of different partitions differ, and are valid on
every file system. The partition tuple of a file is computed from a row of the file, not from its folder. Times are in
UTC, whatever the time zone of the session.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, DecimalType, IntegerType, LongType, StringType

from icefloe.engines.spark.failures import marking
from icefloe.engines.spark.jvm_calls import method_call, static_call
from icefloe.engines.spark.schema import spark_type
from icefloe.engines.spark.task_python import arrow_function
from icefloe.expr.text.spark_sql import quoted
from icefloe.formats.write.partition_values import PartitionColumn, partition_fields
from icefloe.model.arrow.arrow_types import arrow_type
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_DECIMAL_PRECISION,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    Type,
)
from icefloe.transforms import DecimalSteps, HashBuckets, Transform
from icefloe.transforms.base import MAX_INT

_MURMUR3 = "org.apache.spark.unsafe.hash.Murmur3_x86_32"
_UTF8 = "org.apache.spark.unsafe.types.UTF8String"
_DECIMAL = "org.apache.spark.sql.types.Decimal"
_BIG_DECIMAL, _BIG_INTEGER = "java.math.BigDecimal", "java.math.BigInteger"
_ROUND_FLOOR = 3  # of java.math.BigDecimal
_SEED = 0
_NANOS_PER_MICRO = 1000
_PLAIN_TEXT = r"^[ -}][ -~]{0,63}\z"  # printable ASCII that fits a folder name and does not start like a hash
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_LONG_BYTES = 32


def transform_key(spark: SparkSession, transform: Transform, path: tuple[str, ...], source: Type) -> Column:
    """A value with the order and equality of a transform's results."""
    name, method = quoted(*path), transform.spark_method(source)
    if (key := transform.spark_key(name, source)) is not None:
        return F.expr(key)
    if isinstance(method, HashBuckets):
        return _hash(spark, F.col(name), source).bitwiseAND(F.lit(MAX_INT)) % F.lit(method.count)
    if isinstance(method, DecimalSteps) and isinstance(source, Decimal):
        # The number of steps has no more digits than the column; the result may have one more.
        steps = method_call(spark, _steps(spark, method, F.col(name), source), "toBigInteger", _BIG_INTEGER)
        return static_call(spark, _DECIMAL, "apply", (steps,), DecimalType(MAX_DECIMAL_PRECISION, 0))
    return _computed(transform, F.col(name), source)


def _transform_text(spark: SparkSession, transform: Transform, path: tuple[str, ...], source: Type) -> Column | None:
    """The text of a result, for the name of a folder; None if it is that of ``transform_key``."""
    name, method = quoted(*path), transform.spark_method(source)
    if (text := transform.spark_folder(name, source)) is not None:
        return F.expr(text)
    if not (isinstance(method, DecimalSteps) and isinstance(source, Decimal)):
        return None
    steps = _steps(spark, method, F.col(name), source)
    result = method_call(spark, steps, "multiply", _BIG_DECIMAL, (_step(spark, method, source),))
    plain = method_call(spark, result, "toPlainString", "java.lang.String")
    return static_call(spark, _UTF8, "fromString", (plain,), StringType())


def _computed(transform: Transform, column: Column, source: Type) -> Column:
    """A transform computed on Arrow arrays in a task."""
    result = transform.result_type(source)
    arrow = arrow_type(result)

    def apply(values: pa.Array) -> pa.Array:
        with marking():
            return transform.apply(values, source).cast(arrow)

    return arrow_function(apply, spark_type(Field(0, "key", result)))(column)


def _hash(spark: SparkSession, column: Column, source: Type) -> Column:
    """The hash of the bytes that the format hashes; the Java value of a timestamp is its microseconds."""
    if isinstance(source, Decimal):
        return _hash_bytes(spark, unscaled_bytes(spark, column, source.scale))
    if source == STRING:
        return _hash_text(spark, column)
    if source in (LONG, TIMESTAMP, TIMESTAMPTZ):
        return _hash_long(spark, column)
    if source in (INT, DATE):
        return _hash_long(spark, (column if source == INT else F.unix_date(column)).cast("bigint"))
    if source == TIME:
        return _hash_long(spark, microseconds_of_time(spark, column))
    return _hash_bytes(spark, column)


def unscaled_bytes(spark: SparkSession, column: Column, scale: int) -> Column:
    """The unscaled value of a decimal as its shortest two's-complement big-endian bytes."""
    unscaled = method_call(spark, _big_decimal(spark, column, scale), "unscaledValue", _BIG_INTEGER)
    return method_call(spark, unscaled, "toByteArray", BinaryType())


def microseconds_of_time(spark: SparkSession, column: Column) -> Column:
    """The microseconds of a time of day; Spark's Java value is its nanoseconds."""
    divisor = F.lit(_NANOS_PER_MICRO).cast("bigint")
    return static_call(spark, "java.lang.Math", "floorDiv", (column, divisor), LongType())


def _hash_long(spark: SparkSession, value: Column) -> Column:
    return static_call(spark, _MURMUR3, "hashLong", (value, F.lit(_SEED)), IntegerType())


def _hash_bytes(spark: SparkSession, value: Column) -> Column:
    return _hash_text(spark, static_call(spark, _UTF8, "fromBytes", (value,), StringType()))


def _hash_text(spark: SparkSession, value: Column) -> Column:
    """The hash of the bytes of a text; it also says where they start, which depends on the JVM of the task."""
    place = (
        method_call(spark, value, "getBaseObject", "java.lang.Object"),
        method_call(spark, value, "getBaseOffset", LongType()),
        method_call(spark, value, "numBytes", IntegerType()),
    )
    return static_call(spark, _MURMUR3, "hashUnsafeBytes2", (*place, F.lit(_SEED)), IntegerType())


def _steps(spark: SparkSession, method: DecimalSteps, column: Column, source: Decimal) -> Column:
    """How often the width is in a decimal, rounded towards minus infinity."""
    arguments = (_step(spark, method, source), F.lit(0), F.lit(_ROUND_FLOOR))
    return method_call(spark, _big_decimal(spark, column, source.scale), "divide", _BIG_DECIMAL, arguments)


def _step(spark: SparkSession, method: DecimalSteps, source: Decimal) -> Column:
    """The width, in units of the last digit of a decimal."""
    width = decimal.Decimal(method.width).scaleb(-source.scale)
    type_ = DecimalType(MAX_DECIMAL_PRECISION, source.scale)
    return _big_decimal(spark, F.lit(width).cast(type_), source.scale)


def _big_decimal(spark: SparkSession, column: Column, scale: int) -> Column:
    """A decimal with exactly this scale: results of Spark's arithmetic may have a smaller one in memory."""
    value = method_call(spark, column, "toJavaBigDecimal", _BIG_DECIMAL)
    return method_call(spark, value, "setScale", _BIG_DECIMAL, (F.lit(scale),))


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
    text = _transform_text(spark, column.transform, column.path, column.source)
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
