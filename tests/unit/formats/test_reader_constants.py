"""Columns that a file lacks, with the values that its partition gives them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from icefloe.errors import FormatError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.read.file_read import FileDeletes, FileRead
from icefloe.formats.read.reader import read_file, stored_columns
from icefloe.io.local import LocalFileIO
from icefloe.model.arrow.conform import arrow_schema, arrow_type
from icefloe.model.schema.metadata_columns import POS
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
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Struct,
    Type,
)

IO = LocalFileIO()
STORED = Schema(fields=(Field(1, "id", LONG, True),))
TABLE = Schema(fields=(Field(2, "city", STRING, True), Field(1, "id", LONG, True), Field(3, "n", LONG)))
OSLO = {2: pa.scalar("Oslo"), 3: pa.scalar(7, pa.int64())}


def file_of(folder: Path, rows: list[dict[str, Any]], schema: Schema = STORED, row_group_size: int = 4) -> str:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(schema))
    pq.write_table(table, folder / "f.parquet", store_schema=False, row_group_size=row_group_size)
    return f"file://{folder}/f.parquet"


def without(positions: Iterable[int]) -> FileDeletes:
    return FileDeletes(positions=BitMap64(positions))


@pytest.fixture
def ten(tmp_path: Path) -> str:
    return file_of(tmp_path, [{"id": i} for i in range(10)])


def where(text: str, schema: Schema = TABLE) -> Expr:
    return bind(parse_filter(text), schema)


def rows(location: str, schema: Schema, *, row_positions: bool = False, **options: Any) -> list[dict[str, Any]]:
    schema = Schema(fields=(*schema.fields, POS)) if row_positions else schema
    return [
        row
        for batch in read_file(IO, FileRead(location=location, schema=schema, **options))
        for row in batch.to_pylist()
    ]


def test_a_missing_column_has_its_constant_in_its_place(ten: str) -> None:
    batches = list(read_file(IO, FileRead(location=ten, schema=TABLE, constants=OSLO)))
    assert all(batch.schema.equals(arrow_schema(TABLE), check_metadata=True) for batch in batches)
    assert pa.Table.from_batches(batches).to_pylist() == [{"city": "Oslo", "id": i, "n": 7} for i in range(10)]


def test_a_column_that_the_file_has_is_read_from_the_file(ten: str) -> None:
    constants = {**OSLO, 1: pa.scalar(99, pa.int64())}
    assert [row["id"] for row in rows(ten, TABLE, constants=constants)] == list(range(10))


def test_a_missing_column_without_a_constant_is_null(ten: str) -> None:
    only = {2: OSLO[2]}
    assert {row["n"] for row in rows(ten, TABLE, constants=only)} == {None}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("city = 'Oslo'", range(10)),
        ("city = 'Rome'", ()),
        ("city is null", ()),
        ("n is not null", range(10)),
        ("city = 'Oslo' and id >= 7", (7, 8, 9)),
        ("city = 'Rome' or id = 5", (5,)),
        ("n > 7", ()),
        ("n <= 7 and not id < 9", (9,)),
    ],
)
def test_a_filter_sees_the_constant_in_every_row_group(ten: str, text: str, ids: Any) -> None:
    id_only = Schema(fields=(TABLE.field("id"),))
    options = {"filter": where(text), "table_schema": TABLE, "constants": OSLO}
    assert [row["id"] for row in rows(ten, id_only, **options)] == list(ids)
    found = rows(ten, Schema(fields=()), row_positions=True, **options)
    assert [row["_pos"] for row in found] == list(ids)


def test_nothing_of_the_file_need_be_read(ten: str) -> None:
    city = Schema(fields=(TABLE.field("city"),))
    found = rows(
        ten,
        city,
        constants=OSLO,
        deletes=without([0, 9]),
        row_positions=True,
        filter=where("city > 'A'"),
    )
    assert found == [{"city": "Oslo", "_pos": i} for i in range(1, 9)]


@pytest.mark.parametrize("constants", [{}, {2: pa.scalar(None, pa.string())}])
def test_a_required_column_needs_a_value(ten: str, constants: dict[int, pa.Scalar]) -> None:
    with pytest.raises(FormatError, match="lacks the required column 'city'"):
        rows(ten, TABLE, constants=constants)


def test_a_null_constant_is_null(ten: str) -> None:
    constants = {**OSLO, 3: pa.scalar(None, pa.int64())}
    found = rows(ten, TABLE, constants=constants, filter=where("n is null and id < 2"))
    assert found == [{"city": "Oslo", "id": 0, "n": None}, {"city": "Oslo", "id": 1, "n": None}]


def test_nan_is_a_constant(tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "x", DOUBLE)))
    location = file_of(tmp_path, [{"id": 1}])
    constants = {2: pa.scalar(math.nan)}
    (row,) = rows(location, schema, constants=constants, filter=where("x > 5", schema))
    assert math.isnan(row["x"])
    assert rows(location, schema, constants=constants, filter=where("x < 5", schema)) == []


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (BOOLEAN, False),
        (INT, -1),
        (LONG, -(2**63)),
        (FLOAT, 0.5),
        (DATE, dt.date(1900, 1, 1)),
        (TIMESTAMP, dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (TIMESTAMPTZ, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        (STRING, ""),
        (BINARY, b"\x00\xff"),
        (UUID, bytes(range(16))),
        (Fixed(3), b"abc"),
        (Decimal(38, 2), decimal.Decimal("-123456789012345678901234567890.12")),
    ],
)
def test_constants_of_every_type_are_exact(tmp_path: Path, type_: Type, value: object) -> None:
    schema = Schema(fields=(Field(1, "id", LONG, True), Field(2, "x", type_)))
    location = file_of(tmp_path, [{"id": 1}, {"id": 2}])
    found = rows(location, schema, constants={2: pa.scalar(value, arrow_type(type_))})
    assert [row["x"] for row in found] == [value, value]


def test_a_constant_is_widened_to_the_type_of_the_column(ten: str) -> None:
    found = rows(ten, TABLE, constants={**OSLO, 3: pa.scalar(5, pa.int32())})
    assert {row["n"] for row in found} == {5}


def nested(*fields: Field) -> Schema:
    return Schema(fields=(Field(1, "s", Struct(fields)), Field(9, "l", List(10, LONG))))


def test_a_field_missing_inside_a_struct_is_filled_in(tmp_path: Path) -> None:
    deep = Field(4, "t", Struct((Field(5, "u", LONG), Field(6, "v", STRING))))
    bare = Field(4, "t", Struct((Field(5, "u", LONG),)))
    stored = nested(Field(2, "a", LONG), bare)
    table = nested(Field(3, "k", STRING, True), deep, Field(2, "a", LONG))
    given = [{"s": {"a": 1, "t": {"u": 2}}, "l": [1]}, {"s": None, "l": None}, {"s": {"a": None, "t": None}, "l": []}]
    location = file_of(tmp_path, given, stored)
    constants = {3: pa.scalar("k"), 6: pa.scalar("v")}
    assert [row["s"] for row in rows(location, table, constants=constants)] == [
        {"k": "k", "t": {"u": 2, "v": "v"}, "a": 1},
        None,
        {"k": "k", "t": None, "a": None},
    ]
    found = rows(location, table, constants=constants, filter=where("s.k = 'k' and s.t.v = 'v'", table))
    assert [row["l"] for row in found] == [[1]]
    assert rows(location, table, constants=constants, filter=where("s.k = 'other'", table)) == []


def test_a_struct_that_is_missing_altogether_exists_around_its_constant(ten: str) -> None:
    inner = Struct((Field(3, "k", STRING, True), Field(4, "other", LONG)))
    table = Schema(fields=(Field(1, "id", LONG), Field(2, "s", inner, True)))
    found = rows(ten, table, constants={3: pa.scalar("k")})
    assert found[0] == {"id": 0, "s": {"k": "k", "other": None}}
    with pytest.raises(FormatError, match="lacks the required column 's'"):
        rows(ten, table)


def test_a_struct_around_a_constant_is_the_same_whichever_of_its_fields_are_read(ten: str) -> None:
    """With the field alone it was null, or the file was refused for the lack of a required struct."""
    inner = Struct((Field(3, "k", STRING, True), Field(4, "other", LONG)))
    table = Schema(fields=(Field(1, "id", LONG), Field(2, "s", inner, True)))
    only = table.prune(("id", "s.other"))
    options = {"table_schema": table, "constants": {3: pa.scalar("k")}}
    assert rows(ten, only, **options)[0] == {"id": 0, "s": {"other": None}}
    assert len(rows(ten, only, filter=where("s.other is null", table), **options)) == 10


def test_a_struct_that_lacks_more_than_a_constant_is_null_whichever_of_its_fields_are_read(ten: str) -> None:
    inner = Struct((Field(3, "k", STRING), Field(4, "other", LONG, True)))
    table = Schema(fields=(Field(1, "id", LONG), Field(2, "s", inner)))
    options = {"table_schema": table, "constants": {3: pa.scalar("k")}}
    assert rows(ten, table, **options)[0] == {"id": 0, "s": None}
    assert rows(ten, table.prune(("id", "s.k")), **options)[0] == {"id": 0, "s": None}
    assert rows(ten, table, filter=where("s.k = 'k'", table), **options) == []


def test_the_footer_tells_which_columns_are_stored(tmp_path: Path) -> None:
    schema = nested(Field(2, "a", LONG), Field(4, "t", Struct((Field(5, "u", LONG),))))
    location = file_of(tmp_path, [{"s": None, "l": None}], schema)
    assert stored_columns(IO, location) == {1, 2, 4, 5, 9}
    pq.write_table(pa.table({"x": [1]}), tmp_path / "f.parquet", store_schema=False)
    with pytest.raises(FormatError, match="no column has a field id"):
        stored_columns(IO, location)
