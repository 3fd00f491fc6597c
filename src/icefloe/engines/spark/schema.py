"""The schema of a table in Spark's types, with the field ids that Spark's Parquet reader and writer use.

In Spark only fields of structs have ids; elements of lists, keys and values of maps do not (spec: Column Projection).
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from icefloe.engines.spark.session import local_frame
from icefloe.model.arrow.schema_from_arrow import schema_from_arrow
from icefloe.model.metadata.version_rules import LATEST_FORMAT_VERSION
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.model.text.spark_schema_json import WRITE_DEFAULT, spark_schema_json, without_field_ids


def struct_type(schema: Schema) -> StructType:
    """The columns of a table as a ``StructType`` whose fields have their ids.

    >>> from icefloe.model.schema.types import LONG
    >>> struct_type(Schema(fields=(Field(7, "id", LONG, True),)))["id"].metadata
    {'parquet.field.id': 7}
    """
    return StructType.fromJson(spark_schema_json(schema))


def arrow_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A DataFrame of Arrow rows. Columns have the Spark types of tables here, and no field ids."""
    schema = schema_from_arrow(rows.schema, format_version=LATEST_FORMAT_VERSION)
    return local_frame(spark, rows, StructType.fromJson(without_field_ids(spark_schema_json(schema))))


def spark_type(field: Field) -> DataType:
    """The Spark type of a field."""
    return struct_type(Schema(fields=(field,))).fields[0].dataType


def default_sql(field: Field) -> str:
    """The write default of a field as Spark SQL, ``NULL`` if it has none."""
    metadata = struct_type(Schema(fields=(field,))).fields[0].metadata
    return str(metadata.get(WRITE_DEFAULT, "NULL"))


def names_are_stable(schemas: Iterable[Schema]) -> bool:
    """Whether it is certain that no name has ever belonged to two columns.

    Schemas are numbered from 0; if one is missing, its names are not known.

    >>> from icefloe.model.schema.types import LONG
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
