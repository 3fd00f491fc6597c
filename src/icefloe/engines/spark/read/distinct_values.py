"""Sketches of the distinct values of columns, computed by Spark (Puffin spec, apache-datasketches-theta-v1).

Expressions serialize values to bytes, and Spark's aggregate ``theta_sketch_agg`` hashes them. No Python worker runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, IntegerType, LongType

from icefloe.codecs.puffin.theta_sketch import NOMINAL_ENTRIES, ThetaSketch, decode_sketch
from icefloe.engines.spark.jvm_calls import static_call
from icefloe.engines.spark.read.column_types import with_longs
from icefloe.engines.spark.read.scan import read_scan
from icefloe.engines.spark.write.transform_columns import microseconds_of_time, unscaled_bytes
from icefloe.engines.work import ScanRequest
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    Decimal,
    Field,
    Type,
)

_BYTES = "org.apache.parquet.bytes.BytesUtils"  # its integers are little-endian
_LONGS = (LONG, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)  # the last two are read as longs
_LOG_ENTRIES = NOMINAL_ENTRIES.bit_length() - 1


def distinct_sketches(
    spark: SparkSession, scan: ScanRequest, columns: Mapping[tuple[str, ...], Field]
) -> dict[int, ThetaSketch]:
    """A sketch of each column of a scan, by field id; nulls are no values."""
    rows = read_scan(spark, replace(scan, schema=with_longs(scan.table_schema)))
    # Bytes first: Spark aggregates no rows with times unless its settings allow the type.
    values = rows.select(*(_bytes(spark, F.col(quoted(*path)), field.type) for path, field in columns.items()))
    values = values.toDF(*map(str, range(len(columns))))
    sketches = [F.call_function("theta_sketch_agg", F.col(name), F.lit(_LOG_ENTRIES)) for name in values.columns]
    found = values.agg(*sketches).collect()[0]
    return {
        field.id: decode_sketch(bytes(data), where=f"column {'.'.join(path)!r}: the result of theta_sketch_agg")
        for (path, field), data in zip(columns.items(), found, strict=True)
    }


def _bytes(spark: SparkSession, column: Column, type_: Type) -> Column:
    """The single-value serialization of a value (spec: Appendix D); null stays null.

    The Java value of a timestamp is its microseconds. Spark reads binary, fixed and uuid as the bytes themselves.
    """
    if isinstance(type_, Decimal):
        return unscaled_bytes(spark, column, type_.scale)
    if type_ == STRING:
        return column.cast("binary")
    if type_ == BOOLEAN:
        return F.when(column, F.lit(b"\x01")).when(~column, F.lit(b"\x00"))
    if type_ in (INT, DATE):
        return _of_int(spark, column if type_ == INT else F.unix_date(column))
    if type_ == FLOAT:
        return _of_int(spark, static_call(spark, "java.lang.Float", "floatToRawIntBits", (column,), IntegerType()))
    if type_ == DOUBLE:
        return _of_long(spark, static_call(spark, "java.lang.Double", "doubleToRawLongBits", (column,), LongType()))
    if type_ == TIME:
        return _of_long(spark, microseconds_of_time(spark, column))
    return _of_long(spark, column) if type_ in _LONGS else column


def _of_int(spark: SparkSession, number: Column) -> Column:
    return static_call(spark, _BYTES, "intToBytes", (number,), BinaryType())


def _of_long(spark: SparkSession, number: Column) -> Column:
    return static_call(spark, _BYTES, "longToBytes", (number,), BinaryType())
