"""Columns that incoming rows have and a table lacks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.errors import IcefloeError
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.arrow.missing_columns import merge_steps
from icefloe.model.evolution.evolve import evolve
from icefloe.model.schema.schema import Schema
from icefloe.model.text.ddl import parse_ddl

SCHEMA = parse_ddl(
    "id int not null, s struct<a: int, in: struct<b: int>>, l array<struct<x: int>>, m map<string, struct<y: int>>"
)


def merged(given: pa.Schema, version: int = 2) -> Schema:
    steps = merge_steps(SCHEMA, given, format_version=version)
    return evolve(SCHEMA, steps, last_column_id=SCHEMA.highest_id, format_version=version).schema


def test_rows_that_fit_change_nothing() -> None:
    plain = pa.schema([field.remove_metadata() for field in arrow_schema(SCHEMA)])
    assert merge_steps(SCHEMA, plain, format_version=2) == ()
    assert merge_steps(SCHEMA, pa.schema({"id": pa.int64()}), format_version=2) == ()
    assert merge_steps(SCHEMA, pa.schema({}), format_version=2) == ()


def test_new_columns_are_added_behind_the_others_as_optional_ones() -> None:
    given = pa.schema([pa.field("note", pa.large_string(), nullable=False), pa.field("id", pa.int32())])
    found = merged(given)
    assert [field.name for field in found.fields] == ["id", "s", "l", "m", "note"]
    assert not found.field("note").required
    assert found.field("id").required
    assert found.field("note").id == SCHEMA.highest_id + 1


def test_columns_inside_structs_lists_and_maps_are_added_too() -> None:
    given = pa.schema(
        {
            "s": pa.struct({"in": pa.struct({"c": pa.float64()}), "d": pa.list_(pa.string())}),
            "l": pa.large_list(pa.struct({"z": pa.date32()})),
            "m": pa.map_(pa.large_string(), pa.struct({"y": pa.int64(), "w": pa.bool_()})),
        }
    )
    found = merged(given)
    added = set(found.by_name) - set(SCHEMA.by_name)
    assert added == {"s.in.c", "s.d", "s.d.element", "l.element.z", "m.value.w"}
    assert len(set(found.by_id)) == len(found.by_id)
    assert {name: field.id for name, field in found.by_name.items() if name not in added} == {
        name: field.id for name, field in SCHEMA.by_name.items()
    }


def test_types_of_columns_that_the_table_has_stay() -> None:
    given = pa.schema({"id": pa.int64(), "s": pa.struct({"a": pa.int64()}), "l": pa.null(), "new": pa.int8()})
    found = merged(given)
    assert str(found.field("id").type) == str(found.field("s.a").type) == "int"
    assert str(found.field("new").type) == "int"


def test_other_kinds_of_types_are_left_to_the_check_of_values() -> None:
    given = pa.schema({"id": pa.struct({"x": pa.int32()}), "s": pa.string(), "l": pa.int8(), "m": pa.uint64()})
    assert merge_steps(SCHEMA, given, format_version=2) == ()


def test_a_new_column_of_a_type_that_the_version_lacks_is_refused_by_name() -> None:
    with pytest.raises(IcefloeError, match="at"):
        merge_steps(SCHEMA, pa.schema({"at": pa.timestamp("ns")}), format_version=2)
    assert str(merged(pa.schema({"at": pa.timestamp("ns")}), 3).field("at").type) == "timestamp_ns"
