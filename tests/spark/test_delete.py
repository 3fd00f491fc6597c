from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession

from icefloe.engines.spark.change.rewrite import find_rows
from icefloe.engines.spark.read.read import rows_with_positions, survivors
from icefloe.engines.spark.write.write import write
from icefloe.errors import NoSuchFile
from icefloe.expr.filter.nodes import Expr
from icefloe.io.local import LocalFileIO
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field
from icefloe.scan.tasks import Plan
from spark.fakes import Files, metadata_of

pytestmark = pytest.mark.spark

ID = Schema(fields=(Field(1, "id", LONG), Field(2, "note", STRING)))


def three_files(files: Files) -> list[str]:
    def rows(start: int) -> dict[str, list[object]]:
        return {"id": [None if i % 10 == 9 else i for i in range(start, start + 10)], "note": ["x"] * 10}

    return [files.add(f"f{i}.parquet", rows(10 * i), ID, row_group_size=4) for i in range(3)]


def test_matching_rows_are_found_by_file_and_position(spark: SparkSession, files: Files) -> None:
    first, second, _ = three_files(files)
    found = find_rows(rows_with_positions(spark, files.source(ID)), "id BETWEEN 7 AND 12")
    assert found == {first: BitMap64([7, 8]), second: BitMap64([0, 1, 2])}


def test_a_condition_that_is_null_matches_nothing(spark: SparkSession, files: Files) -> None:
    first, *_ = three_files(files)
    found = find_rows(rows_with_positions(spark, files.source(ID)), "id <> 1 AND id < 10")
    assert found[first] == BitMap64([0, 2, 3, 4, 5, 6, 7, 8])


def test_rows_that_are_deleted_already_are_not_found_again(spark: SparkSession, files: Files) -> None:
    first, *_ = three_files(files)
    files.delete(first, [0, 5])
    found = find_rows(rows_with_positions(spark, files.source(ID)), "id < 7")
    assert found == {first: BitMap64([1, 2, 3, 4, 6])}


def test_nothing_found_is_an_empty_answer(spark: SparkSession, files: Files) -> None:
    three_files(files)
    assert find_rows(rows_with_positions(spark, files.source(ID)), "id > 1000") == {}


def test_a_condition_may_be_anything_that_spark_evaluates(spark: SparkSession, files: Files) -> None:
    first, second, third = three_files(files)
    found = find_rows(rows_with_positions(spark, files.source(ID)), "upper(note) = 'X' AND id % 10 = 4")
    assert found == {first: BitMap64([4]), second: BitMap64([4]), third: BitMap64([4])}


def test_an_error_of_the_planner_is_raised_as_itself(spark: SparkSession, files: Files) -> None:
    def plan(filter_: Expr, bounded: tuple[int, ...] = ()) -> Plan:
        raise NoSuchFile("no file root.parquet")

    files.plan = plan  # type: ignore[method-assign]
    with pytest.raises(NoSuchFile, match=r"^no file root\.parquet$"):
        find_rows(rows_with_positions(spark, files.source(ID)), "id = 1")


def test_a_rewrite_keeps_all_other_rows_of_the_touched_files(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    first, second, _ = three_files(files)
    source = files.source(ID)
    deleted = find_rows(rows_with_positions(spark, source), "id = 3 OR id >= 10 AND id < 15")
    metadata = metadata_of(tmp_path / "table", ID)
    entries = write(survivors(spark, source, deleted), metadata=metadata, io=LocalFileIO())
    assert set(deleted) == {first, second}
    rows = [i for name in entries["location"].to_pylist() for i in pq.ParquetFile(name).read()["id"].to_pylist()]
    assert sorted(rows, key=str) == sorted([0, 1, 2, 4, 5, 6, 7, 8, None, 15, 16, 17, 18, None], key=str)


def test_a_rewrite_of_a_file_without_survivors_adds_nothing(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    first, *_ = three_files(files)
    metadata = metadata_of(tmp_path / "table", ID)
    everything = {first: BitMap64(range(10))}
    rows = survivors(spark, files.source(ID), everything)
    assert write(rows, metadata=metadata, io=LocalFileIO()).num_rows == 0
