"""The columns that Spark reads for a scan (spec: Schemas and Data Types, Column Projection).

Some types Spark cannot read. Timestamps of nanoseconds are read as longs; if the user asks for it, expressions compute
timestamps of microseconds from them. Spark reads all fields of the schema that a relation has, so its structs have only
the selected fields. Fields that only the filter needs are read as well and removed after the filter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from icefloe.engines.spark.schema import struct_type
from icefloe.errors import UnsupportedError
from icefloe.expr.filter.filter_columns import filter_columns
from icefloe.expr.filter.nodes import (
    And,
    Bound,
    BoundPredicate,
    Branch,
    Expr,
    Leaf,
    conjunction,
    disjunction,
    fold,
)
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.schema.json_values import value_from_json
from icefloe.model.schema.schema import Schema, merged_fields
from icefloe.model.schema.types import (
    BINARY,
    LONG,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
    children,
    fold_type,
)

_IN_MICROSECONDS = {TIMESTAMP_NS: TIMESTAMP, TIMESTAMPTZ_NS: TIMESTAMPTZ}
_AS_LONGS = dict.fromkeys(_IN_MICROSECONDS, LONG)
_JAVA_TYPES: dict[Type, str] = {TIMESTAMP_NS: "TimestampNTZType", TIMESTAMPTZ_NS: "TimestampType"}
_TIME_SETTING = "spark.sql.timeType.enabled"


def check_columns(spark: SparkSession, schema: Schema, *, reads_nanoseconds: bool, native: bool) -> None:
    """UnsupportedError if Spark cannot read a column, or would read null instead of its initial default.

    Unless ``native``, tasks read the files, which apply all defaults.
    """
    for name, field in schema.by_name.items():
        reason = _unreadable(field, reads_nanoseconds=reads_nanoseconds)
        if native and reason is None and field.initial_default is not None:
            reason = _unreadable_default(spark, field)
        if reason is not None:
            raise UnsupportedError(f"column {name!r} {reason}", field=name)


def _unreadable(field: Field, *, reads_nanoseconds: bool) -> str | None:
    """Why Spark cannot read the values of a column, apart from those of fields inside of it."""
    if isinstance(field.type, (Geometry, Geography)):
        return f"is {field.type}, which Spark's Parquet reader does not read; leave the column out"
    if field.type in _IN_MICROSECONDS and not reads_nanoseconds:
        return (
            f"is {field.type}, and Spark has no timestamps of nanoseconds; read it in microseconds with"
            " to_spark(spark, nanoseconds='microseconds'), or leave the column out"
        )
    return None


def _unreadable_default(spark: SparkSession, field: Field) -> str | None:
    if field.type == TIME and spark.conf.get(_TIME_SETTING, "false") != "true":
        return f"is a time with an initial default, which Spark reads only if {_TIME_SETTING} is true"
    return None


def has_binary_defaults(schema: Schema) -> bool:
    """Whether a column has an initial default that Spark's vectorized reader does not apply."""
    return any(
        field.initial_default is not None and (field.type in (BINARY, UUID) or isinstance(field.type, Fixed))
        for field in schema.fields
    )


def with_longs(schema: Schema) -> Schema:
    """The columns as Spark reads them: timestamps of nanoseconds are longs.

    >>> str(with_longs(Schema(fields=(Field(1, "at", TIMESTAMP_NS),))).field("at").type)
    'long'
    """
    return Schema(fields=tuple(map(_with_longs, schema.fields)), schema_id=schema.schema_id)


def _with_longs(field: Field) -> Field:
    if field.type in _AS_LONGS and field.initial_default is not None:
        default = value_from_json(field.initial_default, field.type, field.name)
        return replace(field, type=LONG, initial_default=default, write_default=None)
    return replace(field, type=_replaced(field.type, _AS_LONGS))


