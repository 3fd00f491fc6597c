"""The schema of a DataFrame in Arrow's types, to find the columns that a table lacks (spec: Schema Evolution)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame

from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema, fresh_ids
from icefloe.model.schema.types import Field, List, Map, Struct, Type
from icefloe.model.text.spark_schema_json import fields_from_spark_json


def row_schema(frame: DataFrame, schema: Schema) -> pa.Schema:
    """The columns of a frame, by the names of the table's columns where the session takes them for the same."""
    is_exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    fields = fields_from_spark_json(frame.schema.json())
    renamed = fields if is_exact else _renamed(fields, schema.fields)
    return arrow_schema(Schema(fields=fresh_ids(renamed)))


def _renamed(fields: Sequence[Field], ours: Sequence[Field]) -> tuple[Field, ...]:
    """Fields by the names that the table has, at every depth, if they differ from them only in case."""
    exact = {field.name: field for field in ours}
    folded: dict[str, list[Field]] = {}
    for field in ours:
        folded.setdefault(field.name.lower(), []).append(field)
    renamed = []
    for field in fields:
        alike = [exact[field.name]] if field.name in exact else folded.get(field.name.lower(), [])
        if len(alike) == 1:
            field = replace(field, name=alike[0].name, type=_renamed_inside(field.type, alike[0].type))
        renamed.append(field)
    return tuple(renamed)


def _renamed_inside(type_: Type, ours: Type) -> Type:
    if isinstance(type_, Struct) and isinstance(ours, Struct):
        return Struct(_renamed(type_.fields, ours.fields))
    if isinstance(type_, List) and isinstance(ours, List):
        return replace(type_, element=_renamed_inside(type_.element, ours.element))
    if isinstance(type_, Map) and isinstance(ours, Map):
        key, value = _renamed_inside(type_.key, ours.key), _renamed_inside(type_.value, ours.value)
        return replace(type_, key=key, value=value)
    return type_
