from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.errors import CorruptFile, FormatError, InputError, NoSuchFile
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_FALSE, And, Expr, Not, Op, Or, Predicate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.read.file_read import FileDeletes, FileRead
from icefloe.formats.read.reader import read_file
from icefloe.formats.write.write_files import write_files
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    List,
    Map,
    Struct,
    Type,
)
from support.row_matching import matches

IO = LocalFileIO()
ABC = Schema(fields=(Field(1, "a", LONG), Field(2, "b", STRING), Field(3, "c", DOUBLE)))
SMALL_GROUPS = {"write.parquet.row-group-size-bytes": "60"}


def written(rows: list[dict[str, Any]], schema: Schema, **properties: str) -> tuple[MemoryFileIO, str]:
    """One file that holds these rows."""
    io = MemoryFileIO()
    table = pa.Table.from_pylist(rows, schema=arrow_schema(schema))
    entries = write_files(io, table, schema=schema, data_location="memory://t/data", properties=properties)
    return io, entries["location"][0].as_py()


def without(positions: Iterable[int]) -> FileDeletes:
    return FileDeletes(positions=BitMap64(positions))


def rows_of(
    file: tuple[Any, str], schema: Schema, *, row_positions: bool = False, **options: Any
) -> list[dict[str, Any]]:
    schema = Schema(fields=(*schema.fields, POS)) if row_positions else schema
    return [
        row
        for batch in read_file(file[0], FileRead(location=file[1], schema=schema, **options))
        for row in batch.to_pylist()
    ]


def some(count: int) -> list[dict[str, Any]]:
    return [{"a": i, "b": f"r{i}", "c": i / 2} for i in range(count)]


def where(text: str, schema: Schema = ABC) -> Expr:
    return bind(parse_filter(text), schema)


def test_batches_have_the_schema_of_the_table_with_ids() -> None:
    file = written(some(3), ABC)
    [batch] = read_file(file[0], FileRead(location=file[1], schema=ABC))
    assert batch.schema.equals(arrow_schema(ABC), check_metadata=True)
    assert batch.to_pylist() == some(3)


def test_a_filter_may_test_columns_that_are_not_returned() -> None:
    file = written(some(5), ABC)
    only = Schema(fields=(Field(2, "b", STRING),))
    assert rows_of(file, only, filter=where("a >= 3"), table_schema=ABC) == [{"b": "r3"}, {"b": "r4"}]


def test_a_filter_sees_the_current_name_and_type_of_a_renamed_and_promoted_column() -> None:
    old = Schema(fields=(Field(1, "n", INT), Field(2, "b", STRING)))
    new = Schema(fields=(Field(2, "n", STRING), Field(1, "b", LONG)))  # names swapped, int promoted
    file = written([{"n": 1, "b": "x"}, {"n": 2, "b": "y"}], old)
    assert rows_of(file, new, filter=where("b > 1", new)) == [{"n": "y", "b": 2}]


def test_a_filter_on_a_column_that_the_file_lacks_sees_nulls() -> None:
    new = Schema(fields=(*ABC.fields, Field(9, "z", LONG)))
    file = written(some(2), ABC)
    assert rows_of(file, ABC, filter=where("z = 1", new), table_schema=new) == []
    assert len(rows_of(file, ABC, filter=where("z IS NULL", new), table_schema=new)) == 2


def test_a_filter_on_a_field_of_a_struct_of_which_another_field_is_returned() -> None:
    full = Schema(fields=(Field(1, "s", Struct((Field(2, "x", INT), Field(3, "y", INT)))),))
    part = Schema(fields=(Field(1, "s", Struct((Field(3, "y", INT),))),))
    file = written([{"s": {"x": 1, "y": 10}}, {"s": {"x": 2, "y": 20}}, {"s": None}], full)
    assert rows_of(file, part, filter=where("s.x = 2", full), table_schema=full) == [{"s": {"y": 20}}]


