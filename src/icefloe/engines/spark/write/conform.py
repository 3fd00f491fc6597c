"""Conforms a DataFrame to a table: columns by name, checked casts, no nulls in required columns.

A value that its cast would change, and a null in a required column, stop the write with an error that names the column.
Lists and maps are not changed here; the tasks that write them conform them. ``row_schema`` finds the columns that a
table lacks (spec: Schema Evolution).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from icefloe.engines.spark.failures import marked
from icefloe.engines.spark.schema import default_sql, spark_type
from icefloe.engines.spark.session import PerJvm, java_class
from icefloe.errors import InputError
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema, fresh_ids
from icefloe.model.schema.types import Field, List, Map, Struct, Type, children, is_primitive
from icefloe.model.text.spark_schema_json import FIELD_ID, fields_from_spark_json

_INTEGRAL = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_TIMES = (st.TimestampType, st.TimestampNTZType, st.DateType)
VALUE = "\ue000"  # a placeholder for the value in a message


def conformed(frame: DataFrame, schema: Schema) -> DataFrame:
    """The frame with exactly the columns of a table, each with its field id."""
    sources = _matched(frame.schema, schema.fields, "", frame)
    columns = []
    for field in schema.fields:
        source = sources.get(field.name)
        column = None if source is None else Column(_COLUMN.of(frame.sparkSession)(quoted(source.name)))
        columns.append(fitted(frame, column, source, field, field.name))
    return frame.select(*columns)


def _matched(
    columns: st.StructType, fields: Sequence[Field], prefix: str, frame: DataFrame
) -> Mapping[str, st.StructField]:
    """The columns of a frame by the name of the table's field; exact names win over a different case."""
    find = _finder(fields, frame)
    matched: dict[str, st.StructField] = {}
    extra = []
    for column in columns.fields:
        field = find(column.name)
        if field is None:
            extra.append(prefix + column.name)
        elif field.name in matched:
            raise InputError(f"two columns are named {prefix + field.name!r}", field=prefix + field.name)
        else:
            matched[field.name] = column
    _refuse(extra, [prefix + field.name for field in fields])
    missing = [
        prefix + field.name
        for field in fields
        if field.required and field.write_default is None and field.name not in matched
    ]
    if len(missing) > 0:
        raise InputError(f"required column {', '.join(missing)} is missing", field=missing[0])
    return matched


def _finder(fields: Sequence[Field], frame: DataFrame) -> Callable[[str], Field | None]:
    """A function that returns the field with a name; if the session ignores case, the only one with the name."""
    exact = {field.name: field for field in fields}
    folded: dict[str, list[Field]] = {}
    if frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        for field in fields:
            folded.setdefault(field.name.lower(), []).append(field)

    def find(name: str) -> Field | None:
        alike = [exact[name]] if name in exact else folded.get(name.lower(), [])
        return alike[0] if len(alike) == 1 else None

    return find


def _refuse(extra: list[str], known: list[str]) -> None:
    if len(extra) > 0:
        raise InputError(
            f"the table has no column {', '.join(extra)}; it has: {', '.join(known)}. Select the columns to write",
            field=extra[0],
        )


def fitted(frame: DataFrame, column: Column | None, source: st.StructField | None, field: Field, name: str) -> Column:
    """A column of the table with its name, its field id and checked values.

    If the frame has no such column, its values are the write default, or null (spec: Default values).
    """
    target = spark_type(field)
    if column is None or source is None:
        values = F.expr(default_sql(field)).cast(target)
    elif isinstance(source.dataType, st.NullType):
        values = column.cast(target)  # it is null, or raises: raise_error() and assert_true() are of this type
    elif isinstance(field.type, Struct) and isinstance(source.dataType, st.StructType):
        values = _fitted_struct(frame, column, source.dataType, field.type, name)
    elif isinstance(field.type, (List, Map)):
        values = _same_shape(column, source.dataType, target, field, name)
    else:
        values = _fitted_value(column, source.dataType, target, field, name)
    if field.required:
        values = _known_not_null(frame, F.coalesce(values, failure(f"column {name!r} is required and has a null")))
    return _with_id(frame, values, field)


