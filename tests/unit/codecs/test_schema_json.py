"""Schemas and types as JSON objects."""

from __future__ import annotations

import pytest

from icefloe.codecs.json.schema import schema_from_json, schema_to_json
from icefloe.errors import FormatError, LimitError
from icefloe.limits import Limits
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    DATE,
    INT,
    LONG,
    NAMED,
    STRING,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
    parse_type,
)

EVERYTHING = {
    "type": "struct",
    "schema-id": 3,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long", "doc": "the key"},
        {"id": 2, "name": "price", "required": False, "type": "decimal(9, 2)"},
        {"id": 3, "name": "code", "required": False, "type": "fixed[4]"},
        {"id": 4, "name": "u", "required": False, "type": "uuid"},
        {"id": 9, "name": "n", "required": False, "type": "int", "initial-default": 0, "write-default": 7},
        {
            "id": 5,
            "name": "tags",
            "required": False,
            "type": {
                "type": "list",
                "element-id": 6,
                "element-required": True,
                "element": {
                    "type": "map",
                    "key-id": 7,
                    "key": "string",
                    "value-id": 8,
                    "value-required": False,
                    "value": {
                        "type": "struct",
                        "fields": [{"id": 10, "name": "d", "required": False, "type": "date"}],
                    },
                },
            },
        },
    ],
}


def test_a_schema_is_read_into_values_and_written_back():
    schema = schema_from_json(EVERYTHING)

    inner = Map(7, STRING, 8, Struct((Field(10, "d", DATE),)))
    assert schema == Schema(
        schema_id=3,
        identifier_field_ids=(1,),
        fields=(
            Field(1, "id", LONG, True, "the key"),
            Field(2, "price", Decimal(9, 2)),
            Field(3, "code", Fixed(4)),
            Field(4, "u", UUID),
            Field(9, "n", INT, initial_default=0, write_default=7),
            Field(5, "tags", List(6, inner, True)),
        ),
    )
    assert schema_to_json(schema) == EVERYTHING


def field(**changes: object) -> dict[str, object]:
    return {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": "long", **changes}]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "at: expected an object, got a list"),
        ({"fields": []}, "at: .*type"),
        ({"type": "list", "fields": []}, "at.type: "),
        (field(id=None), r"at.fields\[0\].id: expected an int, got null"),
        (field(id=2**31), r"at.fields\[0\].id: "),
        (field(name=1), r"at.fields\[0\].name: expected a string, got 1"),
        (field(type="text"), r"at.fields\[0\].type: unknown type 'text'"),
        (field(type="decimal(50, 2)"), r"at.fields\[0\].type: decimal"),
        (field(type={"type": "bag"}), r'at.fields\[0\].type.type: expected "struct" or "list" or "map", got "bag"'),
        (field(type={"type": "list", "element": "int"}), r"at.fields\[0\].type: missing element-id"),
        ({"type": "struct", "fields": field()["fields"] * 2}, "at: .*two fields are named 'a'"),
    ],
)
def test_a_broken_schema_names_the_field(value, message):
    with pytest.raises(FormatError, match=message):
        schema_from_json(value, "at")


@pytest.mark.parametrize(
    "type_", [*NAMED, "decimal(9, 2)", "fixed[4]", "geometry(EPSG:3857)", "geography(OGC:CRS84, karney)"]
)
def test_every_type_is_read_and_written_by_its_name(type_):
    schema = schema_from_json(field(type=type_), "at")

    assert schema.fields[0].type == parse_type(type_)
    assert schema_to_json(schema)["fields"][0]["type"] == type_


def test_a_default_of_null_is_no_default():
    schema = schema_from_json(field(**{"initial-default": None, "write-default": False, "doc": None}))

    assert schema_to_json(schema)["fields"] == [{**field()["fields"][0], "write-default": False}]


def test_types_may_nest_up_to_the_limit():
    def nested(depth: int) -> object:
        if depth == 1:
            return "int"
        return {"type": "list", "element-id": depth, "element": nested(depth - 1), "element-required": False}

    schema_from_json(field(type=nested(5)), limits=Limits(type_depth=5))
    with pytest.raises(LimitError, match=r"element\.element"):
        schema_from_json(field(type=nested(6)), limits=Limits(type_depth=5))
