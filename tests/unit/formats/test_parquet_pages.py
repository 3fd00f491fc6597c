"""Pages: some rows of a row group are read without the others, and they are the same rows."""

from __future__ import annotations

import decimal
import inspect
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.parquet import file as parquet_file
from icefloe.formats.parquet import pages as parquet_pages
from icefloe.formats.parquet.file import open_parquet
from icefloe.formats.parquet.pages import PageReader
from icefloe.formats.read.data_file import RowRange
from icefloe.formats.read.file_read import FileDeletes, FileRead
from icefloe.formats.read.reader import read_file
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BOOLEAN, DATE, DOUBLE, LONG, STRING, Decimal, Field, List, Map, Struct

FILE = "memory://t/f.parquet"
INNER = Struct((Field(6, "x", LONG), Field(7, "y", STRING)))
TABLE = Schema(
    fields=(
        Field(1, "id", LONG),
        Field(2, "text", STRING),
        Field(3, "few", STRING),
        Field(4, "price", Decimal(12, 2)),
        Field(5, "place", INNER),
        Field(8, "many", List(element=LONG, element_id=9, element_required=False)),
        Field(10, "pairs", Map(key=STRING, value=LONG, key_id=11, value_id=12, value_required=False)),
        Field(13, "flag", BOOLEAN),
        Field(14, "ratio", DOUBLE),
        Field(15, "day", DATE),
    )
)
ROW_LIMIT = "max_rows_per_page" in inspect.signature(pq.ParquetWriter).parameters


@pytest.fixture(autouse=True)
def small_files_have_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_file, "MANY_BYTES", 0)
    monkeypatch.setattr(parquet_pages, "NEAR", 64)


def row(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "text": None if n % 11 == 0 else "t" * (n * 7 % 90) + str(n),
        "few": f"f{n % 3}",
        "price": None if n % 5 == 0 else decimal.Decimal(n * 37 % 1000) / 4,
        "place": None if n % 13 == 0 else {"x": n, "y": None if n % 4 == 0 else "y" * (n % 50)},
        "many": None if n % 7 == 0 else list(range(n % 5)),
        "pairs": [(f"k{i}", i if i % 2 == 0 else None) for i in range(n % 4)],
        "flag": n % 2 == 0,
        "ratio": float("nan") if n % 17 == 0 else n / 8,
        "day": n // 10,
    }


