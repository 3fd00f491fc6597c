"""Fields of structs selected on Spark: the schema and the rows are those of the Arrow engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from icefloe.engines.spark.schema import struct_type
from icefloe.errors import InputError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field, Struct
from icefloe.table.table import Table
from support.tables import new_catalog

pytestmark = pytest.mark.spark

SCHEMA = """id bigint, who struct<name: string, age: int, home: struct<city: string, zip: int>>,
    tags array<struct<key: string, n: int>>, prices map<string, struct<low: int, high: int>>"""
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "who": {"name": "Ada", "age": 36, "home": {"city": "Oslo", "zip": 150}},
        "tags": [{"key": "a", "n": 1}, None],
        "prices": [("x", {"low": 1, "high": 2})],
    },
    {"id": 2, "who": None, "tags": None, "prices": None},
    {"id": 3, "who": {"name": None, "age": 3, "home": None}, "tags": [], "prices": [("y", None)]},
]
LEGACY = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"


@pytest.fixture(params=[2, 4])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    table = new_catalog(tmp_path).create_table("db.people", schema=SCHEMA, format_version=request.param)
    append(table, ROWS)
    return table


@pytest.fixture
def legacy(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(LEGACY, "true")
    yield spark
    spark.conf.unset(LEGACY)


def append(table: Table, rows: list[dict[str, Any]]) -> None:
    table.append(pa.Table.from_pylist(rows, schema=table.scan().to_arrow().schema))


def plain(value: Any) -> Any:
    """A value of Spark as Arrow gives it: maps are lists of pairs."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return [(key, plain(each)) for key, each in value.items()]
    return {name: plain(value[name]) for name in value.__fields__} if hasattr(value, "__fields__") else value


