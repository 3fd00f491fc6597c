"""Texts that a Parquet file stores as numbers of a dictionary are read as such, and put together last."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.expr.bind import bind
from icefloe.expr.text import parse_filter
from icefloe.formats.parquet_file import open_parquet
from icefloe.formats.reader import read_file
from icefloe.formats.row_mask import FileDrops
from icefloe.io.memory import MemoryFileIO
from icefloe.model.schema import Schema
from icefloe.model.types import BINARY, LONG, STRING, Field

FILE = "memory://t/f.parquet"
SCHEMA = Schema(fields=(Field(1, "n", LONG), Field(2, "s", STRING), Field(3, "raw", BINARY)))


def stored(rows: pa.Table, **options: Any) -> MemoryFileIO:
    """A file of the rows whose columns have the ids 1, 2, 3, ..."""
    fields = [field.with_metadata({"PARQUET:field_id": str(at)}) for at, field in enumerate(rows.schema, 1)]
    sink = pa.BufferOutputStream()
    pq.write_table(rows.cast(pa.schema(fields)), sink, **options)
    io = MemoryFileIO()
    io.write_new(FILE, sink.getvalue().to_pybytes())
    return io


def rows_of(texts: list[str | None]) -> pa.Table:
    raw = [None if text is None else text.encode() for text in texts]
    return pa.table({"n": range(len(texts)), "s": pa.array(texts, pa.string()), "raw": pa.array(raw, pa.binary())})


def by_dictionary(io: MemoryFileIO) -> list[str]:
    with open_parquet(io, FILE) as file:
        return [field.name for field in file.schema if pa.types.is_dictionary(field.type)]


def test_columns_of_few_values_are_read_by_their_dictionaries() -> None:
    assert by_dictionary(stored(rows_of(["red", "green", None] * 100))) == ["s", "raw"]


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        ([f"text number {n}" for n in range(300)], {}),
        (["red", "green"] * 100, {"use_dictionary": False}),
        (["red"] * 200 + [f"text number {n}" for n in range(200)], {"row_group_size": 200}),
        ([f"text number {n}" for n in range(3000)], {"dictionary_pagesize_limit": 100}),
    ],
    ids=["all different", "written without", "in one row group only", "given up by the writer"],
)
def test_columns_that_would_need_a_dictionary_made_for_them_are_read_as_they_are(
    texts: list[str | None], options: dict[str, Any]
) -> None:
    assert by_dictionary(stored(rows_of(texts), **options)) == []


def test_other_columns_of_bytes_are_left_alone() -> None:
    rows = pa.table(
        {
            "price": pa.array([1, 2] * 50).cast(pa.decimal128(30, 2)),
            "nested": pa.array([{"s": "x"}] * 100),
            "list": pa.array([["x"]] * 100),
        }
    )
    assert by_dictionary(stored(rows, store_decimal_as_integer=False)) == []


def test_a_file_without_rows_has_no_dictionaries_to_miss() -> None:
    io = stored(rows_of(["x"]).slice(0, 0))
    assert list(read_file(io, FILE, schema=SCHEMA)) == []


@given(
    texts=st.lists(st.none() | st.sampled_from(["red", "green", "blü", ""]), min_size=40, max_size=60),
    dropped=st.sets(st.integers(0, 2399), max_size=20),
    wanted=st.none() | st.sampled_from(["red", "blü", ""]),
    group=st.integers(200, 2400),
    batch=st.integers(100, 2400),
)
def test_rows_are_the_same_by_dictionary_as_without(
    texts: list[str | None], dropped: set[int], wanted: str | None, group: int, batch: int
) -> None:
    rows = rows_of((texts * 60)[:2400])
    filter = bind(parse_filter("n >= 0" if wanted is None else f"s = '{wanted}'"), SCHEMA)
    found = []
    for options in ({}, {"use_dictionary": False}):
        io = stored(rows, row_group_size=group, **options)
        assert by_dictionary(io) == ([] if options else ["s", "raw"])
        drops = FileDrops(positions=BitMap64(dropped))
        batches = read_file(io, FILE, schema=SCHEMA, filter=filter, drops=drops, batch_rows=batch)
        found.append([row for part in batches for row in part.to_pylist()])
    assert found[0] == found[1]
    assert found[0] == [
        row for row in rows.to_pylist() if row["n"] not in dropped and (wanted is None or row["s"] == wanted)
    ]
