"""Columns that rows do not have get the write default of the table, at every depth (spec: Default values)."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal as PyDecimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import FormatError, InputError
from icefloe.model.arrow.conform import arrow_schema, conform
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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    Decimal,
    Field,
    Fixed,
    Struct,
    Type,
)

NAIVE = dt.datetime(2017, 11, 16, 22, 31, 8, 123456)
SOME_UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
DEFAULTS: list[tuple[Type, Any, Any]] = [
    (BOOLEAN, False, False),
    (INT, 34, 34),
    (LONG, 0, 0),
    (FLOAT, 0.5, 0.5),
    (DOUBLE, 0.0, 0.0),
    (Decimal(9, 2), "14.20", PyDecimal("14.20")),
    (DATE, "2017-11-16", dt.date(2017, 11, 16)),
    (TIME, "22:31:08.123456", NAIVE.time()),
    (TIMESTAMP, "2017-11-16T22:31:08.123456", NAIVE),
    (TIMESTAMPTZ, "2017-11-16T22:31:08.123456+00:00", NAIVE.replace(tzinfo=dt.UTC)),
    (STRING, "", ""),
    (UUID, SOME_UUID, uuid.UUID(SOME_UUID).bytes),
    (Fixed(4), "000102ff", b"\0\1\2\xff"),
    (BINARY, "000102ff", b"\0\1\2\xff"),
]
NANOS = 1_510_871_468_123_456_789


def with_default(type_: Type, default: Any, *, required: bool = False) -> Schema:
    """A key, and a column that has another initial default than the one for new rows."""
    return Schema(fields=(Field(1, "id", LONG), Field(2, "c", type_, required, write_default=default)))


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(("type_", "default", "value"), DEFAULTS, ids=[str(type_) for type_, _, _ in DEFAULTS])
def test_a_column_that_is_not_supplied_is_written_with_its_default(
    type_: Type, default: Any, value: Any, required: bool
) -> None:
    schema = with_default(type_, default, required=required)

    written = conform(pa.table({"id": [1, 2]}), schema)

    assert written["c"].to_pylist() == [value, value]
    assert written.schema.equals(arrow_schema(schema), check_metadata=True)
    assert conform(pa.table({"id": pa.array([], pa.int64())}), schema).num_rows == 0


@pytest.mark.parametrize(("type_", "zone"), [(TIMESTAMP_NS, ""), (TIMESTAMPTZ_NS, "+00:00")])
def test_a_default_keeps_its_nanoseconds(type_: Type, zone: str) -> None:
    schema = with_default(type_, f"2017-11-16T22:31:08.123456789{zone}")

    assert conform(pa.table({"id": [1]}), schema)["c"].cast(pa.int64()).to_pylist() == [NANOS]


def test_the_write_default_is_written_and_not_the_initial_one() -> None:
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "c", INT, initial_default=1, write_default=2)))

    assert conform(pa.table({"id": [1]}), schema)["c"].to_pylist() == [2]


def test_a_null_that_is_supplied_is_no_missing_value() -> None:
    rows = pa.table({"id": [1], "c": pa.nulls(1)})

    assert conform(rows, with_default(INT, 34))["c"].to_pylist() == [None]
    with pytest.raises(InputError, match="'c' is required and has 1 null"):
        conform(rows, with_default(INT, 34, required=True))


def test_without_a_write_default_an_optional_column_is_null_and_a_required_one_is_refused() -> None:
    optional = Schema(fields=(Field(1, "id", LONG), Field(2, "c", INT, initial_default=1)))
    required = Schema(fields=(Field(1, "id", LONG), Field(2, "c", INT, True, initial_default=1)))

    assert conform(pa.table({"id": [1]}), optional)["c"].to_pylist() == [None]
    with pytest.raises(InputError, match="required column c is missing and has no default"):
        conform(pa.table({"id": [1]}), required)


DEEP = Struct((Field(5, "must", STRING, True),))
INSIDE = Struct(
    (Field(3, "a", INT, True, write_default=7), Field(4, "b", STRING, write_default="x"), Field(6, "deep", DEEP))
)


def test_fields_of_a_struct_get_theirs_where_the_struct_is() -> None:
    schema = Schema(fields=(Field(2, "s", INSIDE),))
    rows = pa.table({"s": pa.array([{"b": "given"}, None, {"b": None}], pa.struct({"b": pa.string()}))})

    written = conform(rows, schema)

    first, last = {"a": 7, "b": "given", "deep": None}, {"a": 7, "b": None, "deep": None}
    assert written["s"].to_pylist() == [first, None, last]
    written.validate(full=True)
    pq.write_table(written, io.BytesIO())


@pytest.mark.parametrize(("default", "a"), [({}, 7), ({"3": 8}, 8)])
def test_the_default_of_a_struct_takes_what_it_lacks_from_its_fields(default: dict[str, int], a: int) -> None:
    written = conform(pa.table({"id": [1]}), with_default(INSIDE, default, required=True))

    assert written["c"].to_pylist() == [{"a": a, "b": "x", "deep": None}]
    pq.write_table(written, io.BytesIO())  # refuses nulls in required fields, even below a null


def test_a_default_that_is_no_value_of_its_type_is_told_with_the_column() -> None:
    with pytest.raises(FormatError, match="column 'c': write-default: expected an int, got 'x'"):
        conform(pa.table({"id": [1]}), with_default(INT, "x"))