def in_microseconds(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The columns with timestamps of microseconds instead of nanoseconds."""
    return tuple(replace(field, type=_replaced(field.type, _IN_MICROSECONDS)) for field in fields)


def _replaced(type_: Type, others: dict[Any, Any]) -> Type:
    def replaced(old: Type, inner: tuple[Type, ...]) -> Type:
        match old:
            case Struct(fields):
                return Struct(tuple(replace(field, type=new) for field, new in zip(fields, inner, strict=True)))
            case List():
                return replace(old, element=inner[0])
            case Map():
                return replace(old, key=inner[0], value=inner[1])
        new: Type = others.get(old, old)
        return new

    return fold_type(type_, replaced)


def longs_to_microseconds(rows: DataFrame, schema: Schema) -> DataFrame:
    """The rows with timestamps instead of the longs that were read; fractions of a microsecond are cut off."""
    longs = {field.name: field for field in schema.fields if _has_nanoseconds(field.type)}
    if len(longs) == 0:
        return rows
    spark = rows.sparkSession
    return rows.select(
        *(
            _timestamps(spark, F.col(quoted(name)), longs[name].type).alias(name) if name in longs else quoted(name)
            for name in rows.columns
        )
    )


def _has_nanoseconds(type_: Type) -> bool:
    return type_ in _IN_MICROSECONDS or any(_has_nanoseconds(child.type) for child in children(type_))


def _timestamps(spark: SparkSession, column: Column, type_: Type) -> Column:
    if not _has_nanoseconds(type_):
        return column
    match type_:
        case Struct(fields):
            inner = (_timestamps(spark, column.getField(field.name), field.type).alias(field.name) for field in fields)
            return F.when(column.isNotNull(), F.struct(*inner))
        case List():
            return F.transform(column, lambda element: _timestamps(spark, element, type_.element))
        case Map():
            keyed = F.transform_keys(column, lambda key, _: _timestamps(spark, key, type_.key))
            return F.transform_values(keyed, lambda _, value: _timestamps(spark, value, type_.value))
    before_epoch = F.when(column % 1000 < 0, 1).otherwise(0)
    return _timestamp(spark, F.call_function("div", column, F.lit(1000)) - before_epoch, _JAVA_TYPES[type_])


def _timestamp(spark: SparkSession, microseconds: Column, java_type: str) -> Column:
    """Microseconds since 1970 as a timestamp, in no time zone."""
    jvm: Any = spark._jvm
    tools, types = jvm.org.apache.spark.sql.classic.ExpressionUtils, jvm.org.apache.spark.sql.types.DataTypes
    converted = jvm.org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion(
        tools.expression(microseconds._jc), types.LongType, getattr(types, java_type)
    )
    return Column(tools.column(converted))


def filter_on_longs(filter_: Bound) -> Bound:
    """The filter of a scan for rows with longs: its literals are counts of nanoseconds."""

    def leaf(node: Leaf) -> Expr:
        return replace(node, type=LONG) if isinstance(node, BoundPredicate) and node.type in _AS_LONGS else node

    def branch(node: Branch, parts: list[Expr]) -> Expr:
        return conjunction(parts) if isinstance(node, And) else disjunction(parts)

    return cast(Bound, fold(filter_, leaf, branch))


def _readable_columns(schema: Schema, *, needed: frozenset[int], reads_nanoseconds: bool) -> Schema:
    """The needed columns, and all others that Spark can read."""

    def is_readable(field: Field) -> bool:
        inner = [part for part in Schema(fields=(field,)).by_id.values() if part.id != field.id]
        if any(part.initial_default is not None for part in (*inner, field)):
            return False
        return all(_unreadable(part, reads_nanoseconds=reads_nanoseconds) is None for part in (*inner, field))

    kept = (field for field in schema.fields if field.id in needed or is_readable(field))
    return Schema(fields=tuple(kept), schema_id=schema.schema_id)


def columns_to_read(
    schema: Schema, wanted: tuple[Field, ...], filter_: Bound, *, reads_nanoseconds: bool = False
) -> Schema:
    """The columns of a table for a scan that returns ``wanted``, each with the fields that it or its filter needs.

    Columns that are not wanted do not change, because Spark does not read them. Those that Spark cannot read at all
    are left out.
    """
    tested = {field.id: field for field in filter_columns(filter_, schema).fields}
    needed = {field.id: merged_fields((field,), (tested.get(field.id, field),))[0] for field in wanted}
    columns = Schema(fields=tuple(needed.get(field.id, field) for field in schema.fields), schema_id=schema.schema_id)
    return _readable_columns(columns, needed=frozenset({*needed, *tested}), reads_nanoseconds=reads_nanoseconds)


def select_columns(rows: DataFrame, wanted: tuple[Field, ...], read: tuple[Field, ...]) -> DataFrame:
    """The ``wanted`` columns of rows that were read as ``read``, and of structs only the fields that are wanted."""
    by_id = {field.id: field for field in read}
    chosen = rows.select(*(quoted(field.name) for field in wanted))
    cut = [field for field in wanted if field.id in by_id and field != by_id[field.id]]
    if len(cut) == 0:
        return chosen
    types = {field.name: field for field in struct_type(Schema(fields=tuple(cut)))}
    return chosen.to(StructType([types.get(field.name, field) for field in chosen.schema]))
