"""Which rows, row groups and columns are read: deletes by value, filters in two steps, parts of files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.errors import CorruptFile
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Bound
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.parquet import file as parquet_file
from icefloe.formats.read.data_file import RowRange
from icefloe.formats.read.file_read import FileDeletes, FilePart, FileRead, Mask
from icefloe.formats.read.reader import read_file
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import DELETED, POS
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, LONG, STRING, Field, Struct
from support.row_matching import matches

FILE = "memory://t/f.parquet"
INNER = Struct((Field(4, "x", LONG), Field(5, "y", STRING)))
TABLE = Schema(fields=(Field(1, "a", LONG), Field(2, "b", STRING), Field(3, "s", INNER)))


def stored(rows: list[dict[str, Any]], schema: Schema = TABLE, row_group_size: int = 3) -> MemoryFileIO:
    io, sink = MemoryFileIO(), pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows, schema=arrow_schema(schema))
    pq.write_table(table, sink, store_schema=False, row_group_size=row_group_size)
    io.write_new(FILE, sink.getvalue().to_pybytes())
    return io


def some(count: int) -> list[dict[str, Any]]:
    return [{"a": n, "b": f"b{n}", "s": {"x": n % 4, "y": f"y{n}"}} for n in range(count)]


def found(
    io: MemoryFileIO, schema: Schema = TABLE, *, row_positions: bool = False, **options: Any
) -> list[dict[str, Any]]:
    read = FileRead(location=FILE, schema=Schema(fields=(*schema.fields, POS)) if row_positions else schema, **options)
    return [row for batch in read_file(io, read) for row in batch.to_pylist()]


def where(text: str, schema: Schema = TABLE) -> Bound:
    return bind(parse_filter(text), schema)


@dataclass
class Among:
    """Deletes rows whose only column has one of these values."""

    schema: Schema
    values: tuple[Any, ...]

    def __call__(self, rows: pa.RecordBatch) -> Mask:
        assert rows.schema.names == [field.name for field in self.schema.fields]
        column = rows.column(0)
        gone = pc.is_in(column, value_set=pa.array(self.values, column.type))
        return np.asarray(gone)


@dataclass
class InStruct:
    """Deletes rows by a field of a struct."""

    schema: Schema
    value: Any

    def __call__(self, rows: pa.RecordBatch) -> Mask:
        return np.asarray(pc.fill_null(pc.equal(rows.column(0).field(0), self.value), False))


@pytest.fixture
def columns_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[str, ...]]]:
    """The row groups and columns that Arrow was asked for."""
    asked: list[tuple[int, tuple[str, ...]]] = []
    original = pq.ParquetFile.iter_batches

    def recording(self: Any, *args: Any, row_groups: list[int], columns: list[str], **options: Any) -> Any:
        asked.append((row_groups[0], tuple(sorted(columns))))
        return original(self, *args, row_groups=row_groups, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", recording)
    return asked


def test_columns_that_are_returned_are_read_only_where_the_filter_left_rows(
    columns_read: list[tuple[int, tuple[str, ...]]],
) -> None:
    rows = [{"a": n, "b": "b", "s": {"x": n % 5, "y": "odd" if n % 7 == 6 else "even"}} for n in range(9)]
    assert [row["a"] for row in found(stored(rows), filter=where("s.y = 'odd'"))] == [6]
    tested = ("s.x", "s.y")
    assert columns_read == [(2, tested), (2, ("a", "b"))]  # bounds rule the others out
    columns_read.clear()
    assert [row["a"] for row in found(stored(rows), filter=where("s.x = 2 AND a != 2"))] == [7]
    assert columns_read == [*((group, ("a", *tested)) for group in range(3)), (2, ("b",))]
    columns_read.clear()
    only = TABLE.select(("b",))
    assert found(stored(rows), only, filter=where("s.x = 2 AND a > 2"), table_schema=TABLE) == [{"b": "b"}]
    assert columns_read == [*((group, ("a", "s.x")) for group in (1, 2)), (2, ("b",))]


def test_nothing_is_read_twice_or_in_vain(columns_read: list[tuple[int, tuple[str, ...]]]) -> None:
    only = TABLE.select(("a",))
    assert found(stored(some(3)), only, filter=where("a = 1"), table_schema=TABLE) == [{"a": 1}]
    assert columns_read == [(0, ("a",))]
    columns_read.clear()
    assert found(stored(some(6)), TABLE, deletes=FileDeletes(positions=BitMap64(range(4)))) == some(6)[4:]
    assert [group for group, _ in columns_read] == [1]  # all of the first row group is deleted
    columns_read.clear()
    assert found(stored(some(6)), TABLE, filter=where("a >= 0")) == some(6)
    assert columns_read == [(0, ("a", "b", "s.x", "s.y")), (1, ("a", "b", "s.x", "s.y"))]  # all match, by their bounds


def test_rows_are_deleted_by_value_before_the_filter_is_asked() -> None:
    io = stored(some(8))
    gone = FileDeletes(
        positions=BitMap64([7]), tests=(Among(TABLE.select(("a",)), (1, 2)), Among(TABLE.select(("b",)), ("b4",)))
    )
    assert [row["a"] for row in found(io, deletes=gone)] == [0, 3, 5, 6]
    assert [row["a"] for row in found(io, deletes=gone, filter=where("a < 5"))] == [0, 3]
    only = TABLE.select(("s",))
    assert [row["s"]["y"] for row in found(io, only, deletes=gone, filter=where("a < 5"), table_schema=TABLE)] == [
        "y0",
        "y3",
    ]


@pytest.mark.parametrize(
    ("text", "kept"), [("a < 4", range(4)), ("s.x < 3", (0, 1, 2, 4, 5, 6)), ("a > 1", range(2, 8))]
)
def test_deleted_rows_are_marked_whether_or_not_all_rows_of_a_group_match(text: str, kept: Iterable[int]) -> None:
    """It failed if some row groups were read with the columns of the filter, and others without."""
    only = Schema(fields=(TABLE.field("b"), Field(3, "s", Struct((INNER.fields[1],))), DELETED))
    marked = FileDeletes(positions=BitMap64([1, 3]), tests=(Among(TABLE.select(("a",)), (2,)),))
    rows = found(stored(some(8)), only, filter=where(text), table_schema=TABLE, deletes=marked)
    assert rows == [{"b": f"b{n}", "s": {"y": f"y{n}"}, "_deleted": n in (1, 2, 3)} for n in kept]


def test_a_test_may_look_at_columns_that_the_table_dropped_renamed_or_got_later() -> None:
    io = stored(some(4))
    now = Schema(fields=(Field(2, "a", STRING),))  # renamed; the others are dropped
    dropped = Among(Schema(fields=(Field(1, "was_a", LONG, True),)), (2,))
    assert found(io, now, deletes=FileDeletes(tests=(dropped,))) == [{"a": f"b{n}"} for n in (0, 1, 3)]
    later = Field(9, "late", INT, True, initial_default=5)
    assert found(io, now, deletes=FileDeletes(tests=(Among(Schema(fields=(later,)), (5,)),))) == []
    assert (
        len(found(io, now, deletes=FileDeletes(tests=(Among(Schema(fields=(Field(9, "late", INT, True),)), (5,)),))))
        == 4
    )
    nested = InStruct(Schema(fields=(Field(3, "s", Struct((Field(4, "x", LONG),))),)), 3)
    assert len(found(io, now, deletes=FileDeletes(tests=(nested,)))) == 3


@given(
    groups=st.integers(1, 5),
    text=st.sampled_from(["a > 2", "s.x = 1", "b = 'b3' OR s.y = 'y5'", "a IS NULL", "s.x < 2 AND a > 1", "a >= 0"]),
    positions=st.sets(st.integers(0, 8)),
    values=st.sets(st.integers(0, 8), max_size=4),
    names=st.sampled_from([("a",), ("b", "a"), ("s",), ("s", "b"), ()]),
    batch_rows=st.integers(1, 4),
    by_column=st.booleans(),
    parts=st.integers(1, 4),
)
def test_every_way_of_reading_gives_the_rows_of_the_definition(
    groups: int,
    text: str,
    positions: set[int],
    values: set[int],
    names: tuple[str, ...],
    batch_rows: int,
    by_column: bool,
    parts: int,
) -> None:
    rows = some(9)
    io, bound = stored(rows, row_group_size=groups), where(text)
    deletes = FileDeletes(positions=BitMap64(positions), tests=(Among(TABLE.select(("a",)), tuple(values)),))
    with pytest.MonkeyPatch.context() as patched:
        if not by_column:
            patched.setattr(parquet_file.ParquetFile, "is_columnar", False)
        got = [
            row
            for index in range(parts)
            for row in found(
                io,
                TABLE.select(names),
                filter=bound,
                table_schema=TABLE,
                deletes=deletes,
                row_positions=True,
                batch_rows=batch_rows,
                part=FilePart(index=index, count=parts),
            )
        ]
    left = [n for n, row in enumerate(rows) if n not in positions and n not in values and matches(bound, row)]
    assert got == [{name: rows[n][name] for name in names} | {"_pos": n} for n in left]


def test_batches_of_the_two_steps_need_not_have_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    original = parquet_file.ParquetFile.read

    def uneven(self: Any, group: RowRange, wanted: tuple[Field, ...], batch_rows: int) -> Any:
        return original(self, group, wanted, 2 if len(wanted) == 1 else 3)

    monkeypatch.setattr(parquet_file.ParquetFile, "read", uneven)
    io = stored(some(10), row_group_size=10)
    wanted = TABLE.select(("s", "a", "b"))
    rows = [{name: row[name] for name in ("s", "a", "b")} | {"_pos": row["a"]} for row in some(10)]
    assert found(io, wanted, filter=where("a > 2"), row_positions=True) == rows[3:]
    assert found(io, wanted, filter=where("a IN (1, 2, 8)"), row_positions=True) == [rows[1], rows[2], rows[8]]


def test_batches_are_smaller_where_rows_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_file, "LEAST_ROWS", 2)
    monkeypatch.setattr(parquet_file, "BATCH_BYTES", 4_000)
    text = Schema(fields=(Field(1, "a", LONG), Field(2, "b", STRING)))
    rows = [{"a": n, "b": f"{n:04}" * 250} for n in range(40)]
    io = stored(rows, text, row_group_size=40)
    sizes = [batch.num_rows for batch in read_file(io, FileRead(location=FILE, schema=text))]
    assert sum(sizes) == 40
    assert 2 <= max(sizes) <= 4
    assert [batch.num_rows for batch in read_file(io, FileRead(location=FILE, schema=text.select(("a",))))] == [40]


def test_a_row_group_of_other_length_than_its_footer_says_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    original = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda self, **options: (b.slice(1) for b in original(self, **options))
    )
    with pytest.raises(CorruptFile, match=r"f.parquet: row group 0 has 2 rows, its footer says 3"):
        found(stored(some(3)))


@given(count=st.integers(0, 30), of=st.integers(1, 12))
def test_the_parts_of_a_file_are_the_whole_of_it(count: int, of: int) -> None:
    shares = [FilePart(index=index, count=of).of(range(count)) for index in range(of)]
    assert [n for share in shares for n in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_columns_that_take_long_are_begun_first_and_in_one_order_for_all_row_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []
    original = pq.ParquetFile.iter_batches

    def recording(self: Any, *args: Any, columns: list[str], **options: Any) -> Any:
        asked.append(tuple(columns))
        return original(self, *args, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", recording)
    long, short = "b" * 1000, "b"  # the second row group has its bytes elsewhere
    rows = [{"a": n, "b": f"{n}{long if n < 3 else short}", "s": {"x": n, "y": str(n) * 50}} for n in range(6)]
    assert found(stored(rows)) == rows
    assert asked == [("b", "s.x", "s.y", "a")] * 2


@pytest.mark.parametrize("wanted", [slice(None), slice(None, None, -1), slice(1, None, 7)])
def test_a_file_of_very_many_columns_is_read_like_any_other(wanted: slice) -> None:
    fields = tuple(Field(n + 1, f"c{n}", STRING if n % 3 == 0 else LONG) for n in range(700))
    rows = [{f.name: f"text {row % 2}" if f.type == STRING else f.id * row for f in fields} for row in range(8)]
    wide, some_of = Schema(fields=fields), Schema(fields=fields[wanted])
    io = stored(rows, wide)
    left = [row for place, row in enumerate(rows) if place in (2, 3, 7)]
    deletes = FileDeletes(positions=BitMap64([4, 5]))
    read = found(io, some_of, table_schema=wide, filter=where("c1 in (4, 6, 8, 10, 14)", wide), deletes=deletes)
    assert read == [{field.name: row[field.name] for field in some_of.fields} for row in left]
    assert found(io, some_of) == [{field.name: row[field.name] for field in some_of.fields} for row in rows]
