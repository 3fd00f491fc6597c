"""Appendix A of the specification: how types are spelled in Avro and ORC files, row by row of its tables.

The Parquet table is tested on files, in ``tests/unit/formats/test_appendix_a_parquet.py``.
"""

from __future__ import annotations

from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.avro.file_schema import stored_schema
from icefloe.codecs.avro.schemas import avro_schema, type_from_avro
from icefloe.codecs.orc.attributes import ID, REQUIRED, orc_attributes
from icefloe.errors import FormatError, LimitError, UnsupportedError
from icefloe.model.arrow.conform import FIELD_ID, arrow_schema
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
ORC: list[tuple[Type, dict[str, str]]] = [
    *((type_, {}) for type_ in (BOOLEAN, INT, LONG, FLOAT, DOUBLE, Decimal(9, 2), DATE, TIMESTAMP, TIMESTAMPTZ)),
    *((type_, {}) for type_ in (STRING, BINARY, Struct((Field(9, "x", INT),)), List(9, STRING), Map(9, INT, 10, INT))),
    (TIME, {"iceberg.long-type": "TIME"}),
    (UUID, {"iceberg.binary-type": "UUID"}),
    (Fixed(7), {"iceberg.binary-type": "FIXED", "iceberg.length": "7"}),
    (VARIANT, {"iceberg.struct-type": "VARIANT"}),
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


def ids_and_types(fields: Any) -> list[Any]:
    """Names, ids and types of Arrow fields, and of those inside them."""
    return [
        (field.name, (field.metadata or {}).get(FIELD_ID), str(field.type), ids_and_types(inside(field.type)))
        for field in fields
    ]


def inside(type_: pa.DataType) -> list[pa.Field]:
    return (
        [type_.field(index) for index in range(type_.num_fields)]
        if isinstance(type_, pa.StructType)
        else (
            [type_.key_field, type_.item_field]
            if isinstance(type_, pa.MapType)
            else [type_.value_field]
            if isinstance(type_, pa.ListType)
            else []
        )
    )


def assert_read_back(schema: Schema, avro: Any) -> None:
    read = stored_schema(avro, where="file").arrow
    assert ids_and_types(read) == ids_and_types(arrow_schema(schema))


def unnamed(avro: Any) -> Any:
    return {key: value for key, value in avro.items() if key != "name"} if isinstance(avro, dict) else avro


@pytest.mark.parametrize(("type_", "avro"), AVRO, ids=[str(type_) for type_, _ in AVRO])
def test_avro_has_the_type_of_the_table_and_is_read_back(type_: Type, avro: Any) -> None:
    assert unnamed(avro_of(type_)) == avro
    assert type_from_avro(avro_of(type_)) == type_from_avro(["null", avro]) == type_
    assert_read_back(only(type_), avro_schema(only(type_)))


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
    assert_read_back(only(Map(12, STRING, 13, STRING, True)), stored)


def test_names_that_avro_does_not_allow_come_back() -> None:
    schema = Schema(fields=(Field(1, "9-id é", LONG),))
    assert_read_back(schema, avro_schema(schema))


def test_the_types_of_version_3_have_avro_forms() -> None:
    assert avro_of(TIMESTAMP_NS) == {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False}
    assert avro_of(TIMESTAMPTZ_NS) == {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}
    assert avro_schema(only(UNKNOWN, required=False))["fields"][0]["type"] == "null"
    assert avro_of(Geometry()) == "bytes"
    assert_read_back(only(VARIANT), avro_schema(only(VARIANT)))
    assert_read_back(only(UNKNOWN, required=False), avro_schema(only(UNKNOWN, required=False)))


@given(schemas)
def test_every_schema_is_an_avro_schema_that_another_library_accepts_and_that_reads_back(schema: Schema) -> None:
    made = avro_schema(schema)
    fastavro.parse_schema(made)
    assert_read_back(schema, made)


@pytest.mark.parametrize(
    ("type_", "problem"),
    [
        ({"type": "fixed", "size": "x"}, "number of bytes"),
        ({"type": "fixed", "size": 4, "logicalType": "decimal", "precision": 99}, "precision 99"),
        ({"type": "fixed", "size": 4, "logicalType": "decimal", "precision": 0}, "precision 0"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 5}, "scale 5"),
        ({"type": "bytes", "logicalType": "decimal", "precision": True}, "precision True"),
        ({"type": "array", "items": "int"}, "no counterpart"),
        ([3], "only unions of null"),
        (7, "expected an Avro type"),
        ("short", "no counterpart"),
    ],
)
def test_a_broken_avro_type_of_a_value_is_refused_with_the_path(type_: Any, problem: str) -> None:
    with pytest.raises((FormatError, UnsupportedError), match=problem) as caught:
        type_from_avro(type_, "partition.p")
    assert str(caught.value).startswith("partition.p")


def test_avro_types_nested_without_end_are_refused() -> None:
    avro: Any = "int"
    for _ in range(500):
        avro = {"type": "array", "items": avro, "element-id": 1}
    with pytest.raises(LimitError):
        stored_schema({"type": "record", "name": "t", "fields": [{"name": "l", "type": avro}]}, where="file")


@pytest.mark.parametrize(("type_", "attributes"), ORC, ids=[str(type_) for type_, _ in ORC])
def test_orc_types_have_the_attributes_of_the_table(type_: Type, attributes: dict[str, str]) -> None:
    assert orc_attributes(Field(8, "l", type_, True)) == {**attributes, ID: "8", REQUIRED: "true"}
    assert orc_attributes(Field(8, "l", type_)) == {**attributes, ID: "8", REQUIRED: "false"}
