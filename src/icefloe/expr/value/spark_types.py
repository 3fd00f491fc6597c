"""Types, constants and conversions of SQL values in Spark SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe.errors import UnsupportedError
from icefloe.expr.text.spark_sql import quoted, sql_literal
from icefloe.expr.value.types import MAX_DIGITS, NULL, convert, kind_of
from icefloe.model.schema import types

_TYPES: Mapping[pa.DataType, tuple[str, types.PrimitiveType]] = {
    pa.bool_(): ("BOOLEAN", types.BOOLEAN),
    pa.int8(): ("TINYINT", types.INT),
    pa.int16(): ("SMALLINT", types.INT),
    pa.int32(): ("INT", types.INT),
    pa.int64(): ("BIGINT", types.LONG),
    pa.float32(): ("FLOAT", types.FLOAT),
    pa.float64(): ("DOUBLE", types.DOUBLE),
    pa.string(): ("STRING", types.STRING),
    pa.large_string(): ("STRING", types.STRING),
    pa.string_view(): ("STRING", types.STRING),
    pa.binary(): ("BINARY", types.BINARY),
    pa.large_binary(): ("BINARY", types.BINARY),
    pa.date32(): ("DATE", types.DATE),
    pa.time64("us"): ("TIME(6)", types.TIME),
    pa.timestamp("us", "UTC"): ("TIMESTAMP", types.TIMESTAMPTZ),
    pa.timestamp("us"): ("TIMESTAMP_NTZ", types.TIMESTAMP),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sql:
    """The text of a value, and its type; ``constant`` is its value if it is a constant."""

    text: str
    type: pa.DataType
    constant: Any = None


def constant_sql(value: Any) -> Sql:
    """The literal of an Arrow scalar."""
    return Sql(text=_literal(value), type=value.type, constant=value)


def _literal(value: Any) -> str:
    type_ = value.type
    if not value.is_valid:
        return "NULL" if kind_of(type_) == NULL else f"CAST(NULL AS {spark_type(type_)})"
    if pa.types.is_decimal(type_):
        spark_type(type_)
        return sql_literal(value.as_py(), types.Decimal(type_.precision, type_.scale))
    if pa.types.is_fixed_size_binary(type_):
        return sql_literal(value.as_py(), types.BINARY)
    name = spark_type(type_)
    text = sql_literal(value.as_py(), _TYPES[type_][1])
    return f"CAST({text} AS {name})" if type_ in (pa.int8(), pa.int16()) else text


def spark_type(type_: pa.DataType) -> str:
    """The name of a type in Spark SQL; UnsupportedError if Spark has no such type.

    >>> spark_type(pa.struct([("a", pa.list_(pa.decimal128(9, 2)))]))
    'STRUCT<`a`: ARRAY<DECIMAL(9, 2)>>'
    """
    if type_ in _TYPES:
        return _TYPES[type_][0]
    if pa.types.is_null(type_):
        return "VOID"
    if pa.types.is_decimal(type_) and type_.precision <= MAX_DIGITS:
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_fixed_size_binary(type_):
        return "BINARY"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{quoted(field.name)}: {spark_type(field.type)}' for field in type_)}>"
    if pa.types.is_map(type_):
        return f"MAP<{spark_type(type_.key_type)}, {spark_type(type_.item_type)}>"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"ARRAY<{spark_type(type_.value_type)}>"
    raise UnsupportedError(f"Spark has no type for values of type {type_}", type=str(type_))


def converted(printed: Sql, type_: pa.DataType) -> Sql:
    """A value in a type that ``common_type`` chose."""
    if printed.constant is not None:
        return constant_sql(convert(printed.constant, type_))
    return as_type(printed, type_)


def as_type(printed: Sql, type_: pa.DataType) -> Sql:
    """A value cast to a type, unless Spark has it in this type already."""
    if spark_type(printed.type) == spark_type(type_):
        return Sql(text=printed.text, type=type_)
    return Sql(text=f"CAST({printed.text} AS {spark_type(type_)})", type=type_)


def condition(printed: Sql) -> str:
    """The text of a condition; an untyped null becomes a boolean."""
    return as_type(printed, pa.bool_()).text
