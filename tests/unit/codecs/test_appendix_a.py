"""Appendix A of the specification: how types are spelled in Avro and ORC files, row by row of its tables.

The Parquet table is tested on files, in ``tests/unit/formats/test_appendix_a_parquet.py``.
"""

from __future__ import annotations

from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.avro.schemas import avro_schema, schema_from_avro
from icefloe.codecs.orc.types import ID, REQUIRED, OrcType, orc_schema, reader_type, schema_from_orc
from icefloe.errors import FormatError, LimitError, UnsupportedError
from icefloe.model.schema.schema import Schema, fresh_ids
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
    Geometry,
    List,
    Map,
    Struct,
    Type,
)

AVRO: list[tuple[Type, Any]] = [
    (BOOLEAN, "boolean"),
    (INT, "int"),
    (LONG, "long"),
    (FLOAT, "float"),
    (DOUBLE, "double"),
    (Decimal(9, 2), {"type": "fixed", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}),
    (Decimal(38, 0), {"type": "fixed", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 0}),
    (DATE, {"type": "int", "logicalType": "date"}),
    (TIME, {"type": "long", "logicalType": "time-micros"}),
    (TIMESTAMP, {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False}),
    (TIMESTAMPTZ, {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}),
    (STRING, "string"),
    (UUID, {"type": "fixed", "size": 16, "logicalType": "uuid"}),
    (Fixed(7), {"type": "fixed", "size": 7}),
    (BINARY, "bytes"),
]
ORC: list[tuple[Type, str, dict[str, str]]] = [
    (BOOLEAN, "boolean", {}),
    (INT, "int", {}),
    (LONG, "long", {}),
    (FLOAT, "float", {}),
    (DOUBLE, "double", {}),
    (Decimal(9, 2), "decimal(9,2)", {}),
    (DATE, "date", {}),
    (TIME, "long", {"iceberg.long-type": "TIME"}),
    (TIMESTAMP, "timestamp", {}),
    (TIMESTAMPTZ, "timestamp_instant", {}),
    (STRING, "string", {}),
    (UUID, "binary", {"iceberg.binary-type": "UUID"}),
    (Fixed(7), "binary", {"iceberg.binary-type": "FIXED", "iceberg.length": "7"}),
    (BINARY, "binary", {}),
]

_leaves = st.sampled_from([*(type_ for type_, _ in AVRO), TIMESTAMP_NS, TIMESTAMPTZ_NS])
_types: st.SearchStrategy[Type] = st.recursive(
    _leaves,
    lambda inner: (
        st.builds(List, st.just(0), inner, st.booleans())
        | st.builds(Map, st.just(0), inner, st.just(0), inner, st.booleans())
        | st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(
            lambda found: Struct(tuple(Field(0, f"f{i}", t, required) for i, (t, required) in enumerate(found)))
        )
    ),
    max_leaves=6,
)
schemas = st.lists(st.tuples(_types, st.booleans()), min_size=1, max_size=4).map(
    lambda found: Schema(fields=fresh_ids(tuple(Field(0, f"c{i}", t, r) for i, (t, r) in enumerate(found))))
)


def only(type_: Type, *, required: bool = True) -> Schema:
    return Schema(fields=(Field(8, "l", type_, required),))


def avro_of(type_: Type) -> Any:
    return avro_schema(only(type_))["fields"][0]["type"]


def unnamed(avro: Any) -> Any:
    return {key: value for key, value in avro.items() if key != "name"} if isinstance(avro, dict) else avro


@pytest.mark.parametrize(("type_", "avro"), AVRO, ids=[str(type_) for type_, _ in AVRO])
def test_avro_has_the_type_of_the_table_and_is_read_back(type_: Type, avro: Any) -> None:
    assert unnamed(avro_of(type_)) == avro
    assert schema_from_avro(avro_schema(only(type_))) == only(type_)


def test_the_avro_example_of_a_struct_field() -> None:
    expected = {"name": "l", "type": ["null", "long"], "default": None, "field-id": 8}
    assert avro_schema(only(LONG, required=False))["fields"] == [expected]


def test_avro_has_a_record_for_a_struct() -> None:
    inner = {"name": "x", "type": "int", "field-id": 9}
    assert avro_of(Struct((Field(9, "x", INT, True),))) == {"type": "record", "name": "r8", "fields": [inner]}


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (2, 1), (3, 2), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)])
def test_avro_stores_a_decimal_in_the_fewest_bytes_for_its_precision(precision: int, size: int) -> None:
    assert avro_of(Decimal(precision, 0))["size"] == size