def _with_id(frame: DataFrame, values: Column, field: Field) -> Column:
    """The column of a field. PySpark's ``col`` and ``alias`` would take thirteen calls into the JVM each."""
    metadata = _METADATA.of(frame.sparkSession)(json.dumps({FIELD_ID: field.id}))
    return Column(getattr(values._jc, "as")(field.name, metadata))


_COLUMN = PerJvm(lambda spark: java_class(spark, "org.apache.spark.sql.functions").col)
_METADATA = PerJvm(lambda spark: java_class(spark, "org.apache.spark.sql.types.Metadata").fromJson)


def _fitted_struct(frame: DataFrame, column: Column, source_type: st.StructType, type_: Struct, name: str) -> Column:
    sources = _matched(source_type, type_.fields, f"{name}.", frame)
    inner = []
    for field in type_.fields:
        source = sources.get(field.name)
        child = None if source is None else column.getField(source.name)
        inner.append(fitted(frame, child, source, field, f"{name}.{field.name}"))
    return F.when(column.isNotNull(), F.struct(*inner))


def _same_shape(column: Column, source_type: st.DataType, target: st.DataType, field: Field, name: str) -> Column:
    if type(source_type) is not type(target):
        raise _misfit(source_type, target, field, name)
    _check_inside(source_type, field, name)
    return column


def _check_inside(source_type: st.DataType, field: Field, name: str) -> None:
    """InputError for a value inside a list or map that cannot have the type of the table; tasks check the others."""
    inner: dict[str, st.DataType] = {}
    if isinstance(source_type, st.StructType):
        inner = {part.name: part.dataType for part in source_type.fields}
    elif isinstance(source_type, st.ArrayType):
        inner = {"element": source_type.elementType}
    elif isinstance(source_type, st.MapType):
        inner = {"key": source_type.keyType, "value": source_type.valueType}
    if is_primitive(field.type) and not _fits(source_type, target := spark_type(field)):
        raise _misfit(source_type, target, field, name)
    if not is_primitive(field.type):
        for child in children(field.type):
            if child.name in inner:
                _check_inside(inner[child.name], child, f"{name}.{child.name}")


def _fits(source_type: st.DataType, target: st.DataType) -> bool:
    if isinstance(source_type, st.NullType) or _is_same(source_type, target) or _widens(source_type, target):
        return True
    return _may_fit(source_type, target)


def _fitted_value(column: Column, source_type: st.DataType, target: st.DataType, field: Field, name: str) -> Column:
    if isinstance(source_type, st.StringType) and isinstance(target, st.StringType):
        return column.cast(target)  # without a collation, whose order and equality are not those of the format
    if _is_same(source_type, target):
        return column
    if _widens(source_type, target):
        return column.cast(target)
    if _may_fit(source_type, target):
        return _checked(column, source_type, target, field, name)
    raise _misfit(source_type, target, field, name)


def _misfit(source_type: st.DataType, target: st.DataType, field: Field, name: str) -> InputError:
    """The error for a column of another kind, in the words of the format and of Spark: they differ for timestamps."""
    wanted, given = target.simpleString(), source_type.simpleString()
    in_spark = "" if wanted == str(field.type) else f" ({wanted} in Spark)"
    zone = ""
    if isinstance(source_type, _TIMES) and isinstance(target, _TIMES):
        zone = ", which takes the time zone of the session"
    if is_primitive(field.type):
        advice = f"cast it first, for example with CAST({name} AS {wanted}){zone}"
    else:
        advice = f"convert it to {wanted} first"
    return InputError(f"column {name!r} is {field.type}{in_spark}, the DataFrame has {given}; {advice}", field=name)


def _is_same(source_type: st.DataType, target: st.DataType) -> bool:
    if isinstance(target, st.DecimalType):
        return bool(source_type == target)
    return isinstance(source_type, type(target))


