"""Many partitions in one write: few files, few of them open, and rows in bounds of memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.formats.write import write_files as write_module
from icefloe.formats.write.write_files import Memory, PartitionWriter, write_files
from icefloe.io.local import LocalFileIO
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import sort_order

SCHEMA = parse_ddl("part int, n bigint")
BY_PART = PartitionSpec(
    spec_id=1, fields=(PartitionField(source_id=1, field_id=1000, name="part", transform="identity"),)
)
SMALL_CHUNKS = {"write.parquet.row-group-size-bytes": "2000"}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many files a write has open, now and at most."""
    counts = {"now": 0, "most": 0}
    real = write_module.open_writer

    def begin(*arguments: Any) -> Any:
        writer = real(*arguments)
        close = writer.close
        counts["now"] += 1
        counts["most"] = max(counts.values())

        def closed() -> Any:
            counts["now"] -= 1
            return close()

        writer.close = closed
        return writer

    monkeypatch.setattr(write_module, "open_writer", begin)
    return counts


def rows(count: int, partitions: int) -> pa.Table:
    numbers = np.random.default_rng(2).permutation(count)
    return pa.table({"part": pa.array(numbers % partitions, pa.int32()), "n": numbers})


def write(folder: Path, data: Any, memory: Memory, order: SortOrder = UNSORTED) -> pa.Table:
    return write_files(
        LocalFileIO(),
        data,
        schema=SCHEMA,
        spec=BY_PART,
        sort_order=order,
        data_location=f"file://{folder}",
        memory=memory,
        properties=SMALL_CHUNKS,
    )


def check(entries: pa.Table, count: int) -> None:
    found: Counter[int] = Counter()
    for entry in entries.to_pylist():
        table = pq.ParquetFile(entry["location"].removeprefix("file://")).read()
        assert set(table["part"].to_pylist()) == {entry["lower_bound:p1000"]}
        found.update(table["n"].to_pylist())
    assert found == Counter(range(count))


@pytest.mark.parametrize("stream", [True, False])
def test_more_partitions_than_open_files_still_have_one_file_each(
    tmp_path: Path, opened: dict[str, int], stream: bool
) -> None:
    data = rows(6_000, 60)
    entries = write(tmp_path, iter(data.to_batches(max_chunksize=500)) if stream else data, Memory(open_files=4))
    assert entries.num_rows == 60
    assert opened["most"] <= 4
    check(entries, 6_000)


def test_a_stream_that_takes_too_much_memory_is_written_in_parts(tmp_path: Path, opened: dict[str, int]) -> None:
    data = rows(20_000, 50)
    memory = Memory(open_files=5, waiting_bytes=40_000)
    entries = write(tmp_path, iter(data.to_batches(max_chunksize=500)), memory)
    assert 50 < entries.num_rows < 2_000
    assert opened["most"] <= 5
    check(entries, 20_000)


@pytest.mark.slow
def test_a_few_rows_of_many_partitions_take_the_memory_that_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of each chunk waited in arrays of their own, which took ten times what was allowed for and counted."""
    held: list[int] = []
    batches: list[int] = []
    add = PartitionWriter.add

    def watched(writer: PartitionWriter, chunk: pa.RecordBatch) -> None:
        add(writer, chunk)
        waiting = writer._waiting.values()
        batches.append(sum(len(rows.batches) for rows in waiting))
        values = sum(rows.nbytes for each in waiting for rows in each.batches)
        held.append(values + 512 * 2 * batches[-1] + writer._gathered_bytes)

    monkeypatch.setattr(PartitionWriter, "add", watched)
    data = rows(30_000, 200)
    write(tmp_path / "ample", iter(data.to_batches(max_chunksize=500)), Memory(waiting_bytes=600_000))
    assert len(batches) >= 60
    assert max(batches) == 200  # one of each partition, not one of each partition in each chunk
    held.clear()
    data = rows(20_000, 200)
    entries = write(tmp_path / "scarce", iter(data.to_batches(max_chunksize=500)), Memory(waiting_bytes=200_000))
    assert max(held) <= 200_000
    assert entries.num_rows < 1_000
    check(entries, 20_000)


def test_rows_of_a_partition_keep_their_order(tmp_path: Path) -> None:
    data = rows(20_000, 50)
    entries = write(tmp_path, iter(data.to_batches(max_chunksize=500)), Memory())
    came = {number: place for place, number in enumerate(data["n"].to_pylist())}
    for entry in entries.to_pylist():
        places = [came[n] for n in pq.ParquetFile(entry["location"].removeprefix("file://")).read()["n"].to_pylist()]
        assert places == sorted(places)


@pytest.mark.slow
@pytest.mark.parametrize("is_sorted", [True, False])
def test_rows_at_hand_are_written_partition_by_partition(
    tmp_path: Path, opened: dict[str, int], is_sorted: bool
) -> None:
    data = rows(20_000, 50)
    order = sort_order(["n desc"], SCHEMA) if is_sorted else UNSORTED
    entries = write(tmp_path, data, Memory(open_files=5, waiting_bytes=40_000), order)
    assert (entries.num_rows, opened["most"]) == (50, 1)
    check(entries, 20_000)
    came = data["n"].to_pylist()
    for entry in entries.to_pylist():
        numbers = pq.ParquetFile(entry["location"].removeprefix("file://")).read()["n"].to_pylist()
        in_order = sorted(numbers, reverse=True) if is_sorted else sorted(numbers, key=came.index)
        assert numbers == in_order


def test_one_partition_at_hand_is_sorted_too(tmp_path: Path) -> None:
    data = rows(1_000, 1)
    [entry] = write(tmp_path, data, Memory(waiting_bytes=10), sort_order(["n"], SCHEMA)).to_pylist()
    assert pq.ParquetFile(entry["location"].removeprefix("file://")).read()["n"].to_pylist() == list(range(1_000))
