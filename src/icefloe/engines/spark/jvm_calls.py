"""Java methods as columns: generated code calls them directly, without a UDF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import BinaryType, DataType, DecimalType, IntegerType, LongType, StringType

_JAVA_TYPES: dict[DataType, str] = {
    IntegerType(): "IntegerType",
    LongType(): "LongType",
    StringType(): "StringType",
    BinaryType(): "BinaryType",
}


def static_call(
    spark: SparkSession, owner: str, method: str, arguments: Sequence[Column], result: DataType | str
) -> Column:
    """A deterministic static method of the class ``owner``; null if an argument is null.

    ``result`` is a type of Spark, or the name of the class of the returned objects, which only other calls can take.
    """
    jvm: Any = spark._jvm
    kind, owner_class = _java_type(jvm, result), jvm.java.lang.Class.forName(owner)
    return _call(jvm, "StaticInvoke", (owner_class, kind, method), arguments, (jvm.scala.Option.empty(),))


def method_call(
    spark: SparkSession, value: Column, method: str, result: DataType | str, arguments: Sequence[Column] = ()
) -> Column:
    """A deterministic method of the Java object that holds a value of a column; null if the value is null."""
    jvm: Any = spark._jvm
    target = jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(value._jc)
    return _call(jvm, "Invoke", (target, method, _java_type(jvm, result)), arguments)


def _call(
    jvm: Any, name: str, called: tuple[Any, ...], arguments: Sequence[Column], more: tuple[Any, ...] = ()
) -> Column:
    null_if_argument_is, may_be_null, is_deterministic = True, True, True
    call = getattr(jvm.org.apache.spark.sql.catalyst.expressions.objects, name)(
        *(*called, _expressions(jvm, arguments), _expressions(jvm, ())),
        *(null_if_argument_is, may_be_null, is_deterministic, *more),
    )
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(call))


def _java_type(jvm: Any, type_: DataType | str) -> Any:
    types = jvm.org.apache.spark.sql.types
    if isinstance(type_, str):
        return types.ObjectType(jvm.java.lang.Class.forName(type_))
    if isinstance(type_, DecimalType):
        return types.DataTypes.createDecimalType(type_.precision, type_.scale)
    return getattr(types.DataTypes, _JAVA_TYPES[type_])


def _expressions(jvm: Any, columns: Sequence[Column]) -> Any:
    expressions = jvm.java.util.ArrayList()
    for column in columns:
        expressions.add(jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc))
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(expressions).toSeq()