def test_the_avro_example_of_a_list_element() -> None:
    assert avro_of(List(9, INT, True)) == {"type": "array", "items": "int", "element-id": 9}


def test_the_avro_example_of_a_map_with_string_keys() -> None:
    assert avro_of(Map(10, STRING, 11, INT, True)) == {"type": "map", "values": "int", "key-id": 10, "value-id": 11}


def test_the_avro_example_of_a_map_with_other_keys() -> None:
    fields = [{"name": "key", "type": "int", "field-id": 12}, {"name": "value", "type": "string", "field-id": 13}]
    items = {"type": "record", "name": "k12_v13", "fields": fields}
    assert avro_of(Map(12, INT, 13, STRING, True)) == {"type": "array", "logicalType": "map", "items": items}


def test_avro_wraps_optional_elements_and_values_in_a_union_with_null() -> None:
    assert avro_of(List(9, INT))["items"] == ["null", "int"]
    assert avro_of(Map(10, STRING, 11, INT))["values"] == ["null", "int"]


def test_a_map_with_string_keys_stored_as_an_array_is_read() -> None:
    entry = avro_of(Map(12, INT, 13, STRING, True))
    entry["items"]["fields"][0]["type"] = "string"
    stored = {"type": "record", "name": "t", "fields": [{"name": "l", "type": entry, "field-id": 8}]}
    assert schema_from_avro(stored) == only(Map(12, STRING, 13, STRING, True))


def test_names_that_avro_does_not_allow_come_back() -> None:
    schema = Schema(fields=(Field(1, "9-id é", LONG),))
    assert schema_from_avro(avro_schema(schema)) == schema


def test_the_types_of_version_3_have_avro_forms() -> None:
    assert avro_of(TIMESTAMP_NS) == {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False}
    assert avro_of(TIMESTAMPTZ_NS) == {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}
    assert avro_schema(only(UNKNOWN, required=False))["fields"][0]["type"] == "null"
    assert avro_of(Geometry()) == "bytes"
    assert schema_from_avro(avro_schema(only(VARIANT))) == only(VARIANT)
    assert schema_from_avro(avro_schema(only(UNKNOWN, required=False))) == only(UNKNOWN, required=False)


@given(schemas)
def test_every_schema_is_an_avro_schema_that_another_library_accepts_and_that_reads_back(schema: Schema) -> None:
    made = avro_schema(schema)
    fastavro.parse_schema(made)
    assert schema_from_avro(made) == schema


@pytest.mark.parametrize(
    ("type_", "problem"),
    [
        ({"type": "array", "items": "int"}, "missing element-id"),
        ({"type": "map", "values": "int", "key-id": 1}, "missing value-id"),
        ({"type": "array", "logicalType": "map", "items": "int"}, "records of a key and a value"),
        ({"type": "fixed", "size": "x"}, "number of bytes"),
        ({"type": "fixed", "size": 4, "logicalType": "decimal", "precision": 99}, "precision 99"),
        ({"type": "fixed", "size": 4, "logicalType": "decimal", "precision": 0}, "precision 0"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 5}, "scale 5"),
        ({"type": "bytes", "logicalType": "decimal", "precision": True}, "precision True"),
        ({"type": "record"}, "expected a list of fields"),
        ([3], "only unions of null"),
        (7, "expected an Avro type"),
        ("short", "no counterpart"),
    ],
)
def test_a_broken_avro_schema_is_refused_with_the_path(type_: Any, problem: str) -> None:
    stored = {"type": "record", "name": "t", "fields": [{"name": "l", "type": type_, "field-id": 8}]}
    with pytest.raises((FormatError, UnsupportedError), match=problem) as caught:
        schema_from_avro(stored)
    assert str(caught.value).startswith("avro.schema.fields[0]")


def test_avro_and_orc_types_nested_without_end_are_refused() -> None:
    avro: Any = "int"
    orc = OrcType(kind="int", attributes={ID: "1"})
    for _ in range(500):
        avro = {"type": "array", "items": avro, "element-id": 1}
        orc = OrcType(kind="array", attributes={ID: "1"}, inside=(orc,))
    with pytest.raises(LimitError):
        schema_from_avro({"type": "record", "name": "t", "fields": [{"name": "l", "type": avro, "field-id": 8}]})
    with pytest.raises(LimitError):
        schema_from_orc(OrcType(kind="struct", names=("l",), inside=(orc,)))


