"""Static Java methods as columns: generated code calls them directly, without a UDF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import DataType, IntegerType, LongType

_JAVA_TYPES: dict[DataType, str] = {IntegerType(): "IntegerType", LongType(): "LongType"}


def static_call(spark: SparkSession, owner: str, method: str, arguments: Sequence[Column], result: DataType) -> Column:
    """A deterministic static method of the class ``owner``; null if an argument is null."""
    jvm: Any = spark._jvm
    tools = jvm.org.apache.spark.sql.classic.ExpressionUtils
    expressions, no_types = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
    for argument in arguments:
        expressions.add(tools.expression(argument._jc))
    as_scala = jvm.scala.jdk.javaapi.CollectionConverters.asScala
    call = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        jvm.java.lang.Class.forName(owner),
        getattr(jvm.org.apache.spark.sql.types.DataTypes, _JAVA_TYPES[result]),
        method,
        as_scala(expressions).toSeq(),
        as_scala(no_types).toSeq(),
        True,  # a null argument makes a null
        True,  # the result may be null
        True,  # deterministic
        jvm.scala.Option.empty(),
    )
    return Column(tools.column(call))
