"""Z-order on Arrow, compared with bits that are interleaved one by one."""

from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.engines.zorder import interleaved, z_columns, z_indices
from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.text.ddl import parse_ddl

SCHEMA = parse_ddl(
    "a bigint, b int, c double, d string, e date, f timestamp_ntz, g boolean, h binary, i decimal(10, 2)"
)
EPOCH = date(1970, 1, 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(-(2**63), 2**63 - 1),
            "b": st.none() | st.integers(-(2**31), 2**31 - 1),
            "c": st.none() | st.floats(allow_nan=False),
            "d": st.none() | st.text(max_size=12),
            "e": st.none() | st.dates(),
            "f": st.none() | st.datetimes(),
            "g": st.none() | st.booleans(),
            "h": st.none() | st.binary(max_size=12),
            "i": st.none() | st.decimals(-(10**7), 10**7, places=2),
        }
    ),
    min_size=1,
    max_size=12,
)


def bits(value: object) -> str:
    """The 64 bits of a value, by the description."""
    if value is None:
        return "0" * 64
    if isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        return "".join(f"{byte:08b}" for byte in data[:8].ljust(8, b"\0"))
    if isinstance(value, (float, Decimal)):
        (number,) = struct.unpack(">q", struct.pack(">d", float(value)))
        number = number if number >= 0 else number ^ (2**63 - 1)
    elif isinstance(value, datetime):
        number = (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    elif isinstance(value, date):
        number = (value - EPOCH).days
    else:
        number = int(value)  # type: ignore[call-overload]
    return f"{number + 2**63:064b}"


@given(ROWS, st.permutations("abcdefgh"), st.integers(1, 8))
def test_rows_are_in_the_order_of_interleaved_bits(rows: list[dict[str, object]], names: list[str], count: int) -> None:
    columns = names[:count]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(SCHEMA))

    def z_value(row: dict[str, object]) -> str:
        return "".join(map("".join, zip(*(bits(row[name]) for name in columns), strict=True)))

    found = z_indices(table, z_columns(columns, SCHEMA), SCHEMA).to_pylist()
    assert found == sorted(range(len(rows)), key=lambda number: z_value(rows[number]))


@given(ROWS)
def test_decimals_are_ordered(rows: list[dict[str, object]]) -> None:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(SCHEMA))
    values = [rows[number]["i"] for number in z_indices(table, z_columns(["i"], SCHEMA), SCHEMA).to_pylist()]
    known = [value for value in values if value is not None]
    assert values[len(values) - len(known) :] == sorted(known)  # type: ignore[type-var]


def test_keys_of_eight_columns_use_all_bits() -> None:
    words = [np.array([2**64 - 1], np.uint64)] * 8
    assert [int(key[0]) for key in interleaved(words)] == [2**64 - 1] * 8


def test_columns_without_an_order_of_bits_are_refused() -> None:
    schema = parse_ddl("id bigint, l array<int>, u uuid, s struct<x: int>")
    assert [field.name for field in z_columns(["s.x", "id"], schema)] == ["x", "id"]
    for names, text in ((["l"], "has no z-order"), (["u"], "has no z-order"), ([], "1 to 8"), (["id"] * 2, "twice")):
        with pytest.raises(InputError, match=text):
            z_columns(names, schema)