@pytest.mark.parametrize(("type_", "kind", "attributes"), ORC, ids=[str(type_) for type_, _, _ in ORC])
def test_orc_has_the_type_and_attributes_of_the_table(type_: Type, kind: str, attributes: dict[str, str]) -> None:
    (made,) = orc_schema(only(type_)).inside
    assert made.kind == kind
    assert made.attributes == {**attributes, ID: "8", REQUIRED: "true"}
    assert schema_from_orc(orc_schema(only(type_))) == only(type_)


def test_orc_has_the_nested_types_of_the_table_with_ids_inside() -> None:
    nested = [
        (Struct((Field(9, "x", INT, True),)), "struct<x:int>", [("9", "true")]),
        (List(9, STRING), "array<string>", [("9", "false")]),
        (Map(9, STRING, 10, DOUBLE), "map<string,double>", [("9", "true"), ("10", "false")]),
    ]
    for type_, text, inside in nested:
        (made,) = orc_schema(only(type_)).inside
        assert str(made) == text
        assert [(each.attributes[ID], each.attributes[REQUIRED]) for each in made.inside] == inside


@pytest.mark.parametrize(
    ("kind", "type_"),
    [("tinyint", INT), ("smallint", INT), ("varchar(3)", STRING), ("char(3)", STRING), ("bigint", LONG)],
)
def test_narrower_orc_types_are_read_too(kind: str, type_: Type) -> None:
    stored = OrcType(kind="struct", names=("l",), inside=(OrcType(kind=kind, attributes={ID: "8", REQUIRED: "true"}),))
    assert schema_from_orc(stored) == only(type_)


@given(schemas)
def test_every_schema_is_an_orc_type_that_reads_back(schema: Schema) -> None:
    assert schema_from_orc(orc_schema(schema)) == schema


def test_a_variant_is_a_struct_of_two_byte_strings_in_orc() -> None:
    made = orc_schema(only(VARIANT))
    assert str(made) == "struct<l:struct<metadata:binary,value:binary>>"
    assert made.inside[0].attributes["iceberg.struct-type"] == "VARIANT"
    assert schema_from_orc(made) == only(VARIANT)


def test_orc_refuses_what_it_cannot_hold_and_types_without_ids() -> None:
    with pytest.raises(UnsupportedError, match="unknown"):
        orc_schema(only(UNKNOWN))
    with pytest.raises(FormatError, match=r"missing iceberg\.id"):
        schema_from_orc(OrcType(kind="struct", names=("a",), inside=(OrcType(kind="int"),)))
    with pytest.raises(FormatError, match=r"orc\.a: .*decimal"):
        schema_from_orc(
            OrcType(kind="struct", names=("a",), inside=(OrcType(kind="decimal(x,y)", attributes={ID: "1"}),))
        )


READERS = [
    (
        (Field(1, "a", INT), Field(2, "b", STRING)),
        "struct<a:int,b:string>",
        (Field(2, "a", STRING), Field(3, "c", DATE)),
        "struct<b:string,c:date>",
    ),
    (
        (Field(1, "a", Struct((Field(2, "b", STRING), Field(3, "c", DATE)))),),
        "struct<a:struct<b:string,c:date>>",
        (Field(1, "aa", Struct((Field(3, "cc", DATE), Field(2, "bb", STRING)))),),
        "struct<a:struct<c:date,b:string>>",
    ),
]


@pytest.mark.parametrize(("written", "orc", "read", "asked"), READERS)
def test_the_examples_of_reading_orc_by_id(
    written: tuple[Field, ...], orc: str, read: tuple[Field, ...], asked: str
) -> None:
    file = orc_schema(Schema(fields=written))
    assert str(file) == orc
    assert str(reader_type(file, Schema(fields=read))) == asked


def test_a_new_orc_column_never_reads_an_old_one_of_its_name() -> None:
    file = orc_schema(Schema(fields=(Field(1, "a", INT), Field(2, "l", List(3, Struct((Field(4, "x", INT),)))))))
    wanted = Schema(fields=(Field(9, "a", INT), Field(2, "l", List(3, Struct((Field(5, "x", INT),))))))
    assert str(reader_type(file, wanted)) == "struct<a_r9:int,l:array<struct<x_r5:int>>>"
