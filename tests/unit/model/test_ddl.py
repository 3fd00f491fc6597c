"""Schemas and partitions as people write them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema, assign_ids
from icefloe.model.schema.types import (
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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
)
from icefloe.model.text.ddl import as_schema, parse_ddl
from icefloe.model.text.partition_text import parse_partition, partition_spec
from icefloe.model.text.spark_schema_json import spark_schema_json, spark_type_json
from support.selection import examples
from unit.model.ddl_text import ddl_text

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
        ("fixed(3)", Fixed(3)),
        ("fixed[16]", Fixed(16)),
        ("time(6)", TIME),
        ("timestamptz", TIMESTAMPTZ),
        ("timestamp_ns", TIMESTAMP_NS),
        ("timestamptz_ns", TIMESTAMPTZ_NS),
        ("VARIANT", VARIANT),
        ("void", UNKNOWN),
        ("unknown", UNKNOWN),
        ("geometry", Geometry()),
        ("geometry(4326)", Geometry("OGC:CRS84")),
        ("geometry('EPSG:3857')", Geometry("EPSG:3857")),
        ("geography(4326)", Geography()),
        ("geography('OGC:CRS84', 'karney')", Geography("OGC:CRS84", "karney")),
        ("decimal", Decimal(10, 0)),
        ("decimal(5)", Decimal(5, 0)),
        ("decimal(9,2)", Decimal(9, 2)),
        ("numeric(4, 1)", Decimal(4, 1)),
        ("array<string>", List(2, STRING)),
        ("map<string,int>", Map(2, STRING, 3, INT)),
        ("array<string not null>", List(2, STRING, True)),
        ("map<string, int NOT NULL>", Map(2, STRING, 3, INT, True)),
        ("struct<>", Struct(())),
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
        "id int default x",
        "id int default 5 default 6",
        "id int default 2147483648",
        "id int not null null",
        "id int comment 5",
        "id int not",
        "id: int",
        "`` int",
        "id int) using parquet --",
        "id int); drop table t; --",
        "a int, a string",
        "a array",
        "a map<int>",
        "a struct<b>",
        "a variant default 5",
        "a geometry(any thing)",
        "a geography('OGC:CRS84', 'flat')",
        "a string(3)",
        "a time(9)",
        "a interval",
        "a decimal(50, 2)",
        "a decimal(5, 9)",
        "a decimal(x)",
        "a fixed",
        "a fixed(x)",
        "a fixed(3",
        "a array<int",
        "a 'int",
        "a array<" + "array<" * 3000,
        "select 1",
    ],
)
def test_what_is_not_a_list_of_columns_is_an_input_error(text):
    with pytest.raises(InputError):
        parse_ddl(text)


def test_a_default_is_that_of_old_rows_and_new_ones():
    schema = parse_ddl("a int default -5 comment 'x' not null, s struct<d: date default DATE '2026-01-01'>")

    assert schema.fields[0] == Field(1, "a", INT, True, "x", -5, -5)
    assert schema.field("s.d").initial_default == schema.field("s.d").write_default == "2026-01-01"


def test_comments_gaps_and_both_kinds_of_quotes_are_read():
    schema = parse_ddl("a int -- first\n, /* second */ `b``c` string COMMENT \"it's\", d int comment 'x''y\\n\\u00e9'")

    assert [field.name for field in schema.fields] == ["a", "b`c", "d"]
    assert [field.doc for field in schema.fields] == [None, "it's", "x'y\né"]


def test_an_error_says_what_was_expected_and_where():
    with pytest.raises(InputError, match=r"expected '>' at position 11, near 'a array<int\)'"):
        parse_ddl("a array<int)")
    with pytest.raises(InputError, match=r"column 's.x': there is no type whole; known are boolean, int"):
        parse_ddl("s struct<x: whole>")


def test_a_schema_that_the_format_version_cannot_have_is_refused_by_name():
    assert as_schema("c timestamp_ns", format_version=3).fields == (Field(1, "c", TIMESTAMP_NS),)
    with pytest.raises(InputError, match="'c': type timestamp_ns needs format version 3"):
        as_schema("c timestamp_ns")
    with pytest.raises(InputError, match="'c': defaults need format version 3"):
        as_schema("c int default 5")
    with pytest.raises(InputError, match="'_file' is the name of a metadata column"):
        as_schema("_file string")


PARTS = ["a ", "b: ", "`a b` ", "int", "decimal(9, 2)", "array<", "map<int, ", "struct<", ">", ", ", " not null", "--"]


@settings(max_examples=examples(150))
@given(st.text("abint <>(),:`'-;9", max_size=25) | st.lists(st.sampled_from(PARTS), max_size=9).map("".join))
@example("a int, b array<int>")
def test_any_text_is_a_schema_or_an_input_error(text):
    try:
        parsed = parse_ddl(text)
    except InputError:
        return
    assert parse_ddl(ddl_text(parsed)) == parsed


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
        spark_schema_json(Schema(fields=(Field(1, "s", Struct((Field(2, "t", TIMESTAMP_NS),))),)))


@pytest.mark.parametrize("kind", [spark.DayTimeIntervalType(), spark.CalendarIntervalType(), spark.GeometryType("ANY")])
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
        ("day(ts)", ("day", ("ts",))),
        ("DAYS( ts )", ("day", ("ts",))),
        ("date(ts)", ("day", ("ts",))),
        ("date_hour(ts)", ("hour", ("ts",))),
        ("hours(ts)", ("hour", ("ts",))),
        ("hour(ts)", ("hour", ("ts",))),
        ("month(ts)", ("month", ("ts",))),
        ("months(ts)", ("month", ("ts",))),
        ("year(ts)", ("year", ("ts",))),
        ("years(ts)", ("year", ("ts",))),
        ("bucket(16, id)", ("bucket[16]", ("id",))),
        ("truncate(4,note)", ("truncate[4]", ("note",))),
        ("bucket(16, id, note)", ("bucket[16]", ("id", "note"))),
        ("bucket(16 ,`id`,s.`odd name`)", ("bucket[16]", ("id", "s.odd name"))),
        ("bucket(id, 4)", ("bucket[4]", ("id",))),  # as Apache Iceberg reads it too
        ("truncate(note , 2)", ("truncate[2]", ("note",))),
        ("bucket(id, note, 16)", ("bucket[16]", ("id", "note"))),
        ("identity(id)", ("identity", ("id",))),
        (" id ", ("identity", ("id",))),
        ("`id`", ("identity", ("id",))),
        ("day(s.x)", ("day", ("s.x",))),
        ("s.`odd name`", ("identity", ("s.odd name",))),
    ],
)
def test_partition_texts_are_read(text, expected):
    assert parse_partition(text, ORDERS) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "day(nope)",
        "nope",
        "days(16, ts)",
        "bucket(id)",
        "week(ts)",
        "day(ts",
        "day(ts + 1)",
        "bucket(4, id, 4)",
        "day(ts, 4)",
    ],
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