def check_alike(table: Table, spark: SparkSession, where: str | None, *names: str) -> list[dict[str, Any]]:
    """The rows of a scan, which both engines must have, with the columns of its plan."""
    scan = table.scan(where, columns=names)
    frame, expected = scan.to_spark(spark), scan.to_arrow().to_pylist()
    assert frame.schema == struct_type(scan.plan().schema)
    found = [plain(row) for row in frame.collect()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert frame.count() == len(expected)
    return expected


def read_schema(frame: Any) -> str:
    """What the Parquet reader of a query is asked for."""
    text = frame._jdf.queryExecution().executedPlan().toString()
    return str(text.partition("ReadSchema: ")[2].partition("\n")[0])


@pytest.mark.parametrize(
    "names",
    [
        ["who.age"],
        ["who.home.zip", "id", "who.name"],
        ["who", "who.age"],
        ["who.home"],
        ["tags.element.n", "prices.value.high"],
        ["prices.key", "id"],
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "where", [None, "who.age > 3", "who.home.zip = 150 or id = 2", "who is null", "tags is not null", "id = 3"]
)
def test_both_engines_have_the_same_rows_and_columns(
    people: Table, spark: SparkSession, where: str | None, names: list[str]
) -> None:
    check_alike(people, spark, where, *names)


@pytest.mark.parametrize(
    ("where", "names", "read"),
    [
        (None, ["who.age"], "struct<who:struct<age:int>>"),
        (None, ["tags.element.n"], "struct<tags:array<struct<n:int>>>"),
        (None, ["prices.value.low"], "struct<prices:map<string,struct<low:int>>>"),
        ("who.home.zip = 150", ["who.age"], "struct<who:struct<age:int,home:struct<zip:int>>>"),
        ("who is not null", ["who.home.zip"], "struct<who:struct<home:struct<zip:int>>>"),
        ("id = 1", ["who.home.zip"], "struct<id:bigint,who:struct<home:struct<zip:int>>>"),
    ],
)
def test_spark_reads_only_the_leaves_that_are_needed(
    people: Table, spark: SparkSession, where: str | None, names: list[str], read: str
) -> None:
    assert read_schema(people.scan(where, columns=names).to_spark(spark)) == read


def test_a_filter_by_another_field_does_not_show_it(people: Table, spark: SparkSession) -> None:
    frame = people.scan("who.home.zip = 150 and who.name = 'Ada'", columns=["who.home.city", "id"]).to_spark(spark)
    assert isinstance(frame.schema["who"].dataType, StructType)
    assert frame.schema.simpleString() == "struct<who:struct<home:struct<city:string>>,id:bigint>"
    ids = [people.schema.field(name).id for name in ("who", "who.home", "who.home.city")]
    who = frame.schema["who"]
    home = who.dataType["home"]
    found = [field.metadata["parquet.field.id"] for field in (who, home, home.dataType["city"])]
    assert found == ids
    assert frame.where("who.home.city = 'Oslo'").count() == 1
    assert frame.where("who.home.city = 'Rome'").count() == 0


def test_a_filter_added_later_prunes_files_by_a_selected_field(people: Table, spark: SparkSession) -> None:
    append(people, [{"id": 9, "who": {"age": 99}}])
    [first] = people.scan("id < 9").plan().tasks["location"].to_pylist()
    frame = people.scan(columns=["who.age"]).to_spark(spark).where("who.age > 90")
    Path(first.removeprefix("file://")).unlink()
    assert [row.who.age for row in frame.collect()] == [99]


def test_null_structs_are_told_from_structs_whose_fields_an_old_file_lacks(people: Table, spark: SparkSession) -> None:
    evolve_with_new_fields(people)
    expected = check_alike(people, spark, None, "who.email", "who.home.street", "tags.element.more", "id")
    assert [row["who"] for row in expected if row["id"] < 4] == [
        {"home": {"street": None}, "email": None},
        None,
        {"home": None, "email": None},
    ]
    check_alike(people, spark, "who.email is null", "who.email")
    check_alike(people, spark, "who.age > 3 or id = 2", "who.home.street")


def test_null_structs_are_told_apart_whatever_the_session_says(people: Table, legacy: SparkSession) -> None:
    evolve_with_new_fields(people)
    check_alike(people, legacy, None, "who.email", "id")
    assert legacy.conf.get(LEGACY) == "true"


def evolve_with_new_fields(table: Table) -> None:
    with table.update_schema() as edit:
        edit.add_column("who.email", "string")
        edit.add_column("who.home.street", "string")
        edit.add_column("tags.element.more", "int")
    append(table, [{"id": 4, "who": {"email": "e@x", "home": {"street": "High"}}, "tags": [{"more": 1}]}])


def test_renamed_dropped_and_promoted_fields_are_found_by_id(people: Table, spark: SparkSession) -> None:
    with people.update_schema() as edit:
        edit.drop_column("who.name")
        edit.rename_column("who.age", "name")
        edit.update_column("who.name", type="bigint")
    assert check_alike(people, spark, "who.name >= 3", "who.name") == [{"who": {"name": 36}}, {"who": {"name": 3}}]


def test_deleted_rows_and_metadata_columns_stand_beside(people: Table, spark: SparkSession) -> None:
    people.set_properties({"write.delete.mode": "merge-on-read"})
    people.delete("id = 1")
    expected = check_alike_without_schema(people, spark, "who.age", "_pos", "_spec_id")
    assert [row["_pos"] for row in expected] == [1, 2]
    assert check_alike(people, spark, None, "who.home.city") == [{"who": None}, {"who": {"home": None}}]


def check_alike_without_schema(table: Table, spark: SparkSession, *names: str) -> list[dict[str, Any]]:
    scan = table.scan(columns=names)
    expected = scan.to_arrow().to_pylist()
    found = [plain(row) for row in scan.to_spark(spark).collect()]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    return expected


def test_names_with_dots_and_backquotes_are_selected(tmp_path: Path, spark: SparkSession) -> None:
    inner = Struct((Field(3, "b.c", LONG), Field(4, "d`", STRING), Field(5, "e", LONG)))
    schema = Schema(fields=(Field(1, "x.y", LONG), Field(2, "a", inner)))
    table = new_catalog(tmp_path).create_table("db.dots", schema=schema, format_version=2)
    append(table, [{"x.y": 1, "a": {"b.c": 2, "d`": "f", "e": 3}}, {"x.y": 3, "a": None}])
    check_alike(table, spark, None, "a.b.c")
    check_alike(table, spark, "a.b.c = 2", "a.e", "x.y")
    check_alike(table, spark, "a.e = 3", "a.d`")


def test_a_name_that_is_not_there_is_refused_with_those_beside_it(people: Table, spark: SparkSession) -> None:
    with pytest.raises(InputError) as caught:
        people.scan(columns=["who.rank"]).to_spark(spark)
    assert str(caught.value) == "no column 'who.rank' in table db.people; struct 'who' has fields name, age, home"
