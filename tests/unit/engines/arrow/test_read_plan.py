"""Plans read in parts: order, counts, and what need not be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from test_arrow_engine import IO, SCHEMA, Vectors, files, plan_of, rows, table_at, where

from icefloe.engines.arrow.read import plan_reader
from icefloe.engines.arrow.read.plan_reader import count_rows, file_parts, read_plan, reading_threads, whole_files
from icefloe.errors import FormatError
from icefloe.formats.parquet import file as parquet_file
from icefloe.formats.read.file_read import FilePart
from icefloe.formats.read.reader import read_file
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.metadata.table_metadata import TableMetadata

MIB = 1024 * 1024


def small_groups(folder: Path) -> TableMetadata:
    return replace(table_at(folder), properties={"write.parquet.row-group-size-bytes": "200"})


@pytest.mark.parametrize(
    ("size", "row_groups", "parts"),
    [(100, 50, 1), (64 * MIB, 1, 1), (64 * MIB, 2, 2), (640 * MIB, 1000, 40), (640 * MIB, None, 10), (0, 0, 1)],
)
def test_a_file_has_as_many_parts_as_its_size_and_row_groups_allow(
    tmp_path: Path, size: int, row_groups: int | None, parts: int
) -> None:
    plan = plan_of(files(table_at(tmp_path), rows(1)))
    offsets = None if row_groups is None else list(range(row_groups))
    changed = {"file_size_in_bytes": pa.array([size]), "split_offsets": pa.array([offsets], pa.list_(pa.int64()))}
    for name, values in changed.items():
        tasks = plan.tasks.set_column(plan.tasks.schema.get_field_index(name), name, values)
        plan = plan.with_tasks(tasks)
    assert [part.part for part in file_parts(plan)] == [FilePart(index=n, count=parts) for n in range(parts)]
    avro = plan.tasks.set_column(plan.tasks.schema.get_field_index("file_format"), "file_format", pa.array(["avro"]))
    assert [part.part for part in file_parts(plan.with_tasks(avro))] == [FilePart(index=0, count=1)]


def test_parts_of_files_are_read_side_by_side_and_leave_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_reader, "PART_BYTES", 100)
    monkeypatch.setattr(plan_reader, "MAX_THREADS", 4)
    monkeypatch.setattr(plan_reader.os, "cpu_count", lambda: 4)
    entries = files(small_groups(tmp_path), rows(300), rows(10, 300), rows(200, 310))
    plan = plan_of(entries)
    parts = list(file_parts(plan))
    assert parts[0].part.count > 5
    assert read_plan(IO, plan).read_all()["id"].to_pylist() == list(range(510))
    some = read_plan(IO, plan_of(entries, where("id BETWEEN 250 AND 400"))).read_all()
    assert some["id"].to_pylist() == list(range(250, 401))
    [batch, *_] = read_file(IO, parts[1])
    assert 0 < batch["id"][0].as_py() < 300


@pytest.mark.parametrize(("processors", "alone"), [(2, False), (7, True), (16, True)])
def test_a_part_takes_one_processor_where_there_are_parts_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: int, alone: bool
) -> None:
    used: list[bool] = []
    original = pa.parquet.ParquetFile.iter_batches

    def recording(self: Any, *args: Any, use_threads: bool, **options: Any) -> Any:
        used.append(use_threads)
        return original(self, *args, use_threads=use_threads, **options)

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", recording)
    monkeypatch.setattr(parquet_file, "FEW_BYTES", 0)
    monkeypatch.setattr(plan_reader.os, "cpu_count", lambda: processors)
    plan = plan_of(files(table_at(tmp_path), *(rows(1, number) for number in range(8))))
    assert read_plan(IO, plan).read_all()["id"].to_pylist() == list(range(8))
    assert used == [alone] * 8
    used.clear()
    assert read_plan(IO, plan_of(plan.tasks, where("x = 1.5"))).read_all()["id"].to_pylist() == [3]
    assert set(used) == {True}  # a filter may leave one row group of many


@pytest.mark.parametrize(("make", "alone"), [(table_at, True), (small_groups, False)])
def test_a_large_file_of_one_row_group_may_take_all_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, alone: bool
) -> None:
    monkeypatch.setattr(plan_reader, "PART_BYTES", 1)
    monkeypatch.setattr(plan_reader.os, "cpu_count", lambda: 2)
    reads = whole_files(plan_of(files(make(tmp_path), rows(300))))
    assert [read.use_threads for read in reads] == [alone]


def test_rows_are_counted_without_the_files_where_the_plan_knows(tmp_path: Path) -> None:
    entries = files(table_at(tmp_path), rows(10), rows(10, 10))
    first, second = entries["location"].to_pylist()
    lost = Vectors({first: BitMap64([0, 9, 20]), second: BitMap64([1])})  # what lies behind the end counts for nothing
    Path(second.removeprefix("file://")).unlink()
    assert count_rows(IO, plan_of(entries), lost) == 8 + 9  # type: ignore[arg-type]
    assert count_rows(IO, plan_of(entries, where("id >= 5")), lost) == 4 + 9  # type: ignore[arg-type]
    assert count_rows(IO, plan_of(entries.slice(0, 0)), lost) == 0  # type: ignore[arg-type]


def test_counting_reads_only_the_columns_of_the_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = pa.parquet.ParquetFile.iter_batches

    def recording(self: Any, *args: Any, columns: list[str], **options: Any) -> Any:
        asked.extend(columns)
        return original(self, *args, columns=columns, **options)

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", recording)
    entries = files(table_at(tmp_path), rows(10))
    assert count_rows(IO, plan_of(entries, where("x < 2 AND note != 'n1'"))) == 3
    assert sorted(set(asked)) == ["note", "x"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.sampled_from(["id < 12", "x = 3.5", "note IS NULL", "id >= 0", "note = 'n3' OR id > 27"]),
    gone=st.sets(st.integers(0, 39)),
    part_bytes=st.sampled_from([50, 300, 10_000]),
)
def test_counts_are_the_numbers_of_rows(tmp_path: Path, text: str, gone: set[int], part_bytes: int) -> None:
    entries = files(small_groups(tmp_path), rows(25), rows(5, 25))
    first, second = entries["location"].to_pylist()
    lost: Any = Vectors(
        {first: BitMap64(gone & set(range(25))), second: BitMap64(n - 25 for n in gone if n in range(25, 30))}
    )
    plan = plan_of(entries, where(text))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plan_reader, "PART_BYTES", part_bytes)
        found = read_plan(IO, plan, lost).read_all()
        assert count_rows(IO, plan, lost) == found.num_rows
    whole = pa.concat_tables([rows(25), rows(5, 25)])
    kept = whole.filter(pa.array([n not in gone for n in range(30)])).filter(_as_expression(text))
    assert found["id"].to_pylist() == kept["id"].to_pylist()


def _as_expression(text: str) -> Any:
    return {
        "id < 12": pc.field("id") < 12,
        "x = 3.5": pc.field("x") == 3.5,
        "note IS NULL": pc.field("note").is_null(),
        "id >= 0": pc.field("id") >= 0,
        "note = 'n3' OR id > 27": (pc.field("note") == "n3") | (pc.field("id") > 27),
    }[text]


def test_more_threads_read_what_is_far_away_and_one_what_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_reader.os, "cpu_count", lambda: 2)
    plan = plan_of(files(table_at(tmp_path), rows(1)))
    assert reading_threads(plan) == 1
    monkeypatch.setattr(plan_reader, "FEW_BYTES", 1)
    assert reading_threads(plan) == 2
    far = plan.with_tasks(plan.tasks.set_column(0, "location", pa.array(["s3a://bucket/f.parquet"])))
    assert reading_threads(far) == 8
    assert reading_threads(far.with_tasks(far.tasks.slice(0, 0))) == 2


def test_a_damaged_name_mapping_is_told_when_rows_are_read_and_not_before(tmp_path: Path) -> None:
    plan = replace(plan_of(files(table_at(tmp_path), rows(1))), properties={"schema.name-mapping.default": "[{"})
    assert plan.files == 1
    with pytest.raises(FormatError, match=r"schema.name-mapping.default"):
        read_plan(IO, plan).read_all()
    assert read_plan(IO, replace(plan, properties={})).schema.equals(arrow_schema(SCHEMA))