def test_a_struct_of_which_no_field_is_left_is_null_where_it_was_null() -> None:
    old = Schema(fields=(Field(1, "s", Struct((Field(2, "x", INT),))),))
    new = Schema(fields=(Field(1, "t", Struct((Field(3, "y", INT),))),))
    file = written([{"s": {"x": 1}}, {"s": None}], old)
    assert rows_of(file, new) == [{"t": {"y": None}}, {"t": None}]
    assert rows_of(file, new, filter=where("t.y IS NULL", new)) == [{"t": {"y": None}}, {"t": None}]


def test_positions_are_physical_whatever_is_skipped_deleted_or_filtered() -> None:
    file = written(some(40), ABC, **SMALL_GROUPS)
    assert (
        pq.read_metadata(file[0].arrow_path(file[1])[1], filesystem=file[0].arrow_path(file[1])[0]).num_row_groups > 5
    )
    found = rows_of(file, ABC, filter=where("a BETWEEN 20 AND 30"), deletes=without([25, 3]), row_positions=True)
    assert [row["_pos"] for row in found] == [20, 21, 22, 23, 24, 26, 27, 28, 29, 30]
    assert all(row["_pos"] == row["a"] for row in found)


def test_row_groups_that_cannot_match_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(some(40), ABC, **SMALL_GROUPS)
    read: list[int] = []
    original = pq.ParquetFile.iter_batches

    def recording(self: Any, *args: Any, row_groups: list[int], **options: Any) -> Any:
        read.extend(row_groups)
        return original(self, *args, row_groups=row_groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", recording)
    assert [row["a"] for row in rows_of(file, ABC, filter=where("a = 33"))] == [33]
    assert len(set(read)) == 1


def test_counting_reads_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(some(10), ABC)
    monkeypatch.delattr(pq.ParquetFile, "iter_batches")
    none = Schema(fields=())
    batches = list(read_file(file[0], FileRead(location=file[1], schema=none, deletes=without([4]), batch_rows=3)))
    assert [batch.num_rows for batch in batches] == [3, 2, 3, 1]
    positions = rows_of(file, none, deletes=without([4]), row_positions=True)
    assert [row["_pos"] for row in positions] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_batches_are_streamed_and_no_larger_than_asked() -> None:
    file = written(some(10), ABC)
    batches = read_file(file[0], FileRead(location=file[1], schema=ABC, batch_rows=4))
    assert next(batches).num_rows == 4
    batches.close()  # type: ignore[attr-defined]
    assert (
        max(batch.num_rows for batch in read_file(file[0], FileRead(location=file[1], schema=ABC, batch_rows=4))) == 4
    )


def test_a_batch_without_rows_to_return_is_not_returned() -> None:
    file = written(some(4), ABC)
    assert list(read_file(file[0], FileRead(location=file[1], schema=ABC, deletes=without(range(4))))) == []
    assert list(read_file(file[0], FileRead(location=file[1], schema=ABC, filter=where("b = 'r1x'")))) == []
    assert list(read_file(file[0], FileRead(location=file[1], schema=ABC, filter=ALWAYS_FALSE))) == []


def test_a_large_batch_is_filtered_in_order() -> None:
    table = pa.table({"a": range(200_000), "b": ["x"] * 200_000, "c": [0.5] * 200_000})
    io = MemoryFileIO()
    entries = write_files(io, table, schema=ABC, data_location="memory://t/data")
    only = Schema(fields=ABC.fields[:1])
    found = read_file(
        io, FileRead(location=entries["location"][0].as_py(), schema=only, filter=where("a >= 150000 OR a < 10"))
    )
    assert [v for batch in found for v in batch["a"].to_pylist()] == [*range(10), *range(150_000, 200_000)]


def test_a_column_name_with_dots_is_not_a_path() -> None:
    schema = Schema(fields=(Field(1, "a", Struct((Field(2, "b", INT), Field(3, "c", INT)))),))
    dotted = pa.schema(
        [
            pa.field("a", pa.struct([pa.field("b", pa.int32(), metadata={"PARQUET:field_id": "2"})]), metadata=ids(1)),
            pa.field("a.b", pa.int32(), metadata=ids(7)),
        ]
    )
    io = MemoryFileIO()
    put(io, pa.Table.from_pylist([{"a": {"b": 1}, "a.b": 5}], schema=dotted))
    assert rows_of((io, "memory://f.parquet"), schema) == [{"a": {"b": 1, "c": None}}]
    assert rows_of((io, "memory://f.parquet"), Schema(fields=(Field(7, "x", INT),))) == [{"x": 5}]


def ids(id_: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(id_)}


def put(io: MemoryFileIO, table: pa.Table, **options: Any) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    io.write_new("memory://f.parquet", sink.getvalue().to_pybytes())


def test_other_writers_arrow_types_and_missing_element_ids_are_read() -> None:
    foreign = pa.schema(
        [
            pa.field("s", pa.dictionary(pa.int32(), pa.string()), metadata=ids(1)),
            pa.field("t", pa.large_string(), metadata=ids(2)),
            pa.field("l", pa.large_list(pa.int32()), metadata=ids(3)),
            pa.field("ts", pa.timestamp("ms", "UTC"), metadata=ids(5)),
            pa.field("u", pa.uuid(), metadata=ids(6)),
            pa.field("x", pa.struct([pa.field("u", pa.uuid(), metadata=ids(8))]), metadata=ids(7)),
            pa.field("raw", pa.binary(), metadata=ids(9)),
        ]
    )
    fields = (
        Field(1, "s", STRING),
        Field(2, "t", STRING),
        Field(3, "l", List(4, LONG)),
        Field(5, "ts", TIMESTAMPTZ),
        Field(6, "u", UUID),
        Field(7, "x", Struct((Field(8, "u", UUID),))),
        Field(9, "raw", STRING),  # written without the UTF-8 annotation
    )
    u = bytes(range(16))
    io = MemoryFileIO()
    uuids = pa.array([u], pa.binary(16)).cast(pa.uuid())
    nested = pa.StructArray.from_arrays([uuids], fields=list(foreign.field("x").type))
    values = {"s": ["a"], "t": ["b"], "l": [[1, None]], "ts": [1000], "raw": [b"\xc3\xbc"]}
    made = {name: pa.array(value, foreign.field(name).type) for name, value in values.items()}
    made |= {"u": uuids, "x": nested}
    put(io, pa.table([made[name] for name in foreign.names], schema=foreign))
    [row] = rows_of((io, "memory://f.parquet"), Schema(fields=fields))
    assert (row["s"], row["t"], row["l"], row["u"], row["x"]) == ("a", "b", [1, None], u, {"u": u})
    assert (row["ts"].timestamp(), row["raw"]) == (1, "ü")


def test_a_file_without_field_ids_is_refused_by_name() -> None:
    io = MemoryFileIO()
    put(io, pa.table({"a": [1]}))
    with pytest.raises(FormatError, match=r"memory://f.parquet.*name mapping"):
        rows_of((io, "memory://f.parquet"), ABC)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (LONG, INT),
        (DOUBLE, FLOAT),
        (STRING, LONG),
        (Decimal(9, 2), Decimal(9, 3)),
        (Decimal(9, 2), Decimal(8, 2)),
        (INT, Struct((Field(5, "x", INT),))),
        (Struct((Field(5, "x", INT),)), INT),
        (List(5, INT), Map(6, STRING, 7, INT)),
        (Struct((Field(5, "x", LONG),)), Struct((Field(5, "y", INT),))),
    ],
    ids=str,
)
def test_what_is_no_promotion_is_refused_with_file_and_column(stored: Type, wanted: Type) -> None:
    file = written([{"a": None}], Schema(fields=(Field(1, "a", stored),)))
    with pytest.raises(FormatError, match=rf"{file[1]}: column 'b.*cannot be read as"):
        rows_of(file, Schema(fields=(Field(1, "b", wanted),)))