def rows_of(count: int, schema: Schema = TABLE) -> pa.Table:
    rows = [{**row(n), "day": None} for n in range(count)]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(schema))
    days = pa.array([n // 10 for n in range(count)], pa.int32()).view(pa.date32())
    return table.set_column(table.schema.get_field_index("day"), table.schema.field("day"), days)


def put(table: pa.Table, **options: Any) -> MemoryFileIO:
    io, sink = MemoryFileIO(), pa.BufferOutputStream()
    settings = {"write_page_index": True, "store_schema": False, "write_batch_size": 16, **options}
    pq.write_table(table, sink, **settings)
    io.write_new(FILE, sink.getvalue().to_pybytes())
    return io


def found(io: MemoryFileIO, text: str | None = None, schema: Schema = TABLE, **options: Any) -> pa.Table:
    filter_ = ALWAYS_TRUE if text is None else bind(parse_filter(text), TABLE)
    batches = read_file(io, FileRead(location=FILE, schema=schema, filter=filter_, table_schema=TABLE, **options))
    return pa.Table.from_batches(batches, arrow_schema(schema))


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is read by pages and of indexes of pages."""
    sizes: list[int] = []
    read = PageReader._read

    def counting(self: PageReader, place: tuple[int, int]) -> bytes:
        sizes.append(place[1] - place[0])
        return read(self, place)

    monkeypatch.setattr(PageReader, "_read", counting)
    return sizes


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "data_page_size": draw(st.sampled_from([200, 700, 5_000])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "use_dictionary": draw(st.sampled_from([True, False, ["few"]])),
        "dictionary_pagesize_limit": draw(st.sampled_from([300, 1_000_000])),
        "compression": draw(st.sampled_from(["none", "zstd", "snappy"])),
        "row_group_size": draw(st.sampled_from([400, 1_000, 5_000])),
        **({"max_rows_per_page": draw(st.sampled_from([50, 20_000]))} if ROW_LIMIT else {}),
    }


WHOLE = rows_of(1_000)


@given(settings(), st.integers(0, 999), st.integers(1, 1_000), st.data())
def test_any_rows_of_any_columns_are_the_same_by_pages(
    options: dict[str, Any], first: int, count: int, data: st.DataObject
) -> None:
    fields = data.draw(st.lists(st.sampled_from(TABLE.fields), min_size=1, unique=True))
    io = put(WHOLE, **options)
    with open_parquet(io, FILE) as file:
        group = next(group for group in file.row_groups if group.start <= first < group.end)
        part = RowRange(group=group.group, start=first, rows=min(count, group.end - first))
        if part.rows < group.rows:
            assert file.reads_pages(group, tuple(fields))
        batches = list(file.read(part, tuple(fields), 10_000))
    names = [field.name for field in TABLE.fields if field in fields]
    read = pa.Table.from_batches(batches).select(names)
    plain = pa.table({name: _plain(column) for name, column in zip(names, read.columns, strict=True)})
    wanted = WHOLE.select(names).slice(part.start, part.rows)
    assert plain.cast(wanted.schema).to_pylist().__repr__() == wanted.to_pylist().__repr__()


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


@given(
    settings(),
    st.sampled_from(
        [
            "id = 333",
            "id > 900",
            "id >= 100 and id < 140",
            "id in (5, 500, 995)",
            "id < 30 or id > 980",
            "day = '1970-02-01'",
            "place.x >= 200 and place.x < 260",
            "text = 'tttttttttttttttttt2'",
            "few = 'f7'",
            "price > 249",
            "ratio > 120",
            "ratio < 4",
            "isnan(ratio)",
            "text is null and id < 100",
            "place is null and id > 800",
            "not (id < 950)",
            "flag = true and id = 4",
        ]
    ),
    st.sets(st.integers(0, 999), max_size=40),
)
def test_filters_find_by_pages_what_they_find_without(options: dict[str, Any], text: str, gone: set[int]) -> None:
    deletes = FileDeletes(positions=BitMap64(gone))
    with_pages = found(put(WHOLE, **options), text, deletes=deletes)
    without = found(put(WHOLE, **{**options, "write_page_index": False}), text, deletes=deletes)
    assert with_pages.to_pylist().__repr__() == without.to_pylist().__repr__()
    assert gone.isdisjoint(with_pages["id"].to_pylist())


@pytest.mark.parametrize("text", ["id >= 4000 and id <= 4010", "few = 'only'"], ids=["sorted", "one row"])
def test_a_narrow_filter_reads_few_of_the_bytes_of_a_row_group(text: str, fetched: list[int]) -> None:
    table = rows_of(20_000)
    few = pa.array([f"v{n}" if n != 4_567 else "only" for n in range(20_000)])
    table = table.set_column(2, table.schema.field("few"), few)
    io = put(table, data_page_size=2_000, use_dictionary=False)
    rows = found(io, text)
    assert rows["id"].to_pylist() == (list(range(4_000, 4_011)) if "id" in text else [4_567])
    assert rows.to_pylist().__repr__() == table.filter(pc.is_in(table["id"], rows["id"])).to_pylist().__repr__()
    assert 0 < sum(fetched) < io.size(FILE) / 8


def test_positions_of_rows_are_those_of_the_file_whatever_pages_are_skipped() -> None:
    io = put(rows_of(5_000), data_page_size=500, row_group_size=2_500)
    with_positions = Schema(fields=(TABLE.fields[0], POS))
    bound = bind(parse_filter("id in (10, 2600, 2601, 4999)"), TABLE)
    batches = read_file(io, FileRead(location=FILE, schema=with_positions, filter=bound, table_schema=TABLE))
    assert [(r["id"], r["_pos"]) for batch in batches for r in batch.to_pylist()] == [
        (n, n) for n in (10, 2600, 2601, 4999)
    ]


def test_pages_that_rule_out_every_row_are_not_read(fetched: list[int]) -> None:
    table = pa.table({"id": pa.array([n * 10 for n in range(5_000)], pa.int64())}, schema=arrow_schema(IDS))
    io = put(table, data_page_size=800, use_dictionary=False)
    batches = read_file(
        io, FileRead(location=FILE, schema=IDS, filter=bind(parse_filter("id > 12001 and id < 12009"), IDS))
    )
    assert sum(batch.num_rows for batch in batches) == 0
    assert len(fetched) == 4  # the footer, where pages are, what they hold, and the one page around the gap
    assert sum(fetched) < io.size(FILE) / 8


IDS = Schema(fields=TABLE.fields[:1])


def test_a_file_that_is_mostly_wanted_is_read_whole(fetched: list[int]) -> None:
    io = put(rows_of(5_000), data_page_size=500)
    assert found(io, "id >= 1000").num_rows == 4_000
    with_index = sum(fetched)
    assert with_index < io.size(FILE) / 8  # the index alone


def test_values_that_do_not_lie_together_are_not_looked_up_by_page(fetched: list[int]) -> None:
    ids = pa.array([n * 7_919 % 4_000 for n in range(4_000)], pa.int64())
    io = put(pa.table({"id": ids}, schema=arrow_schema(IDS)), row_group_size=1_000, data_page_size=300)
    batches = read_file(io, FileRead(location=FILE, schema=IDS, filter=bind(parse_filter("id < 40"), IDS)))
    assert sorted(n for batch in batches for n in batch.column(0).to_pylist()) == list(range(40))
    assert fetched == []


@pytest.mark.parametrize("spoiled", ["pages", "bounds", "all"])
def test_an_index_of_pages_that_cannot_be_true_is_not_used(spoiled: str) -> None:
    table = rows_of(2_000)
    io = put(table, data_page_size=500)
    data = bytearray(io.read(FILE))
    footer = pq.read_metadata(pa.BufferReader(bytes(data)))
    with open_parquet(io, FILE) as file:
        tail = file._pages._tail  # type: ignore[attr-defined]
        for leaf in range(footer.num_columns):
            pages, bounds = tail.pages_at(0, leaf), tail.bounds_at(0, leaf)
            for begin, end in ([] if spoiled == "bounds" else [pages]) + ([] if spoiled == "pages" else [bounds]):
                data[begin:end] = b"\x19" * (end - begin)
    other = MemoryFileIO()
    other.write_new(FILE, bytes(data))
    rows = found(other, "id >= 1000 and id <= 1003")
    assert rows.to_pylist().__repr__() == table.slice(1_000, 4).to_pylist().__repr__()


def test_a_file_with_names_like_paths_is_read_whole() -> None:
    schema = Schema(fields=(Field(1, "a.b", LONG), Field(2, "c", LONG)))
    rows = [{"a.b": n, "c": -n} for n in range(3_000)]
    io = put(pa.Table.from_pylist(rows, schema=arrow_schema(schema)), data_page_size=300)
    with open_parquet(io, FILE) as file:
        assert not file.reads_pages(file.row_groups[0], schema.fields)
        assert file.page_ranges(file.row_groups[0], schema) is None
        part = RowRange(group=0, start=7, rows=2)
        read = [row for batch in file.read(part, schema.fields, 100) for row in batch.to_pylist()]
    assert read == rows[7:9]
