"""Partition specs, sort orders and expressions as JSON objects."""

from __future__ import annotations

import json

import msgspec
import pytest

from icefloe.codecs.json.input import Reading, convert_extensible
from icefloe.codecs.json.partition_spec import (
    ExpressionRecord,
    SortOrderRecord,
    expression_from_record,
    expression_to_json,
    sort_order_from_record,
    sort_order_to_json,
    spec_from_json,
    spec_to_json,
)
from icefloe.errors import FormatError
from icefloe.model.partition.spec import Expression, PartitionField, PartitionSpec

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


def test_a_transform_of_several_columns_names_them_in_order():
    bare = {"source-ids": [2, 1, 3], "name": "a", "transform": "bucket[4]", "field-id": 1000}

    spec = spec_from_json({"spec-id": 1, "fields": [bare]}, "at")

    assert spec.fields[0].source_ids == (2, 1, 3)
    assert spec_to_json(spec)["fields"] == [bare]
    both = spec_from_json([{**bare, "source-id": 2}], "at")
    assert both.fields == spec.fields
    with pytest.raises(FormatError, match=r"at\[0\].source-ids: starts with 2, but source-id is 1"):
        spec_from_json([{**bare, "source-id": 1}], "at")


def test_one_source_is_written_as_one_however_it_was_given():
    spec = spec_from_json([{"source-ids": [5], "name": "a", "transform": "day"}])

    assert spec_to_json(spec)["fields"][0]["source-id"] == 5
    assert "source-ids" not in spec_to_json(spec)["fields"][0]


def test_unknown_keys_of_a_spec_and_of_a_bare_list_are_kept():
    field = {"source-id": 1, "field-id": 1000, "transform": "day", "name": "d", "x": [1.5]}
    whole = {"spec-id": 3, "fields": [field], "y": None}

    assert json.loads(msgspec.json.encode(spec_to_json(spec_from_json(whole)))) == whole
    assert json.loads(msgspec.json.encode(spec_to_json(spec_from_json([field])))) == {"spec-id": 0, "fields": [field]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "at: expected an object, got 5"),
        ({"fields": []}, "at: missing spec-id"),
        ({"spec-id": 0, "fields": [5]}, r"at.fields\[0\]: expected an object, got 5"),
        ({"spec-id": 0, "fields": [{"source-id": "1"}]}, r'at.fields\[0\].source-id: expected an int, got "1"'),
        ({"spec-id": 0, "fields": [{"source-ids": []}]}, r"at.fields\[0\]: missing source-id"),
        ({"spec-id": 0, "fields": [{"source-id": 1}]}, r"at.fields\[0\]: missing name, transform"),
    ],
)
def test_a_broken_spec_names_the_field(value, message):
    with pytest.raises(FormatError, match=message):
        spec_from_json(value, "at")


def test_sort_orders_are_read_and_written_with_all_their_columns():
    keys = {"direction": "asc", "null-order": "nulls-last"}
    order = {
        "order-id": 3,
        "fields": [
            {"transform": "identity", "source-id": 2, **keys},
            {"transform": "zorder", "source-ids": [1, 2], **keys},
        ],
    }
    record, extras = convert_extensible(order, SortOrderRecord, "at")

    read = sort_order_from_record(record, "at", Reading(extras=extras))

    assert read.fields[1].source_ids == (1, 2)
    assert sort_order_to_json(read) == order


def test_expressions_are_read_and_written_with_and_without_a_partition_field():
    linked = {"expr-id": 50, "expr": {"source-id": 1, "transform": "day", "name": "d"}, "partition-field-id": 1000}
    free = {"expr-id": 51, "expr": {"source-ids": [1, 2], "transform": "bucket[4]", "name": "b"}}
    for value in (linked, free):
        record, extras = convert_extensible(value, ExpressionRecord, "at")
        assert expression_to_json(expression_from_record(record, "at", Reading(extras=extras))) == value


def test_the_example_of_the_proposal_is_read_with_links_inside_and_outside():
    """It links one partition field beside the expression and one inside; both are written beside it."""
    day = {"expr-id": 101, "expr": {"source-id": 9, "transform": "day", "name": "ts_day"}, "partition-field-id": 1000}
    lower = {"expr-id": 102, "expr": {"source-id": 11, "transform": "lower", "name": "lower_str"}}
    inside = {"source-ids": [2, 3], "transform": "bucket[16]", "name": "bucket_a_b", "partition-field-id": 1001}
    found = []
    for value in (day, lower, {"expr-id": 104, "expr": inside}):
        record, extras = convert_extensible(value, ExpressionRecord, "at")
        found.append(expression_from_record(record, "at", Reading(extras=extras)))
    spec = spec_from_json([{"expr-id": 101}, {"expr-id": 104}], expressions=found)

    assert [(f.field_id, f.source_ids, f.transform) for f in spec.fields] == [
        (1000, (9,), "day"),
        (1001, (2, 3), "bucket[16]"),
    ]
    assert [f["expr-id"] for f in spec_to_json(spec, expressions=found)["fields"]] == [101, 104]
    assert expression_to_json(found[1]) == lower
    written = expression_to_json(found[2])
    assert (written["partition-field-id"], "partition-field-id" in written["expr"]) == (1001, False)


def test_a_field_whose_expression_is_unknown_lacks_everything():
    with pytest.raises(FormatError, match=r"at\[0\]: missing source-id"):
        spec_from_json([{"expr-id": 5}], "at")


def test_transforms_are_kept_in_the_spelling_of_the_specification():
    fields = [
        {"source-id": 1, "name": "a", "transform": "Void"},
        {"source-id": 1, "name": "b", "transform": "BUCKET[4]"},
        {"source-id": 1, "name": "c", "transform": "Zorder[4]"},
    ]
    assert [f.transform for f in spec_from_json(fields).fields] == ["void", "bucket[4]", "Zorder[4]"]


def test_a_transform_without_a_meaning_is_refused_with_its_path():
    with pytest.raises(FormatError, match=r"^partition-spec\[0\]\.transform: "):
        spec_from_json([{"source-id": 1, "name": "a", "transform": "bucket[0]"}])
