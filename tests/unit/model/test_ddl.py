"""Schemas and partitions as people write them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.ddl import as_schema, parse_ddl, parse_partition, partition_spec, spark_schema_json, spark_type_json
from icefloe.model.partitioning import PartitionField
from icefloe.model.schema import Schema, assign_ids
from icefloe.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
)

ORDERS = parse_ddl("id bigint not null, ts timestamp, note string, s struct<x: date, `odd name`: int>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("boolean", BOOLEAN),
        ("tinyint", INT),
        ("byte", INT),
        ("smallint", INT),
        ("short", INT),
        ("int", INT),
        ("INTEGER", INT),
        ("bigint", LONG),
        ("long", LONG),
        ("float", FLOAT),
        ("real", FLOAT),
        ("double", DOUBLE),
        ("date", DATE),
        ("time", TIME),
        ("timestamp", TIMESTAMPTZ),
        ("timestamp_ltz", TIMESTAMPTZ),
        ("timestamp_ntz", TIMESTAMP),
        ("string", STRING),
        ("varchar(10)", STRING),
        ("char(3)", STRING),
        ("binary", BINARY),
        ("uuid", UUID),
        ("decimal", Decimal(10, 0)),
        ("decimal(5)", Decimal(5, 0)),
        ("decimal(9,2)", Decimal(9, 2)),
        ("numeric(4, 1)", Decimal(4, 1)),
        ("array<string>", List(2, STRING)),
        ("map<string,int>", Map(2, STRING, 3, INT)),
        ("struct<a: int, b string>", Struct((Field(2, "a", INT), Field(3, "b", STRING)))),
        ("array<struct<a: map<int, date>>>", List(2, Struct((Field(3, "a", Map(4, INT, 5, DATE)),)))),
    ],
)
def test_every_type_of_spark_sql_is_read(text, expected):
    assert parse_ddl(f"c {text}").fields == (Field(1, "c", expected),)


def test_columns_may_be_required_commented_and_quoted():
    schema = parse_ddl(
        "id bigint NOT NULL COMMENT 'the key, mostly', `odd name` int, s struct<a: int not null comment 'x'>"
    )

    assert schema.fields == (
        Field(1, "id", LONG, True, "the key, mostly"),
        Field(2, "odd name", INT),
        Field(3, "s", Struct((Field(4, "a", INT, True, "x"),))),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "id foo",
        "id int, primary key (id)",
        "id int default 5",
        "id int) using parquet --",
        "id int); drop table t; --",
        "a int, a string",
        "a array",
        "a map<int>",
        "a struct<b>",
        "a variant",
        "a interval",
        "a decimal(50, 2)",
        "a decimal(5, 9)",
        "a decimal(x)",
        "a fixed(3)",
        "a 'int",
        "a array<" + "array<" * 3000,
        "select 1",
    ],
)
def test_what_is_not_a_list_of_columns_is_an_input_error(text):
    with pytest.raises(InputError):
        parse_ddl(text)


@settings(max_examples=150)
@given(st.text("abint <>(),:`'-;9", max_size=25))
def test_any_text_is_a_schema_or_an_input_error(text):
    try:
        parsed = parse_ddl(text)
    except InputError:
        return
    assert len(parsed.fields) > 0


SPARK = spark.StructType(
    [
        spark.StructField("id", spark.LongType(), False, {"comment": "key"}),
        spark.StructField("a", spark.ArrayType(spark.StringType(), False)),
        spark.StructField(
            "m",
            spark.MapType(
                spark.StringType(), spark.StructType([spark.StructField("x", spark.TimestampNTZType(), False)])
            ),
        ),
        spark.StructField("d", spark.DecimalType(9, 2)),
        spark.StructField("t", spark.TimestampType()),
        spark.StructField("v", spark.VarcharType(3)),
        spark.StructField("b", spark.ByteType()),
    ]
)


def test_a_spark_schema_is_read_from_its_json():
    schema = as_schema(SPARK)

    assert schema.fields == (
        Field(1, "id", LONG, True, "key"),
        Field(2, "a", List(8, STRING, True)),
        Field(3, "m", Map(9, STRING, 10, Struct((Field(11, "x", TIMESTAMP, True),)))),
        Field(4, "d", Decimal(9, 2)),
        Field(5, "t", TIMESTAMPTZ),
        Field(6, "v", STRING),
        Field(7, "b", INT),
    )


def test_spark_reads_our_json_and_gives_the_same_schema_back():
    schema = as_schema(SPARK)
    written = spark_schema_json(schema)

    theirs = spark.StructType.fromJson(json.loads(json.dumps(written)))

    assert theirs["id"].metadata == {"parquet.field.id": 1, "comment": "key"}
    assert theirs["m"].dataType.valueType["x"].metadata == {"parquet.field.id": 11}
    assert as_schema(theirs) == schema


def test_types_that_spark_lacks_are_those_of_its_parquet_reader_or_refused():
    assert spark_type_json(UUID) == spark_type_json(Fixed(4)) == "binary"
    with pytest.raises(UnsupportedError, match=r"'s\.t'"):
        spark_schema_json(Schema(fields=(Field(1, "s", Struct((Field(2, "t", TIME),))),)))


@pytest.mark.parametrize("kind", [spark.NullType(), spark.DayTimeIntervalType(), spark.VariantType()])
def test_spark_types_without_a_counterpart_are_refused_by_name(kind):
    with pytest.raises(UnsupportedError, match="'c'"):
        as_schema(spark.StructType([spark.StructField("c", kind)]))


def test_a_schema_is_taken_in_every_form_and_numbered_afresh():
    expected = parse_ddl("id bigint, tags array<string>")
    arrow = pa.schema({"id": pa.int64(), "tags": pa.list_(pa.string())})
    ours = Schema(fields=(Field(7, "id", LONG), Field(8, "tags", List(99, STRING))))

    assert as_schema("id bigint, tags array<string>") == expected
    assert as_schema(arrow) == expected
    assert as_schema(ours) == expected == assign_ids(ours)
    assert as_schema(SpeaksArrow(arrow)) == expected


class SpeaksArrow:
    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()


class Odd:
    fields = ()

    def json(self) -> str:
        return '{"type": "struct", "fields": [{"name": 1}]}'


@pytest.mark.parametrize("value", [5, None, ["id"], Odd(), pa.schema([("a", pa.int8()), ("a", pa.int8())])])
def test_what_is_no_schema_is_an_input_error(value):
    with pytest.raises(InputError):
        as_schema(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("day(ts)", ("day", "ts")),
        ("DAYS( ts )", ("day", "ts")),
        ("hours(ts)", ("hour", "ts")),
        ("hour(ts)", ("hour", "ts")),
        ("month(ts)", ("month", "ts")),
        ("months(ts)", ("month", "ts")),
        ("year(ts)", ("year", "ts")),
        ("years(ts)", ("year", "ts")),
        ("bucket(16, id)", ("bucket[16]", "id")),
        ("truncate(4,note)", ("truncate[4]", "note")),
        ("identity(id)", ("identity", "id")),
        (" id ", ("identity", "id")),
        ("`id`", ("identity", "id")),
        ("day(s.x)", ("day", "s.x")),
        ("s.`odd name`", ("identity", "s.odd name")),
    ],
)
def test_partition_texts_are_read(text, expected):
    assert parse_partition(text, ORDERS) == expected


@pytest.mark.parametrize(
    "text",
    ["", "day(nope)", "nope", "days(16, ts)", "bucket(id)", "week(ts)", "day(ts", "day(ts + 1)", "bucket(id, 4)"],
)
def test_partition_texts_that_cannot_be_meant_are_input_errors(text):
    with pytest.raises(InputError):
        parse_partition(text, ORDERS)


def test_partition_fields_have_icebergs_names():
    times = partition_spec(["year(ts)", "months(ts)", "hours(ts)"], ORDERS)
    assert [(f.name, f.transform) for f in times.fields] == [
        ("ts_year", "year"), ("ts_month", "month"), ("ts_hour", "hour"),
    ]  # fmt: skip
    spec = partition_spec(["day(ts)", "bucket(16, id)", "truncate(4, note)", "id"], ORDERS)

    assert [f.name for f in spec.fields] == ["ts_day", "id_bucket", "note_trunc", "id"]
    assert spec.fields[1] == PartitionField(source_id=1, field_id=1001, name="id_bucket", transform="bucket[16]")
    assert partition_spec(["id"], ORDERS, 1007).fields[0].field_id == 1007
    assert partition_spec([], ORDERS).fields == ()


def test_two_partition_fields_of_one_name_or_the_name_of_a_column_are_refused():
    with pytest.raises(InputError, match="already"):
        partition_spec(["bucket(4, id)", "bucket(8, id)"], ORDERS)
    with pytest.raises(InputError, match="column"):
        partition_spec(["day(ts)"], parse_ddl("ts timestamp, ts_day date"))