def _widens(source_type: st.DataType, target: st.DataType) -> bool:
    if isinstance(source_type, _INTEGRAL) and isinstance(target, _INTEGRAL):
        return _INTEGRAL.index(type(source_type)) < _INTEGRAL.index(type(target))
    return isinstance(source_type, st.FloatType) and isinstance(target, st.DoubleType)


def _may_fit(source_type: st.DataType, target: st.DataType) -> bool:
    """Whether some values of a type are also values of the other. Every value is checked when it is written."""
    if isinstance(target, (*_INTEGRAL, st.DecimalType)):
        return isinstance(source_type, (*_INTEGRAL, st.DecimalType)) and not _is_fraction_to_whole(source_type, target)
    return isinstance(target, (st.FloatType, st.DoubleType)) and isinstance(source_type, (*_INTEGRAL, st.DoubleType))


def _is_fraction_to_whole(source_type: st.DataType, target: st.DataType) -> bool:
    return isinstance(source_type, st.DecimalType) and isinstance(target, _INTEGRAL)


def _checked(column: Column, source_type: st.DataType, target: st.DataType, field: Field, name: str) -> Column:
    """The values, cast; a value that the cast would change is an error."""
    cast = column.try_cast(target)
    survives = column.isNull() | (cast.try_cast(source_type) == column)
    message = f"column {name!r} is {field.type}; the {source_type.simpleString()} value {VALUE} does not fit"
    return F.when(survives, cast).otherwise(failure(message, column))


def failure(message: str, value: Column | None = None) -> Column:
    """A column that stops the query with an InputError; ``value`` takes the place of ``VALUE`` in the message."""
    before, _, after = marked(InputError, message).partition(VALUE)
    text = F.lit(before) if value is None else F.concat(F.lit(before), value.cast("string"), F.lit(after))
    return F.raise_error(text)


def _known_not_null(frame: DataFrame, column: Column) -> Column:
    """The same values, declared not null, so that the column is required in the file."""
    jvm: Any = frame.sparkSession._jvm
    tools = jvm.org.apache.spark.sql.classic.ExpressionUtils
    promise = jvm.org.apache.spark.sql.catalyst.expressions.KnownNotNull(tools.expression(column._jc))
    return Column(tools.column(promise))


def row_schema(frame: DataFrame, schema: Schema) -> pa.Schema:
    """The columns of a frame, by the names of the table's columns where the session takes them for the same."""
    fields = _renamed(fields_from_spark_json(frame.schema.json()), schema.fields, frame)
    return arrow_schema(Schema(fields=fresh_ids(fields)))


def _renamed(fields: Sequence[Field], ours: Sequence[Field], frame: DataFrame) -> tuple[Field, ...]:
    """Fields by the names that the table has, at every depth."""
    find, renamed = _finder(ours, frame), []
    for field in fields:
        own = find(field.name)
        if own is not None:
            field = replace(field, name=own.name, type=_renamed_inside(field.type, own.type, frame))
        renamed.append(field)
    return tuple(renamed)


def _renamed_inside(type_: Type, ours: Type, frame: DataFrame) -> Type:
    if isinstance(type_, Struct) and isinstance(ours, Struct):
        return Struct(_renamed(type_.fields, ours.fields, frame))
    if isinstance(type_, List) and isinstance(ours, List):
        return replace(type_, element=_renamed_inside(type_.element, ours.element, frame))
    if isinstance(type_, Map) and isinstance(ours, Map):
        key, value = _renamed_inside(type_.key, ours.key, frame), _renamed_inside(type_.value, ours.value, frame)
        return replace(type_, key=key, value=value)
    return type_


def with_spelling_of(frame: DataFrame, schema: Schema) -> DataFrame:
    """The frame with the names of the table's columns where the session takes them for the same."""
    find, names = _finder(schema.fields, frame), set(frame.columns)
    own = {name: field.name for name in frame.columns if (field := find(name)) is not None}
    renamed = {name: new for name, new in own.items() if new not in names}
    return frame.withColumnsRenamed(renamed) if len(renamed) > 0 else frame