def test_a_required_column_must_be_there_and_have_values() -> None:
    file = written([{"a": None}], Schema(fields=(Field(1, "a", LONG),)))
    with pytest.raises(FormatError, match="required column 'a' has 1 nulls"):
        rows_of(file, Schema(fields=(Field(1, "a", LONG, True),)))
    with pytest.raises(FormatError, match=r"lacks the required column 'z' \(field id 2\)"):
        rows_of(file, Schema(fields=(Field(1, "a", LONG), Field(2, "z", LONG, True))))


def test_missing_and_damaged_files_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NoSuchFile, match=r"nothing.parquet"):
        list(read_file(IO, FileRead(location=f"file://{tmp_path}/nothing.parquet", schema=ABC)))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
    with pytest.raises(CorruptFile, match=r"bad.parquet"):
        list(read_file(IO, FileRead(location=f"file://{tmp_path}/bad.parquet", schema=ABC)))
    io, location = written(some(1000), ABC)
    data = bytearray(io.read(location))
    data[4:400] = bytes(396)
    (tmp_path / "pages.parquet").write_bytes(data)
    with pytest.raises(CorruptFile, match=r"pages.parquet"):
        list(read_file(IO, FileRead(location=f"file://{tmp_path}/pages.parquet", schema=ABC)))


