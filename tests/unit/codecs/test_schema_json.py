"""Schemas, partition specs and sort orders as JSON objects."""

from __future__ import annotations

import pytest

from icefloe.codecs.schema_json import schema_from_json, schema_to_json, spec_from_json, spec_to_json
from icefloe.errors import FormatError, LimitError, UnsupportedError
from icefloe.limits import Limits
from icefloe.model.partitioning import Expression, PartitionField, PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.types import DATE, INT, LONG, STRING, UUID, Decimal, Field, Fixed, List, Map, Struct

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
        ([], "at: expected object, got array"),
        ({"fields": []}, "at: .*type"),
        ({"type": "list", "fields": []}, "at.type: "),
        (field(id=None), r"at.fields\[0\].id: expected int"),
        (field(id=2**31), r"at.fields\[0\].id: "),
        (field(name=1), r"at.fields\[0\].name: expected str"),
        (field(type="text"), r"at.fields\[0\].type: unknown type 'text'"),
        (field(type="decimal(50, 2)"), r"at.fields\[0\].type: decimal"),
        (field(type={"type": "bag"}), r"at.fields\[0\].type"),
        (field(type={"type": "list", "element": "int"}), r"at.fields\[0\].type: .*element-id"),
        ({"type": "struct", "fields": field()["fields"] * 2}, "at: .*two fields are named 'a'"),
    ],
)
def test_a_broken_schema_names_the_field(value, message):
    with pytest.raises(FormatError, match=message):
        schema_from_json(value, "at")


def test_a_type_of_a_later_version_is_unsupported_by_name():
    with pytest.raises(UnsupportedError, match=r"at.fields\[0\].type: .*timestamp_ns"):
        schema_from_json(field(type="timestamp_ns"), "at")


def test_types_may_nest_up_to_the_limit():
    def nested(depth: int) -> object:
        if depth == 1:
            return "int"
        return {"type": "list", "element-id": depth, "element": nested(depth - 1), "element-required": False}

    schema_from_json(field(type=nested(5)), limits=Limits(type_depth=5))
    with pytest.raises(LimitError, match=r"element\.element"):
        schema_from_json(field(type=nested(6)), limits=Limits(type_depth=5))


SPEC = PartitionSpec(
    spec_id=2,
    fields=(
        PartitionField(source_id=1, field_id=1000, name="id", transform="identity"),
        PartitionField(source_id=2, field_id=1001, name="ts_day", transform="day"),
        PartitionField(source_id=3, field_id=1002, name="gone", transform="void"),
    ),
)


def test_a_partition_spec_is_written_and_read_back():
    written = spec_to_json(SPEC)

    assert written["fields"][1] == {"source-id": 2, "field-id": 1001, "name": "ts_day", "transform": "day"}
    assert spec_from_json(written) == SPEC


def test_v4_fields_name_their_expression_identity_its_column_and_void_nothing():
    day = Expression(expr_id=50, source_ids=(2,), transform="day", name="ts_day", partition_field_id=1001)

    written = spec_to_json(SPEC, expressions=[day])

    assert [f.get("expr-id") for f in written["fields"]] == [1, 50, None]
    assert spec_from_json(written, expressions=[day]) == SPEC


def test_a_bare_list_of_fields_is_a_spec_whose_ids_count_from_1000():
    fields = [
        {"source-id": 1, "name": "a", "transform": "identity"},
        {"source-ids": [2], "name": "b", "transform": "x"},
    ]

    spec = spec_from_json(fields)

    assert [(f.field_id, f.source_id, f.transform) for f in spec.fields] == [(1000, 1, "identity"), (1001, 2, "x")]


def test_a_transform_of_several_columns_is_unsupported():
    with pytest.raises(UnsupportedError, match=r"at\[0\].source-ids"):
        spec_from_json([{"source-ids": [1, 2], "name": "a", "transform": "bucket[4]"}], "at")


def test_a_field_whose_expression_is_unknown_lacks_everything():
    with pytest.raises(FormatError, match=r"at\[0\]: missing source-id"):
        spec_from_json([{"expr-id": 5}], "at")
