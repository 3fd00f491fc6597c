"""What planned files have lost: each kind of delete alone, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from icefloe.deletes import deleted_rows as drops_module
from icefloe.deletes.deleted_rows import DeletedRows, all_except
from icefloe.deletes.position_files import read_positions
from icefloe.deletes.vectors import write_vectors
from icefloe.errors import NoSuchFile
from icefloe.formats.read.file_read import NO_DELETES, FileDeletes, FileRead
from icefloe.formats.read.reader import read_file
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import partition_key
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, LONG, STRING, Field
from unit.deletes.files import FORMATS, by_id, deletes, equality_file, position_file, tasks, write, write_positions

ID, NOTE = Field(1, "id", LONG), Field(2, "note", STRING)
SCHEMA = Schema(fields=(ID, NOTE))
A, B = "memory://t/a.parquet", "memory://t/b.parquet"
KEY = {"lower_bound:p1000": pa.string(), "upper_bound:p1000": pa.string(), "value_count:p1000": pa.int64()}


def data(io: MemoryFileIO, location: str, *ids: int) -> str:
    return write(io, location, SCHEMA, pa.table({"id": list(ids), "note": [f"n{i}" for i in ids]}))


def gone(io: MemoryFileIO, location: str, lost: FileDeletes) -> set[int]:
    """The ids of the rows that a file has lost."""
    every = {
        row["id"] for batch in read_file(io, FileRead(location=location, schema=SCHEMA)) for row in batch.to_pylist()
    }
    kept = {
        row["id"]
        for batch in read_file(io, FileRead(location=location, schema=SCHEMA, deletes=lost))
        for row in batch.to_pylist()
    }
    return every - kept


def ids_file(io: MemoryFileIO, location: str, *ids: int | None) -> str:
    """An equality delete file by id."""
    kind = location.rpartition(".")[2]
    return write(io, location, Schema(fields=(ID,)), pa.table({"id": pa.array(ids, pa.int64())}), kind)


def planned(*rows: Mapping[str, object]) -> pa.Table:
    return tasks([{"record_count": 5, **row} for row in rows], KEY)


def test_a_file_without_deletes_has_lost_nothing() -> None:
    lost = DeletedRows(MemoryFileIO(), planned({"location": A}), deletes([]), fields={})
    assert lost.of(A) is NO_DELETES
    assert lost.of("memory://t/unknown.parquet") is NO_DELETES
    assert lost.positions([A, "memory://t/unknown.parquet"]) == {}


def test_a_vector_is_read_when_it_is_asked_for() -> None:
    io = MemoryFileIO()
    plain = planned({"location": A}, {"location": B})
    vectors = write_vectors(io, plain, {}, {A: BitMap64([1, 4])}, location="memory://t/dv.puffin")
    found = vectors.to_pylist()[0]
    names = {"dv_location": "location", "dv_offset": "dv_offset", "dv_size_in_bytes": "dv_size_in_bytes"}
    row = {own: found[name] for own, name in names.items()}
    io.delete(["memory://t/dv.puffin"])
    lost = DeletedRows(
        io, planned({"location": A, **row, "dv_cardinality": 2}, {"location": B}), deletes([]), fields={}
    )
    with pytest.raises(NoSuchFile, match=r"dv\.puffin"):
        lost.of(A)
    write_vectors(io, plain, {}, {A: BitMap64([1, 4])}, location="memory://t/dv.puffin")
    assert lost.of(A) == FileDeletes(positions=BitMap64([1, 4]))
    assert lost.positions([A, B]) == {A: BitMap64([1, 4])}


@pytest.mark.parametrize("file_format", FORMATS)
def test_positions_of_several_delete_files_add_up(file_format: str) -> None:
    io = MemoryFileIO()
    one = write_positions(io, f"memory://t/1.{file_format}", [(A, 0), (B, 2)], file_format)
    two = write_positions(io, f"memory://t/2.{file_format}", [(A, 0), (A, 3)], file_format)
    plan = planned({"location": A, "deletes": [0, 1]}, {"location": B, "deletes": [0]})
    lost = DeletedRows(io, plan, deletes([position_file(one), position_file(two)]), fields={})
    assert lost.positions([A, B]) == {A: BitMap64([0, 3]), B: BitMap64([2])}
    assert lost.of(A) == FileDeletes(positions=BitMap64([0, 3]))


def test_a_delete_for_a_file_that_is_not_in_the_table_is_ignored() -> None:
    io = MemoryFileIO()
    one = write_positions(io, "memory://t/1.parquet", [("memory://t/gone.parquet", 10**9)])
    lost = DeletedRows(io, planned({"location": A, "deletes": [0]}), deletes([position_file(one)]), fields={})
    assert lost.of(A) == NO_DELETES
    assert lost.positions([A]) == {}


def test_a_position_past_the_end_of_its_file_is_kept_for_whoever_reads_by_position() -> None:
    io = MemoryFileIO()
    one = write_positions(io, "memory://t/1.parquet", [(A, 4), (B, 5)])
    plan = planned({"location": A, "deletes": [0]}, {"location": B, "deletes": [0]})
    lost = DeletedRows(io, plan, deletes([position_file(one)]), fields={})
    assert lost.of(B) == FileDeletes(positions=BitMap64([5]))


def test_a_delete_file_is_read_once_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    io, reads = MemoryFileIO(), []

    def watched(io: MemoryFileIO, location: str, *more: object) -> dict[str, BitMap64]:
        reads.append(location)
        return read_positions(io, location, *more)

    monkeypatch.setattr(drops_module, "read_positions", watched)
    files = [f"memory://t/{n}.parquet" for n in range(20)]
    one = write_positions(io, "memory://t/deletes.parquet", [(file, 1) for file in files])
    plan = planned(*({"location": file, "deletes": [0]} for file in files))
    lost = DeletedRows(io, plan, deletes([position_file(one)]), fields={})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lost.of, files))
    assert [drop.positions for drop in found] == [BitMap64([1])] * 20
    assert reads == [one]


@pytest.mark.parametrize("file_format", FORMATS)
def test_equality_deletes_drop_older_rows_only(file_format: str) -> None:
    io = MemoryFileIO()
    data(io, A, 1, 2, 3, 4, 5)
    older = ids_file(io, f"memory://t/old.{file_format}", 1, 2)
    newer = ids_file(io, f"memory://t/new.{file_format}", 2, 3)
    found = deletes([equality_file(older, [1], 2), equality_file(newer, [1], 4)])
    for age, listed, expected in ((1, [0, 1], {1, 2, 3}), (2, [1], {2, 3}), (3, [1], {2, 3}), (4, [], set())):
        plan = planned({"location": A, "sequence_number": age, "deletes": listed}, {"location": B, "deletes": [0]})
        lost = DeletedRows(io, plan, found, fields=by_id(ID, NOTE))
        assert gone(io, A, lost.of(A)) == expected


def test_one_index_serves_files_of_any_age() -> None:
    io = MemoryFileIO()
    data(io, A, 1, 2, 3)
    data(io, B, 1, 2, 3)
    older, newer = ids_file(io, "memory://t/old.parquet", 1), ids_file(io, "memory://t/new.parquet", 2)
    plan = planned(
        {"location": A, "sequence_number": 1, "deletes": [0, 1]}, {"location": B, "sequence_number": 2, "deletes": [1]}
    )
    lost = DeletedRows(
        io, plan, deletes([equality_file(older, [1], 2), equality_file(newer, [1], 3)]), fields=by_id(ID, NOTE)
    )
    assert (gone(io, A, lost.of(A)), gone(io, B, lost.of(B))) == ({1, 2}, {2})
    assert lost.of(A).tests[0].index is lost.of(B).tests[0].index


def test_equality_deletes_of_one_partition_leave_others_alone() -> None:
    io = MemoryFileIO()
    data(io, A, 1, 2, 3)
    data(io, B, 1, 2, 3)
    north, south = ids_file(io, "memory://t/north.parquet", 1), ids_file(io, "memory://t/south.parquet", 2)
    everywhere = ids_file(io, "memory://t/all.parquet", 3)
    spec = {"partition_spec_id": 1}
    plan = planned(
        {"location": A, **spec, "lower_bound:p1000": "north", "deletes": [0, 2]},
        {"location": B, **spec, "lower_bound:p1000": "south", "deletes": [1, 2]},
    )
    found = deletes(
        [
            equality_file(north, [1], 2, **spec, **{"lower_bound:p1000": "north"}),
            equality_file(south, [1], 2, **spec, **{"lower_bound:p1000": "south"}),
            equality_file(everywhere, [1], 2, **{"lower_bound:p1000": None}),
        ],
        {partition_key(1000): pa.string()},
    )
    lost = DeletedRows(io, plan, found, fields=by_id(ID, NOTE))
    assert gone(io, A, lost.of(A)) == {1, 3}
    assert gone(io, B, lost.of(B)) == {2, 3}


def test_several_sets_of_delete_columns_and_positions_together() -> None:
    io = MemoryFileIO()
    data(io, A, 1, 2, 3, 4, 5)
    by_key = ids_file(io, "memory://t/id.parquet", 1)
    by_note = write(io, "memory://t/note.parquet", Schema(fields=(NOTE,)), pa.table({"note": ["n2"]}))
    by_both = write(io, "memory://t/both.parquet", SCHEMA, pa.table({"id": [3, 4], "note": ["n3", "other"]}))
    by_place = write_positions(io, "memory://t/pos.parquet", [(A, 4)])
    found = deletes(
        [
            position_file(by_place),
            equality_file(by_key, [1], 2),
            equality_file(by_note, [2], 2),
            equality_file(by_both, [2, 1], 2),
        ]
    )
    lost = DeletedRows(io, planned({"location": A, "deletes": [0, 1, 2, 3]}), found, fields=by_id(ID, NOTE))
    assert gone(io, A, lost.of(A)) == {1, 2, 3, 5}
    assert lost.positions([A]) == {A: BitMap64([4])}


def test_more_columns_in_an_equality_delete_file_are_not_compared() -> None:
    io = MemoryFileIO()
    data(io, A, 1, 2, 3)
    one = write(io, "memory://t/d.parquet", SCHEMA, pa.table({"id": [2], "note": ["something else"]}))
    lost = DeletedRows(
        io, planned({"location": A, "deletes": [0]}), deletes([equality_file(one, [1], 2)]), fields=by_id(ID)
    )
    assert gone(io, A, lost.of(A)) == {2}


def test_a_promoted_delete_column_is_compared_in_its_type_of_now() -> None:
    io = MemoryFileIO()
    narrow = Schema(fields=(Field(1, "id", INT),))
    data(io, A, 1, 2, 2**40)
    one = write(io, "memory://t/1.parquet", narrow, pa.table({"id": pa.array([2], pa.int32())}))
    two = ids_file(io, "memory://t/2.parquet", 2**40)
    found = deletes([equality_file(one, [1], 2), equality_file(two, [1], 2)])
    lost = DeletedRows(io, planned({"location": A, "deletes": [0, 1]}), found, fields=by_id(ID))
    assert gone(io, A, lost.of(A)) == {2, 2**40}


def test_further_positions_are_deleted_with_those_of_a_file_or_all_but_some_are() -> None:
    some = FileDeletes(positions=BitMap64([1]))
    assert some.also(None) is some
    assert some.also(BitMap64([3])) == FileDeletes(positions=BitMap64([1, 3]))
    assert NO_DELETES.also(BitMap64([3])) == FileDeletes(positions=BitMap64([3]))
    assert all_except(BitMap64([1, 3]), 5) == FileDeletes(positions=BitMap64([0, 2, 4]))
