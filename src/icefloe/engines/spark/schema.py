"""A table's schema as Spark's types, with field ids where Spark's Parquet reader and writer look for them.

Spark has ids on struct fields only; elements of lists, keys and values of maps have none (spec: Column Projection).
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as st

from icefloe.errors import UnsupportedError
from icefloe.model.schema import Schema
from icefloe.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)

FIELD_ID = "parquet.field.id"

_SPARK: dict[Primitive, st.DataType] = {
    BOOLEAN: st.BooleanType(),
    INT: st.IntegerType(),
    LONG: st.LongType(),
    FLOAT: st.FloatType(),
    DOUBLE: st.DoubleType(),
    DATE: st.DateType(),
    TIMESTAMP: st.TimestampNTZType(),
    TIMESTAMPTZ: st.TimestampType(),
    STRING: st.StringType(),
    UUID: st.BinaryType(),  # the sixteen bytes: Spark has no such type and its reader makes no text of them
    BINARY: st.BinaryType(),
}


def struct_type(schema: Schema) -> st.StructType:
    """The columns of a table as a ``StructType`` whose fields carry their ids.

    >>> struct_type(Schema(fields=(Field(7, "id", LONG, True),)))["id"].metadata
    {'parquet.field.id': 7}
    """
    return st.StructType([_field(field, field.name) for field in schema.fields])


def spark_type(type_: Type, name: str) -> st.DataType:
    """The Spark type that holds values of a type; ``name`` is the column's, for the error."""
    match type_:
        case Primitive() if type_ in _SPARK:
            return _SPARK[type_]
        case Decimal(precision, scale):
            return st.DecimalType(precision, scale)
        case Fixed():
            return st.BinaryType()
        case Struct(fields):
            return st.StructType([_field(field, f"{name}.{field.name}") for field in fields])
        case List():
            return st.ArrayType(spark_type(type_.element, f"{name}.element"), not type_.element_required)
        case Map():
            key, value = spark_type(type_.key, f"{name}.key"), spark_type(type_.value, f"{name}.value")
            return st.MapType(key, value, not type_.value_required)
        case _:
            raise UnsupportedError(
                f"column {name!r} is {type_}, which Spark cannot hold; leave it out with columns=[...]", field=name
            )


def names_are_stable(schemas: Iterable[Schema]) -> bool:
    """Whether no name has ever belonged to two columns, as far as a table's schemas prove it.

    Schemas are numbered from 0; if one is missing, what it named cannot be known.

    >>> first, renamed = Field(1, "a", LONG), Field(1, "b", LONG)
    >>> names_are_stable([Schema(fields=(first,)), Schema(fields=(renamed,), schema_id=1)])
    True
    >>> names_are_stable([Schema(fields=(first,)), Schema(fields=(renamed, Field(2, "a", LONG)), schema_id=1)])
    False
    """
    known = tuple(schemas)
    owners = {(name, id_) for schema in known for id_, name in schema.names.items()}
    is_whole = {schema.schema_id for schema in known} == set(range(len(known)))
    return is_whole and len(owners) == len({name for name, _ in owners})


def _field(field: Field, name: str) -> st.StructField:
    return st.StructField(field.name, spark_type(field.type, name), not field.required, {FIELD_ID: field.id})
