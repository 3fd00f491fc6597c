"""The z-order of rows as sort keys in Spark SQL, without Python workers; ``icefloe.engines.zorder`` describes it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType

from icefloe.engines.spark.jvm_calls import static_call
from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.spark.write.sort import ordered_double
from icefloe.engines.zorder import BYTES, MAX_COLUMNS, has_fraction, is_text, spread
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BOOLEAN, DATE, INT, LONG, Field
from icefloe.transforms.source_columns import column_path

_LOWEST = -(1 << 63)


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
        return ordered_double(spark, column.cast("double"))
    if field.type in (INT, LONG, BOOLEAN):
        return column.cast("int").cast("bigint") if field.type == BOOLEAN else column.cast("bigint")
    if field.type == DATE:
        return F.unix_date(column).cast("bigint")
    # The Java value of a time or timestamp is a number, and dividing it by one gives that number.
    one = F.lit(1).cast("bigint")
    return static_call(spark, "java.lang.Math", "floorDiv", (column, one), LongType())
