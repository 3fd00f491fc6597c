"""Sorts the rows of every task in the sort order of a table (spec: Sorting).

The keys are expressions whose order in Spark is that of the format. Floating-point numbers are converted to integers,
because in Spark both zeros are equal, and so are all NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, LongType

from icefloe.engines.spark.jvm_calls import static_call
from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.spark.write.transform_columns import transform_key
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, FLOAT, Type
from icefloe.transforms import Transform, transform_of
from icefloe.transforms.source_columns import column_path


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
    return ordered_double(spark, value)


def ordered_double(spark: SparkSession, value: Column) -> Column:
    """An integer in the order of the doubles of a column."""
    bits = static_call(spark, "java.lang.Double", "doubleToLongBits", (value,), LongType())
    return bits.bitwiseXOR(F.shiftright(bits, 63).bitwiseAND(2**63 - 1))
