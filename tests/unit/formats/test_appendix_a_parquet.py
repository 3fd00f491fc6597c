"""Appendix A of the specification: the Parquet table, checked on the footers of files that were written."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.formats.write.write_files import write_files
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema
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
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
    Type,
)

PARQUET: list[tuple[Type, str, int, dict[str, Any]]] = [
    (BOOLEAN, "BOOLEAN", 0, {"Type": "None"}),
    (INT, "INT32", 0, {"Type": "None"}),
    (LONG, "INT64", 0, {"Type": "None"}),
    (FLOAT, "FLOAT", 0, {"Type": "None"}),
    (DOUBLE, "DOUBLE", 0, {"Type": "None"}),
    (Decimal(9, 2), "INT32", 0, {"Type": "Decimal", "precision": 9, "scale": 2}),
    (Decimal(18, 2), "INT64", 0, {"Type": "Decimal", "precision": 18, "scale": 2}),
    (Decimal(19, 2), "FIXED_LEN_BYTE_ARRAY", 9, {"Type": "Decimal", "precision": 19, "scale": 2}),
    (Decimal(38, 2), "FIXED_LEN_BYTE_ARRAY", 16, {"Type": "Decimal", "precision": 38, "scale": 2}),
    (DATE, "INT32", 0, {"Type": "Date"}),
    (TIME, "INT64", 0, {"Type": "Time", "isAdjustedToUTC": False, "timeUnit": "microseconds"}),
    (TIMESTAMP, "INT64", 0, {"Type": "Timestamp", "isAdjustedToUTC": False, "timeUnit": "microseconds"}),
    (TIMESTAMPTZ, "INT64", 0, {"Type": "Timestamp", "isAdjustedToUTC": True, "timeUnit": "microseconds"}),
    (STRING, "BYTE_ARRAY", 0, {"Type": "String"}),
    (UUID, "FIXED_LEN_BYTE_ARRAY", 16, {"Type": "UUID"}),
    (Fixed(7), "FIXED_LEN_BYTE_ARRAY", 7, {"Type": "None"}),
    (BINARY, "BYTE_ARRAY", 0, {"Type": "None"}),
]


def footer_of(type_: Type) -> Any:
    """The Parquet schema of a file with one column."""
    schema = Schema(fields=(Field(8, "c", type_),))
    shape, io = arrow_schema(schema), MemoryFileIO()
    rows = pa.table([pa.nulls(1, shape.field(0).type)], schema=shape)
    written = write_files(io, rows, schema=schema, data_location="memory://t/data")
    return pq.ParquetFile(pa.BufferReader(io.read(written["location"][0].as_py()))).schema


@pytest.mark.parametrize(("type_", "physical", "length", "logical"), PARQUET, ids=[str(row[0]) for row in PARQUET])
def test_parquet_has_the_types_of_the_table(type_: Type, physical: str, length: int, logical: dict[str, Any]) -> None:
    column = footer_of(type_).column(0)
    assert (column.physical_type, max(column.length, 0)) == (physical, length)
    found = json.loads(column.logical_type.to_json())
    assert {key: found[key] for key in logical} == logical


@pytest.mark.parametrize(
    ("type_", "groups"),
    [
        (Struct((Field(9, "x", INT),)), ["c", "c.x"]),
        (List(9, INT), ["c", "c.list", "c.list.element"]),
        (Map(9, STRING, 10, INT), ["c", "c.key_value", "c.key_value.key", "c.key_value.value"]),
    ],
    ids=["struct", "list", "map"],
)
def test_lists_and_maps_have_three_levels(type_: Type, groups: list[str]) -> None:
    paths = {footer_of(type_).column(i).path for i in range(len(footer_of(type_)))}
    assert {".".join(path.split(".")[:n]) for path in paths for n in range(1, 4)} == set(groups)


@pytest.mark.parametrize(
    ("type_", "marks"),
    [
        (Struct((Field(9, "x", INT),)), ["group field_id=8 c {", "int32 field_id=9 x;"]),
        (
            List(9, INT),
            ["group field_id=8 c (List) {", "repeated group field_id=-1 list {", "int32 field_id=9 element;"],
        ),
        (
            Map(9, STRING, 10, INT),
            [
                "group field_id=8 c (Map) {",
                "repeated group field_id=-1 key_value {",
                "required binary field_id=9 key (String);",
                "int32 field_id=10 value;",
            ],
        ),
    ],
    ids=["struct", "list", "map"],
)
def test_nested_types_are_annotated_groups_with_the_ids_of_their_columns(type_: Type, marks: list[str]) -> None:
    text = str(footer_of(type_))
    assert [mark for mark in marks if mark not in text] == []
