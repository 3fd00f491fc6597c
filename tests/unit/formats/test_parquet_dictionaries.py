"""Texts that a Parquet file stores as numbers of a dictionary are read as such, and put together last."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.errors import LimitError
from icefloe.expr.filter.bind import bind
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.parquet import file as parquet_file
from icefloe.formats.parquet.file import open_parquet
from icefloe.formats.read import row_group_reader
from icefloe.formats.read.batches import in_parts
from icefloe.formats.read.file_read import FileDeletes, FileRead
from icefloe.formats.read.reader import read_file
from icefloe.formats.read.storage_errors import reading
from icefloe.io.memory import MemoryFileIO
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BINARY, LONG, STRING, Field, List, Struct

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
    assert list(read_file(io, FileRead(location=FILE, schema=SCHEMA))) == []


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
        deletes = FileDeletes(positions=BitMap64(dropped))
        batches = read_file(
            io, FileRead(location=FILE, schema=SCHEMA, filter=filter, deletes=deletes, batch_rows=batch)
        )
        found.append([row for part in batches for row in part.to_pylist()])
    assert found[0] == found[1]
    assert found[0] == [
        row for row in rows.to_pylist() if row["n"] not in dropped and (wanted is None or row["s"] == wanted)
    ]


@pytest.mark.parametrize("where", [None, "n >= 0", "s >= 'a'", "n >= 10 and raw is not null"])
def test_long_texts_that_repeat_are_put_together_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch, where: str | None
) -> None:
    """A million rows of 300 texts of 3 KB, a file of 5 MB, took gigabytes and were then called damaged."""
    monkeypatch.setattr(row_group_reader, "BATCH_BYTES", 20_000)
    rows = rows_of([letter * 1000 for letter in "abcd"] * 250 + [None] * 1000 + ["b", "c"] * 500)
    io = stored(rows, row_group_size=3000)
    assert by_dictionary(io) == ["s", "raw"]
    filter = bind(parse_filter("n is not null" if where is None else where), SCHEMA)
    batches = list(read_file(io, FileRead(location=FILE, schema=SCHEMA, filter=filter)))
    # The columns of a filter and the others are each cut by themselves.
    assert max(batch["s"].nbytes + batch["raw"].nbytes for batch in batches) <= 2 * 20_000 + 8 * 3000
    assert len(batches) < 200, "short texts stay together"
    found = [row for batch in batches for row in batch.to_pylist()]
    test = {"s >= 'a'": lambda row: row["s"] is not None, "n >= 10 and raw is not null": _late}.get(where or "")
    assert found == [row for row in rows.to_pylist() if test is None or test(row)]


def _late(row: dict[str, Any]) -> bool:
    return row["n"] >= 10 and row["raw"] is not None


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["RLE_DICTIONARY", "DELTA_BYTE_ARRAY"])
def test_long_texts_that_repeat_inside_of_columns_are_decoded_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """Arrow cannot decode more than 2 GB of nested texts together: a million rows of 40 tags could not be read."""
    monkeypatch.setattr(parquet_file, "BATCH_BYTES", 100_000)
    monkeypatch.setattr(parquet_file, "LEAST_ROWS", 10)
    texts = [letter * 1000 for letter in "abcd"] * 500
    rows = pa.table({"st": [{"s": text} for text in texts], "l": [[text, text] for text in texts], "n": range(2000)})
    options: dict[str, Any] = {}
    if encoding == "DELTA_BYTE_ARRAY":
        options = {"use_dictionary": False, "column_encoding": dict.fromkeys(("st.s", "l.list.element"), encoding)}
    ids = {"PARQUET:field_id": "4"}
    inner = pa.struct([pa.field("s", pa.string(), metadata=ids)])
    rows = rows.set_column(0, pa.field("st", inner), rows["st"].combine_chunks().cast(inner))
    io = stored(rows, **options)
    struct, list_ = Field(1, "st", Struct((Field(4, "s", STRING),))), Field(2, "l", List(5, STRING))
    for field, least in ((struct, 10), (list_, 20)):
        batches = list(read_file(io, FileRead(location=FILE, schema=Schema(fields=(field,)))))
        assert max(batch.nbytes for batch in batches) < 150_000
        assert least <= len(batches) < 100
        assert pa.Table.from_batches(batches).to_pylist() == rows.select([field.name]).to_pylist()
    assert len(list(read_file(io, FileRead(location=FILE, schema=Schema(fields=(Field(3, "n", LONG),)))))) == 1


def test_nested_texts_of_unknown_length_are_read_as_many_as_arrow_surely_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_file, "NESTED_ROWS", 1500)
    monkeypatch.setattr(parquet_file, "NESTED_VALUES", 2000)
    rows = pa.table({"one": [["x"]] * 3000, "two": [["x", "y"]] * 3000})
    for options, sizes in (({}, [[1500, 1500], [1000, 1000, 1000]]), ({"use_dictionary": False}, [[3000], [3000]])):
        io = stored(rows, write_statistics=False, **options)
        fields = (Field(1, "one", List(3, STRING)), Field(2, "two", List(4, STRING)))
        found = [
            [b.num_rows for b in read_file(io, FileRead(location=FILE, schema=Schema(fields=(field,))))]
            for field in fields
        ]
        assert found == sizes


@given(
    texts=st.lists(st.none() | st.sampled_from(["", "a", "bcd", "a text of many letters"]), max_size=30),
    others=st.lists(st.none() | st.sampled_from([b"", b"xyz"]), min_size=30, max_size=30),
    start=st.integers(0, 10),
    most=st.integers(1, 60),
    kept=st.none() | st.integers(0, 30),
)
def test_parts_are_few_or_as_long_as_they_may_be(
    texts: list[str | None], others: list[bytes | None], start: int, most: int, kept: int | None
) -> None:
    columns = [pa.array(texts, pa.string()), pa.array(others[: len(texts)], pa.binary())]
    batch = pa.record_batch([column.dictionary_encode() for column in columns], names=["s", "raw"]).slice(start)
    parts = list(in_parts(batch, most, kept))
    assert [row for part in parts for row in part.to_pylist()] == batch.to_pylist()
    sizes = [[sum(len(v) for v in row.values() if v is not None) for row in part.to_pylist()] for part in parts]
    assert all(sum(sorted(part, reverse=True)[:kept]) <= most or len(part) == 1 for part in sizes)
    assert len(parts) <= 8 or all(sum(part) + after[0] > most for part, after in pairwise(sizes))


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes, have 2147484500"),
        pa.ArrowInvalid("Take operation overflowed binary array capacity"),
        pa.ArrowNotImplementedError("Nested data conversions not implemented for chunked array outputs"),
    ],
)
def test_a_file_with_more_text_than_arrow_can_hold_is_not_called_damaged(error: Exception) -> None:
    """A sound stripe of ORC with more than 2 GB of text was."""
    with pytest.raises(LimitError, match=r"f\.orc: .* 2 GB .*; write the file again with smaller"), reading("f.orc"):
        raise error
