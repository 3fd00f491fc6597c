"""Sorts the rows of every task in the sort order of a table (spec: Sorting), or in z-order for compaction.

The keys are expressions whose order in Spark is that of the format. Floating-point numbers are converted to integers,
because in Spark both zeros are equal, and so are all NaN. ``icefloe.engines.zorder`` describes the z-order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, LongType

from icefloe.engines.spark.jvm_calls import static_call
from icefloe.engines.spark.write.transform_columns import transform_key
from icefloe.engines.zorder import BYTES, MAX_COLUMNS, has_fraction, is_text, spread
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BOOLEAN, DATE, DOUBLE, FLOAT, INT, LONG, Field, Type
from icefloe.transforms import Transform, transform_of
from icefloe.transforms.source_columns import column_path

_LOWEST = -(1 << 63)


def sorted_in_tasks(rows: DataFrame, folders: Sequence[str], keys: Sequence[Column]) -> DataFrame:
    """The rows of every task, sorted by the partition columns ``folders`` and then by the keys of the sort order.

    Partitions come first and ascending, as Spark's writer needs them, so it does not sort the rows again.
    """
    if len(keys) == 0:
        return rows
    return rows.sortWithinPartitions(*(F.col(quoted(name)).asc() for name in folders), *keys)


def sort_keys(spark: SparkSession, order: SortOrder, schema: Schema) -> tuple[Column, ...]:
    """The keys of a sort order, with their directions."""
    keys = []
    for field in order.fields:
        transform = transform_of(field)
        if not transform.is_void:
            path, source = column_path(schema, field.source_id), schema.by_id[field.source_id].type
            keys.append(_directed(_key(spark, transform, path, source), field))
    return tuple(keys)


def _directed(key: Column, field: SortField) -> Column:
    has_nulls_first = field.null_order == "nulls-first"
    if field.direction == "asc":
        return key.asc_nulls_first() if has_nulls_first else key.asc_nulls_last()
    return key.desc_nulls_first() if has_nulls_first else key.desc_nulls_last()


def _key(spark: SparkSession, transform: Transform, path: tuple[str, ...], source: Type) -> Column:
    """The value to sort by; equal where the transform's results are equal."""
    key = transform_key(spark, transform, path, source)
    return _ordered_float(spark, key, source) if transform.result_type(source) in (FLOAT, DOUBLE) else key


def _ordered_float(spark: SparkSession, value: Column, source: Type) -> Column:
    """An integer in the order of the format: -Infinity, ..., -0, 0, ..., Infinity, NaN.

    Bits compare like integers for positive numbers and the other way round for negative ones. All NaN have the same
    bits here, those of a positive one: Spark's Parquet writer stores every NaN so.
    """
    if source == FLOAT:
        bits = static_call(spark, "java.lang.Float", "floatToIntBits", (value,), IntegerType())
        return bits.bitwiseXOR(F.shiftright(bits, 31).bitwiseAND(2**31 - 1))
    return _ordered_double(spark, value)


def _ordered_double(spark: SparkSession, value: Column) -> Column:
    """An integer in the order of the doubles of a column."""
    bits = static_call(spark, "java.lang.Double", "doubleToLongBits", (value,), LongType())
    return bits.bitwiseXOR(F.shiftright(bits, 63).bitwiseAND(2**63 - 1))


def z_keys(spark: SparkSession, columns: Sequence[Field], schema: Schema) -> tuple[Column, ...]:
    """The 8 keys to sort by, most significant first."""
    words = [_word(spark, F.col(quoted(*column_path(schema, field.id))), field) for field in columns]
    table = F.expr(f"array({', '.join(f'{bits}L' for bits in spread(len(words)))})")
    keys = []
    for byte in range(BYTES):
        parts = []
        for position, word in enumerate(words):
            index = F.shiftrightunsigned(word, 8 * (BYTES - 1 - byte)).bitwiseAND(F.lit(255)).cast("int")
            parts.append(F.shiftleft(F.get(table, index), len(words) - 1 - position))
        key = reduce(Column.bitwiseOR, parts)
        # With 8 columns the first bit is the sign of the key.
        keys.append((key.bitwiseXOR(F.lit(_LOWEST)) if len(words) == MAX_COLUMNS else key).asc())
    return tuple(keys)


def _word(spark: SparkSession, column: Column, field: Field) -> Column:
    """The 64 bits of a value; 0 for null."""
    if is_text(field.type):
        first = F.hex(F.substring(column.cast("binary"), 1, BYTES))
        word = F.conv(F.rpad(first, 2 * BYTES, "0"), 16, -10).cast("bigint")
    else:
        word = _number(spark, column, field).bitwiseXOR(F.lit(_LOWEST))
    return F.coalesce(word, F.lit(0).cast("bigint"))


def _number(spark: SparkSession, column: Column, field: Field) -> Column:
    """An integer with the order of the values."""
    if has_fraction(field.type):
        return _ordered_double(spark, column.cast("double"))
    if field.type in (INT, LONG, BOOLEAN):
        return column.cast("int").cast("bigint") if field.type == BOOLEAN else column.cast("bigint")
    if field.type == DATE:
        return F.unix_date(column).cast("bigint")
    # The Java value of a time or timestamp is a number, and dividing it by one gives that number.
    one = F.lit(1).cast("bigint")
    return static_call(spark, "java.lang.Math", "floorDiv", (column, one), LongType())