def test_an_unbound_filter_is_refused() -> None:
    file = written(some(1), ABC)
    for unbound in (parse_filter("a = 1"), Not(where("a = 1")), Or((where("a = 1"), parse_filter("b = 'x'")))):
        with pytest.raises(InputError, match="bind the filter"):
            rows_of(file, ABC, filter=unbound)


# Random filters and deletions against the scalar definition.

_NUMBERS = st.sampled_from([0.0, -0.0, 1.5, -2.0, math.inf])
_ROW = st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(-3, 3),
        "b": st.none() | st.sampled_from(["", "a", "ab", "b", "a" * 20, "a" * 21]),
        "c": st.none() | _NUMBERS | st.just(math.nan),
    }
)
_LITERALS = {
    "a": st.integers(-3, 3),
    "b": st.sampled_from(["", "a", "ab", "a" * 20]),
    "c": _NUMBERS,
}


@st.composite
def predicates(draw: Any) -> Predicate:
    name = draw(st.sampled_from("abc"))
    unary = [Op.IS_NULL, Op.NOT_NULL, *([Op.IS_NAN, Op.NOT_NAN] if name == "c" else [])]
    many = [Op.IN, Op.NOT_IN]
    one = [Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE]
    prefix = [Op.STARTS_WITH, Op.NOT_STARTS_WITH] if name == "b" else []
    op = draw(st.sampled_from([*unary, *many, *one, *prefix]))
    if op in unary:
        return Predicate(op, name)
    count = draw(st.integers(1, 3)) if op in many else 1
    return Predicate(op, name, tuple(draw(_LITERALS[name]) for _ in range(count)))


filters = st.recursive(
    predicates(),
    lambda inner: st.builds(Not, inner) | st.builds(lambda a, b: And((a, b)), inner, inner)
    | st.builds(lambda a, b: Or((a, b)), inner, inner),
    max_leaves=4,
)  # fmt: skip


@given(
    rows=st.lists(_ROW, min_size=1, max_size=12),
    sort=st.booleans(),
    filter=filters,
    deleted=st.sets(st.integers(0, 11)),
    small=st.booleans(),
)
def test_filters_and_deletions_agree_with_their_definition(
    rows: list[dict[str, Any]], sort: bool, filter: Expr, deleted: set[int], small: bool
) -> None:
    if sort:  # so that row groups have narrow bounds
        rows = sorted(rows, key=lambda row: (row["a"] is None, row["a"] or 0))
    file = written(rows, ABC, **(SMALL_GROUPS if small else {}))
    bound = bind(filter, ABC)
    found = rows_of(file, ABC, filter=bound, deletes=without(deleted), row_positions=True)
    expected = [i for i, row in enumerate(rows) if i not in deleted and matches(bound, row)]
    assert [row["_pos"] for row in found] == expected
    assert str([{k: row[k] for k in "abc"} for row in found]) == str([{k: rows[i][k] for k in "abc"} for i in expected])


def test_decimals_of_other_scale_are_not_mixed_up() -> None:
    schema = Schema(fields=(Field(1, "d", Decimal(9, 2)),))
    wider = Schema(fields=(Field(1, "d", Decimal(30, 2)),))
    file = written([{"d": decimal.Decimal("1.25")}, {"d": decimal.Decimal("-3.50")}], schema)
    found = rows_of(file, wider, filter=bind(Predicate(Op.LT, "d", (decimal.Decimal("0.00"),)), wider))
    assert found == [{"d": decimal.Decimal("-3.50")}]
