"""Equality delete files whose columns the table has changed since, nested columns, and files that are wrong."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from icefloe.deletes.equality_files import DeleteFile, EqualityTest, read_index
from icefloe.errors import FormatError, NoSuchFile, UnsupportedError
from icefloe.formats.read.file_read import FileDeletes, FileRead
from icefloe.formats.read.reader import read_file
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.name_mapping import mapping_of
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, LONG, STRING, Field, List, Struct
from unit.deletes.files import FORMATS, by_id, write, write_groups

ID, NOTE = Field(1, "id", LONG), Field(2, "note", STRING)
SCHEMA = Schema(fields=(ID, NOTE))
DATA, AT = "memory://t/data.parquet", "memory://t/deletes.parquet"


def rows_of(schema: Schema, rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, arrow_schema(schema))


def kept(
    io: MemoryFileIO,
    ids: list[int],
    fields: Mapping[int, Field],
    *,
    locations: tuple[str, ...] = (AT,),
) -> list[object]:
    """The ids of the rows that stay."""
    files = [
        DeleteFile(location=at, file_format=at.rpartition(".")[2], sequence_number=2 + n)
        for n, at in enumerate(locations)
    ]
    index = read_index(io, files, ids, fields=fields)
    deletes = FileDeletes(tests=(EqualityTest(index, 1),))
    return [
        row["id"]
        for batch in read_file(io, FileRead(location=DATA, schema=Schema(fields=(ID,)), deletes=deletes))
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("file_format", FORMATS)
def test_null_matches_null_in_every_format(file_format: str) -> None:
    io, at = MemoryFileIO(), f"memory://t/deletes.{file_format}"
    write(io, DATA, SCHEMA, rows_of(SCHEMA, [{"id": 3}, {"id": 4}, {"id": 4, "note": "x"}, {"id": None}]))
    write(io, at, SCHEMA, rows_of(SCHEMA, [{"id": 4}]), file_format)
    assert kept(io, [1, 2], SCHEMA.by_id, locations=(at,)) == [3, 4, None]


def test_a_delete_column_that_was_dropped_is_still_compared() -> None:
    io = MemoryFileIO()
    write(io, DATA, SCHEMA, rows_of(SCHEMA, [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]))
    write(io, AT, SCHEMA, rows_of(SCHEMA, [{"note": "a"}]))
    # Also where the table has forgotten the schema that had it.
    for known in (SCHEMA.by_id, by_id(ID)):
        assert kept(io, [2], known) == [2]


def test_a_dropped_column_may_have_the_name_of_another() -> None:
    io, late = MemoryFileIO(), Field(7, "note", STRING)
    stored = Schema(fields=(ID, Field(7, "old", STRING), NOTE))
    write(io, DATA, stored, rows_of(stored, [{"id": 1, "old": "a", "note": "b"}, {"id": 2, "old": "b", "note": "b"}]))
    write(io, AT, stored, rows_of(stored, [{"old": "a", "note": "b"}]))
    assert kept(io, [7, 2], {1: ID, 2: NOTE, 7: late}) == [2]


def test_a_column_that_came_later_is_null_in_older_files() -> None:
    io, later = MemoryFileIO(), Field(5, "n", INT)
    write(io, DATA, SCHEMA, rows_of(SCHEMA, [{"id": 1}, {"id": 2}]))
    wide = Schema(fields=(ID, later))
    write(io, AT, wide, rows_of(wide, [{"id": 1, "n": None}, {"id": 2, "n": 0}]))
    assert kept(io, [1, 5], by_id(ID, later)) == [2]


def test_a_column_that_came_later_has_its_initial_default_in_older_files() -> None:
    io, later = MemoryFileIO(), Field(5, "n", INT, initial_default=7)
    write(io, DATA, SCHEMA, rows_of(SCHEMA, [{"id": 1}, {"id": 2}]))
    wide = Schema(fields=(ID, Field(5, "n", INT)))
    write(io, AT, wide, rows_of(wide, [{"id": 1, "n": None}, {"id": 2, "n": 7}]))
    assert kept(io, [1, 5], by_id(ID, later)) == [1]


def test_a_required_column_that_a_file_lacks_is_no_reason_to_fail() -> None:
    io, later = MemoryFileIO(), Field(5, "n", INT, True)
    write(io, DATA, SCHEMA, rows_of(SCHEMA, [{"id": 1}, {"id": 2}]))
    wide = Schema(fields=(ID, later))
    write(io, AT, wide, rows_of(wide, [{"id": 1, "n": 0}]))
    assert kept(io, [1, 5], by_id(ID, later)) == [1, 2]


NESTED = Schema(
    fields=(ID, Field(3, "s", Struct((Field(4, "a", LONG), Field(5, "t", Struct((Field(6, "b", STRING),)))))))
)
DEEP = [
    {"id": 1, "s": {"a": 1, "t": {"b": "x"}}},
    {"id": 2, "s": {"a": 1, "t": {"b": "y"}}},
    {"id": 3, "s": {"a": 1, "t": None}},
    {"id": 4, "s": None},
]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize(
    ("ids", "delete", "expected"),
    [
        ([4], {"s": {"a": 1}}, [4]),
        ([6], {"s": {"a": 5, "t": {"b": "x"}}}, [2, 3, 4]),
        ([6, 4], {"s": {"a": 1, "t": {"b": "y"}}}, [1, 3, 4]),
        ([6], {"s": None}, [1, 2]),
        ([4, 6], {"s": {"a": 1, "t": {"b": None}}}, [1, 2, 4]),
    ],
)
def test_fields_inside_structs_are_compared(
    ids: list[int], delete: dict[str, object], expected: list[int], file_format: str
) -> None:
    io, at = MemoryFileIO(), f"memory://t/deletes.{file_format}"
    write(io, DATA, NESTED, rows_of(NESTED, DEEP))
    write(io, at, NESTED, rows_of(NESTED, [delete]), file_format)
    assert kept(io, ids, NESTED.by_id, locations=(at,)) == expected


def test_a_dropped_field_of_a_struct_is_found_through_the_delete_file() -> None:
    io = MemoryFileIO()
    write(io, DATA, NESTED, rows_of(NESTED, DEEP))
    write(io, AT, NESTED, rows_of(NESTED, [{"s": {"t": {"b": "x"}}}]))
    now = {**NESTED.by_id, 3: Field(3, "renamed", Struct((Field(4, "a", LONG),)))}
    assert kept(io, [6], now) == [2, 3, 4]


def test_delete_files_may_have_their_columns_in_any_order() -> None:
    io = MemoryFileIO()
    turned = Schema(fields=(NOTE, ID))
    write(io, DATA, SCHEMA, rows_of(SCHEMA, [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}, {"id": 3, "note": "c"}]))
    write(io, AT, SCHEMA, rows_of(SCHEMA, [{"id": 1, "note": "a"}]))
    write(io, "memory://t/turned.parquet", turned, rows_of(turned, [{"id": 2, "note": "b"}]))
    assert kept(io, [1, 2], SCHEMA.by_id, locations=(AT, "memory://t/turned.parquet")) == [3]


def test_an_empty_delete_file_deletes_nothing() -> None:
    io = MemoryFileIO()
    write(io, DATA, SCHEMA, rows_of(SCHEMA, [{"id": 1}, {"id": None}]))
    write(io, AT, SCHEMA, rows_of(SCHEMA, []))
    assert kept(io, [1], SCHEMA.by_id) == [1, None]


def test_a_file_without_ids_is_read_by_the_name_mapping() -> None:
    io = MemoryFileIO()
    write_groups(io, AT, pa.table({"id": [4]}), 10)
    file = DeleteFile(location=AT, file_format="parquet", sequence_number=2)
    index = read_index(io, [file], [1], fields=SCHEMA.by_id, mapping=mapping_of(SCHEMA))
    rows = pa.record_batch([pa.array([3, 4])], schema=arrow_schema(Schema(fields=(ID,))))
    assert index.matches(rows, 1).tolist() == [False, True]


@pytest.mark.parametrize(
    ("ids", "message"),
    [([9], "lacks its delete column 9"), ([1, 5], "lacks its delete column 5"), ([], "no delete columns")],
)
def test_a_file_without_its_delete_columns_is_refused_by_name(ids: list[int], message: str) -> None:
    io = MemoryFileIO()
    write(io, AT, SCHEMA, rows_of(SCHEMA, [{"id": 1}]))
    with pytest.raises(FormatError, match=message) as error:
        kept(io, ids, SCHEMA.by_id)
    assert AT in str(error.value)


def test_every_file_must_have_the_delete_columns() -> None:
    io, other = MemoryFileIO(), Schema(fields=(NOTE,))
    write(io, AT, SCHEMA, rows_of(SCHEMA, [{"id": 1}]))
    write(io, "memory://t/other.parquet", other, rows_of(other, [{"note": "a"}]))
    with pytest.raises(FormatError, match=r"other\.parquet lacks its delete column 1"):
        kept(io, [1], SCHEMA.by_id, locations=(AT, "memory://t/other.parquet"))


def test_columns_of_other_types_than_primitive_are_refused_by_name() -> None:
    io, tags = MemoryFileIO(), Field(3, "tags", List(4, STRING))
    schema = Schema(fields=(ID, tags))
    write(io, AT, schema, rows_of(schema, [{"id": 1, "tags": ["a"]}]))
    with pytest.raises(UnsupportedError, match="column 'tags' is a list<string>"):
        kept(io, [3], schema.by_id)
    with pytest.raises(FormatError, match="lacks its delete column 4"):
        kept(io, [4], schema.by_id)


def test_a_delete_column_of_another_type_is_refused_by_name() -> None:
    io, wrong = MemoryFileIO(), Schema(fields=(Field(1, "id", STRING),))
    write(io, AT, wrong, rows_of(wrong, [{"id": "1"}]))
    with pytest.raises(FormatError, match="column 'id' is string in the file") as error:
        kept(io, [1], SCHEMA.by_id)
    assert AT in str(error.value)


def test_a_missing_delete_file_is_told_by_its_location() -> None:
    with pytest.raises(NoSuchFile, match=r"deletes\.parquet"):
        kept(MemoryFileIO(), [1], SCHEMA.by_id)
