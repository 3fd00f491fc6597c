"""Schemas in Spark's JSON: what its fields keep, types of newer versions, and what has no counterpart."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pyspark.sql import types as spark

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.schema.schema import Schema, assign_ids, fresh_ids
from icefloe.model.schema.types import (
    BINARY,
    DATE,
    INT,
    STRING,
    TIME,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    Field,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
)
from icefloe.model.text.spark_schema_json import fields_from_spark_json, spark_schema_json, spark_type_json


def given_type(type_: object, **metadata: object) -> dict[str, object]:
    return {"type": "struct", "fields": [{"name": "c", "type": type_, "nullable": True, "metadata": metadata}]}


def test_a_field_keeps_its_id_comment_and_defaults_as_spark_does():
    field = Field(7, "day", DATE, True, "why", "2026-01-01", "2026-02-01")

    written = spark_schema_json(Schema(fields=(field,)))

    assert written["fields"][0]["metadata"] == {
        "parquet.field.id": 7,
        "comment": "why",
        "CURRENT_DEFAULT": "DATE '2026-02-01'",
        "EXISTS_DEFAULT": "DATE '2026-01-01'",
    }
    assert fields_from_spark_json(written) == (replace(field, id=0),)


def test_ids_of_elements_keys_and_values_are_with_the_field_around_them():
    inner = Struct((Field(9, "x", List(10, INT)),))
    schema = Schema(fields=(Field(5, "m", Map(6, STRING, 7, List(8, inner))),))

    written = spark_schema_json(schema)

    assert written["fields"][0]["metadata"]["parquet.field.nested.ids"] == {
        "m.key": 6, "m.value": 7, "m.value.element": 8,
    }  # fmt: skip
    assert Schema(fields=fresh_ids(fields_from_spark_json(json.dumps(written)))) == assign_ids(schema)


@pytest.mark.parametrize(
    ("type_", "theirs"),
    [
        (TIME, spark.TimeType(6)),
        (VARIANT, spark.VariantType()),
        (UNKNOWN, spark.NullType()),
        (Geometry(), spark.GeometryType(4326)),
        (Geometry("EPSG:3857"), spark.GeometryType(3857)),
        (Geography(), spark.GeographyType(4326)),
    ],
    ids=str,
)
def test_newer_types_are_those_of_spark(type_, theirs):
    written = spark_schema_json(Schema(fields=(Field(1, "c", type_),)))

    assert spark.StructType.fromJson(written)["c"].dataType == theirs
    assert fields_from_spark_json(spark.StructType.fromJson(written).json()) == (Field(0, "c", type_),)


@pytest.mark.parametrize(
    "type_",
    [TIMESTAMP_NS, TIMESTAMPTZ_NS, Geometry("EPSG:9999"), Geography("EPSG:4979"), Geography("OGC:CRS84", "karney")],
    ids=str,
)
def test_types_that_spark_lacks_are_refused_with_a_way_out(type_):
    with pytest.raises(UnsupportedError, match=r"'s\.c': Spark has no type for .*; leave the column out"):
        spark_schema_json(Schema(fields=(Field(1, "s", Struct((Field(2, "c", type_),))),)))


def test_the_default_of_a_uuid_is_bytes_to_spark():
    written = spark_schema_json(
        Schema(fields=(Field(1, "c", UUID, write_default=f"{'0' * 8}-0000-0000-0000-{'f' * 12}"),))
    )

    assert written["fields"][0]["metadata"]["CURRENT_DEFAULT"] == f"X'{'0' * 20}{'f' * 12}'"
    assert fields_from_spark_json(written) == (Field(0, "c", BINARY, write_default="0" * 20 + "f" * 12),)


def test_the_default_of_a_nested_column_is_refused_rather_than_lost():
    with pytest.raises(UnsupportedError, match="'c'"):
        spark_schema_json(Schema(fields=(Field(1, "c", List(2, INT), write_default=[1]),)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("varchar(5)", STRING),
        ("char(1)", STRING),
        ("string collate UTF8_LCASE", STRING),
        ("time(3)", TIME),
        ("geometry", Geometry()),
        ("geography", Geography()),
    ],
)
def test_spellings_of_spark_without_a_type_of_their_own_are_taken(text, expected):
    assert fields_from_spark_json(given_type(text)) == (Field(0, "c", expected),)


@pytest.mark.parametrize(
    "text",
    ["time(9)", "interval day", "geometry(SRID:ANY)", "geometry(any)", "decimal(9)", "udt", "timestamp_ns", "uuid"],
)
def test_spark_types_without_a_counterpart_are_refused_by_the_columns_name(text):
    with pytest.raises(UnsupportedError, match="'c'"):
        fields_from_spark_json(given_type(text))


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "[]",
        '"long"',
        '{"type": "struct"}',
        given_type("decimal(50,2)"),
        given_type("geography(OGC:CRS84, flat)"),
        given_type("integer", CURRENT_DEFAULT="1 + 1"),
        given_type("integer", EXISTS_DEFAULT="'x'"),
        given_type({"type": "array", "elementType": "long"}),
        "[" * 100_000,
    ],
    ids=range(10),
)
def test_what_is_not_the_json_of_a_schema_is_an_input_error(broken):
    with pytest.raises(InputError):
        fields_from_spark_json(broken)


def test_endless_nesting_is_refused():
    deep: object = "long"
    for _ in range(150):
        deep = {"type": "array", "elementType": deep, "containsNull": True}

    with pytest.raises(InputError, match="nested"):
        fields_from_spark_json(given_type(deep))


def test_a_type_alone_has_the_same_json_as_in_a_schema():
    assert spark_type_json(List(1, INT, True)) == {"type": "array", "elementType": "integer", "containsNull": False}
