"""Deletion vectors of many files in one Puffin file."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from icefloe.deletes import vectors
from icefloe.deletes.bitmaps import within
from icefloe.deletes.vectors import load_vectors, write_vectors
from icefloe.errors import CorruptFile, FormatError, IcefloeError
from icefloe.io.memory import MemoryFileIO
from unit.deletes.files import tasks

FILES = [f"memory://t/{n}.parquet" for n in range(6)]
AT = "memory://t/dv.puffin"
DELETED = {file: BitMap64(range(n, 50, n + 1)) for n, file in enumerate(FILES)}


class Counting(MemoryFileIO):
    """Files in memory that count the ranges read of them."""

    ranges: list[tuple[int, int]]

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        self.ranges.append((offset, length))
        return super().read_range(location, offset, length)


def planned(io: MemoryFileIO) -> pa.Table:
    plain = [{"location": file, "record_count": 50} for file in FILES]
    found = write_vectors(io, tasks(plain), {}, DELETED, location=AT).to_pylist()
    own = {
        row["referenced_file"]: {
            "dv_location": AT,
            "dv_offset": row["dv_offset"],
            "dv_size_in_bytes": row["dv_size_in_bytes"],
            "dv_cardinality": row["record_count"],
        }
        for row in found
    }
    return tasks([{**row, **own[row["location"]]} for row in plain])


def counting() -> Counting:
    io = Counting()
    io.ranges = []
    return io


def test_vectors_that_lie_together_are_read_together() -> None:
    io = counting()
    plan = planned(io)
    assert load_vectors(io, plan.take(pa.array([3, 0, 5, 1, 4, 2]))) == DELETED
    assert len(io.ranges) == 1


def test_vectors_with_others_between_are_read_one_by_one() -> None:
    io = counting()
    plan = planned(io)
    assert load_vectors(io, plan.take(pa.array([4, 0, 2]))) == {file: DELETED[file] for file in FILES[::2]}
    assert len(io.ranges) == 3


def test_no_more_is_read_together_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    io = counting()
    plan = planned(io)
    monkeypatch.setattr(vectors, "MAX_READ_BYTES", 1)
    assert load_vectors(io, plan) == DELETED
    assert len(io.ranges) == 6


def test_the_positions_within_a_file_are_those_below_its_number_of_rows() -> None:
    positions = BitMap64([0, 3, 9, 10, 2**40])
    assert within(positions, 10) == BitMap64([0, 3, 9])
    assert within(positions, 2**41) is positions
    assert within(positions, 0) == BitMap64()
    assert within(BitMap64(), 0) == BitMap64()


def test_a_vector_that_does_not_lie_where_its_entry_says_is_refused() -> None:
    io = counting()
    plan = planned(io)
    shifted = plan.set_column(
        plan.schema.get_field_index("dv_offset"), "dv_offset", pa.compute.add(plan["dv_offset"], 1)
    )
    with pytest.raises((CorruptFile, FormatError)) as error:
        load_vectors(io, shifted)
    assert isinstance(error.value, IcefloeError)
    assert AT in str(error.value)
