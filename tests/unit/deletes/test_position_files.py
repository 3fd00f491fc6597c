"""Position delete files, read as other programs may have written them, and written."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.deletes.position_files import POSITION_DELETES, read_positions, write_position_deletes
from icefloe.errors import CorruptFile, FormatError, InputError, NoSuchFile, StorageError
from icefloe.formats.parquet.file import ParquetFile
from icefloe.formats.read.data_file import RowRange
from icefloe.io.memory import MemoryFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH, DELETE_POS, deleted_row_column
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field, Struct
from unit.deletes.files import FORMATS, tasks, write, write_groups, write_positions

PATHS = [f"memory://t/data/{name}.parquet" for name in "abcdef"]
AT = "memory://t/data/deletes.parquet"
PATH_BOUND = f"lower_bound:{DELETE_FILE_PATH.id}", f"upper_bound:{DELETE_FILE_PATH.id}"


def expected(rows: list[tuple[str, int]], wanted: list[str]) -> dict[str, BitMap64]:
    sets = {path: {at for file, at in rows if file == path} for path in wanted}
    return {path: BitMap64(found) for path, found in sets.items() if len(found) > 0}


POSITIONS = st.integers(0, 300) | st.sampled_from([2**31, 2**32, 2**40])
ROWS = st.lists(st.tuples(st.sampled_from(PATHS), POSITIONS), max_size=80)


@given(ROWS, st.lists(st.sampled_from(PATHS), unique=True), st.sampled_from([1, 3, 1000]), st.booleans())
def test_the_wanted_files_get_exactly_their_positions(
    rows: list[tuple[str, int]], wanted: list[str], group_rows: int, in_order: bool
) -> None:
    io = MemoryFileIO()
    given_ = sorted(rows) if in_order else rows
    columns = [pa.array([path for path, _ in given_], pa.string()), pa.array([at for _, at in given_], pa.int64())]
    write_groups(io, AT, pa.Table.from_arrays(columns, schema=arrow_schema(POSITION_DELETES)), group_rows)
    assert read_positions(io, AT, "parquet", wanted) == expected(rows, wanted)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("with_rows", [False, True])
def test_every_format_is_read_with_and_without_the_deleted_rows(file_format: str, with_rows: bool) -> None:
    io, rows = MemoryFileIO(), [(PATHS[0], 3), (PATHS[0], 5), (PATHS[1], 0), (PATHS[2], 7)]
    location = f"memory://t/deletes.{file_format}"
    if with_rows:
        kept = deleted_row_column(Struct((Field(1, "id", LONG), Field(2, "pos", STRING))))
        schema = Schema(fields=(DELETE_FILE_PATH, DELETE_POS, kept))
        values = pa.array([{"id": at, "pos": path} for path, at in rows], arrow_schema(schema).field("row").type)
        write(io, location, schema, pa.table([*zip(*rows, strict=True), values], names=["f", "p", "r"]), file_format)
    else:
        write_positions(io, location, rows, file_format)
    found = read_positions(io, location, file_format.upper(), [PATHS[0], PATHS[2], PATHS[5]])
    assert found == expected(rows, [PATHS[0], PATHS[2]])


def test_row_groups_of_other_files_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    io, rows = MemoryFileIO(), [(path, at) for path in PATHS for at in range(10)]
    columns = [pa.array([path for path, _ in rows]), pa.array([at for _, at in rows])]
    write_groups(io, AT, pa.Table.from_arrays(columns, schema=arrow_schema(POSITION_DELETES)), 10)
    seen: list[int] = []
    read = ParquetFile.read

    def watched(self: ParquetFile, group: RowRange, *more: object) -> Iterator[pa.RecordBatch]:
        seen.append(group.group)
        return read(self, group, *more)

    monkeypatch.setattr(ParquetFile, "read", watched)
    assert read_positions(io, AT, None, [PATHS[1], PATHS[4]]) == expected(rows, [PATHS[1], PATHS[4]])
    assert seen == [1, 4]


def test_columns_without_ids_go_by_their_names() -> None:
    io = MemoryFileIO()
    write_groups(io, AT, pa.table({"file_path": [PATHS[0]], "pos": [4]}), 10)
    assert read_positions(io, AT, "parquet", PATHS) == {PATHS[0]: BitMap64([4])}


def labelled(**columns: pa.Array) -> pa.Table:
    """Columns with the ids of a position delete file, whatever their types."""
    ids = {field.name: field.id for field in POSITION_DELETES.fields}
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(ids[name])}) for name, array in columns.items()
    ]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (labelled(file_path=pa.array(["a"]), pos=pa.array([-1])), "row position -1 is negative"),
        (labelled(file_path=pa.array(["a"])), "lacks column 'pos'"),
        (labelled(pos=pa.array([1])), "lacks column 'file_path'"),
        (labelled(file_path=pa.array(["a"]), pos=pa.array(["1"])), "column 'pos' is string, not long"),
        (labelled(file_path=pa.array([7]), pos=pa.array([1])), "column 'file_path' is int64, not string"),
        (labelled(file_path=pa.array(["a", None]), pos=pa.array([1, 2])), "column 'file_path' has nulls"),
        (labelled(file_path=pa.array(["a", "a"]), pos=pa.array([1, None])), "column 'pos' has nulls"),
    ],
)
def test_a_wrong_file_is_refused_by_name(table: pa.Table, message: str) -> None:
    io = MemoryFileIO()
    write_groups(io, AT, table, 10)
    with pytest.raises(FormatError, match=message) as error:
        read_positions(io, AT, "parquet", ["a"])
    assert AT in str(error.value)


def test_a_missing_or_cut_file_is_told_by_its_location() -> None:
    io = MemoryFileIO()
    with pytest.raises(NoSuchFile, match=r"deletes\.parquet"):
        read_positions(io, AT, "parquet", PATHS)
    write_positions(io, "memory://t/whole.parquet", [(PATHS[0], 1)])
    io.write_new(AT, io.read("memory://t/whole.parquet")[:-20])
    with pytest.raises(CorruptFile, match=r"deletes\.parquet"):
        read_positions(io, AT, "parquet", PATHS)


def planned(path: str, rows: int, spec_id: int, value: str | None) -> dict[str, object]:
    counted = None if value is None else rows
    values = {"lower_bound:p1000": value, "upper_bound:p1000": value, "value_count:p1000": counted}
    return {"location": path, "record_count": rows, "partition_spec_id": spec_id, **values}


PLANNED = tasks(
    [
        planned(PATHS[0], 10, 1, "x"),
        planned(PATHS[1], 20, 1, "y"),
        planned(PATHS[2], 30, 1, "x"),
        planned(PATHS[3], 40, 0, None),
    ],
    {"lower_bound:p1000": pa.string(), "upper_bound:p1000": pa.string(), "value_count:p1000": pa.int64()},
)
DELETED = {
    PATHS[2]: BitMap64([29, 3]),
    PATHS[0]: BitMap64([1]),
    PATHS[1]: BitMap64([0, 1, 2]),
    PATHS[3]: BitMap64([39]),
}


def written(io: MemoryFileIO, **properties: str) -> pa.Table:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return write_position_deletes(io, PLANNED, DELETED, data_location="memory://t/data/", properties=named)


def test_one_delete_file_for_each_partition() -> None:
    io = MemoryFileIO()
    entries = written(io)
    rows = entries.to_pylist()
    assert [row["partition_spec_id"] for row in rows] == [1, 1, 0]
    assert [row["lower_bound:p1000"] for row in rows] == ["x", "y", None]
    assert [row["value_count:p1000"] for row in rows] == [3, 3, None]
    assert [row["record_count"] for row in rows] == [3, 3, 1]
    assert [(row[PATH_BOUND[0]], row[PATH_BOUND[1]]) for row in rows] == [
        (PATHS[0], PATHS[2]), (PATHS[1], PATHS[1]), (PATHS[3], PATHS[3])
    ]  # fmt: skip
    assert [row["referenced_file"] for row in rows] == [None, PATHS[1], PATHS[3]]
    assert {(row["content_type"], row["status"], row["file_format"]) for row in rows} == {(1, 1, "parquet")}
    assert [row["sort_order_id"] for row in rows] == [None] * 3
    assert [row["file_size_in_bytes"] for row in rows] == [io.size(row["location"]) for row in rows]
    together = [read_positions(io, row["location"], row["file_format"], PATHS) for row in rows]
    assert together == [{PATHS[0]: DELETED[PATHS[0]], PATHS[2]: DELETED[PATHS[2]]}, {PATHS[1]: DELETED[PATHS[1]]},
                        {PATHS[3]: DELETED[PATHS[3]]}]  # fmt: skip


@pytest.mark.parametrize("file_format", FORMATS)
def test_one_delete_file_for_each_data_file_in_any_format(file_format: str) -> None:
    io = MemoryFileIO()
    entries = written(io, write_delete_granularity="file", write_delete_format_default=file_format)
    assert entries["referenced_file"].to_pylist() == PATHS[:4]
    assert entries["file_format"].to_pylist() == [file_format] * 4
    for location, path in zip(entries["location"].to_pylist(), PATHS[:4], strict=True):
        assert location.endswith(f".{file_format}")
        assert read_positions(io, location, file_format, PATHS) == {path: DELETED[path]}


def test_rows_are_in_order_of_path_and_position_with_the_ids_of_the_spec() -> None:
    io = MemoryFileIO()
    location = written(io)["location"][0].as_py()
    table = pq.read_table(pa.BufferReader(io.read(location)))
    assert table.to_pylist() == [
        {"file_path": PATHS[0], "pos": 1}, {"file_path": PATHS[2], "pos": 3}, {"file_path": PATHS[2], "pos": 29}
    ]  # fmt: skip
    assert [field.metadata[b"PARQUET:field_id"] for field in table.schema] == [b"2147483546", b"2147483545"]
    assert [field.nullable for field in table.schema] == [False, False]


def test_delete_files_end_at_their_own_target_size() -> None:
    io = MemoryFileIO()
    many = BitMap64(range(0, 6_000_000, 3))
    planned = tasks([{"location": PATHS[0], "record_count": 6_000_000}])
    properties = {
        "write.delete.target-file-size-bytes": "20000",
        "write.delete.parquet.row-group-size-bytes": "1000000",
    }
    entries = write_position_deletes(
        io, planned, {PATHS[0]: many}, data_location="memory://t/data", properties=properties
    )
    assert entries.num_rows > 1
    assert pc.sum(entries["record_count"]).as_py() == len(many)
    assert set(entries["referenced_file"].to_pylist()) == {PATHS[0]}
    parts = [read_positions(io, location, "parquet", PATHS)[PATHS[0]] for location in entries["location"].to_pylist()]
    assert BitMap64.union(*parts) == many


@pytest.mark.parametrize("file_format", FORMATS)
def test_bloom_filters_of_the_tables_columns_are_no_matter_of_delete_files(file_format: str) -> None:
    io, blooms = MemoryFileIO(), {"write.parquet.bloom-filter-enabled.column.note": "true"}
    asked = {**blooms, "write.orc.bloom.filter.columns": "note", "write.format.default": file_format}
    entries = write_position_deletes(io, PLANNED, DELETED, data_location="memory://t/data", properties=asked)
    assert entries["file_format"].to_pylist() == [file_format] * 3


def test_files_that_lose_nothing_get_no_delete_file() -> None:
    io = MemoryFileIO()
    entries = write_position_deletes(
        io, PLANNED, {PATHS[0]: BitMap64()}, data_location="memory://t/data", properties={}
    )
    assert entries.num_rows == 0
    assert list(io.list("memory://t/")) == []


def test_deletes_of_a_file_that_was_not_planned_are_refused() -> None:
    with pytest.raises(InputError, match="not planned"):
        write_position_deletes(
            MemoryFileIO(), PLANNED, {PATHS[5]: BitMap64([1])}, data_location="memory://t/data", properties={}
        )


@pytest.mark.parametrize(
    ("name", "value"), [("write.delete.granularity", "row"), ("write.delete.target-file-size-bytes", "0")]
)
def test_a_wrong_property_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InputError, match=name):
        write_position_deletes(
            MemoryFileIO(), PLANNED, DELETED, data_location="memory://t/data", properties={name: value}
        )


def test_nothing_is_left_behind_when_writing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    io = MemoryFileIO()

    def full(locations: object) -> None:
        raise StorageError("no space left")

    monkeypatch.setattr(io, "sync", full)
    with pytest.raises(StorageError, match="no space left"):
        written(io)
    assert list(io.list("memory://t/")) == []
