"""Schemas go to Arrow, to Spark's JSON and to text, and come back the same, but for what is documented as lost."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark
from sqlglot import exp, parse_one

from icefloe.model.arrow.conform import arrow_schema, schema_from_arrow
from icefloe.model.schema.schema import Schema, assign_ids
from icefloe.model.schema.schema_rules import check_schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    Map,
    Struct,
    Type,
    children,
    fold_type,
    walk,
    with_children,
)
from icefloe.model.text.ddl import as_schema, parse_ddl
from icefloe.model.text.spark_schema_json import spark_schema_json
from support.selection import examples
from unit.model.ddl_text import ddl_text
from unit.model.schemas import LEAVES, schemas

SPARK_LEAVES = tuple(
    type_
    for type_ in LEAVES
    if type_ not in (TIMESTAMP_NS, TIMESTAMPTZ_NS)
    and (not isinstance(type_, Geometry) or type_.crs in ("OGC:CRS84", "EPSG:3857"))
    and (not isinstance(type_, Geography) or type_ == Geography())
)


SQL_LEAVES = (BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY, Decimal(9, 2))
TEXT = st.text("ab` '\"\\\n,;<é", max_size=6)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(schemas())
def test_arrow_gives_a_schema_back_with_ids_comments_and_defaults(schema):
    assert schema_from_arrow(arrow_schema(schema), format_version=3) == schema


@given(schemas())
def test_the_schema_survives_the_bytes_of_an_arrow_stream(schema):
    read = pa.ipc.read_schema(arrow_schema(schema).serialize())

    assert schema_from_arrow(read, format_version=3) == schema


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(schemas())
def test_text_gives_a_schema_back_with_comments_and_defaults(schema):
    assert parse_ddl(ddl_text(schema)) == assign_ids(schema)


@given(schemas(SPARK_LEAVES))
def test_a_schema_is_the_same_whichever_way_it_is_handed_in(schema):
    expected = assign_ids(as_in_spark(schema))

    for form in (
        expected,
        ddl_text(expected),
        arrow_schema(expected),
        spark_schema_json(expected),
        json.dumps(spark_schema_json(expected)),
        spark.StructType.fromJson(spark_schema_json(expected)),
    ):
        assert as_schema(form, format_version=3) == expected


@given(
    st.lists(st.tuples(TEXT, st.sampled_from(SQL_LEAVES), TEXT), min_size=1, max_size=4, unique_by=lambda c: c[0]),
)
def test_another_parser_of_spark_sql_reads_the_same_columns(columns):
    plain = [(f"c{position}{name}", type_, doc) for position, (name, type_, doc) in enumerate(columns)]
    ours = Schema(fields=tuple(Field(i, name, type_, True, doc) for i, (name, type_, doc) in enumerate(plain, 1)))

    parsed = list(parse_one(f"CREATE TABLE t ({ddl_text(ours)})", read="spark").find_all(exp.ColumnDef))

    assert [column.name for column in parsed] == [name for name, _, _ in plain]
    assert [column.find(exp.CommentColumnConstraint).name for column in parsed] == [doc for _, _, doc in plain]
    assert all(column.find(exp.NotNullColumnConstraint) is not None for column in parsed)


@given(schemas())
def test_random_schemas_keep_the_rules_of_version_3(schema):
    check_schema(schema, 3)


@given(schemas(), st.data())
def test_pruning_keeps_what_was_asked_for_and_what_is_around_it(schema, data):
    names = data.draw(st.lists(st.sampled_from(list(schema.by_name)), unique=True, max_size=4))

    pruned = schema.prune(tuple(names))

    assert {id_: schema.names[id_] for id_ in expected_ids(schema, names)} == pruned.names


def expected_ids(schema: Schema, names: list[str]) -> set[int]:
    """The ids of the columns of these names, of all inside them and all around them; and what keeps a map whole."""
    above = {child.id: field.id for _, field in walk(schema.fields) for child in children(field.type)}

    def line(id_: int) -> set[int]:
        return {id_} | (line(above[id_]) if id_ in above else set())

    def whole(id_: int) -> set[int]:
        return {other for other in schema.by_id if id_ in line(other)}

    asked = {schema.field(name).id for name in names}
    kept = set().union(*(line(id_) | whole(id_) for id_ in asked))
    for id_ in list(kept):
        if isinstance(type_ := schema.by_id[id_].type, Map):
            kept |= whole(type_.key_id)
            kept |= set() if type_.value_id in kept else whole(type_.value_id)
    return kept


def as_in_spark(schema: Schema) -> Schema:
    """The schema with bytes in place of what Spark has no type for."""

    def plain(type_: Type, inner: tuple[Type, ...]) -> Type:
        if type_ == UUID or isinstance(type_, Fixed):
            return BINARY
        pairs = zip(children(type_), inner, strict=True)
        return with_children(type_, tuple(replace(undashed(field), type=new) for field, new in pairs))

    return Schema(fields=children(fold_type(Struct(schema.fields), plain)))


def undashed(field: Field) -> Field:
    if field.type != UUID or field.write_default is None:
        return field
    text = field.write_default.replace("-", "")
    return replace(field, initial_default=text, write_default=text)
